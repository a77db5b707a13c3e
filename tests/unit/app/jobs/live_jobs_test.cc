#include "app/jobs/live_jobs.h"

#include <boost/test/unit_test.hpp>

#include "live_feed.h"
#include "model/report_json.h"

using namespace culprit;
using namespace culprit::app;

namespace {

// Feeds one file after the other, in pieces of this size.
std::string live(const std::vector<std::string>& files, size_t size, bool reports_between) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  for (size_t h = 0; h < files.size(); ++h) {
    const StreamId stream = feed.open(OriginKind::kFile, "j", "/logs/" + file_name(h));
    for (size_t at = 0; at < files[h].size(); at += size) {
      feed.write(stream, std::string_view(files[h]).substr(at, size), kStart);
      if (reports_between && at % 1000 == 0) jobs.report("j", kStart);
    }
    feed.write(stream, "", kStart, true);
  }
  return without_ids(report_of(jobs, "j", kStart));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(live_jobs)

BOOST_AUTO_TEST_CASE(pieces_cut_anywhere_give_the_report_of_the_files) {
  const auto files = failing_files();
  const std::string expected = offline(files);
  BOOST_TEST(expected.find("nvidia.xid.79") != std::string::npos);
  for (const size_t size : {size_t{1}, size_t{7}, size_t{64}, size_t{1000}, size_t{1} << 20})
    BOOST_TEST(live(files, size, false) == expected, "pieces of " << size);
}

BOOST_AUTO_TEST_CASE(reports_in_between_change_nothing) {
  const auto files = failing_files();
  BOOST_TEST(live(files, 100, true) == live(files, 1 << 20, false));
}

BOOST_AUTO_TEST_CASE(two_jobs_are_apart) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  const StreamId b = feed.open(OriginKind::kFile, "b", "/logs/b.log");
  for (int64_t s = 0; s < 30; ++s) {
    feed.write(a, step_line(s), kStart + s * kNsPerSecond);
    feed.write(b, step_line(s), kStart + s * kNsPerSecond);
  }
  feed.write(b, xid_line(kStart + 30 * kNsPerSecond), kStart + 30 * kNsPerSecond);
  jobs.tick(kStart + 30 * kNsPerSecond);
  const auto events = jobs.poll_events();
  BOOST_TEST(count(events, LiveEventKind::kJobStarted) == 2u);
  const LiveEvent* diagnosis = first(events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(diagnosis);
  BOOST_TEST(diagnosis->job == "b");
  BOOST_TEST(report_of(jobs, "a", kStart + kNsPerSecond * 31).find("xid") == std::string::npos);
  BOOST_TEST(report_of(jobs, "b", kStart + kNsPerSecond * 31).find("nvidia.xid.79") != std::string::npos);
  BOOST_TEST(!jobs.report("c", kStart));
}

BOOST_AUTO_TEST_CASE(lines_that_no_one_understands_begin_no_job) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock");
  feed.write(socket, "{\"kind\":\"metric\",\"rank\":0}\nno json\n", kStart);
  BOOST_TEST(jobs.jobs().empty());
  BOOST_TEST(jobs.counts().broken_trace_lines == 2u);
  feed.write(socket, "{\"kind\":\"step\",\"step\":1}\n", kStart);
  BOOST_TEST(jobs.jobs().size() == 1u);
}

BOOST_AUTO_TEST_CASE(broken_lines_are_problems_of_their_job_folded_by_their_reason) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock");
  feed.write(socket, "no \x1b[31m json\n", kStart);  // before the job exists
  feed.write(socket, "{\"kind\":\"step\",\"step\":1}\n{\"step\"", kStart);
  feed.write(socket, ":1}\nnone either\n", kStart);
  const std::string report = report_of(jobs, "j", kStart + kNsPerSecond);
  const size_t at = report.find("\"problems\":");
  BOOST_REQUIRE(at != report.npos);
  const std::string problems = report.substr(at, report.find(']', at) - at);
  BOOST_TEST(problems.find(R"({"file":"/run/trace.sock","offset":0,"what":"2 lines not understood: it is no )"
                           R"(JSON object; the first: no \\x1b[31m json"})") != problems.npos,
             problems);
  BOOST_TEST(problems.find(R"("offset":39,"what":"1 line not understood: 'kind' is missing; the first: )"
                           R"({\"step\":1}")") != problems.npos,
             problems);
  BOOST_TEST(jobs.counts().broken_trace_lines == 3u);
}

BOOST_AUTO_TEST_CASE(metrics_of_the_socket_reach_the_engine_of_their_job) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId socket = feed.open(OriginKind::kSocket, "j", "/run/trace.sock");
  std::string text;
  for (int rank = 0; rank < 3; ++rank)
    text += "{\"kind\":\"metric\",\"host\":\"another\",\"rank\":" + std::to_string(rank) +
            ",\"step\":1,\"values\":{\"loss\":2.5}}\n";
  for (size_t at = 0; at < text.size(); at += 50)
    feed.write(socket, std::string_view(text).substr(at, 50), kStart + static_cast<TimeNs>(at));
  const std::string report = report_of(jobs, "j", kStart + kNsPerSecond);
  const std::string expected =
      "\"hosts\":1,\"ranks\":3,\"bytes\":" + std::to_string(text.size()) + ",\"lines\":3,";
  BOOST_TEST(report.find(expected) != report.npos, report);
}

BOOST_AUTO_TEST_CASE(what_was_found_is_reported_again_after_a_restart_under_the_same_name) {
  LiveJobs before(live_options());
  Feed feed(before);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  feed.write(log, step_line(1) + xid_line(kStart + 2 * kNsPerSecond), kStart);
  feed.write(log, xid_line(kStart + 30 * kNsPerSecond), kStart + 30 * kNsPerSecond);
  LiveJobs after(live_options());
  after.restoring({});
  feed.replay(after);
  after.replayed(kStart + 60 * kNsPerSecond);
  after.caught_up(kStart + 60 * kNsPerSecond);
  const auto names = [](const std::vector<LiveEvent>& events) {
    std::string out;
    for (const LiveEvent& e : events)
      if (e.kind == LiveEventKind::kFinding) out += e.id + " ";
    return out;
  };
  const auto reported = before.poll_events(), again = after.poll_events();
  BOOST_TEST(count(reported, LiveEventKind::kFinding) == 2u);
  BOOST_TEST(names(reported) == names(again));
  for (const LiveEvent& e : again) BOOST_TEST(e.replayed);
}

BOOST_AUTO_TEST_CASE(a_host_is_accused_when_something_new_speaks_against_it) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  TimeNs now = kStart;
  for (int64_t s = 0; s < 30; ++s, now += kNsPerSecond) feed.write(log, step_line(s), now);
  TimeNs last = kNoTime;  // as stored
  const auto accused = [&] {
    for (const LiveEvent& e : jobs.poll_events())
      if (const auto* change = std::get_if<DiagnosisChange>(&e.content))
        if (const auto at = change->accused_ns.find("node-0");
            at != change->accused_ns.end() && change->diagnosis && change->diagnosis->rule == "nvidia.xid.79")
          last = at->second;
    return last;
  };
  feed.write(log, xid_line(now), now);
  jobs.tick(now);
  const TimeNs first = now;
  BOOST_TEST(accused() == first);
  now += 60 * kNsPerSecond;
  feed.write(log, step_line(30), now);
  jobs.tick(now);
  BOOST_TEST(accused() == first, "a line of progress is nothing new");
  now += 60 * kNsPerSecond;
  feed.write(log, xid_line(now), now);
  jobs.tick(now + kNsPerSecond);
  BOOST_TEST(accused() == now);
  // The same after a restart, however late the report is made.
  LiveJobs after(live_options());
  after.restoring({});
  feed.replay(after);
  after.replayed(now + 600 * kNsPerSecond);
  const auto events = after.poll_events();
  const LiveEvent* again = culprit::app::first(events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(again);
  BOOST_TEST(to_json(*again).find(fmt::format("\"accused_ns\":{{\"node-0\":{}", now)) != std::string::npos,
             to_json(*again));
}

BOOST_AUTO_TEST_CASE(an_error_is_diagnosed_with_the_next_tick) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  for (int64_t s = 0; s < 30; ++s) feed.write(log, step_line(s), kStart + s * kNsPerSecond);
  jobs.tick(kStart + 30 * kNsPerSecond);
  jobs.poll_events();
  feed.write(log, xid_line(kStart + 30 * kNsPerSecond), kStart + 30 * kNsPerSecond + kNsPerMs);
  jobs.tick(kStart + 30 * kNsPerSecond + kNsPerMs);
  const auto events = jobs.poll_events();
  BOOST_TEST(count(events, LiveEventKind::kFinding) == 1u);
  const LiveEvent* diagnosis = first(events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(diagnosis);
  BOOST_TEST(to_json(*diagnosis).find("\"rule\":\"nvidia.xid.79\"") != std::string::npos);
  // The report has the diagnosis under the same id.
  BOOST_TEST(report_of(jobs, "j", kStart).find("\"id\":\"" + diagnosis->id + "\"") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_rule_that_fires_in_a_storm_is_reported_once_in_ten_seconds) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId log = feed.open(OriginKind::kFile, "j", "/logs/a.log");
  for (int64_t i = 0; i < 500; ++i) feed.write(log, xid_line(kStart + i * kNsPerMs), kStart + i * kNsPerMs);
  feed.write(log, xid_line(kStart + 11 * kNsPerSecond), kStart + 11 * kNsPerSecond);
  const auto events = jobs.poll_events();
  BOOST_TEST(count(events, LiveEventKind::kFinding) == 2u);
  BOOST_TEST(to_json(events.back()).find("\"repeated\":499") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(reports_take_a_tenth_of_the_time_at_most) {
  LiveOptions options = live_options();
  TimeNs spent = 0;
  options.timer = [&] { return spent += kNsPerSecond; };  // each report takes a second
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  for (int64_t s = 0; s < 100; ++s) {
    const TimeNs now = kStart + s * kNsPerSecond;
    feed.write(a, step_line(s) + fmt::format("{} ERROR a{} CUDA error: out of memory\n", clock(now), s), now);
    jobs.tick(now);
  }
  BOOST_TEST(jobs.counts().reports >= 1u);
  BOOST_TEST(jobs.counts().reports <= 10u);
}

BOOST_AUTO_TEST_CASE(a_fault_that_reaches_host_after_host_is_reported_once_a_second) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  for (int64_t host = 0; host < 200; ++host) {
    const TimeNs now = kStart + host * 20 * kNsPerMs;
    const StreamId log = feed.open(OriginKind::kFile, "j", fmt::format("/logs/node-{}.log", host));
    feed.write(log, xid_line(now), now);
    jobs.tick(now);
  }
  BOOST_TEST(jobs.counts().reports >= 4u);
  BOOST_TEST(jobs.counts().reports <= 5u);
}

BOOST_AUTO_TEST_CASE(a_host_without_running_jobs_needs_no_ticks) {
  LiveJobs jobs(live_options());
  BOOST_TEST(!jobs.tick(kStart));
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  feed.write(a, step_line(0), kStart);
  const auto next = jobs.tick(kStart);
  BOOST_REQUIRE(next);
  BOOST_TEST((*next > kStart && *next <= kStart + kNsPerSecond));
  BOOST_TEST(!jobs.tick(kStart + 24 * 3600 * kNsPerSecond));
}

BOOST_AUTO_TEST_CASE(a_hurried_report_that_has_to_wait_is_ticked_when_it_may_come) {
  LiveOptions options = live_options();
  TimeNs spent = 0;
  options.timer = [&] { return spent += 20 * kNsPerMs; };  // each report takes this long
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  feed.write(a, xid_line(kStart), kStart);
  jobs.tick(kStart);
  BOOST_TEST(jobs.counts().reports == 1u);
  const TimeNs soon = kStart + 10 * kNsPerMs;
  feed.write(a, fmt::format("{} ERROR CUDA error: out of memory\n", clock(soon)), soon);
  const auto next = jobs.tick(soon);
  BOOST_REQUIRE(next);
  BOOST_TEST(jobs.counts().reports == 1u);
  BOOST_TEST(*next == kStart + kNsPerSecond);
  jobs.tick(*next);
  BOOST_TEST(jobs.counts().reports == 2u);
}

BOOST_AUTO_TEST_CASE(a_clock_that_steps_back_stops_no_reports) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  const TimeNs late = kStart + 3600 * kNsPerSecond;
  feed.write(a, step_line(0), late);
  jobs.tick(late + 20 * kNsPerSecond);
  const uint64_t before = jobs.counts().reports;
  feed.write(a, step_line(1), kStart);
  jobs.tick(kStart + kNsPerSecond);
  BOOST_TEST(jobs.counts().reports > before);
}

BOOST_AUTO_TEST_CASE(what_is_lost_stands_in_the_report_and_breaks_the_line) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
  feed.write(a, "2026-11-21 02:00:00,000 INFO a line that is no", kStart);
  feed.lose(a, 1234, kStart);
  feed.write(a, "rest of another one\n", kStart);
  const std::string report = report_of(jobs, "a", kStart + kNsPerSecond);
  BOOST_TEST(report.find("1.2 kB of it is missing here") != std::string::npos, report);
  BOOST_TEST(jobs.jobs().at(0).lines == 2u);
}

BOOST_AUTO_TEST_CASE(files_named_by_hosts_are_of_them_once_two_are_seen) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId a = feed.open(OriginKind::kFile, "j", "/logs/gpu7.log");
  feed.write(a, step_line(0), kStart);
  const StreamId b = feed.open(OriginKind::kFile, "j", "/logs/gpu8.log");
  for (const StreamId s : {b, a}) feed.write(s, step_line(1), kStart);
  jobs.report("j", kStart);
  BOOST_TEST(jobs.jobs().at(0).hosts == 3u);  // gpu7, gpu8, and the daemon's for the line from before
}

BOOST_AUTO_TEST_CASE(when_all_jobs_run_another_is_refused_and_counted) {
  LiveOptions options = live_options();
  options.jobs_max = 2;
  LiveJobs jobs(std::move(options));
  Feed feed(jobs);
  for (const char* job : {"a", "b", "c"}) {
    const StreamId s = feed.open(OriginKind::kFile, job, fmt::format("/logs/{}.log", job));
    feed.write(s, step_line(0), kStart);
  }
  const auto known = jobs.jobs();
  BOOST_TEST(known.size() == 3u);
  BOOST_TEST(std::count_if(known.begin(), known.end(), [](const auto& job) { return job.has_engine; }) == 2);
  BOOST_TEST(jobs.counts().bytes_refused == step_line(0).size());
}

BOOST_AUTO_TEST_SUITE_END()
