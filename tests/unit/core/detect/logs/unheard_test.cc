#include "core/detect/logs/unheard.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::detect;

namespace {

Finding about(DetectorKind detector, FindingKind kind, std::vector<std::string> hosts) {
  Finding f;
  f.detector = detector;
  f.kind = kind;
  f.confidence = 0.9;
  if (kind == FindingKind::kFault) f.symptom = Symptom::kHang;
  for (std::string& host : hosts) f.subjects.push_back({std::move(host), 1, {}, {}, 1});
  return f;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(unheard)

BOOST_AUTO_TEST_CASE(silence_of_a_host_whose_agent_is_away_is_not_its_own) {
  Finding rule = about(DetectorKind::kNone, FindingKind::kFault, {"away"});
  rule.rule = "nvidia.xid.79";
  std::vector<Finding> findings = {about(DetectorKind::kSilence, FindingKind::kSupport, {"away"}),
                                   about(DetectorKind::kSilence, FindingKind::kSupport, {"away", "here"}),
                                   about(DetectorKind::kComm, FindingKind::kFault, {"away"}), rule,
                                   about(DetectorKind::kNumerics, FindingKind::kSupport, {"away"})};
  leave_out({"away"}, findings);
  BOOST_REQUIRE(findings.size() == 4u);
  BOOST_TEST(findings[0].subjects.size() == 1u);
  BOOST_TEST(*findings[0].subjects[0].host == "here");
  BOOST_TEST(findings[1].subjects.empty(), "the hang stays, without a suspect");
  BOOST_TEST(findings[1].by_no_device);
  BOOST_TEST(findings[1].confidence <= 0.6);
  BOOST_TEST(findings[2].subjects.size() == 1u, "its own line counts");
  BOOST_TEST(findings[3].subjects.size() == 1u, "so does what was measured");
}

BOOST_AUTO_TEST_SUITE_END()
