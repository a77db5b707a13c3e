// Engines under limits: slots and memory that several users want.
#include <boost/test/unit_test.hpp>
#include <random>
#include <set>

#include "app/jobs/job_shares.h"
#include "app/jobs/live_jobs.h"
#include "base/heap_account.h"
#include "core/logs/line_feed.h"
#include "live_feed.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint32_t kMalloryUid = 2000, kAliceUid = 1000;

// Lines of no common form, as a user may write to make an engine keep all of them.
std::string random_lines(std::mt19937& random, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) {
    out += R"({"kind":"log","line":")";
    for (int word = 0; word < 6; ++word) {
      for (int letter = 0; letter < 6; ++letter) out += static_cast<char>('a' + random() % 26);
      out += ' ';
    }
    out += "\"}\n";
  }
  return out;
}

std::string step(int64_t n) { return fmt::format("{{\"kind\":\"step\",\"step\":{}}}\n", n); }

std::set<std::string> with_engine(const LiveJobs& jobs) {
  std::set<std::string> out;
  for (const LiveJobSummary& job : jobs.jobs())
    if (job.state == JobState::kRunning && job.has_engine) out.insert(job.id);
  return out;
}

std::string note_of(const LiveJobs& jobs, const std::string& id) {
  for (const LiveJobSummary& job : jobs.jobs())
    if (job.id == id && !job.has_engine) return job.note.value_or("");
  return "";
}

struct Flood {
  LiveJobs& jobs;
  Feed& feed;
  std::mt19937 random{7};
  std::vector<StreamId> streams = {};

  void open(size_t names) {
    for (size_t i = 0; i < names; ++i)
      streams.push_back(
          feed.open(OriginKind::kSocket, fmt::format("m{}", i), "/run/trace.sock", kMalloryUid));
  }
  void write(size_t lines, TimeNs now) {
    for (const StreamId stream : streams) feed.write(stream, random_lines(random, lines), now);
  }
};

constexpr uint64_t kMiB = 1 << 20;

}  // namespace

BOOST_AUTO_TEST_SUITE(engine_budget)

BOOST_AUTO_TEST_CASE(an_account_has_what_its_scopes_keep) {
  HeapAccount account;
  std::vector<std::string> retained;
  {
    const HeapScope counted(&account);
    for (int i = 0; i < 100; ++i) retained.emplace_back(1000, 'x');
  }
  BOOST_TEST(account.bytes() > 100u * 1000u);
  BOOST_TEST(account.bytes() < 120u * 1000u);
  std::string other(100'000, 'x');  // outside
  BOOST_TEST(account.bytes() < 120u * 1000u);
  {
    const HeapScope counted(&account);
    std::vector<std::string>().swap(retained);
  }
  BOOST_TEST(account.bytes() == 0u);
  BOOST_TEST(account.drain_peak() > 100u * 1000u);
  BOOST_TEST(account.drain_peak() == 0u);
}

BOOST_AUTO_TEST_CASE(a_long_line_leaves_no_buffer_once_it_is_complete) {
  HeapAccount account;
  logs::LineFeed feed;
  const logs::LineFeed::Take take = [](const TextChunk&) {};
  const std::string line(50'000, 'x');
  const HeapScope counted(&account);
  feed.feed(line, take);
  BOOST_TEST(account.bytes() >= line.size());
  feed.feed("\n", take);
  BOOST_TEST(account.bytes() < 1000u);
}

BOOST_AUTO_TEST_CASE(engines_of_many_names_stay_within_one_memory) {
  LiveOptions options = live_options();
  options.memory_max = 40 * kMiB;
  LiveJobs jobs(options);
  Feed feed(jobs);
  const StreamId honest = feed.open(OriginKind::kFile, "honest", "/logs/a.log", kAliceUid);
  for (int64_t s = 0; s < 30; ++s) feed.write(honest, step_line(s), kStart + s * kNsPerSecond);
  Flood flood{jobs, feed};
  flood.open(14);
  for (int round = 0; round < 8; ++round) {
    const TimeNs now = kStart + (30 + round) * kNsPerSecond;
    flood.write(1000, now);
    jobs.tick(now);
    BOOST_TEST(jobs.counts().engine_bytes <= options.memory_max);
  }
  BOOST_TEST_MESSAGE(fmt::format("{} MiB of engines, {} gave way", jobs.counts().engine_bytes / kMiB,
                                 jobs.counts().gave_way_for_memory));
  BOOST_TEST(jobs.counts().gave_way_for_memory > 0u);
  BOOST_TEST(jobs.counts().without_engine == jobs.counts().gave_way_for_memory);
  const TimeNs late = kStart + 40 * kNsPerSecond;
  feed.write(honest, xid_line(late), late);
  BOOST_TEST(with_engine(jobs).contains("honest"));
  BOOST_TEST(report_of(jobs, "honest", late + kNsPerSecond).find("nvidia.xid.79") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_job_that_gave_way_says_why_and_stays_evidence_until_it_is_silent) {
  LiveOptions options = live_options();
  options.memory_max = 8 * kMiB;
  LiveJobs jobs(options);
  Feed feed(jobs);
  Flood flood{jobs, feed};
  flood.open(1);
  TimeNs now = kStart;
  while (jobs.counts().gave_way_for_memory == 0 && now < kStart + 100 * kNsPerSecond)
    flood.write(1000, now += kNsPerSecond);
  jobs.tick(now);
  BOOST_REQUIRE(jobs.counts().gave_way_for_memory == 1u);
  BOOST_TEST(note_of(jobs, "m0").find("all engines took more than 8.4 MB") != std::string::npos,
             note_of(jobs, "m0"));
  BOOST_TEST(note_of(jobs, "m0").find("the most of user 2000") != std::string::npos);
  BOOST_TEST(report_of(jobs, "m0", now).find("this run lost its engine") != std::string::npos);
  BOOST_TEST(jobs.drain_notices(now).size() == 1u);
  BOOST_TEST(jobs.drain_notices(now).empty());
  const auto events = jobs.poll_events();
  const LiveEvent* ended = first(events, LiveEventKind::kJobEnded);
  BOOST_REQUIRE(ended);
  BOOST_TEST(to_json(*ended).find("lost its engine") != std::string::npos);
  flood.write(10, now += kNsPerSecond);
  BOOST_TEST(with_engine(jobs).empty());
  now += options.ended_after_ns + kNsPerSecond;
  jobs.tick(now);
  BOOST_TEST(jobs.counts().without_engine == 0u);
  flood.write(10, now);
  BOOST_TEST(with_engine(jobs).contains("m0"));
}

BOOST_AUTO_TEST_CASE(a_replay_stays_within_the_memory_and_skips_what_gave_way) {
  LiveOptions options = live_options();
  options.memory_max = 8 * kMiB;
  LiveJobs before(options);
  Feed feed(before);
  Flood flood{before, feed};
  flood.open(4);
  for (int64_t i = 0; i < 6; ++i) flood.write(700, kStart + i * kNsPerSecond);
  std::vector<RunEnd> ends;
  for (const LiveEvent& e : before.poll_events())
    if (e.kind == LiveEventKind::kJobEnded) ends.push_back({e.job, e.run, e.last_ns});
  BOOST_REQUIRE(!ends.empty());
  LiveJobs after(options);
  after.restoring(ends);
  feed.replay(after);
  after.replayed(kStart + 10 * kNsPerSecond);
  after.caught_up(kStart + 10 * kNsPerSecond);
  after.tick(kStart + 10 * kNsPerSecond);
  BOOST_TEST(after.counts().engine_bytes <= options.memory_max);
  BOOST_TEST(after.counts().jobs_started <= 2 * flood.streams.size());
}

BOOST_AUTO_TEST_CASE(sixty_four_names_of_one_user_do_not_blind_another_user) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  Flood flood{jobs, feed};
  flood.open(limits::kLiveJobs + 1);
  for (const StreamId stream : flood.streams) feed.write(stream, step(1), kStart);
  jobs.tick(kStart);
  BOOST_TEST(with_engine(jobs).size() == limits::kLiveJobs);
  BOOST_TEST(jobs.counts().without_engine == 1u);
  const StreamId alice = feed.open(OriginKind::kSocket, "alice", "/run/trace.sock", kAliceUid);
  const TimeNs now = kStart + kNsPerSecond;
  feed.write(alice, step(1), now);
  jobs.tick(now);
  BOOST_TEST(with_engine(jobs).contains("alice"));
  BOOST_TEST(with_engine(jobs).size() == limits::kLiveJobs);
  BOOST_TEST(jobs.counts().gave_way_for_slots == 1u);
  BOOST_TEST(jobs.counts().without_engine == 2u);
  // The flood goes on, and Alice keeps her engine.
  for (const StreamId stream : flood.streams) feed.write(stream, step(2), now + 5 * kNsPerSecond);
  BOOST_TEST(with_engine(jobs).contains("alice"));
}

BOOST_AUTO_TEST_CASE(a_job_that_the_kernel_shows_goes_before_names_of_its_user) {
  LiveOptions options = live_options();
  options.jobs_max = 2;
  options.shown = [](const std::string& job) { return job == "real"; };
  LiveJobs jobs(options);
  Feed feed(jobs);
  for (const char* name : {"a", "b", "c", "real"})
    feed.write(feed.open(OriginKind::kSocket, name, "/run/trace.sock", kAliceUid), step(1), kStart);
  jobs.tick(kStart);
  BOOST_TEST(with_engine(jobs).contains("real"));
  BOOST_TEST(with_engine(jobs).size() == 2u);
  BOOST_TEST(!note_of(jobs, "c").empty());
}

BOOST_AUTO_TEST_CASE(a_job_without_an_engine_is_listed_with_the_reason_and_gets_one_later) {
  LiveOptions options = live_options();
  options.jobs_max = 2;
  LiveJobs jobs(options);
  Feed feed(jobs);
  std::vector<StreamId> streams;
  for (const char* name : {"a", "b", "c"})
    streams.push_back(feed.open(OriginKind::kSocket, name, "/run/trace.sock", kAliceUid));
  for (const StreamId stream : streams) feed.write(stream, step(1), kStart);
  jobs.tick(kStart);
  BOOST_TEST(note_of(jobs, "c").find("no engine: other jobs hold all 2 engines") == 0u, note_of(jobs, "c"));
  BOOST_TEST(jobs.counts().named_without_engine == std::vector<std::string>{"c"});
  const auto notices = jobs.drain_notices(kStart);
  BOOST_REQUIRE(notices.size() == 1u);
  BOOST_TEST(notices[0].find("job c has no engine") == 0u, notices[0]);
  feed.write(streams[0], "{\"kind\":\"event\",\"name\":\"job_end\",\"exit_code\":0}\n", kStart);
  const TimeNs later = kStart + 10 * kNsPerSecond;
  jobs.tick(later);
  feed.write(streams[2], step(2), later);
  jobs.tick(later);
  BOOST_TEST(with_engine(jobs).contains("c"));
  BOOST_TEST(note_of(jobs, "c").empty());
}

BOOST_AUTO_TEST_CASE(a_job_in_which_the_daemon_died_twice_is_evidence_only) {
  LiveOptions options = live_options();
  options.evidence_only = {"deadly"};
  LiveJobs jobs(options);
  Feed feed(jobs);
  const StreamId stream = feed.open(OriginKind::kFile, "deadly", "/logs/a.log");
  feed.write(stream, step_line(1), kStart);
  BOOST_TEST(with_engine(jobs).empty());
  BOOST_TEST(note_of(jobs, "deadly").find("ran out of memory twice") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_job_that_an_engine_works_on_is_announced) {
  LiveOptions options = live_options();
  std::vector<std::string> output;
  options.working = [&](std::string_view job) { output.emplace_back(job); };
  LiveJobs jobs(options);
  Feed feed(jobs);
  feed.write(feed.open(OriginKind::kFile, "j", "/logs/a.log"), step_line(1), kStart);
  BOOST_REQUIRE(output.size() >= 2u);
  BOOST_TEST(output[0] == "j");
  BOOST_TEST(output.back().empty());
}

// 64 folders of old jobs, and one that fails now, all of one user.
BOOST_AUTO_TEST_CASE(old_jobs_of_an_owner_give_way_to_one_that_fails_now) {
  LiveOptions options = live_options();
  LiveJobs jobs(options);
  Feed feed(jobs);
  TimeNs now = kStart;
  feed.written_ns = now - 24 * 3600 * kNsPerSecond;
  const size_t old = limits::kLiveJobs + 1;
  for (size_t i = 0; i < old; ++i)
    feed.write(feed.open(OriginKind::kFile, fmt::format("old{}", i), fmt::format("/logs/{}", i), kAliceUid),
               step_line(1), now);
  jobs.tick(now);
  BOOST_TEST(with_engine(jobs).size() == limits::kLiveJobs);
  BOOST_TEST(jobs.counts().waiting == 1u);
  const std::string late = "old" + std::to_string(old - 1);
  BOOST_TEST(report_of(jobs, late, now).find("not read yet") != std::string::npos);
  feed.written_ns = kNoTime;
  const StreamId fresh = feed.open(OriginKind::kFile, "fresh", "/logs/fresh", kAliceUid);
  feed.write(fresh, step_line(1) + xid_line(now), now);
  jobs.tick(now);
  BOOST_TEST(with_engine(jobs).contains("fresh"));
  BOOST_TEST(report_of(jobs, "fresh", now + kNsPerSecond).find("nvidia.xid.79") != std::string::npos);
  BOOST_TEST(jobs.counts().waiting == 2u, "it gave way before it was read");
  now += 2 * kReadWithin;
  jobs.tick(now);
  BOOST_TEST(jobs.begin_reading(now).size() == 2u);
  feed.read_late(jobs);
  BOOST_TEST(jobs.end_reading(false));
  jobs.tick(now);
  BOOST_TEST(jobs.counts().waiting == 0u);
  BOOST_TEST(with_engine(jobs).contains("fresh"));
  BOOST_TEST(report_of(jobs, late, now).find("not read yet") == std::string::npos);
}

// What arrives while a job is read, and what the store gives again, is read once.
BOOST_AUTO_TEST_CASE(a_job_that_waited_is_read_once_and_wholly) {
  LiveOptions options = live_options();
  options.jobs_max = 1;
  LiveJobs jobs(options);
  Feed feed(jobs);
  TimeNs now = kStart;
  const StreamId first = feed.open(OriginKind::kFile, "first", "/logs/a", kAliceUid);
  const StreamId second = feed.open(OriginKind::kFile, "second", "/logs/b", kAliceUid);
  const auto write = [&] {
    feed.write(first, step_line(1), now);
    feed.write(second, step_line(1), now);
    now += kNsPerSecond;
  };
  for (int i = 0; i < 5; ++i) write();
  BOOST_TEST(jobs.begin_reading(now).empty(), "no engine is free");
  feed.write(first, "", now, true);
  now += 10 * kNsPerSecond;
  jobs.tick(now);
  BOOST_TEST_REQUIRE(jobs.begin_reading(now).size() == 1u);
  feed.write(second, step_line(2), now);  // arrives meanwhile
  BOOST_TEST(report_of(jobs, "second", now).find("not read yet") != std::string::npos);
  BOOST_TEST(!jobs.end_reading(false), "nothing was read");
  feed.read_late(jobs);
  BOOST_TEST(jobs.end_reading(false));
  feed.write(second, step_line(3), now);
  jobs.tick(now);
  for (const LiveJobSummary& job : jobs.jobs())
    if (job.id == "second") BOOST_TEST(job.lines == 7u);
}

// One user's reports are large; another user's job fails.
BOOST_AUTO_TEST_CASE(large_reports_of_one_user_do_not_delay_those_of_another) {
  LiveOptions options = live_options();
  TimeNs work = 0;
  bool large = true;
  options.timer = [&] { return work += large ? 3 * kNsPerSecond : kNsPerMs; };
  LiveJobs jobs(options);
  Feed feed(jobs);
  TimeNs now = kStart;
  for (int j = 0; j < 4; ++j)
    feed.write(feed.open(OriginKind::kFile, fmt::format("m{}", j), fmt::format("/logs/{}", j), kMalloryUid),
               step_line(1) + xid_line(now), now);
  jobs.tick(now);
  const uint64_t before = jobs.counts().reports;
  BOOST_TEST(before >= 1u);
  BOOST_TEST(before <= 2u, "a first report or two in advance");
  large = false;
  now += kNsPerSecond;
  feed.write(feed.open(OriginKind::kFile, "a", "/logs/a", kAliceUid), step_line(1) + xid_line(now), now);
  jobs.tick(now);
  BOOST_TEST(jobs.counts().reports == before + 1);
  for (const LiveJobSummary& job : jobs.jobs())
    if (job.id == "a") BOOST_TEST(!job.headline.empty());  // of a report
}

// Each report costs as much as the thread may spend on reports in 2 s, so 20 jobs need 40 s.
BOOST_AUTO_TEST_CASE(reports_of_many_jobs_take_turns) {
  LiveOptions options = live_options();
  TimeNs work = 0;
  options.timer = [&] { return work += 200 * kNsPerMs; };
  LiveJobs jobs(options);
  Feed feed(jobs);
  std::vector<StreamId> streams;
  for (int j = 0; j < 20; ++j)
    streams.push_back(feed.open(OriginKind::kFile, fmt::format("j{:02}", j), fmt::format("/logs/{}.log", j)));
  for (int64_t i = 0; i < 100; ++i) {
    for (const StreamId stream : streams) feed.write(stream, step_line(i), kStart + i * kNsPerSecond);
    jobs.tick(kStart + i * kNsPerSecond);
  }
  BOOST_TEST(jobs.counts().reports <= 51u, "a tenth of the time");
  for (const LiveJobSummary& job : jobs.jobs()) BOOST_TEST(job.hosts > 0u, job.id);  // known from a report
}

BOOST_AUTO_TEST_CASE(short_reports_of_many_jobs_fit_into_one_tick) {
  LiveOptions options = live_options();
  TimeNs work = 0;
  options.timer = [&] { return work += kNsPerMs; };
  LiveJobs jobs(options);
  Feed feed(jobs);
  for (int j = 0; j < 20; ++j)
    feed.write(feed.open(OriginKind::kFile, fmt::format("j{}", j), fmt::format("/logs/{}.log", j)),
               step_line(1), kStart);
  jobs.tick(kStart + options.report_every_ns);
  BOOST_TEST(jobs.counts().reports == 20u);
}

BOOST_AUTO_TEST_SUITE_END()
