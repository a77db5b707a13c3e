// What a failing plugin cannot do. Each failure costs that plugin its own events, and is reported.
#include <csignal>

#include "fixture.h"
#include "plughost/detector.h"
#include "plughost/supervisor.h"

namespace culprit::plughost::testing {
namespace {

// It failed in that way, and runs again after a wait.
void check_restart(World& world, const std::string& id, const std::string& reason) {
  const PluginFinding found = world.finding("culprit.plugin." + id);
  BOOST_TEST(found.plugin == "actor");
  BOOST_TEST(found.text == "plugin actor: " + reason + "; failure 1 of 5 within 10m 00s");
  world.until_state("waiting");
  BOOST_TEST(world.row().failures == 1);
  world.plugins->observe(counters(4));  // lost for this plugin, and counted
  BOOST_TEST(world.row().dropped == 4);
  world.mono += Supervisor::kFirstWaitNs;
  world.until_state("running");
  world.plugins->observe(counters(2));
  BOOST_TEST(world.number("report") == 2);
}

BOOST_AUTO_TEST_CASE(a_crash_is_reported_and_the_plugin_starts_again) {
  World world;
  world.run();
  world.plugins->observe(counters(10));
  world.plugins->observe(command("crash"));
  check_restart(world, "crashed", "SIGSEGV ended it");
}

BOOST_AUTO_TEST_CASE(an_exit_counts_as_a_crash) {
  World world;
  world.run();
  world.plugins->observe(command("exit 7"));
  check_restart(world, "crashed", "it exited with status 7");
}

BOOST_AUTO_TEST_CASE(a_call_that_does_not_return_is_ended_after_its_time) {
  World world;
  world.run();
  world.number("ticks");  // no other call is under way
  world.plugins->observe(command("hang"));
  const int pid = world.row().pid;
  world.plugins->round(world.wall, world.mono, 0);  // it begins
  world.mono += world.table.call_ns - 1;
  world.plugins->round(world.wall, world.mono, 0);
  BOOST_TEST(world.row().state == "running");
  world.mono += 1;
  check_restart(world, "hung", "a call did not return within 10.0s");
  BOOST_TEST(kill(pid, 0) != 0);
}

BOOST_AUTO_TEST_CASE(memory_over_the_limit_ends_it) {
  World world;
  world.table.memory_bytes = 64 << 20;
  world.table.call_ns = 0;  // the clock runs faster here than the plugin
  world.run();
  world.plugins->observe(command("leak 100"));
  world.until(
      [&] {
        world.mono += kNsPerSecond;
        return world.count("culprit.plugin.memory") == 1;
      },
      "memory");
  BOOST_TEST(world.row().reason.find("67.1 MB are allowed") != std::string::npos);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
BOOST_AUTO_TEST_CASE(the_kernel_refuses_memory_far_over_the_limit) {
  World world;
  world.table.memory_bytes = 64 << 20;
  world.run();
  world.plugins->observe(command("leak 4000"));  // malloc returns NULL
  BOOST_TEST(world.number("report") == 0);
  BOOST_TEST(world.row().failures == 0);
}
#endif

BOOST_AUTO_TEST_CASE(processor_time_over_the_limit_withholds_events_and_then_ends_it) {
  World world;
  world.table.cpu_ppm = 2'000;  // 120 ms of a minute
  world.table.call_ns = 0;
  world.run();
  world.plugins->observe(command("burn 2000"));
  world.until(
      [&] {
        world.mono += kNsPerSecond / 10;
        return world.count("culprit.plugin.cpu") == 1;
      },
      "cpu");
  BOOST_TEST(world.row().state != "running");
}

BOOST_AUTO_TEST_CASE(a_flood_of_findings_is_cut_and_reported_once) {
  World world;
  world.run();
  world.plugins->observe(command("flood 1000"));
  world.plugins->observe(command("flood 1000"));
  world.finding("culprit.plugin.flood");
  world.until([&] { return world.row().findings_dropped == 1940; }, "all are counted");
  BOOST_TEST(world.count("actor.flood") == 60u);
  BOOST_TEST(world.count("culprit.plugin.flood") == 1u);
  BOOST_TEST(world.row().failures == 0);
}

BOOST_AUTO_TEST_CASE(an_invalid_finding_is_dropped_and_logged) {
  World world;
  world.run();
  world.plugins->observe(command("invalid"));
  world.plugins->observe(command("pretend"));
  world.number("report");
  BOOST_TEST(world.logged("a finding is invalid: the id 'Not an id' is not 1 to 64 of [a-z0-9._-]"));
  BOOST_TEST(world.logged("the id 'culprit.plugin.crashed' is of Culprit itself"));
  BOOST_TEST(world.count("culprit.plugin.crashed") == 0u);
  world.until([&] { return world.row().findings_dropped == 2; }, "both are counted");
}

BOOST_AUTO_TEST_CASE(malformed_bytes_on_the_channel_end_it) {
  World world;
  world.run();
  world.plugins->observe(command("malformed"));
  check_restart(world, "malformed", "it wrote to its channel to the daemon");
}

BOOST_AUTO_TEST_CASE(closed_descriptors_end_it) {
  World world;
  world.run();
  world.plugins->observe(command("close"));
  check_restart(world, "crashed", "it closed its channel to the daemon, or was killed");
}

BOOST_AUTO_TEST_CASE(standard_output_goes_to_the_log_and_a_flood_of_it_is_cut) {
  World world;
  world.run();
  world.plugins->observe(command("print 100000"));
  world.number("report");
  world.until([&] { return world.row().lines_dropped == 100'000 - 120; }, "all lines are counted");
  BOOST_TEST(world.logged("plugin actor: line 100000"));
  BOOST_TEST(world.logged("further lines of this minute are dropped"));
  BOOST_TEST(world.lines.size() == 1 + 121u);
}

BOOST_AUTO_TEST_CASE(children_of_a_plugin_end_with_it) {
  World world;
  world.run();
  world.plugins->observe(command("fork"));
  world.until([&] { return world.logged("child "); }, "the child");
  const std::string line = world.lines.back();
  const int child = std::stoi(line.substr(line.rfind(' ')));
  BOOST_TEST(kill(child, 0) == 0);
  world.plugins->observe(command("crash"));  // the child holds the channel open
  world.finding("culprit.plugin.crashed");
  // It is gone, or a zombie of init's.
  world.until(
      [&] {
        std::ifstream stat(fmt::format("/proc/{}/stat", child));
        std::string text;
        return !std::getline(stat, text) || text.find(") Z ") != text.npos;
      },
      "the end of the child");
}

BOOST_AUTO_TEST_CASE(an_error_of_a_call_starts_it_again) {
  World world;
  world.run();
  world.plugins->observe(command("error"));
  check_restart(world, "failed", "observe returned -1");
}

BOOST_AUTO_TEST_CASE(a_thrown_exception_counts_as_a_crash) {
  World world;
  world.install(CULPRIT_TEST_THROWER, "thrower");
  world.run();
  world.until_state("running", "thrower");
  world.plugins->observe(command("anything"));
  BOOST_TEST(world.finding("culprit.plugin.crashed").text.starts_with("plugin thrower: SIGABRT ended it"));
  BOOST_TEST(world.logged("thrown by the plugin"));
  BOOST_TEST(world.number("report") == 0);  // the other plugin lives
}

BOOST_AUTO_TEST_CASE(a_plugin_that_creates_no_detector_is_tried_again_later) {
  World world;
  world.table.options = {{"text", "refuse"}};
  world.begin();
  BOOST_TEST(
      world.finding("culprit.plugin.failed").text.starts_with("plugin actor: create returns no detector"));
  BOOST_TEST(world.logged("plugin actor: the device is missing"));
  BOOST_TEST(world.row().state == "waiting");
}

BOOST_AUTO_TEST_CASE(after_some_failures_it_is_quarantined_until_its_file_changes) {
  World world;
  world.run();
  for (size_t i = 1; i <= Supervisor::kFailuresMax; ++i) {
    world.plugins->observe(command("crash"));
    world.until([&] { return world.row().failures == i; }, "a failure");
    if (i == Supervisor::kFailuresMax) break;
    world.mono += Supervisor::kFirstWaitNs << (i - 1);
    world.until_state("running");
  }
  BOOST_TEST(world.row().state == "quarantined");
  BOOST_TEST(world.row().reason == "SIGSEGV ended it; 5 failures within 10 min; a reload tries again");
  BOOST_TEST(world.plugins->wanted() == 0);
  BOOST_TEST(static_cast<int>(world.finding("culprit.plugin.quarantined").state) ==
             static_cast<int>(PluginState::kRaised));
  world.mono += 24 * 3600 * kNsPerSecond;
  world.plugins->round(world.wall, world.mono, 0);
  BOOST_TEST(world.row().state == "quarantined");
  world.install(CULPRIT_TEST_ACTOR2);
  world.plugins->scan(world.mono);
  world.plugins->scan(world.mono);
  world.until_state("running");
  BOOST_TEST(static_cast<int>(world.found.back().state) == static_cast<int>(PluginState::kCleared));
}

BOOST_AUTO_TEST_CASE(lines_that_find_no_room_are_counted_and_reported) {
  World world;
  world.table.own_process = false;
  world.run();
  world.plugins->observe(command("say 10000"));
  world.number("report");
  BOOST_TEST(world.row().lines_dropped == 10'000 - 120);
  BOOST_TEST(world.logged("further lines of this minute are dropped"));
}

BOOST_AUTO_TEST_CASE(findings_that_cannot_be_read_again_are_faults) {
  const std::string long_name(257, 'n');
  const struct {
    std::function<void(PluginFinding&)> change;
    std::string fault;
  } cases[] = {
      {[](PluginFinding&) {}, ""},
      {[](PluginFinding& f) { f.time_ns = kNoTime; }, ""},
      {[](PluginFinding& f) { f.time_ns = -1; }, "the time -1 is before 1970"},
      {[&](PluginFinding& f) { f.host = long_name; }, "the host has 257 bytes; 256 are allowed"},
      {[&](PluginFinding& f) { f.job = long_name; }, "the job has 257 bytes; 256 are allowed"},
      {[&](PluginFinding& f) { f.peer = long_name; }, "the peer has 257 bytes; 256 are allowed"},
      {[&](PluginFinding& f) { f.job = long_name.substr(1); }, ""},
      {[](PluginFinding& f) { f.title.clear(); }, "the title is empty"},
      {[](PluginFinding& f) { f.device = 64; }, "device 64"},
      {[](PluginFinding& f) {
         f.values = {{"a", 1}, {"a", 2}};
       },
       "the value a is there twice"},
  };
  for (const auto& c : cases) {
    PluginFinding finding;
    finding.id = "a.b";
    finding.title = "A fault";
    finding.time_ns = 1;
    c.change(finding);
    BOOST_TEST(finding_fault(finding) == c.fault);
  }
}

BOOST_AUTO_TEST_CASE(a_slow_plugin_loses_only_its_own_events) {
  World world;
  world.install(CULPRIT_TEST_THROWER, "thrower");
  world.run();
  world.plugins->observe(command("hang"));
  uint64_t sent = 0;
  while (world.row().dropped == 0) {
    world.plugins->observe(counters(1000));
    world.plugins->round(world.wall, world.mono, 0);
    sent += 1000;
  }
  BOOST_TEST(world.row().events + world.row().dropped == sent + 1);
  BOOST_TEST(world.row("thrower").dropped == 0);
  BOOST_TEST(sent < 200'000u);  // the queue has a bound
}

BOOST_AUTO_TEST_CASE(it_inherits_neither_descriptors_nor_the_environment) {
  World world;
  setenv("SECRET", "token", 1);
  const int leaked = dup(1);  // without close-on-exec
  world.run();
  BOOST_TEST(world.ask("environment", "actor.environment").text == "");
  BOOST_TEST(world.number("descriptors") == 0);
  close(leaked);
}

BOOST_AUTO_TEST_CASE(a_missing_host_program_refuses_the_plugin) {
  World world;
  PluginsOptions options;
  options.folders = {world.plugin_folder()};
  options.host_program = "/nowhere/culprit-plugin-host";
  options.trusted_uid = geteuid();
  world.plugins = std::make_unique<Plugins>(
      std::move(options), [&](PluginFinding&& finding) { world.found.push_back(finding); },
      [](uint32_t, std::string) {});
  world.plugins->scan(world.mono);
  BOOST_TEST(world.finding("culprit.plugin.refused").text ==
             "plugin actor: /nowhere/culprit-plugin-host: no such file or directory");
}

}  // namespace
}  // namespace culprit::plughost::testing
