// A diagnosis of a run is written and read back completely.
#include "model/verdict.h"

#include <boost/test/unit_test.hpp>

namespace culprit {
namespace {

BOOST_AUTO_TEST_CASE(a_verdict_is_read_back_as_it_was_written) {
  Verdict v;
  v.job = "train";
  v.run = 3;
  v.leads = true;
  v.settled = false;
  v.change = Change::kRevised;
  v.replaces_id = "d1", v.replaces_title = "A host was silent";
  v.accused_ns = {{"node-3", 11}, {"node-4", kNoTime}};
  v.diagnosis.id = "d2";
  v.diagnosis.rule = "nvidia.xid.79";
  v.diagnosis.title = "GPU has fallen off the bus";
  v.diagnosis.hosts.emplace_back().host = "node-3";
  v.diagnosis.said_by = SaidBy{{Principal(12'002u), Principal::pod("3f2a51e8c9d0")}, {}};
  const auto read = verdict_from_json(to_json(v));
  BOOST_TEST_REQUIRE(read.has_value());
  BOOST_TEST(to_json(*read) == to_json(v));
  BOOST_TEST((read->leads && !read->settled && read->change == Change::kRevised));
  BOOST_TEST(kind_of(read->diagnosis) == "rule:nvidia.xid.79");
  BOOST_TEST(!read->has_proof());
}

BOOST_AUTO_TEST_CASE(one_that_was_gone_before_it_was_stored_has_its_id_alone) {
  Verdict v;
  v.job = "train";
  v.diagnosis.id = "d9";
  v.change = Change::kWithdrawn;
  BOOST_TEST(to_json(v) ==
             R"({"job":"train","run":0,"verdict":false,"settled":true,"change":"withdrawn","replaces":null,)"
             R"("id":"d9"})");
}

BOOST_AUTO_TEST_CASE(a_list_has_its_times) {
  Verdict v;
  v.job = "train", v.diagnosis.id = "d1", v.since_ns = 5;
  const std::string text = to_json(v, VerdictForm::kListed);
  BOOST_TEST(text.find(R"("first_ns":5,"last_ns":null)") != text.npos);
  v.state = VerdictState::kWithdrawn;
  BOOST_TEST(to_json(v, VerdictForm::kListed).find(R"("state":"withdrawn")") != text.npos,
             "of one that is gone");
}

BOOST_AUTO_TEST_CASE(what_is_no_diagnosis_is_refused_with_a_sentence) {
  for (const char* text : {"", "[]", "{", R"({"verdict":3})", R"({"id":7})", R"({"hosts":[7]})"})
    BOOST_TEST(!verdict_from_json(text).has_value(), text);
  BOOST_TEST(verdict_from_json(R"({"settled":"yes"})").error().text ==
             "'settled' is not of the type that it has in a report");
}

}  // namespace
}  // namespace culprit
