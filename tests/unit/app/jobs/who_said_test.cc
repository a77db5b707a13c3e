// Who said a line decides what it proves: users, the kernel, and hosts that speak of other hosts.
#include <boost/test/unit_test.hpp>

#include "live_feed.h"
#include "remote_agent.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr uint32_t kAlice = 12'003, kMallory = 12'002;

std::string traced(const std::string& job, const std::string& line) {
  return fmt::format(R"({{"kind":"log","job":"{}","rank":0,"line":"{}"}})", job, line) + "\n";
}

std::string xid_text() {
  return "node-0 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus.";
}

// Steps of the job, then an Xid 79, in a source of that user.
Report after_an_xid(OriginKind kind, uint32_t uid) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId steps = feed.open(OriginKind::kFile, "j", "/logs/a.log", uid);
  for (int64_t i = 0; i < 100; ++i) feed.write(steps, step_line(i), kStart + i * kNsPerSecond);
  const StreamId from = feed.open(kind, "j", kind == OriginKind::kFile ? "/logs/b.log" : "/run/t.sock", uid);
  const std::string text = kind == OriginKind::kFile ? xid_text() + "\n" : traced("j", xid_text());
  feed.write(from, text, kStart + 100 * kNsPerSecond);
  return jobs.report("j", kStart + 130 * kNsPerSecond).value();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(who_reported)

BOOST_AUTO_TEST_CASE(the_journal_reaches_all_jobs_by_who_wrote_its_entries) {
  const char* const kCursor =
      R"({"__CURSOR":"s=0dc1c2ee46a344f7995904de0d1e9368;i=1;t=1;x=1","__REALTIME_TIMESTAMP":"%","_UID":"0",)";
  const char* const kXid =
      R"("MESSAGE":"NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the bus."})";
  const char* const kFabric = R"("MESSAGE":"nvidia-fabricmanager.service: Failed with result 'exit-code'."})";
  const struct {
    const char* fields;
    const char* message;
    const char* rule;
    bool counts;
  } cases[] = {
      {R"("_TRANSPORT":"kernel","SYSLOG_FACILITY":"0",)", kXid, "nvidia.xid.79", true},
      {R"("_TRANSPORT":"journal","SYSLOG_IDENTIFIER":"kernel","_SYSTEMD_UNIT":"session-1.scope",)", kXid,
       "nvidia.xid.79", false},
      {R"("_TRANSPORT":"stdout","SYSLOG_IDENTIFIER":"sshd","_SYSTEMD_UNIT":"ssh.service",)", kXid,
       "nvidia.xid.79", false},
      {R"("_TRANSPORT":"journal","SYSLOG_IDENTIFIER":"systemd","_SYSTEMD_UNIT":"init.scope",)", kFabric,
       "nvidia.nvlink.fabric_manager", true},
  };
  for (const auto& one : cases) {
    LiveJobs jobs(live_options());
    Feed feed(jobs);
    const StreamId a = feed.open(OriginKind::kFile, "a", "/logs/a.log");
    const StreamId b = feed.open(OriginKind::kFile, "b", "/logs/b.log");
    const StreamId journal = feed.open(OriginKind::kJournal, "", "journal/system");
    for (const StreamId log : {a, b}) feed.write(log, step_line(0), kStart);
    std::string line = kCursor;
    line.replace(line.find('%'), 1, std::to_string((kStart + 10 * kNsPerSecond) / kNsPerUs));
    feed.write(journal, line + one.fields + one.message + "\n", kStart + 10 * kNsPerSecond);
    jobs.tick(kStart + 60 * kNsPerSecond);
    for (const char* job : {"a", "b"})
      BOOST_TEST((report_of(jobs, job, kStart + 61 * kNsPerSecond).find(one.rule) != std::string::npos) ==
                     one.counts,
                 one.fields);
  }
}

BOOST_AUTO_TEST_CASE(a_users_own_xid_isolates_no_host) {
  for (const OriginKind kind : {OriginKind::kFile, OriginKind::kSocket}) {
    const Report report = after_an_xid(kind, kMallory);
    BOOST_TEST_REQUIRE(!report.diagnoses.empty());
    const Diagnosis& d = report.diagnoses[0];
    BOOST_TEST(d.rule.value() == "nvidia.xid.79");
    BOOST_TEST(d.confidence <= 0.5);
    BOOST_TEST((d.action.kind == ActionKind::kCheck));
    BOOST_TEST_REQUIRE(d.said_by.has_value());
    BOOST_TEST(d.said_by->uids == std::vector<uint32_t>{kMallory}, boost::test_tools::per_element());
    BOOST_TEST(d.why.back() == "said by uid 12002 alone");
    BOOST_TEST(d.remedy.starts_with("Ask uid 12002; confirm with the kernel's log"));
    BOOST_TEST(d.evidence[0].uid.value() == kMallory);
  }
}

BOOST_AUTO_TEST_CASE(an_xid_in_a_file_of_root_isolates_the_host) {
  const Report report = after_an_xid(OriginKind::kFile, 0);
  BOOST_TEST_REQUIRE(!report.diagnoses.empty());
  BOOST_TEST(report.diagnoses[0].confidence > 0.5);
  BOOST_TEST((report.diagnoses[0].action.kind == ActionKind::kIsolate));
  BOOST_TEST(!report.diagnoses[0].said_by.has_value());
}

BOOST_AUTO_TEST_CASE(lines_of_another_user_are_no_input_and_are_reported) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId own = feed.open(OriginKind::kSocket, "j", "/run/t.sock", kAlice);
  const StreamId forged = feed.open(OriginKind::kSocket, "j", "/run/t.sock", kMallory);
  for (int64_t i = 0; i < 50; ++i) feed.write(own, traced("j", "step=1 loss=2"), kStart + i * kNsPerSecond);
  feed.write(forged, traced("j", xid_text()) + traced("j", "x"), kStart + 50 * kNsPerSecond);
  feed.write(forged,
             R"({"kind":"event","job":"j","name":"job_end","exit_code":1})"
             "\n",
             kStart + 51 * kNsPerSecond);
  const Report report = jobs.report("j", kStart + 55 * kNsPerSecond).value();
  BOOST_TEST(report.diagnoses.empty());
  BOOST_TEST_REQUIRE(!report.problems.empty());
  BOOST_TEST(report.problems[0].what ==
             "3 lines of uid 12002 for this job were kept as evidence only: the job is another user's");
  BOOST_TEST(jobs.counts().refused == 3u);
  BOOST_TEST(jobs.running() == 1u);
}

BOOST_AUTO_TEST_CASE(a_file_that_another_user_adds_is_no_input_and_is_reported) {
  LiveJobs jobs(live_options());
  Feed feed(jobs);
  const StreamId own = feed.open(OriginKind::kFile, "j", "/logs/a.log", kAlice);
  const StreamId planted = feed.open(OriginKind::kFile, "j", "/logs/b.log", kMallory);
  for (int64_t i = 0; i < 50; ++i) feed.write(own, step_line(i), kStart + i * kNsPerSecond);
  feed.write(planted, xid_text() + "\n" + step_line(50), kStart + 50 * kNsPerSecond, true);
  const Report report = jobs.report("j", kStart + 55 * kNsPerSecond).value();
  BOOST_TEST(report.diagnoses.empty());
  BOOST_TEST(report.job.lines == 50u);
  BOOST_TEST_REQUIRE(!report.problems.empty());
  BOOST_TEST(report.problems[0].what ==
             "2 lines of uid 12002 for this job were kept as evidence only: the job is another user's");
  BOOST_TEST(jobs.running() == 1u);
}

BOOST_AUTO_TEST_CASE(a_host_that_speaks_of_another_host_isolates_neither) {
  LiveJobs jobs(live_options());
  RemoteAgent one(1), two(2);
  TimeNs now = kStart;
  for (int64_t i = 0; i < 100; ++i, now += kNsPerSecond) {
    one.write(step_line(i), now);
    two.write(step_line(i), now);
  }
  one.write(fmt::format("{} node-2 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=1, GPU has fallen off the "
                        "bus.\n",
                        clock(now)),
            now);
  jobs.ingest(two.block(now), now);
  jobs.ingest(one.block(now), now);
  const Report report = jobs.report("j", now + 30 * kNsPerSecond).value();
  BOOST_TEST_REQUIRE(!report.diagnoses.empty());
  const Diagnosis& d = report.diagnoses[0];
  BOOST_TEST(d.confidence <= 0.5);
  BOOST_TEST((d.action.kind == ActionKind::kCheck));
  BOOST_TEST(d.why.back() == "hearsay: said by node-1, not by the accused host itself");
}

BOOST_AUTO_TEST_SUITE_END()
