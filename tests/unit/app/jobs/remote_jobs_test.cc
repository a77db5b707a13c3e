// Jobs over several hosts in a collector: blocks of condensed inputs of each host.
#include <boost/test/unit_test.hpp>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/jobs/job_hosts.h"
#include "app/jobs/remote_sessions.h"
#include "live_feed.h"
#include "remote_agent.h"

using namespace culprit;
using namespace culprit::app;

namespace {

constexpr TimeNs kSecond = kNsPerSecond;

using Agent = RemoteAgent;

struct Collector {
  LiveJobs jobs;
  std::vector<RemoteBatch> archive;
  std::vector<LiveEvent> events;
  explicit Collector(LiveOptions options = collector_options()) : jobs(std::move(options)) {}
  static LiveOptions collector_options() {
    LiveOptions out = live_options();
    out.host = "collector";
    out.roots = {};
    return out;
  }
  void take(const RemoteBatch& batch, TimeNs now) {
    archive.push_back(batch);
    jobs.ingest(batch, now);
    poll();
  }
  void tick(TimeNs now) {
    jobs.tick(now);
    poll();
  }
  void poll() {
    for (LiveEvent& e : jobs.poll_events()) events.push_back(std::move(e));
  }
  std::string report(TimeNs now) { return without_ids(report_of(jobs, "j", now)); }
};

// Steps of a host, one per second, in one block.
void run_for(Collector& collector, Agent& agent, std::pair<int64_t, int64_t> steps) {
  for (int64_t s = steps.first; s < steps.second; ++s) agent.write(step_line(s), kStart + s * kSecond);
  agent.writer().alive(true, kStart + steps.second * kSecond);
  collector.take(agent.block(kStart + steps.second * kSecond), kStart + steps.second * kSecond);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(remote_jobs)

BOOST_AUTO_TEST_CASE(blocks_of_several_hosts_give_the_report_of_their_files) {
  const auto files = failing_files();
  const std::string expected = offline(files);
  for (const size_t blocks : {1, 7}) {
    Collector collector;
    std::vector<std::unique_ptr<Agent>> agents;
    for (size_t h = 0; h < files.size(); ++h) agents.push_back(std::make_unique<Agent>(h));
    for (size_t b = 0; b < blocks; ++b)
      for (size_t h = 0; h < files.size(); ++h) {
        const size_t from = files[h].size() * b / blocks, to = files[h].size() * (b + 1) / blocks;
        agents[h]->write(std::string_view(files[h]).substr(from, to - from), kStart);
        collector.take(agents[h]->block(kStart), kStart);
      }
    BOOST_TEST(collector.report(kStart) == expected, "in " << blocks << " blocks each");
    BOOST_TEST(collector.jobs.jobs().at(0).hosts == 4u);
    const LiveEvent* finding = first(collector.events, LiveEventKind::kFinding);
    BOOST_REQUIRE(finding);
    BOOST_TEST(finding->hosts == std::vector<std::string>{"node-2"});
  }
}

BOOST_AUTO_TEST_CASE(metrics_of_several_hosts_come_to_one_engine) {
  Collector collector;
  size_t bytes = 0;
  for (size_t h = 0; h < 2; ++h) {
    Agent agent(h);
    std::string text;
    for (size_t rank = 2 * h; rank < 2 * h + 2; ++rank)
      text +=
          fmt::format("{{\"kind\":\"metric\",\"rank\":{},\"step\":1,\"values\":{{\"loss\":2.5}}}}\n", rank);
    bytes += text.size();
    agent.trace(text, kStart);
    collector.take(agent.block(kStart), kStart);
  }
  const std::string report = collector.report(kStart + kSecond);
  const std::string expected = fmt::format("\"hosts\":2,\"ranks\":4,\"bytes\":{},\"lines\":4,", bytes);
  BOOST_TEST(report.find(expected) != report.npos, report);
}

// If logs use another name for a host than its agent, the agent has the evidence.
BOOST_AUTO_TEST_CASE(evidence_is_requested_from_agents_whose_logs_name_the_host) {
  Collector collector;
  Agent a(0), b(1);
  std::string text;
  for (const char* host : {"dgx086", "dgx087"})
    text += fmt::format(
        "Nov 21 02:00:12 {} kernel: NVRM: Xid (PCI:0000:5d:00): 79, pid=4242, GPU has fallen "
        "off the bus.\n",
        host);
  a.write(text, kStart);
  run_for(collector, b, {0, 10});
  collector.take(a.block(kStart), kStart);
  collector.report(kStart);
  collector.tick(kStart + 20 * kSecond);
  std::set<std::string> findings, diagnoses;
  for (const LiveEvent& e : collector.events)
    if (e.kind == LiveEventKind::kFinding)
      findings.insert(e.hosts.begin(), e.hosts.end());
    else if (e.kind == LiveEventKind::kDiagnosis)
      diagnoses.insert(e.hosts.begin(), e.hosts.end());
  BOOST_TEST((findings == std::set<std::string>{"node-0"}));
  BOOST_TEST((diagnoses == std::set<std::string>{"node-0"}));
}

BOOST_AUTO_TEST_CASE(a_job_is_over_when_all_its_hosts_say_that_its_processes_are_gone) {
  Collector collector;
  Agent a(0), b(1);
  run_for(collector, a, {0, 60});
  run_for(collector, b, {0, 60});
  const TimeNs later = kStart + 100 * kSecond;
  a.writer().alive(false, later);
  collector.take(a.block(later), later);
  collector.tick(kStart + 300 * kSecond);
  BOOST_TEST(collector.jobs.running() == 1u);
  b.writer().alive(false, kStart + 301 * kSecond);
  collector.take(b.block(kStart + 301 * kSecond), kStart + 301 * kSecond);
  collector.tick(kStart + 302 * kSecond);
  BOOST_TEST(collector.jobs.running() == 0u);
  BOOST_TEST(count(collector.events, LiveEventKind::kJobEnded) == 1u);
}

BOOST_AUTO_TEST_CASE(an_end_waits_for_reports_of_other_hosts_about_that_time) {
  Collector collector;
  Agent a(0), b(1);
  run_for(collector, a, {0, 60});
  run_for(collector, b, {0, 50});
  a.writer().ends(false, kStart + 60 * kSecond);
  collector.take(a.block(kStart + 61 * kSecond), kStart + 61 * kSecond);
  collector.tick(kStart + 80 * kSecond);
  BOOST_TEST(collector.jobs.running() == 1u);
  run_for(collector, b, {50, 62});
  collector.tick(kStart + 90 * kSecond);
  BOOST_TEST(collector.jobs.running() == 0u);
}

BOOST_AUTO_TEST_CASE(silence_is_a_hang_only_as_far_as_all_hosts_have_reported) {
  Collector collector;
  Agent a(0), b(1);
  run_for(collector, a, {0, 60});
  run_for(collector, b, {0, 60});
  // The network is cut: no agent reports for an hour.
  collector.tick(kStart + 3600 * kSecond);
  BOOST_TEST(count(collector.events, LiveEventKind::kDiagnosis) == 0u);
  // Both are back, but only one has reported the time since.
  const auto still = [&](Agent& agent, int64_t second) {
    agent.writer().alive(true, kStart + second * kSecond);
    collector.take(agent.block(kStart + second * kSecond), kStart + 3700 * kSecond);
  };
  still(a, 3690);
  collector.tick(kStart + 3700 * kSecond);
  BOOST_TEST(count(collector.events, LiveEventKind::kDiagnosis) == 0u);
  // Both have reported a time without progress.
  still(b, 3690);
  collector.tick(kStart + 3710 * kSecond);
  const LiveEvent* hang = first(collector.events, LiveEventKind::kDiagnosis);
  BOOST_REQUIRE(hang);
  BOOST_TEST(to_json(*hang).find("no progress") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_host_that_was_not_heard_for_long_is_waited_for_again_when_it_is_back) {
  Collector collector;
  Agent a(0), b(1);
  run_for(collector, a, {0, 60});
  run_for(collector, b, {0, 60});
  // Only b has progress to report, and its network is cut; a only sends heartbeats.
  for (int64_t s = 120; s <= 3600; s += 60) {
    a.writer().alive(true, kStart + s * kSecond);
    collector.take(a.block(kStart + s * kSecond), kStart + s * kSecond);
    collector.tick(kStart + s * kSecond);
  }
  BOOST_TEST(count(collector.events, LiveEventKind::kDiagnosis) > 0u);
  BOOST_TEST(count(collector.events, LiveEventKind::kDiagnosisWithdrawn) == 0u);
  BOOST_TEST(collector.jobs.running() == 1u);
  // b is back, and reports all that time, block by block.
  for (int64_t s = 60; s < 3600; s += 600) {
    for (int64_t step = s; step < s + 600; ++step) b.write(step_line(step), kStart + step * kSecond);
    b.writer().alive(true, kStart + (s + 600) * kSecond);
    collector.take(b.block(kStart + (s + 600) * kSecond), kStart + 3610 * kSecond);
  }
  for (int64_t s = 3611; s < 3640; ++s) collector.tick(kStart + s * kSecond);
  BOOST_TEST(count(collector.events, LiveEventKind::kDiagnosisWithdrawn) > 0u);
  BOOST_TEST(!collector.jobs.jobs().at(0).hangs);
  BOOST_TEST(collector.jobs.jobs().at(0).lines == 60u + 60u + 3600u);
}

BOOST_AUTO_TEST_CASE(an_agent_that_is_away_is_stated_and_its_host_is_not_accused) {
  Collector collector;
  Agent a(0), b(1), c(2), d(3);
  for (Agent* agent : {&a, &b, &c, &d}) run_for(collector, *agent, {0, 60});
  collector.jobs.agent_away("node-1", kStart + 61 * kSecond);
  for (Agent* agent : {&a, &c, &d}) run_for(collector, *agent, {60, 200});
  collector.tick(kStart + 201 * kSecond);
  auto report = nlohmann::json::parse(collector.report(kStart + 201 * kSecond));
  BOOST_TEST(report["missing"].dump().find("node-1's agent has been away since 02:01:01 UTC; what it wrote "
                                           "since is unknown") != std::string::npos,
             report["missing"].dump());
  BOOST_TEST(report["suspects"].empty(), report["suspects"].dump());
  BOOST_TEST(report["diagnoses"].empty(), report["diagnoses"].dump());
  // The agent is back, and reports the time between.
  collector.jobs.agent_away("node-1", kNoTime);
  run_for(collector, b, {60, 200});
  collector.tick(kStart + 202 * kSecond);
  report = nlohmann::json::parse(collector.report(kStart + 202 * kSecond));
  BOOST_TEST(report["missing"].empty(), report["missing"].dump());
}

// Only the absent agent reports progress: its silence is no evidence of a hang.
BOOST_AUTO_TEST_CASE(a_job_does_not_hang_because_the_agent_that_reports_progress_is_away) {
  for (const bool away : {true, false}) {
    Collector collector;
    Agent a(0), b(1);
    run_for(collector, a, {0, 60});
    b.write(clock(kStart) + " INFO hello\n", kStart);
    b.writer().alive(true, kStart + 60 * kSecond);
    collector.take(b.block(kStart + 60 * kSecond), kStart + 60 * kSecond);
    if (away) collector.jobs.agent_away("node-0", kStart + 61 * kSecond);
    for (int64_t s = 61; s <= 400; ++s) {
      const auto still = [&](Agent& agent) {
        agent.writer().alive(true, kStart + s * kSecond);
        collector.take(agent.block(kStart + s * kSecond), kStart + s * kSecond);
      };
      if (s % 30 == 0) still(b);
      if (s % 30 == 0 && !away) still(a);
      collector.tick(kStart + s * kSecond);
    }
    BOOST_TEST(collector.jobs.jobs().at(0).hangs == !away);
  }
}

BOOST_AUTO_TEST_CASE(an_impossible_time_counts_as_now) {
  for (const TimeNs time :
       {std::numeric_limits<TimeNs>::min() + 1, TimeNs{-1}, std::numeric_limits<TimeNs>::max()}) {
    Collector collector;
    Agent a(0);
    run_for(collector, a, {0, 60});
    a.write(step_line(60), kStart + 60 * kSecond);
    RemoteBatch block = a.block(kStart + 61 * kSecond);
    block.batch.pieces[0].time_ns = time;
    collector.take(block, kStart + 61 * kSecond);
    collector.tick(kStart + 70 * kSecond);
    const LiveJobSummary job = collector.jobs.jobs().at(0);
    BOOST_TEST(job.lines == 61u);
    BOOST_TEST(job.first_ns >= kStart);
    BOOST_TEST(job.last_ns <= kStart + 61 * kSecond);
  }
}

BOOST_AUTO_TEST_CASE(a_restart_gives_the_same_jobs_again_and_ends_none_twice) {
  Collector before;
  Agent a(0), b(1);
  run_for(before, a, {0, 60});
  run_for(before, b, {0, 60});
  for (Agent* agent : {&a, &b}) {
    agent->writer().ends(false, kStart + 61 * kSecond);
    before.take(agent->block(kStart + 61 * kSecond), kStart + 61 * kSecond);
  }
  before.tick(kStart + 80 * kSecond);
  const LiveEvent* ended = first(before.events, LiveEventKind::kJobEnded);
  BOOST_REQUIRE(ended);
  const TimeNs ended_ns = ended->last_ns;  // the events grow
  // Late records of a finished run start no new run; newer ones do.
  Agent c(2);
  c.write(step_line(59), kStart + 59 * kSecond);
  before.take(c.block(ended_ns), kStart + 90 * kSecond);
  BOOST_TEST(before.jobs.running() == 0u);
  run_for(before, a, {100, 130});
  run_for(before, b, {100, 140});
  BOOST_TEST(before.jobs.running() == 1u);
  const std::string expected = before.report(kStart + 140 * kSecond);

  LiveJobs after(Collector::collector_options());
  const RunEnd end{"j", 0, ended_ns};
  after.restoring({&end, 1});
  for (const RemoteBatch& batch : before.archive) after.ingest(batch, batch.batch.pieces[0].time_ns);
  after.replayed(kStart + 140 * kSecond);
  after.caught_up(kStart + 140 * kSecond);
  BOOST_TEST(without_ids(report_of(after, "j", kStart + 140 * kSecond)) == expected);
  BOOST_TEST(after.run_of("j").value_or(9) == 1u);
  BOOST_TEST(after.running() == 1u);
  // Only the collector itself was silent.
  after.tick(kStart + 3600 * kSecond);
  BOOST_TEST(after.running() == 1u);
}

BOOST_AUTO_TEST_CASE(a_session_whose_beginning_is_gone_is_reported_and_the_next_one_is_read) {
  Collector collector;
  Agent a(0), b(1);
  run_for(collector, a, {0, 30});
  RemoteBatch first_block = b.block(kStart);
  b.write(step_line(1), kStart + kSecond);
  RemoteBatch second = b.block(kStart + kSecond);
  second.batch.opened = first_block.batch.opened;
  collector.take(second, kStart + 31 * kSecond);
  BOOST_TEST(collector.jobs.counts().remote_blocks_lost == 1u);
  BOOST_TEST(collector.report(kStart + 31 * kSecond).find("node-1: the beginning of its agent's records") !=
             std::string::npos);
  Agent again(1, 2);
  run_for(collector, again, {2, 30});
  BOOST_TEST(collector.jobs.counts().remote_blocks_lost == 1u);
  BOOST_TEST(collector.jobs.jobs().at(0).lines == 30u + 28u);
}

// A host that declares many sessions, and sends blocks of some.
struct Greedy {
  explicit Greedy(const std::string& name) : host(name) {}
  void declare(LiveJobs& jobs, size_t count) {
    RemoteBatch out{host, 999, {}};
    for (size_t i = 0; i < count; ++i) {
      StreamInfo info;
      info.id = next++;
      info.kind = OriginKind::kCondensed;
      info.job = fmt::format("job-{}", info.id);
      out.batch.opened.push_back(std::move(info));
    }
    jobs.ingest(out, kStart);
  }
  std::string host;
  StreamId next = 0;
};

BOOST_AUTO_TEST_CASE(a_host_that_declares_sessions_without_end_takes_no_place_of_others) {
  Collector collector;
  Agent before(0), after(1);
  run_for(collector, before, {0, 30});
  Greedy("rogue").declare(collector.jobs, 70'000);
  BOOST_TEST(collector.jobs.remote_streams() == 1 + limits::kLiveJobs);
  run_for(collector, before, {30, 60});
  run_for(collector, after, {0, 60});
  BOOST_TEST(collector.jobs.counts().remote_blocks_lost == 0u);
  BOOST_TEST(collector.jobs.jobs().at(0).lines == 120u);
}

BOOST_AUTO_TEST_CASE(of_a_host_the_sessions_without_a_block_go_first) {
  Collector collector;
  Agent a(0);
  run_for(collector, a, {0, 30});
  Greedy("node-0").declare(collector.jobs, 1000);
  run_for(collector, a, {30, 60});
  BOOST_TEST(collector.jobs.counts().remote_blocks_lost == 0u);
  BOOST_TEST(collector.jobs.jobs().at(0).lines == 60u);
}

BOOST_AUTO_TEST_CASE(where_all_have_too_many_the_one_with_the_most_gives_up_one) {
  RemoteSessions sessions(10);
  StreamId next = 0;
  const auto open = [&](const std::string& host, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      StreamInfo info;
      info.id = next++;
      info.job = fmt::format("job-{}", info.id);
      sessions.open({1, info.id}, host, info, nullptr);
    }
  };
  open("honest", 2);
  open("rogue", 8);
  open("honest", 1);
  open("another", 2);
  BOOST_TEST(sessions.size() == 10u);
  BOOST_TEST(sessions.made_room() == 3u);
  for (const StreamId retained : {0u, 1u, 5u, 9u, 10u, 11u, 12u})
    BOOST_TEST((sessions.block({1, retained}) != nullptr));
  for (const StreamId removed : {2u, 3u, 4u}) BOOST_TEST((sessions.block({1, removed}) == nullptr));
}

// The first reading of a long archive; the second one is a restart with everything.
BOOST_AUTO_TEST_CASE(blocks_that_are_passed_over_serve_later_ones_and_the_report_says_what_is_missing) {
  Collector before;
  Agent a(0), b(1);
  for (const int64_t from : {0, 60, 120}) {
    run_for(before, a, {from, from + 60});
    run_for(before, b, {from, from + 60});
  }
  const TimeNs now = kStart + 180 * kSecond;
  LiveJobs after(Collector::collector_options());
  after.restoring({});
  for (RemoteBatch& batch : before.archive) {
    batch.passes_over = batch.batch.pieces[0].time_ns < now;  // but for the last block of each
    after.ingest(batch, batch.batch.pieces[0].time_ns);
  }
  after.replayed(now);
  after.caught_up(now);

  const auto report = after.report("j", now);
  BOOST_REQUIRE(report);
  BOOST_TEST(report->job.lines == 120u);
  BOOST_TEST(report->job.iteration.value_or(0) == 179);
  BOOST_REQUIRE(!report->problems.empty());
  BOOST_TEST(report->problems[0].what.starts_with("not read yet: most of what its hosts reported until"));
  BOOST_TEST(after.jobs().at(0).hosts == 2u);
  BOOST_TEST(after.jobs().at(0).first_ns == before.jobs.jobs().at(0).first_ns);
}

BOOST_AUTO_TEST_CASE(an_agent_that_was_restarted_goes_on_in_its_sources) {
  Collector collector;
  Agent a(0, 1);
  run_for(collector, a, {0, 30});
  Agent again(0, 2);
  run_for(collector, again, {30, 60});
  BOOST_TEST(collector.jobs.jobs().at(0).sources == 1u);
  BOOST_TEST(collector.jobs.jobs().at(0).lines == 60u);
}

BOOST_AUTO_TEST_CASE(heartbeats_of_hosts_count_while_they_are_connected) {
  JobHosts hosts;
  BOOST_TEST(!hosts.alive(0).has_value());
  hosts.on_report("a", 100, 1000, true);
  hosts.on_report("b", 90, 1000, true);
  BOOST_TEST(!hosts.alive(1000).has_value());
  hosts.alive("a", true);
  BOOST_TEST((hosts.alive(1000) == true));
  BOOST_TEST(hosts.known_until(1000) == 90);
  BOOST_TEST(!hosts.have_reported(95, 1000));
  const TimeNs later = 1000 + 400 * kSecond;  // a is no longer connected, b is
  hosts.on_report("b", 150, 1000 + 200 * kSecond, false);
  hosts.on_report("b", 200, later, false);
  BOOST_TEST(!hosts.alive(later).has_value());
  BOOST_TEST(hosts.somebody_missing(later));
  BOOST_TEST(hosts.known_until(later) == 200);
  BOOST_TEST(hosts.have_reported(200, later));
  BOOST_TEST((hosts.away(later) == std::map<std::string, TimeNs>{{"a", 1000}}), "it is not heard of");
  hosts.away("b", later);
  BOOST_TEST(hosts.away(later).size() == 2u);
  hosts.away("b", kNoTime);
  hosts.alive("a", false);
  hosts.alive("b", false);
  BOOST_TEST(hosts.away(later).empty(), "their processes are gone");
  BOOST_TEST((hosts.alive(later) == false));
  BOOST_TEST(!hosts.somebody_missing(later));
  hosts.on_report("b", 300, later, true);  // it returned
  BOOST_TEST(!hosts.alive(later).has_value());
  hosts.alive("a", true);
  const TimeNs cut = later + 3600 * kSecond;  // the network was cut: messages of both are in flight
  hosts.on_report("b", 400, cut, false);
  BOOST_TEST((hosts.alive(cut) == true));
  BOOST_TEST(hosts.known_until(cut) == 100);
}

BOOST_AUTO_TEST_SUITE_END()
