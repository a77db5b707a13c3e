// What an operator is promised of plugins that work, and of those that are refused.
#include <csignal>

#include "fixture.h"

namespace culprit::plughost::testing {
namespace {

BOOST_AUTO_TEST_CASE(a_plugin_in_the_folder_runs_and_its_finding_comes_back) {
  World world;
  world.run();
  world.plugins->observe(counters(3));
  const PluginFinding found = world.ask("report", "actor.report");
  BOOST_TEST(found.plugin == "actor");
  BOOST_TEST(found.text == "node-1");
  BOOST_TEST(found.time_ns == world.wall);
  BOOST_TEST(found.values.at(0).second == 3);
  BOOST_TEST(!found.rank.has_value());
  const PluginRow row = world.row();
  BOOST_TEST(row.version == "1");
  BOOST_TEST(row.events == 4);
  BOOST_TEST(row.findings == 1);
  BOOST_TEST(row.pid > 0);
}

BOOST_AUTO_TEST_CASE(only_events_of_the_described_kinds_reach_it) {
  World world;
  world.run();
  BOOST_TEST(world.plugins->wanted() ==
             (CULPRIT_BIT(CULPRIT_EVENT_LOG) | CULPRIT_BIT(CULPRIT_EVENT_COUNTER)));
  EventWriter writer;
  EventHead head;
  head.kind = CULPRIT_EVENT_METRIC;
  writer.metric(head, "loss", 1, 1);
  world.plugins->observe(writer.take() + counters(2));
  BOOST_TEST(world.number("report") == 2);
}

BOOST_AUTO_TEST_CASE(it_ticks_at_its_interval) {
  World world;
  world.run();
  BOOST_TEST(world.number("ticks") == 1);  // a tick that is due comes before events
  BOOST_TEST(world.number("ticks") == 1);
  world.mono += 100 * kNsPerMs;
  BOOST_TEST(world.number("ticks") == 2);
}

BOOST_AUTO_TEST_CASE(an_option_is_the_configured_one_or_the_default) {
  World world;
  world.run();
  BOOST_TEST(world.ask("option", "actor.option").text == "by default");
  World other;
  other.table.options = {{"text", "configured"}};
  other.run();
  BOOST_TEST(other.ask("option", "actor.option").text == "configured");
}

BOOST_AUTO_TEST_CASE(an_option_that_is_unknown_or_out_of_range_refuses_the_plugin) {
  World world;
  world.table.options = {{"txt", "x"}};
  world.begin();
  BOOST_TEST(world.finding("culprit.plugin.refused").text ==
             "plugin actor: there is no option 'txt'; it has text, limit");
  BOOST_TEST(world.row().state == "refused");
  World other;
  other.table.options = {{"limit", "11"}};
  other.begin();
  BOOST_TEST(other.finding("culprit.plugin.refused").text ==
             "plugin actor: option limit: 11 is not between 1 and 10");
}

BOOST_AUTO_TEST_CASE(another_major_version_of_the_interface_is_refused) {
  World world;
  world.install(CULPRIT_TEST_ACTOR_ABI2);
  world.begin();
  BOOST_TEST(
      world.finding("culprit.plugin.refused").text ==
      fmt::format("plugin actor: it is built for version 2.{} of the interface, not 1.x", CULPRIT_ABI_MINOR));
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_library_or_has_no_entry_is_refused) {
  World world;
  std::ofstream(world.plugin_folder() + "/actor.so") << "not a library";
  world.begin();
  BOOST_TEST(world.finding("culprit.plugin.refused").text.find("it cannot be loaded") != std::string::npos);
  World other;
  other.install(CULPRIT_TEST_NO_ENTRY);
  other.begin();
  BOOST_TEST(other.finding("culprit.plugin.refused").text ==
             "plugin actor: it does not export culprit_plugin_entry_v1");
}

BOOST_AUTO_TEST_CASE(the_name_of_the_file_must_be_that_of_the_plugin) {
  World world;
  world.install(CULPRIT_TEST_ACTOR, "player");
  world.begin();
  BOOST_TEST(world.finding("culprit.plugin.refused").text ==
             "plugin player: its name is actor, so the file must be actor.so");
}

BOOST_AUTO_TEST_CASE(a_file_or_folder_that_others_may_write_to_is_refused) {
  World world;
  chmod((world.plugin_folder() + "/actor.so").c_str(), 0666);
  world.begin();
  const PluginFinding refused = world.finding("culprit.plugin.refused");
  BOOST_TEST(refused.text.find("actor.so has mode 0666") != std::string::npos);
  BOOST_TEST(refused.text.find("run chmod go-w") != std::string::npos);
  World other;
  chmod(other.plugin_folder().c_str(), 0777);
  other.begin();
  BOOST_TEST(other.finding("culprit.plugin.refused").text.find("/plugins has mode 0777") !=
             std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_of_another_user_is_refused) {
  if (geteuid() != 0) {
    BOOST_TEST_MESSAGE("needs root");
    return;
  }
  World world;
  BOOST_REQUIRE(chown((world.plugin_folder() + "/actor.so").c_str(), 12002, 0) == 0);
  world.begin();
  BOOST_TEST(world.finding("culprit.plugin.refused").text.find("belongs to user 12002") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_refused_plugin_is_tried_again_after_a_reload) {
  World world;
  const std::string file = world.plugin_folder() + "/actor.so";
  chmod(world.plugin_folder().c_str(), 0777);
  world.begin();
  world.finding("culprit.plugin.refused");
  chmod(world.plugin_folder().c_str(), 0755);
  world.plugins->reload({world.plugin_folder()}, {world.table}, world.mono);
  world.until_state("running");
  BOOST_TEST(static_cast<int>(world.found.back().state) == static_cast<int>(PluginState::kCleared));
  BOOST_TEST(world.found.back().id == "culprit.plugin.refused");
  BOOST_TEST(world.severity_of("A plugin was refused: ") == static_cast<int>(CULPRIT_WARNING));
  BOOST_TEST(world.severity_of("A plugin runs again: ") == static_cast<int>(CULPRIT_INFO));
}

BOOST_AUTO_TEST_CASE(a_disabled_plugin_and_a_missing_one_are_listed) {
  World world;
  world.table.enabled = false;
  PluginTable missing;
  missing.name = "ghost";
  world.others = {missing};
  world.begin();
  BOOST_TEST(world.row().state == "disabled");
  BOOST_TEST(world.row("ghost").state == "missing");
  BOOST_TEST(world.logged("plugin ghost: no folder of plugins has a file ghost.so"));
}

BOOST_AUTO_TEST_CASE(a_new_version_takes_over_with_the_state) {
  World world;
  world.run();
  world.plugins->observe(counters(5));
  world.install(CULPRIT_TEST_ACTOR2);
  world.plugins->scan(world.mono);  // it may still be written
  BOOST_TEST(world.row().starts == 1);
  world.plugins->scan(world.mono);
  double sent = 5;
  world.until(
      [&] {
        world.plugins->observe(counters(1));  // none is lost meanwhile
        ++sent;
        return world.row().version == "2";
      },
      "version 2");
  const PluginFinding loaded = world.ask("loaded", "actor.loaded");
  BOOST_TEST(loaded.text == "2");
  BOOST_TEST(loaded.values.at(0).second == 1);
  BOOST_TEST(world.number("report") == sent);
  BOOST_TEST(world.row().dropped == 0);
  BOOST_TEST(world.row().failures == 0);
}

BOOST_AUTO_TEST_CASE(a_new_version_that_does_not_load_leaves_the_old_one_running) {
  World world;
  world.run();
  world.plugins->observe(counters(5));
  world.install(CULPRIT_TEST_ACTOR_ABI2);
  world.plugins->scan(world.mono);
  world.plugins->scan(world.mono);
  BOOST_TEST(world.finding("culprit.plugin.refused").text.find("the new version is refused") !=
             std::string::npos);
  BOOST_TEST(world.number("report") == 5);
  BOOST_TEST(world.row().version == "1");
}

BOOST_AUTO_TEST_CASE(a_changed_table_starts_it_again_with_the_state) {
  World world;
  world.run();
  world.plugins->observe(counters(5));
  const int pid = world.row().pid;
  world.table.options = {{"text", "other"}};
  world.plugins->reload({world.plugin_folder()}, {world.table}, world.mono);
  world.until([&] { return world.row().pid != pid && world.row().state == "running"; }, "another process");
  BOOST_TEST(world.ask("option", "actor.option").text == "other");
  BOOST_TEST(world.number("report") == 5);
}

BOOST_AUTO_TEST_CASE(refused_options_leave_the_earlier_ones_and_the_reload_says_so) {
  World world;
  world.run();
  const PluginTable before = world.table;
  const int pid = world.row().pid;
  const auto reload = [&] {
    return world.plugins->reload({world.plugin_folder()}, {world.table}, world.mono);
  };
  const std::string why = "keeps its earlier options: option limit: 11 is not between 1 and 10";
  world.table.options = {{"limit", "11"}};
  for (int i = 0; i < 2; ++i)  // each reload
    BOOST_TEST(reload() == std::vector<std::string>{"plugin actor " + why}, boost::test_tools::per_element());
  BOOST_TEST(world.row().reason == why);
  BOOST_TEST(world.ask("option", "actor.option").text == "by default");
  world.plugins->observe(command("crash"));
  world.until_state("waiting");
  world.mono += 10 * kNsPerSecond;
  world.until_state("running");  // also with them
  world.table = before;
  BOOST_TEST(reload().empty());
  BOOST_TEST(world.row().reason == "");
  BOOST_TEST(world.row().starts == 2);
  BOOST_TEST(world.row().pid != pid);
}

BOOST_AUTO_TEST_CASE(start_replacement_and_end_are_logged) {
  World world;
  world.run();
  const auto logged = [&](const std::string& line) {
    return world.severity_of(line) == static_cast<int>(CULPRIT_INFO);
  };
  const int first = world.row().pid;
  BOOST_TEST(logged(fmt::format("plugin actor: version 1 runs as process {}", first)));
  world.install(CULPRIT_TEST_ACTOR2);
  world.plugins->scan(world.mono);
  world.plugins->scan(world.mono);
  world.until([&] { return world.row().version == "2"; }, "version 2");
  const int second = world.row().pid;
  BOOST_TEST(
      logged(fmt::format("version 2 runs as process {}, in place of version 1 and with its state", second)));
  PluginTable off = world.table;
  off.enabled = false;
  world.plugins->reload({world.plugin_folder()}, {off}, world.mono);
  world.until_state("disabled");
  BOOST_TEST(logged(fmt::format("plugin actor: version 2 (process {}) ended, as it is disabled", second)));
  world.plugins->reload({world.plugin_folder()}, {world.table}, world.mono);
  world.until_state("running");
  std::filesystem::remove(world.plugin_folder() + "/actor.so");
  world.plugins->scan(world.mono);
  world.until_state("missing");
  BOOST_TEST(logged("ended, as its file is gone"));
}

BOOST_AUTO_TEST_CASE(states_end_with_the_instance_that_knows_them) {
  World world;
  world.state_folder = world.folder.path() + "/state";
  world.run();
  BOOST_TEST(world.forgotten() == 1u);  // an earlier daemon may have been killed
  const PluginFinding output = world.finding(std::string(kPluginForgot));
  BOOST_TEST(output.plugin == "actor");
  BOOST_TEST((output.severity == PluginSeverity::kInfo && output.state == PluginState::kHappened));
  BOOST_TEST(output.confidence == 1);
  world.plugins->observe(command("crash"));
  world.until_state("waiting");
  BOOST_TEST(world.forgotten() == 2u);
  world.mono += 10 * kNsPerSecond;
  world.until_state("running");
  BOOST_TEST(world.forgotten() == 3u);

  world.install(CULPRIT_TEST_ACTOR2);  // with the state
  world.plugins->scan(world.mono);
  world.plugins->scan(world.mono);
  world.until([&] { return world.row().version == "2"; }, "version 2");
  world.plugins->stop(world.mono, 30'000);
  world.run();
  BOOST_TEST(world.forgotten() == 3u);

  world.plugins.reset();  // as by a kill of the daemon
  world.run();
  BOOST_TEST(world.forgotten() == 4u);

  PluginTable off = world.table;
  off.enabled = false;
  world.plugins->reload({world.plugin_folder()}, {off}, world.mono);
  world.until_state("disabled");
  BOOST_TEST(world.forgotten() == 5u);
  BOOST_TEST(!std::filesystem::exists(world.state_folder + "/actor.state"));
  world.plugins->reload({world.plugin_folder()}, {world.table}, world.mono);
  world.until_state("running");
  BOOST_TEST(world.forgotten() == 6u);
  BOOST_TEST(world.number("loaded") == 0);

  std::filesystem::remove(world.plugin_folder() + "/actor.so");
  world.plugins->scan(world.mono);
  world.until_state("missing");
  BOOST_TEST(world.forgotten() == 7u);
}

BOOST_AUTO_TEST_CASE(a_refused_plugin_forgets_its_states_and_its_file) {
  World world;
  world.state_folder = world.folder.path() + "/state";
  world.run();
  world.plugins->stop(world.mono, 30'000);
  BOOST_REQUIRE(std::filesystem::exists(world.state_folder + "/actor.state"));
  world.table.options = {{"limit", "11"}};
  world.begin();
  world.until_state("refused");
  BOOST_TEST(world.forgotten() == 2u);
  BOOST_TEST(world.found.back().id == "culprit.plugin.refused");  // its own state stands
  BOOST_TEST(!std::filesystem::exists(world.state_folder + "/actor.state"));
}

BOOST_AUTO_TEST_CASE(findings_of_a_plugin_that_is_not_ready_are_of_the_new_instance) {
  World world;
  world.table.options = {{"text", "early"}};
  world.run();
  BOOST_REQUIRE(world.found.size() == 2u);
  BOOST_TEST(world.found[0].id == kPluginForgot);
  BOOST_TEST(world.found[1].id == "actor.early");
  BOOST_TEST(world.row().findings == 1);
}

BOOST_AUTO_TEST_CASE(a_plugin_whose_file_is_removed_ends) {
  World world;
  world.run();
  const int pid = world.row().pid;
  std::filesystem::remove(world.plugin_folder() + "/actor.so");
  world.plugins->scan(world.mono);
  world.until([&] { return kill(pid, 0) != 0; }, "the end of the process");
  world.until([&] { return world.row().state == "missing"; }, "missing");
  BOOST_TEST(world.plugins->wanted() == 0);
}

BOOST_AUTO_TEST_CASE(the_state_is_kept_over_a_stop_of_the_daemon) {
  World world;
  world.state_folder = world.folder.path() + "/state";
  world.run();
  world.plugins->observe(counters(9));
  world.plugins->stop(world.mono, 30'000);
  BOOST_TEST(std::filesystem::exists(world.state_folder + "/actor.state"));
  world.run();
  BOOST_TEST(world.number("loaded") == 1);
  BOOST_TEST(world.number("report") == 9);
  BOOST_TEST(!std::filesystem::exists(world.state_folder + "/actor.state"));
}

BOOST_AUTO_TEST_CASE(a_damaged_state_file_is_ignored) {
  World world;
  world.state_folder = world.folder.path() + "/state";
  std::filesystem::create_directories(world.state_folder);
  std::ofstream(world.state_folder + "/actor.state") << "CUPSTST1 but nothing that fits";
  world.run();
  BOOST_TEST(world.number("loaded") == 0);
}

BOOST_AUTO_TEST_CASE(in_this_process_it_answers_the_same) {
  World world;
  world.table.own_process = false;
  world.run();
  world.plugins->observe(counters(3));
  BOOST_TEST(world.number("report") == 3);
  BOOST_TEST(world.row().pid == 0);
  world.plugins->observe(command("error"));
  BOOST_TEST(world.finding("culprit.plugin.failed").text.starts_with("plugin actor: observe returned -1"));
}

BOOST_AUTO_TEST_CASE(a_plugin_in_this_process_is_named_while_it_runs) {
  std::vector<std::string> entered;  // also when the plugin is destroyed
  World world;
  PluginsOptions options;
  options.folders = {world.plugin_folder()};
  world.table.own_process = false;
  options.tables = {world.table};
  options.trusted_uid = geteuid();
  options.entering = [&](std::string_view name) { entered.emplace_back(name); };
  world.plugins = std::make_unique<Plugins>(
      std::move(options), [](PluginFinding&&) {}, [](uint32_t, std::string) {});
  world.plugins->scan(world.mono);
  world.until_state("running");
  BOOST_REQUIRE(entered.size() >= 4u);  // loaded and created
  for (size_t i = 0; i < entered.size(); ++i) BOOST_TEST(entered[i] == (i % 2 == 0 ? "actor" : ""));
}

}  // namespace
}  // namespace culprit::plughost::testing
