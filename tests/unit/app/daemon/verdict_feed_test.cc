// What subscribers read of the runs' verdicts, with real records and a numeric clock.
#include "app/daemon/alerts/verdict_feed.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <map>

#include "../../io/fake_env.h"
#include "../fixtures.h"

using namespace culprit;
using namespace culprit::app;

namespace {

Verdict verdict(const std::string& job, const std::string& id, VerdictState state = VerdictState::kOpen) {
  Verdict out;
  out.job = job;
  out.state = state;
  out.leads = state == VerdictState::kOpen;
  out.since_ns = out.last_ns = 1000 * kNsPerSecond;
  out.diagnosis.id = id;
  out.diagnosis.title = "GPU lost";
  out.diagnosis.confidence = .9;
  return out;
}

struct Reader {
  Reader() {
    RecorderOptions options;
    options.state_dir = folder.path.string();
    options.watch = &watch;
    options.report_error = [](const std::string&) {};
    options.committed = [](const std::vector<store::CommittedOffset>&, uint64_t) {};
    recorder = std::move(*Recorder::open(env, std::move(options)));
    feed = std::make_unique<VerdictFeed>(*recorder, nullptr);
    feed->subscribe([this](std::span<const RunVerdict> verdicts) {
      for (const RunVerdict& v : verdicts) read[v.job] = v.verdict ? v.verdict->id() : "none";
    });
  }
  void put(const Verdict& v) {
    recorder->record([v](records::Records& records) -> Status {
      records::JobRow job;
      job.id = v.job;
      if (const Status status = records.upsert_job(job); !status) return status;
      return records.put_verdict(v);
    });
  }
  void pass(TimeNs ns) {
    env.run();
    env.advance(ns);
    env.run();
    feed->beat();
    env.run();
  }

  test::Folder folder;
  io::testing::FakeEnv env;
  SelfWatch watch;
  std::unique_ptr<Recorder> recorder;
  std::unique_ptr<VerdictFeed> feed;
  std::map<std::string, std::string> read;  // the verdict's id, by job
};

}  // namespace

BOOST_AUTO_TEST_SUITE(verdict_feed)

BOOST_AUTO_TEST_CASE(a_run_is_not_read_while_its_verdict_waits_for_the_disk) {
  Reader r;
  r.put(verdict("j", "d1"));
  r.feed->restored(kNoTime);
  r.feed->look_at("j", 0);
  r.pass(0);
  BOOST_TEST(r.read["j"] == "d1");
  int failures = 1;
  r.recorder->record([&failures](records::Records&) -> Status {
    if (failures-- > 0) return fail(ErrorCode::kIo, "the disk is full");
    return {};
  });
  r.put(verdict("j", "d1", VerdictState::kWithdrawn));
  r.read.clear();
  r.feed->look_at("j", 0);
  r.pass(0);
  BOOST_TEST(r.read.empty());
  BOOST_TEST(!r.feed->is_idle());
  r.pass(60 * kNsPerSecond);
  BOOST_TEST(r.read["j"] == "none");
  BOOST_TEST(r.feed->is_idle());
}

BOOST_AUTO_TEST_CASE(a_start_reads_all_that_was_stored_or_judged_since) {
  Reader r;
  constexpr int kJobs = 300;
  for (int i = 0; i < kJobs; ++i) r.put(verdict("j" + std::to_string(i), "d1"));
  const TimeNs since = 2000 * kNsPerSecond;
  r.recorder->query([&](store::Spool&, records::Records& records) {
    for (int i = 0; i < kJobs; i += 2) {
      BOOST_REQUIRE(records.judge({"j" + std::to_string(i), "d1", 0, false, "alice", since}));
      BOOST_REQUIRE(records.judge({"j" + std::to_string(i + 1), "d1", 0, false, "alice", since - 1}));
    }
  });
  r.feed->restored(since);
  r.pass(0);
  BOOST_TEST(r.read.size() == kJobs / 2u);
  for (const auto& [job, id] : r.read) BOOST_TEST(id == "none", job);
}

BOOST_AUTO_TEST_SUITE_END()
