#include "app/daemon/watch/capture_findings.h"

#include <boost/test/unit_test.hpp>

using namespace culprit;
using namespace culprit::app;

BOOST_AUTO_TEST_SUITE(capture_findings)

namespace {

std::string line_of(const std::string& more) {
  return R"({"kind":"stack","job":"j","host":"node-3","rank":6,"time_ns":5,"pid":12,"name":"python3",)" +
         more + R"(,"threads":[]})";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_state_that_explains_a_hang_is_a_finding) {
  const struct {
    const char *more, *id, *category, *component;
  } cases[] = {
      {R"("state":"T")", "process.stopped", "platform", "platform"},
      {R"("state":"S","frozen":true)", "process.frozen", "platform", "platform"},
      {R"("state":"t","tracer":99)", "process.traced", "user", "user_code"},
      {R"("state":"Z")", "process.gone", "unknown", "unknown"},
      {R"("state":"gone")", "process.gone", "unknown", "unknown"},
      {R"("state":"D","waits":{"state":"D","wchan":"folio_wait_bit_common","file":"/d/x","mount":"/d","fs_type":"nfs4","served":true})",
       "process.storage", "platform", "storage"},
      {R"("state":"D","waits":{"state":"D","wchan":"blk_mq_get_tag","file":"/x","mount":"/","fs_type":"ext4","served":false})",
       "process.blocked", "unknown", "host_kernel"},
  };
  for (const auto& c : cases) {
    const auto found = finding_of_state(line_of(c.more));
    BOOST_REQUIRE_MESSAGE(found, c.more);
    BOOST_TEST(found->id == c.id);
    BOOST_TEST(found->category == c.category);
    BOOST_TEST(found->component == c.component);
    BOOST_TEST(found->symptom == "hang");
    BOOST_TEST(found->host == "node-3");
    BOOST_TEST(found->job == "j");
    BOOST_TEST(*found->rank == 6u);
    BOOST_TEST(found->time_ns == 5);
    BOOST_TEST(found->text.find("process 12 (python3)") == 0u, found->text);
  }
}

BOOST_AUTO_TEST_CASE(what_a_rank_waits_for_is_in_the_text) {
  const auto found = finding_of_state(line_of(
      R"("state":"S","waits":{"state":"D","wchan":"nfs_wait","file":"/d/x","mount":"/d","fs_type":"nfs4","served":true})"));
  BOOST_TEST(found->text == "process 12 (python3) is in state D in nfs_wait, waiting for /d/x on /d (nfs4)");
}

BOOST_AUTO_TEST_CASE(a_process_that_runs_or_sleeps_is_no_finding) {
  for (const char* more : {R"("state":"R")", R"("state":"S","wchan":"futex_wait_queue")", R"("state":"D")"})
    BOOST_TEST(!finding_of_state(line_of(more)));
}

BOOST_AUTO_TEST_CASE(other_lines_are_no_finding) {
  for (const char* line :
       {"", "[]", "{}", R"({"kind":"metric","state":"T"})", R"({"kind":"stack","state":7})",
        R"({"kind":"stack","state":"D","waits":7})", "{\"kind\":\"stack\""})
    BOOST_TEST(!finding_of_state(line));
}

BOOST_AUTO_TEST_SUITE_END()
