#include "app/daemon/self/black_box.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <exception>
#include <filesystem>
#include <fstream>
#include <new>

#include "app/daemon/engine/rule_watch.h"
#include "app/daemon/self/quarantine.h"
#include "core/rules/ruleset.h"

using namespace culprit;
using namespace culprit::app;

namespace fs = std::filesystem;

namespace {

struct Folder {
  fs::path path = fs::temp_directory_path() / ("black_box_test." + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string at(const char* name) const { return (path / name).string(); }
};

BlackBox need(const std::string& path) {
  auto box = BlackBox::open(path);
  BOOST_REQUIRE_MESSAGE(box.has_value(), (box ? "" : box.error().text));
  return std::move(*box);
}

std::shared_ptr<rules::Ruleset> rules_of(const std::string& when) {
  const std::string text =
      "rule { id = 'a.b', engine = 1, title = 't', category = 'hardware', component = 'gpu',\n"
      "  severity = 'error', match = { template = 'fault <n>' }, remedy = 'r', when = " +
      when + ",\n  examples = { hit = { 'fault 1' }, miss = { 'fine' } } }\n";
  auto set = rules::Ruleset::load({{rules::RuleText{"a.lua", text}}});
  BOOST_REQUIRE(set.has_value());
  return *set;
}

rules::RuleHit fault() {
  rules::RuleHit hit;
  hit.text = "fault 1";
  hit.holes = {"1"};
  return hit;
}

// The state that a process leaves if a signal ends it within a rule's function: from the kernel, the watchdog
// or a bug.
void die_in_a_rule(const std::string& path, int signal) {
  struct Deadly : RuleWatch {
    int signal;
    Deadly(BlackBox& box, int number) : RuleWatch(box), signal(number) {}
    void enter(const rules::Rule& rule) override {
      RuleWatch::enter(rule);
      ::kill(::getpid(), signal);
      ::pause();
    }
  };
  const auto set = rules_of("function() return true end");
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(signal, SIG_DFL);
    auto box = BlackBox::open(path);
    if (!box) ::_exit(3);
    Deadly watch(*box, signal);
    rules::RuleRun run(set, &watch);
    run.add(fault());
    ::_exit(4);
  }
  int status = 0;
  BOOST_REQUIRE(::waitpid(child, &status, 0) == child);
  BOOST_REQUIRE(WIFSIGNALED(status));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_rule_in_which_the_process_died_is_named_at_the_next_start_and_only_then) {
  const Folder folder;
  const std::string path = folder.at("black_box");
  const auto set = rules_of("function() return true end");
  for (const int signal : {SIGKILL, SIGABRT, SIGSEGV}) {
    die_in_a_rule(path, signal);
    BlackBox box = need(path);
    const auto crashed = box.read_and_reset();
    BOOST_REQUIRE(crashed.has_value());
    BOOST_TEST((crashed->kind == BlackBox::Kind::kRule));
    BOOST_TEST(crashed->id == "a.b");
    BOOST_TEST(crashed->text_hash == set->rules()[0].text_hash);
    BOOST_TEST(!box.read_and_reset().has_value());
    BOOST_TEST(!need(path).read_and_reset().has_value());
  }
}

BOOST_AUTO_TEST_CASE(who_left_is_not_named) {
  const Folder folder;
  const std::string path = folder.at("black_box");
  {
    BlackBox box = need(path);
    box.enter(BlackBox::Kind::kPlugin, "p", 7);
    box.leave();
  }
  BOOST_TEST(!need(path).read_and_reset().has_value());
  BlackBox none;  // of a daemon that could not create its file
  none.enter(BlackBox::Kind::kRule, "a.b", 7);
  none.leave();
  BOOST_TEST(!none.read_and_reset().has_value());
}

BOOST_AUTO_TEST_CASE(an_id_that_is_too_long_is_cut) {
  const Folder folder;
  BlackBox box = need(folder.at("black_box"));
  box.enter(BlackBox::Kind::kPlugin, std::string(5000, 'x'), 7);
  BOOST_TEST(need(folder.at("black_box")).read_and_reset()->id == std::string(256, 'x'));
}

BOOST_AUTO_TEST_CASE(the_file_takes_its_page_at_once_and_what_is_no_black_box_becomes_one) {
  const Folder folder;
  const std::string path = folder.at("black_box");
  const std::string contents[] = {"", "short", std::string(4096, '\xff'), std::string(10'000, 'x'),
                                  "CULPBBOX" + std::string(4088, '\xff')};
  for (const std::string& content : contents) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
    BlackBox box = need(path);
    struct stat info {};
    BOOST_REQUIRE(::stat(path.c_str(), &info) == 0);
    BOOST_TEST(info.st_size >= 4096);
    BOOST_TEST(info.st_blocks * 512 >= 4096);
    BOOST_TEST(!box.read_and_reset().has_value());
    box.enter(BlackBox::Kind::kRule, "a.b", 7);
    BOOST_TEST(need(path).read_and_reset()->id == "a.b");
  }
}

BOOST_AUTO_TEST_CASE(a_black_box_that_cannot_be_made_is_an_error_that_names_it) {
  const auto box = BlackBox::open("/does/not/exist/black_box");
  BOOST_REQUIRE(!box.has_value());
  BOOST_TEST(box.error().text.starts_with("/does/not/exist/black_box: cannot be opened: "));
}

BOOST_AUTO_TEST_CASE(a_quarantined_rule_stays_over_restarts_until_its_text_changes) {
  const Folder folder;
  const std::string path = folder.at("quarantine.json");
  const auto set = rules_of("function() return true end");
  const auto mended = rules_of("function() return false == not true end");
  auto quarantine = Quarantine::read(path);
  BOOST_REQUIRE(quarantine.has_value());
  BOOST_TEST(quarantine->items().empty());
  BOOST_TEST(quarantine->add({BlackBox::Kind::kRule, "a.b", set->rules()[0].text_hash}, 5).has_value());
  BOOST_TEST(quarantine->add({BlackBox::Kind::kRule, "a.b", set->rules()[0].text_hash}, 6).has_value());
  BOOST_TEST(quarantine->add({BlackBox::Kind::kPlugin, "p", 9}, 7).has_value());
  auto again = Quarantine::read(path);
  BOOST_REQUIRE(again.has_value());
  BOOST_REQUIRE(again->items().size() == 2u);
  BOOST_TEST(again->items()[0].since_ns == 6);
  BOOST_TEST(again->items()[0].why == "the daemon died twice while it ran");
  BOOST_TEST(again->keep_only(set->rules()).has_value());
  BOOST_TEST(again->rules() == std::vector<std::string>{"a.b"}, boost::test_tools::per_element());
  BOOST_TEST(again->keep_only(mended->rules()).has_value());
  BOOST_TEST(again->rules().empty());
  BOOST_TEST(Quarantine::read(path)->items().size() == 1u);  // the plugin
}

BOOST_AUTO_TEST_CASE(one_death_is_no_proof_two_in_a_week_or_a_stand_still_are) {
  constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond;
  struct Death {
    TimeNs at;
    uint64_t text = 1;
    bool over_time = false;
  };
  const struct {
    const char* name;
    std::vector<Death> deaths;
    bool is_active;
  } kCases[] = {
      {"killed once, as by the OOM killer", {{0}}, false},
      {"twice", {{0}, {kDay}}, true},
      {"twice, weeks apart", {{0}, {20 * kDay}}, false},
      {"twice, of another text", {{0, 1}, {kDay, 2}}, false},
      {"stood still once", {{0, 1, true}}, true},
  };
  for (const auto& c : kCases) {
    const Folder folder;
    const std::string path = folder.at("quarantine.json");
    bool is_active = false;
    for (const Death& death : c.deaths) {
      auto list = Quarantine::read(path);  // each start reads it
      BOOST_REQUIRE(list.has_value());
      is_active = *list->add({BlackBox::Kind::kRule, "a.b", death.text, death.over_time}, death.at);
    }
    BOOST_TEST(is_active == c.is_active, c.name);
    BOOST_TEST(Quarantine::read(path)->rules().size() == (c.is_active ? 1u : 0u), c.name);
  }
}

BOOST_AUTO_TEST_CASE(a_rule_that_stands_still_is_marked_and_only_while_it_runs) {
  const Folder folder;
  const std::string path = folder.at("black_box");
  BlackBox box = need(path);
  box.mark_over_time();
  box.enter(BlackBox::Kind::kRule, "a.b", 7);
  BOOST_TEST(!need(path).read_and_reset()->over_time, "it stood still before");
  box.enter(BlackBox::Kind::kRule, "a.b", 7);
  box.mark_over_time();
  BOOST_TEST(need(path).read_and_reset()->over_time);
}

BOOST_AUTO_TEST_CASE(a_run_that_did_not_end_names_its_job_if_memory_ended_it) {
  struct End {
    uint64_t kills;      // of the kernel since the last beat
    bool failed, clean;  // an allocation failed; end_run() was called
    bool unclean, out_of_memory;
  };
  for (const End& end : {End{0, false, true, false, false}, End{1, false, true, false, false},
                         End{0, false, false, true, false}, End{1, false, false, true, true},
                         End{0, true, false, true, true}}) {
    const Folder folder;
    const std::string path = folder.at("black_box");
    {
      BlackBox box = need(path);
      BOOST_TEST(!box.begin_run(4).has_value());
      box.enter_job("other");
      box.enter_job("");
      box.enter_job("train-7");
      box.beat(5);
      const pid_t child = end.failed ? ::fork() : -1;
      if (child == 0) {
        box.record_failed_allocations();
        try {
          std::get_new_handler()();
        } catch (const std::bad_alloc&) {
        }
        ::_exit(0);
      }
      if (child > 0) BOOST_REQUIRE(::waitpid(child, nullptr, 0) == child);
      if (end.clean) box.end_run();
    }
    const auto found = need(path).begin_run(5 + end.kills);
    BOOST_REQUIRE(found.has_value() == end.unclean);
    if (!found) continue;
    BOOST_TEST(found->out_of_memory == end.out_of_memory);
    BOOST_TEST(found->job == "train-7");
  }
}

BOOST_AUTO_TEST_CASE(a_failed_allocation_that_ended_the_process_is_kept_over_a_beat_of_another_thread) {
  for (const bool ended : {false, true}) {
    const Folder folder;
    const std::string path = folder.at("black_box");
    BlackBox box = need(path);
    BOOST_TEST(!box.begin_run(0).has_value());
    const pid_t child = ::fork();
    if (child == 0) {
      std::set_terminate([] { ::_exit(0); });  // the default one writes and aborts
      box.record_failed_allocations();
      const auto fails = []() noexcept { std::get_new_handler()(); };
      if (ended) fails();
      try {
        std::get_new_handler()();
      } catch (const std::bad_alloc&) {
      }
      ::_exit(0);
    }
    BOOST_REQUIRE(::waitpid(child, nullptr, 0) == child);
    box.beat(0);
    const auto found = need(path).begin_run(0);
    BOOST_REQUIRE(found.has_value());
    BOOST_TEST(found->out_of_memory == ended);
  }
}

BOOST_AUTO_TEST_CASE(a_job_in_which_memory_ran_out_twice_within_a_week_is_evidence_only_for_a_week) {
  const Folder folder;
  const TimeNs day = 24 * 3600 * kNsPerSecond;
  Quarantine list(folder.at("quarantine.json"));
  BOOST_TEST(!*list.add({BlackBox::Kind::kJob, "train-7", 0, false}, 10 * day));
  BOOST_TEST(list.jobs(10 * day).empty());
  BOOST_TEST(*list.add({BlackBox::Kind::kJob, "train-7", 0, false}, 12 * day));
  const auto read = Quarantine::read(folder.at("quarantine.json"));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST(read->jobs(13 * day) == std::vector<std::string>{"train-7"}, boost::test_tools::per_element());
  BOOST_TEST(read->rules().empty());
  BOOST_TEST(read->jobs(20 * day).empty());
}

BOOST_AUTO_TEST_CASE(a_damaged_list_is_an_error_and_a_full_disk_too) {
  const Folder folder;
  const std::string path = folder.at("quarantine.json");
  const char* texts[] = {"",
                         "{",
                         "{}",
                         "[1]",
                         "[{\"kind\":\"rule\",\"id\":\"a\"}]",
                         R"([{"kind":"rule","id":"a","why":"w","text_hash":"xyz"}])",
                         R"([{"kind":"rule","id":"a","why":"w","text_hash":"000000000000000g"}])"};
  for (const char* text : texts) {
    std::ofstream(path, std::ios::trunc) << text;
    const auto read = Quarantine::read(path);
    BOOST_REQUIRE(!read.has_value());
    BOOST_TEST(read.error().text == path + ": no list of what is quarantined");
  }
  Quarantine nowhere("/does/not/exist/quarantine.json");
  BOOST_TEST(!nowhere.add({BlackBox::Kind::kRule, "a.b", 1, true}, 5).has_value());
  BOOST_TEST(nowhere.rules().size() == 1u);  // counted in memory all the same
}

BOOST_AUTO_TEST_CASE(a_function_that_takes_too_long_is_reported_once_for_each_time) {
  const Folder folder;
  BlackBox box = need(folder.at("black_box"));
  TimeNs now = 0, step = 0;
  RuleWatch watch(box, [&] { return now += step; });
  const auto set = rules_of("function() return true end");
  rules::RuleRun run(set, &watch);
  step = RuleWatch::kOverrunNs;
  run.add(fault());
  BOOST_TEST(watch.drain_overruns().empty());
  step = RuleWatch::kOverrunNs + 1;
  run.add(fault());
  run.add(fault());
  const std::vector<std::string> twice = {"a.b", "a.b"};
  BOOST_TEST(watch.drain_overruns() == twice, boost::test_tools::per_element());
  BOOST_TEST(watch.drain_overruns().empty());
  BOOST_TEST(!box.read_and_reset().has_value());
}

BOOST_AUTO_TEST_CASE(the_threads_own_time_does_not_run_while_it_sleeps) {
  const TimeNs before = thread_time();
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; i < 1'000'000; ++i) sum = sum + i;
  const TimeNs worked = thread_time() - before;
  BOOST_TEST(worked > 0);
  const pid_t child = ::fork();
  if (child == 0) {
    for (uint64_t i = 0; i < 30'000'000; ++i) sum = sum + i;
    ::_exit(0);
  }
  const TimeNs waiting = thread_time();
  BOOST_REQUIRE(::waitpid(child, nullptr, 0) == child);
  BOOST_TEST(thread_time() - waiting < 30 * worked);
}

BOOST_AUTO_TEST_CASE(an_input_that_was_read_when_memory_ran_out_is_named_and_left_out_for_a_week) {
  const Folder folder;
  const std::string path = folder.at("black_box");
  {
    BlackBox box = need(path);
    BOOST_TEST(!box.begin_run(7).has_value());
    box.enter_job("train-7");
    box.enter_input(BlackBox::Reader::kRas, "RAS of user 1001");
    box.enter_input(BlackBox::Reader::kRas, "");
    box.enter_input(BlackBox::Reader::kDumps, "/dumps/rank_3" + std::string(5000, 'x'));
  }
  const auto end = need(path).begin_run(8);  // no end_run(), and the kernel killed a process for its memory
  BOOST_REQUIRE((end.has_value() && end->out_of_memory));
  BOOST_TEST(end->inputs[1] == "");
  BOOST_TEST(end->inputs[0].size() == BlackBox::kInputBytes);
  BOOST_TEST(end->inputs[0].starts_with("/dumps/rank_3xx"));
  BOOST_TEST(need(path).begin_run(8)->inputs[0] == "");  // nothing was read in that run
  constexpr TimeNs kDay = 24 * 3600 * kNsPerSecond;
  Quarantine list(folder.at("quarantine.json"));
  BOOST_TEST(*list.add({BlackBox::Kind::kInput, "RAS of user 1001", 0, false}, 10 * kDay));
  const auto again = Quarantine::read(folder.at("quarantine.json"));
  BOOST_REQUIRE(again.has_value());
  BOOST_TEST(again->inputs(16 * kDay) == std::vector<std::string>{"RAS of user 1001"},
             boost::test_tools::per_element());
  BOOST_TEST((again->inputs(18 * kDay).empty() && again->jobs(11 * kDay).empty()));
}
