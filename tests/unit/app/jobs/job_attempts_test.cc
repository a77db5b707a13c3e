#include "app/jobs/job_attempts.h"

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include "remote_agent.h"

namespace culprit::app {
namespace {

std::string event(int attempt, const char* state) {
  return fmt::format(R"({{"kind":"event","name":"attempt","job":"j","attempt":{},"of":4,"state":"{}",)"
                     R"("why":"without node-3","excluded":["node-3"]}})"
                     "\n",
                     attempt, state);
}

struct Refused {
  const char* fields;
};
std::ostream& operator<<(std::ostream& out, const Refused& r) { return out << r.fields; }
const Refused kRefused[] = {
    {R"("of":4,"state":"begin")"},
    {R"("attempt":0,"of":4,"state":"begin")"},
    {R"("attempt":-1,"of":4,"state":"begin")"},
    {R"("attempt":1e99,"of":4,"state":"begin")"},
    {R"("attempt":4000000000,"of":4,"state":"begin")"},
    {R"("attempt":"2","of":4,"state":"begin")"},
    {R"("attempt":2,"of":4)"},
    {R"("attempt":2,"of":4,"state":"paused")"},
};

std::optional<JobAttempts> of_job(const LiveJobs& jobs) {
  const auto known = jobs.attempts_of_job("j", 0);
  return known ? std::optional(known->attempts) : std::nullopt;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(job_attempts)

BOOST_AUTO_TEST_CASE(a_job_has_the_attempts_that_its_trace_socket_reports) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1000);
  feed.write(socket, "{\"kind\":\"step\",\"step\":1}\n", kStart);
  BOOST_TEST(!of_job(jobs));
  feed.write(socket, event(2, "begin"), kStart);
  const auto got = of_job(jobs);
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(got->attempt == 2u);
  BOOST_TEST(got->of == 4u);
  BOOST_TEST(got->excluded == std::vector<std::string>{"node-3"});
  BOOST_TEST(got->at_ns == kStart);
  const std::string json = to_json(jobs.jobs().front());
  BOOST_TEST(json.find(R"("attempt":2,"attempts":4,"excluded":["node-3"])") != json.npos, json);
  feed.write(socket, event(2, "again"), kStart);
  BOOST_TEST(runs_again(*of_job(jobs)) == "runs again without node-3 (attempt 3 of 4)");
}

BOOST_AUTO_TEST_CASE(a_job_that_waits_for_its_successor_is_no_ended_job) {
  LiveOptions options = live_options();
  options.alive = [](const std::string&) { return std::optional(false); };
  LiveJobs jobs(options);
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1000);
  const auto again = [](const char* more) {
    return fmt::format(R"({{"kind":"event","name":"attempt","job":"j","attempt":1,"of":4,"state":"again"{}}})"
                       "\n",
                       more);
  };
  feed.write(socket, again(R"(,"successor":"j2")"), kStart);
  jobs.tick(kStart + 5 * 3600 * kNsPerSecond);
  BOOST_TEST(jobs.running() == 1u);
  jobs.tick(kStart + 7 * 3600 * kNsPerSecond);
  BOOST_TEST(jobs.running() == 0u);
  feed.write(socket, again(""), kStart + 8 * 3600 * kNsPerSecond);
  jobs.tick(kStart + 9 * 3600 * kNsPerSecond);
  BOOST_TEST(jobs.running() == 0u);
}

BOOST_AUTO_TEST_CASE(data_of_a_successor_from_another_host_belongs_to_the_chain) {
  LiveJobs jobs(live_options());
  RemoteAgent first(1), second(2);
  const auto named = [](RemoteBatch batch, const char* job) {
    for (StreamInfo& opened : batch.batch.opened) opened.job = job, opened.uid = 1000;
    return batch;
  };
  first.trace(R"({"kind":"event","name":"attempt","job":"101","attempt":1,"of":4,"state":"again",)"
              R"("successor":"102"})"
              "\n",
              kStart);
  jobs.ingest(named(first.block(kStart), "101"), kStart);
  second.trace(R"({"kind":"event","name":"attempt","job":"102","attempt":2,"of":4,"state":"begin",)"
               R"("first":"101","member":"102"})"
               "\n",
               kStart + kNsPerSecond);
  jobs.ingest(named(second.block(kStart + kNsPerSecond), "102"), kStart + kNsPerSecond);
  BOOST_REQUIRE(jobs.jobs().size() == 1u);
  BOOST_TEST(jobs.jobs()[0].id == "101");
  BOOST_TEST(jobs.jobs()[0].attempts->attempt == 2u);
  BOOST_TEST(jobs.jobs()[0].attempts->member == "102");
}

BOOST_AUTO_TEST_CASE(another_user_sets_no_attempt_of_a_job) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId own = feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1000);
  const StreamId strange = feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1001);
  feed.write(own, event(1, "begin"), kStart);
  feed.write(strange, event(3, "stop"), kStart);
  BOOST_TEST(of_job(jobs)->attempt == 1u);
  BOOST_TEST(jobs.counts().refused == 1u);
}

BOOST_AUTO_TEST_CASE(attempts_come_from_an_agent_and_after_a_restart_too) {
  LiveJobs jobs(live_options());
  RemoteAgent agent(1);
  agent.trace(event(3, "begin"), kStart);
  jobs.ingest(agent.block(kStart), kStart);
  BOOST_REQUIRE(of_job(jobs).has_value());
  BOOST_TEST(of_job(jobs)->attempt == 3u);

  LiveJobs before(live_options()), after(live_options());
  Feed feed(before);
  feed.write(feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1000), event(2, "begin"), kStart);
  feed.replay(after);
  BOOST_TEST(of_job(after)->attempt == 2u);
}

BOOST_DATA_TEST_CASE(an_event_without_a_whole_attempt_is_no_attempt, boost::unit_test::data::make(kRefused)) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1000);
  feed.write(socket, fmt::format("{{\"kind\":\"event\",\"name\":\"attempt\",{}}}\n", sample.fields), kStart);
  BOOST_TEST(!of_job(jobs));
}

BOOST_AUTO_TEST_CASE(texts_and_lists_of_an_event_are_bounded) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock", 1000);
  std::string names = "\"n\"";
  for (int i = 0; i < 500; ++i) names += ",\"" + std::string(50, 'x') + "\"";
  feed.write(socket,
             fmt::format(R"({{"kind":"event","name":"attempt","attempt":7,"of":2,"state":"again",)"
                         R"("why":"{}","excluded":[{}]}})"
                         "\n",
                         std::string(5000, 'w'), names),
             kStart);
  const auto got = of_job(jobs);
  BOOST_REQUIRE(got.has_value());
  BOOST_TEST(got->of == 7u);  // never less than the attempt
  BOOST_TEST(got->excluded.size() == 64u);
  BOOST_TEST(got->why.size() < 400u);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace culprit::app
