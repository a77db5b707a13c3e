// The JSON of the rows of the API's lists: each field is written from a value of its row.
#include "app/daemon/api/listed.h"

#include <boost/test/unit_test.hpp>

#include "app/daemon/api/api_json.h"

namespace culprit::app {
namespace {

BOOST_AUTO_TEST_SUITE(listed)

BOOST_AUTO_TEST_CASE(a_source_is_written_with_null_for_what_is_not_known) {
  SourceRow row;
  row.path = "/dev/kmsg";
  row.host = "h";
  row.kind = OriginKind::kKernel;
  BOOST_TEST(dump(to_json(std::vector{row})) ==
             R"({"items":[{"bytes":0,"ended":false,"first_ns":null,"host":"h","job":null,"kind":"kernel",)"
             R"("last_ns":null,"lost_bytes":0,"lost_records":null,"owner":null,"path":"/dev/kmsg",)"
             R"("pid":null,"pod":null,"uid":null}]})");
  row.job = "j";
  row.writer = Principal{7};
  row.owner = 7;
  row.pid = 99;
  row.first_ns = 5;
  const json written = to_json(row);
  BOOST_TEST(written["job"] == "j");
  BOOST_TEST(written["uid"] == 7);
  BOOST_TEST(written["owner"] == 7);
  BOOST_TEST(written["pid"] == 99);
  BOOST_TEST(written["first_ns"] == 5);
}

BOOST_AUTO_TEST_CASE(a_running_job_is_written_as_its_event_has_it) {
  LiveJobSummary job;
  job.id = "j";
  job.run = 2;
  job.hangs = true;
  job.hosts = 3;
  job.first_ns = 10;
  job.last_ns = 20;
  job.iteration = 7;
  job.verdict = "title";
  job.headline = "line";
  json event = json::parse(to_json(job));
  event["ended_ns"] = nullptr;
  BOOST_TEST(dump(to_json(ListedJob(job))) == dump(event));
  job.state = JobState::kFailed;
  BOOST_TEST(to_json(ListedJob(job))["ended_ns"] == 20);
  job = {};
  event = json::parse(to_json(job));
  event["ended_ns"] = nullptr;
  BOOST_TEST(dump(to_json(ListedJob(job))) == dump(event));
}

BOOST_AUTO_TEST_CASE(a_stored_job_is_written_with_its_verdict_as_people_left_it) {
  records::JobRow row;
  row.id = "j";
  row.state = records::JobState::kEndedWell;
  row.verdict = "title";
  row.hosts = 2;
  ListedJob job(row);
  BOOST_TEST(dump(to_json(job)) ==
             R"({"ended_ns":null,"first_ns":null,"headline":null,"hosts":2,"id":"j","last_ns":null,)"
             R"("lines":null,"note":null,"run":0,"state":"ended","verdict":"title","well":true})");
  job.verdict = {};
  BOOST_TEST(to_json(job)["verdict"].is_null());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace culprit::app
