#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ingest/live/tailer_queue.h"
#include "ingest/live/tailer_table.h"
#include "tail_fixture.h"

using namespace culprit;
using namespace culprit::ingest;
using namespace culprit::ingest::testing;
using namespace std::string_literals;

BOOST_AUTO_TEST_SUITE(tailer_edges)

BOOST_AUTO_TEST_CASE(links_pipes_and_devices_are_refused_and_reported_once) {
  TailFolderFixture f;
  f.append("secret", "not for the tailer\n");
  std::filesystem::create_symlink(f.at("secret"), f.at("link.log"));
  BOOST_REQUIRE_EQUAL(::mkfifo(f.at("fifo.log").c_str(), 0600), 0);
  f.append("plain.log", "line\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.sources(), 1);
  BOOST_CHECK_EQUAL(f.evidence("plain.log"), "line\n");
  BOOST_CHECK_EQUAL(f.problems.size(), 2);
  BOOST_CHECK_EQUAL(f.tailer->stats().refused, 2);
}

BOOST_AUTO_TEST_CASE(a_folder_that_is_a_link_is_not_entered) {
  TailFolderFixture other("*");
  other.append("a.log", "elsewhere\n");
  TailFolderFixture f("**/*.log");
  std::filesystem::create_directory_symlink(other.folder, f.at("sub"));
  f.settle();
  BOOST_CHECK_EQUAL(f.sources(), 0);
}

BOOST_AUTO_TEST_CASE(a_file_replaced_by_a_link_is_not_followed_there) {
  TailFolderFixture f;
  f.append("a.log", "mine\n");
  f.settle();
  f.append("secret", "not for the tailer, and longer\n");
  f.remove("a.log");
  std::filesystem::create_symlink(f.at("secret"), f.at("a.log"));
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "mine\n");
}

BOOST_AUTO_TEST_CASE(folders_and_files_that_come_later_are_found_with_and_without_hints) {
  for (const bool watches : {false, true}) {
    TailFolderFixture f("**/*.log");
    f.watches = watches;
    f.settle();
    std::filesystem::create_directories(f.at("job/rank"));
    f.append("job/rank/a.log", "one\n");
    if (watches) f.changed = {f.folder};
    f.round(watches ? 10 * kNsPerMs : 2 * kNsPerSecond);
    BOOST_CHECK_EQUAL(f.evidence("job/rank/a.log"), "one\n");
  }
}

BOOST_AUTO_TEST_CASE(with_a_watch_a_hint_makes_it_look_at_once) {
  TailFolderFixture f;
  f.watches = true;
  f.append("a.log", "one\n");
  f.settle();
  f.append("a.log", "two\n");
  f.round(kNsPerMs);
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\n");
  f.changed = {f.folder};
  f.round(kNsPerMs);
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\n");
}

BOOST_AUTO_TEST_CASE(a_watched_file_is_looked_at_now_and_then_without_hints) {
  TailFolderFixture f;
  f.watches = true;
  f.append("a.log", "one\n");
  f.settle();
  f.append("a.log", "two\n");
  f.round(11 * kNsPerSecond);
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\n");
}

BOOST_AUTO_TEST_CASE(one_fast_file_does_not_starve_the_others) {
  TailFolderFixture f;
  f.append("fast.log", std::string(4 << 20, 'x'));
  for (int i = 0; i < 20; ++i) f.append("slow" + std::to_string(i) + ".log", "line\n");
  f.round(kNsPerSecond, true, 128 << 10);
  f.round(kNsPerSecond, true, 128 << 10);
  for (int i = 0; i < 20; ++i) BOOST_CHECK_EQUAL(f.evidence("slow" + std::to_string(i) + ".log"), "line\n");
}

// Two files of each other owner, and one of uid 7, which became ready last.
BOOST_AUTO_TEST_CASE(owners_of_files_take_turns) {
  RoundTime time{0, kNsPerSecond};
  SafeFolder root;
  SourceTable table(root);
  CheckQueue queue(time, table);
  const auto add = [&](std::optional<Principal> uid) {
    auto source = std::make_unique<TailSource>();
    source->info.uid = uid;
    queue.make_ready(table.add(std::move(source)));
  };
  for (const uint32_t uid : {5u, 5u, 5u, 9u, 9u}) add(Principal(uid));
  add(std::nullopt);
  add(Principal(7));
  std::vector<std::string> turns;
  while (const TailSource* source = queue.pop_ready())
    turns.push_back(source->info.uid ? to_string(*source->info.uid) : "none");
  const std::vector<std::string> expected{"uid 5", "uid 7", "uid 9", "none", "uid 5", "uid 9", "uid 5"};
  BOOST_TEST(turns == expected, boost::test_tools::per_element());
  BOOST_TEST(queue.ready() == 0u);
}

// As root: the files of another user.
BOOST_AUTO_TEST_CASE(the_files_of_one_user_delay_a_line_of_another_by_one_read) {
  if (::geteuid() != 0) return;
  constexpr uid_t kMany = 64'001, kOne = 64'002;
  constexpr size_t kRead = 64 << 10;
  TailFolderFixture f;
  const auto owned = [&](const std::string& name, const std::string& bytes, uid_t uid) {
    f.append(name, bytes);
    BOOST_REQUIRE_EQUAL(::chown(f.at(name).c_str(), uid, uid), 0);
  };
  for (int i = 0; i < 80; ++i) owned("a" + std::to_string(i) + ".log", std::string(4 * kRead, 'x'), kMany);
  owned("b.log", "RuntimeError: one\n", kOne);
  f.round(kNsPerSecond, true, 2 * kRead);
  BOOST_CHECK_EQUAL(f.evidence("b.log"), "RuntimeError: one\n");
  // And again, while the other files have more than a round reads.
  f.append("b.log", "RuntimeError: two\n");
  f.round(kNsPerSecond, true, 2 * kRead);
  BOOST_CHECK_EQUAL(f.evidence("b.log"), "RuntimeError: one\nRuntimeError: two\n");
}

BOOST_AUTO_TEST_CASE(more_files_than_descriptors_are_followed_all_the_same) {
  TailFolderFixture f;
  f.options.open_max = 8;
  f.restart();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i)
      f.append(std::to_string(i) + ".log", "round " + std::to_string(round) + "\n");
    f.settle();
    BOOST_CHECK_LE(f.tailer->stats().open, 8);
  }
  for (int i = 0; i < 60; ++i)
    BOOST_CHECK_EQUAL(f.evidence(std::to_string(i) + ".log"), "round 0\nround 1\nround 2\n");
}

BOOST_AUTO_TEST_CASE(a_large_hole_is_a_counted_gap) {
  TailFolderFixture f;
  f.append("a.log", "head\n");
  std::filesystem::resize_file(f.at("a.log"), 64 << 20);
  f.append("a.log", "tail\n");
  f.settle();
  const std::string evidence = f.evidence("a.log");
  BOOST_CHECK(evidence.starts_with("head\n"));
  BOOST_CHECK(evidence.ends_with("tail\n"));
  BOOST_CHECK_EQUAL(evidence.size() + f.gap_bytes("a.log"), (64 << 20) + 5);
  BOOST_CHECK_LT(evidence.size(), 300 << 10);  // size of one read
}

BOOST_AUTO_TEST_CASE(a_removed_file_ends_and_one_made_later_is_a_new_source) {
  TailFolderFixture f;
  f.append("a.log", "one\n");
  f.settle();
  f.remove("a.log");
  f.round(kNsPerSecond);
  for (int i = 0; i < 70; ++i) f.round(kNsPerSecond);
  BOOST_REQUIRE_EQUAL(f.sources(), 1);
  BOOST_CHECK(f.streams.begin()->second.state.ended);
  f.append("a.log", "two\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.sources(), 2);
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\n");
}

BOOST_AUTO_TEST_CASE(bytes_known_to_be_missing_are_counted) {
  TailFolderFixture f;
  f.append("a.log", std::string(300, 'a'));
  f.settle();
  f.append("a.log", std::string(1000, 'b'));
  f.round(2 * kNsPerSecond, true, 0);
  f.truncate("a.log");
  f.append("a.log", "c\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), std::string(300, 'a') + "c\n");
  BOOST_CHECK_EQUAL(f.gap_bytes("a.log"), 1000);
}

BOOST_AUTO_TEST_CASE(what_is_written_to_a_rotated_file_after_its_successor_is_taken_too) {
  TailFolderFixture f;
  f.append("a.log", "one\n");
  f.settle();
  f.rename("a.log", "a.log.1");
  f.append("a.log", "two\n");
  f.round(kNsPerSecond);
  f.append("a.log.1", "late\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\nlate\n");
  f.restart();
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\nlate\n");
}

BOOST_AUTO_TEST_CASE(much_that_is_written_to_a_rotated_file_is_taken_in_bounded_rounds) {
  TailFolderFixture f;
  f.append("a.log", "one\n");
  f.settle();
  f.rename("a.log", "a.log.1");
  f.append("a.log", "two\n");
  f.round(kNsPerSecond);
  const std::string much(8 << 20, 'x');
  f.append("a.log.1", much);
  // The store was slow: at the next check the time for open earlier files is over.
  const size_t budget = 1 << 20;
  uint64_t most = f.round(60 * kNsPerSecond, true, budget).batch.bytes();
  for (int i = 0; i < 20; ++i) most = std::max(most, f.round(1100 * kNsPerMs, true, budget).batch.bytes());
  BOOST_CHECK_LE(most, budget);
  BOOST_CHECK(f.evidence("a.log") == "one\ntwo\n" + much);
}

// Events that may come between a rotation and late bytes in the old file.
BOOST_AUTO_TEST_CASE(late_bytes_are_taken_whenever_they_come_while_the_file_is_there) {
  using Fixture = TailFolderFixture;
  struct Case {
    const char* name;
    std::function<void(Fixture&)> between;
    const char* late_name;
    const char* expected;
  };
  const auto nothing = "one\ntwo\n";
  const Case cases[] = {
      {"a minute",
       [](Fixture& f) {
         for (int i = 0; i < 60; ++i) f.round();
       },
       "a.log.1", nothing},
      {"a second rotation",
       [](Fixture& f) {
         f.rename("a.log.1", "a.log.2");
         f.rename("a.log", "a.log.1");
         f.append("a.log", "three\n");
         f.settle();
       },
       "a.log.2", "one\ntwo\nthree\n"},
      {"a restart", [](Fixture& f) { f.restart(); }, "a.log.1", nothing},
      {"another name",
       [](Fixture& f) {
         f.settle();
         f.rename("a.log.1", "kept-by-somebody");
         f.restart();
       },
       "kept-by-somebody", nothing},
      {"no descriptor left",
       [](Fixture& f) {
         for (int i = 0; i < 8; ++i) f.append("other" + std::to_string(i) + ".log", "line\n");
         f.settle();
       },
       "a.log.1", nothing},
  };
  for (const Case& one : cases) {
    BOOST_TEST_CONTEXT(one.name) {
      Fixture f;
      f.options.open_max = 2;
      f.restart();
      f.append("a.log", "one\n");
      f.settle();
      f.rename("a.log", "a.log.1");
      f.append("a.log", "two\n");
      f.round();
      one.between(f);
      f.append(one.late_name, "late\n");
      for (int i = 0; i < 30; ++i) f.round();
      BOOST_CHECK_EQUAL(f.evidence("a.log"), one.expected + std::string("late\n"));
      f.append(one.late_name, "later\n");
      f.append("a.log", "end\n");
      for (int i = 0; i < 30; ++i) f.round();
      const std::string all = f.evidence("a.log");
      BOOST_CHECK_EQUAL(all.size(), std::string(one.expected).size() + 5 + 6 + 4);
      BOOST_CHECK(all.ends_with("later\nend\n") || all.ends_with("end\nlater\n"));
      f.restart();
      f.settle();
      BOOST_CHECK_EQUAL(f.evidence("a.log"), all);
      BOOST_CHECK_EQUAL(f.gaps("a.log"), 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(late_bytes_of_a_file_that_is_removed_meanwhile_are_taken_from_its_descriptor) {
  TailFolderFixture f;
  f.append("a.log", "one\n");
  f.settle();
  f.rename("a.log", "a.log.1");
  f.append("a.log", "two\n");
  f.round();
  f.append("a.log.1", "late\n");
  f.remove("a.log.1");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\nlate\n");
}

BOOST_AUTO_TEST_CASE(a_part_that_begins_as_a_longer_one_before_it_is_taken) {
  const std::string banner(600, '=');
  for (const bool stopped : {false, true}) {
    TailFolderFixture f("a.log");
    f.append("a.log", banner + "one, which is longer than the others\n");
    f.settle();
    if (stopped) f.tailer.reset();
    f.rename("a.log", "a.log.3");
    f.append("a.log.2", banner + "two\n");
    f.append("a.log.1", banner + "three\n");
    f.append("a.log", banner + "four\n");
    if (stopped) f.restart();
    f.settle();
    BOOST_CHECK_EQUAL(f.evidence("a.log"), banner + "one, which is longer than the others\n" + banner +
                                               "two\n" + banner + "three\n" + banner + "four\n");
  }
}

BOOST_AUTO_TEST_CASE(a_thousand_logs_rotated_at_once_are_found_by_few_lists) {
  size_t asked = 0;
  TailFolderFixture f;
  f.options.before_ask = [&] { ++asked; };
  f.restart();
  constexpr size_t kLogs = 300;
  for (size_t i = 0; i < kLogs; ++i) f.append(std::to_string(i) + ".log", "one " + std::to_string(i) + "\n");
  f.settle();
  for (size_t i = 0; i < kLogs; ++i) {
    f.rename(std::to_string(i) + ".log", std::to_string(i) + ".log.1");
    f.append(std::to_string(i) + ".log", "two " + std::to_string(i) + "\n");
  }
  asked = 0;
  f.round();
  f.settle();
  for (size_t i = 0; i < kLogs; ++i) {
    const std::string number = std::to_string(i);
    BOOST_CHECK_EQUAL(f.evidence(number + ".log"), "one " + number + "\ntwo " + number + "\n");
  }
  BOOST_CHECK_LT(asked, 60 * kLogs);
}

BOOST_AUTO_TEST_CASE(logs_that_come_and_go_leave_nothing_behind) {
  TailFolderFixture f;
  f.options.files_max = 3;
  f.restart();
  for (int i = 0; i < 20; ++i) {
    const std::string name = std::to_string(i) + ".log";
    f.append(name, "line " + name + "\n");
    f.settle();
    BOOST_CHECK_EQUAL(f.evidence(name), "line " + name + "\n");
    f.remove(name);
    for (int n = 0; n < 80; ++n) f.round();
  }
  BOOST_CHECK_EQUAL(f.sources(), 20);
  BOOST_CHECK_EQUAL(f.tailer->stats().files, 0);
  BOOST_CHECK_LE(f.tailer->stats().slots, 2);
}

BOOST_AUTO_TEST_CASE(parts_rotated_before_the_first_look_come_first_if_the_glob_asks_for_them) {
  TailFolderFixture f("x*");
  f.append("x.log.2", "one\n");
  f.append("x.log.1", "two\n");
  f.append("x.log", "three\n");
  f.append("x.log.3.gz", "no gzip at all");
  f.settle();
  BOOST_CHECK_EQUAL(f.sources(), 1);
  BOOST_CHECK_EQUAL(f.evidence("x.log"), "one\ntwo\nthree\n");
}

BOOST_AUTO_TEST_CASE(parts_that_are_found_first_outlive_a_kill_before_they_are_read) {
  TailFolderFixture f("x*");
  std::string expected;
  for (int i = 1; i <= 4; ++i) {
    const std::string name = "x.log." + std::to_string(i),
                      text = std::to_string(i) + std::string(400, '.') + "\n";
    f.append(name, text);
    expected += text;
    const struct timespec at[2] = {{1'700'000'000 + i, 0}, {1'700'000'000 + i, 0}};
    BOOST_REQUIRE_EQUAL(::utimensat(AT_FDCWD, f.at(name).c_str(), at, 0), 0);
  }
  f.append("x.log", "end\n");
  f.round(kNsPerSecond, true, 100);
  f.restart();
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("x.log"), expected + "end\n");
  BOOST_CHECK_EQUAL(f.sources(), 1);
}

BOOST_AUTO_TEST_CASE(what_is_missing_from_an_emptied_file_is_reported_before_more_comes) {
  TailFolderFixture f;
  f.append("a.log", "one\n");
  f.settle();
  f.append("a.log", "never read\n");
  f.round(2 * kNsPerSecond, true, 0);
  f.truncate("a.log");
  f.settle();
  BOOST_CHECK_EQUAL(f.gaps("a.log"), 1);
  BOOST_CHECK_EQUAL(f.gap_bytes("a.log"), 11);
  f.restart();
  f.settle();
  BOOST_CHECK_EQUAL(f.gaps("a.log"), 1);
  f.append("a.log", "two\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\n");
}

BOOST_AUTO_TEST_CASE(a_log_that_only_sounds_rotated_is_followed_once_it_is_written_on) {
  TailFolderFixture f("worker*");
  f.append("worker.log", "main\n");
  f.settle();
  f.append("worker-0.log", "one\n");
  f.round();
  BOOST_CHECK_EQUAL(f.sources(), 1);
  f.append("worker-0.log", "two\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("worker-0.log"), "one\ntwo\n");
  BOOST_CHECK_EQUAL(f.evidence("worker.log"), "main\n");
}

BOOST_AUTO_TEST_CASE(generations_that_begin_with_the_same_banner_are_distinguished) {
  const std::string banner(1000, '=');
  for (const bool stopped : {false, true}) {
    TailFolderFixture f("a.log");
    f.append("a.log", banner + "one\n");
    f.settle();
    if (stopped) f.tailer.reset();
    for (const char* text : {"two, and longer\n", "three, and longer still\n"}) {
      f.copy("a.log", text[1] == 'w' ? "a.log.2" : "a.log.1");
      f.truncate("a.log");
      f.append("a.log", banner + text);
    }
    if (stopped) f.restart();
    f.settle();
    BOOST_CHECK_EQUAL(f.evidence("a.log"),
                      banner + "one\n" + banner + "two, and longer\n" + banner + "three, and longer still\n");
  }
}

BOOST_AUTO_TEST_CASE(parts_that_are_counted_upwards_are_taken_in_order) {
  TailFolderFixture f("a.log");
  f.append("a.log", "0\n");
  f.settle();
  f.tailer.reset();
  std::string expected = "0\n";
  for (int i = 1; i <= 3; ++i) {
    f.rename("a.log", "a.log." + std::to_string(i));
    const struct timespec at[2] = {{1'900'000'000 + i, 0}, {1'900'000'000 + i, 0}};
    BOOST_REQUIRE_EQUAL(::utimensat(AT_FDCWD, f.at("a.log." + std::to_string(i)).c_str(), at, 0), 0);
    f.append("a.log", std::to_string(i) + "\n");
    expected += std::to_string(i) + "\n";
  }
  f.restart();
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), expected);
}

BOOST_AUTO_TEST_CASE(files_beyond_the_limit_are_reported_once_and_counted) {
  TailFolderFixture f;
  f.options.files_max = 2;
  f.restart();
  for (const char* name : {"a.log", "b.log", "c.log", "d.log"}) f.append(name, "line\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.sources(), 2);
  BOOST_CHECK_EQUAL(f.tailer->stats().refused, 2);
  BOOST_CHECK_EQUAL(f.tailer->stats().left_out, 2);
  BOOST_CHECK_EQUAL(f.problems.size(), 1);
}

BOOST_AUTO_TEST_CASE(a_root_that_vanishes_is_reported_and_followed_again_when_it_is_back) {
  TailFolderFixture f;
  f.append("a.log", "one\n");
  f.settle();
  std::filesystem::rename(f.folder, f.folder + ".away");
  f.settle();
  BOOST_CHECK_EQUAL(f.problems.size(), 1);
  std::filesystem::rename(f.folder + ".away", f.folder);
  f.append("a.log", "two\n");
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\ntwo\n");
  BOOST_CHECK_EQUAL(f.sources(), 1);
}

BOOST_AUTO_TEST_CASE(a_round_ends_although_names_move_while_a_file_is_written_again) {
  TailFolderFixture f;
  bool moving = false;
  int made = 0;
  f.options.before_ask = [&] {
    if (moving && made < 2000) f.append("other" + std::to_string(made++), "");
  };
  f.restart();
  f.append("a.log", "one\n");
  f.settle();
  f.round();
  moving = true;
  f.truncate("a.log");
  f.append("a.log", "other\n");
  for (int i = 0; i < 3; ++i) f.round();
  BOOST_CHECK_LT(made, 2000);
  moving = false;
  f.settle();
  BOOST_CHECK_EQUAL(f.evidence("a.log"), "one\nother\n");
}

// With 1,000 logs and 63 descriptors for inputs; half of these are in use.
BOOST_AUTO_TEST_CASE(many_files_leave_descriptors_to_the_rest_of_the_process) {
  TailFolderFixture f;
  for (int i = 0; i < 1000; ++i) f.append(std::to_string(i) + ".log", "one\n");
  rlimit before{};
  BOOST_REQUIRE_EQUAL(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{84, before.rlim_max};
  BOOST_REQUIRE_EQUAL(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<int> others;
  while (others.empty() || others.back() < 32) others.push_back(::dup(0));
  for (int i = 0; i < 30; ++i) {
    f.round();
    const int spare = ::dup(0);
    BOOST_CHECK_GE(spare, 0);
    BOOST_CHECK_LT(spare, 64);  // the reserve is untouched
    ::close(spare);
  }
  f.settle();
  size_t whole = 0;
  for (int i = 0; i < 1000; ++i) whole += f.evidence(std::to_string(i) + ".log") == "one\n";
  BOOST_CHECK_EQUAL(whole, 1000u);
  for (const int other : others) ::close(other);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

BOOST_AUTO_TEST_CASE(folders_are_entered_as_the_caller_decides) {
  TailFolderFixture f("*/*.log");
  std::map<std::string, TailOptions::Enter> decided;
  std::vector<std::string> asked;
  f.options.enter = [&](const std::string& folder) {
    asked.push_back(folder);
    return decided[folder.substr(folder.rfind('/') + 1)];
  };
  decided = {{"in", TailOptions::Enter::kYes},
             {"out", TailOptions::Enter::kNo},
             {"late", TailOptions::Enter::kLater}};
  for (const char* name : {"in", "out", "late"}) {
    std::filesystem::create_directory(f.at(name));
    f.append(std::string(name) + "/x.log", "a line\n");
  }
  f.restart();
  f.settle();
  BOOST_TEST(f.evidence("in/x.log") == "a line\n");
  BOOST_TEST(f.evidence("out/x.log") == "");
  BOOST_TEST(f.evidence("late/x.log") == "");
  BOOST_TEST(asked[0].starts_with(f.folder + "/"));
  decided["late"] = TailOptions::Enter::kYes;
  f.round(2 * kNsPerSecond);
  f.settle();
  BOOST_TEST(f.evidence("late/x.log") == "a line\n", "within seconds");
  BOOST_TEST(f.evidence("out/x.log") == "");
}

BOOST_AUTO_TEST_SUITE_END()
