#include "core/diagnose/speakers.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::diagnose;

namespace {

Finding isolating() {
  Finding f;
  f.rule = "a.rule";
  f.action = ActionKind::kIsolate;
  f.confidence = 0.88;
  f.remedy = "Replace the GPU.";
  return f;
}

Diagnosis diagnosis_of(const Finding& f) {
  Diagnosis d;
  d.confidence = f.confidence;
  d.remedy = f.remedy;
  d.action = {f.action, {"node-1"}};
  return d;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(speakers)

BOOST_AUTO_TEST_CASE(what_others_confirm_is_not_capped) {
  const Finding f = isolating();
  Diagnosis d = diagnosis_of(f);
  cap_claim(f, d);
  BOOST_TEST(d.confidence == 0.88);
  BOOST_TEST((d.action.kind == ActionKind::kIsolate));
  BOOST_TEST(!d.said_by.has_value());
}

BOOST_AUTO_TEST_CASE(what_users_alone_say_becomes_a_check_with_whom_to_ask) {
  Finding f = isolating();
  f.said_by.uids = {12'002};
  Diagnosis d = diagnosis_of(f);
  cap_claim(f, d);
  BOOST_TEST(d.confidence == 0.5);
  BOOST_TEST((d.action.kind == ActionKind::kCheck));
  BOOST_TEST(d.action.targets.at(0) == "node-1");
  BOOST_TEST(d.why.at(0) == "said by uid 12002 alone");
  BOOST_TEST(d.remedy ==
             "Ask uid 12002; confirm with the kernel's log or a device test of node-1 before you isolate it. "
             "If it is confirmed: Replace the GPU.");
}

BOOST_AUTO_TEST_CASE(a_finding_by_itself_is_capped_likewise) {
  Finding f = isolating();
  f.said_by.uids = {1, 2, 3, 4};
  cap_claim(f);
  BOOST_TEST(f.confidence == 0.5);
  BOOST_TEST((f.action == ActionKind::kCheck));
  BOOST_TEST(f.why.at(0) == "said by uids 1, 2, 3 and 1 more alone");
}

BOOST_AUTO_TEST_CASE(hearsay_asks_the_accused_host) {
  Finding f = isolating();
  f.said_by.hosts = {"node-0"};
  Diagnosis d = diagnosis_of(f);
  cap_claim(f, d);
  BOOST_TEST(d.confidence == 0.5);
  BOOST_TEST(d.why.at(0) == "hearsay: said by node-0, not by the accused host itself");
  BOOST_TEST(d.remedy.starts_with("Ask the kernel's log of node-1 before you isolate it."));
}

BOOST_AUTO_TEST_CASE(other_actions_keep_their_confidence_unless_a_user_speaks_for_the_kernel) {
  Finding f = isolating();
  f.action = ActionKind::kFix;
  f.said_by.uids = {12'002};
  BOOST_TEST(!is_claim(f));
  f.as_kernel = true;
  Diagnosis d = diagnosis_of(f);
  cap_claim(f, d);
  BOOST_TEST(d.confidence == 0.5);
  BOOST_TEST((d.action.kind == ActionKind::kFix));
}

BOOST_AUTO_TEST_SUITE_END()
