#include "ring_fixtures.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <csignal>
#include <fstream>

#include "ingest/live/ring_file.h"

namespace culprit::ingest::testing {
namespace {

std::string first_path(const RingFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) return entry.path();
  return {};
}

template <class T>
void put(const std::string& path, off_t at, T value) {
  const int fd = open(path.c_str(), O_WRONLY);
  BOOST_REQUIRE(fd >= 0);
  BOOST_REQUIRE(pwrite(fd, &value, sizeof value, at) == static_cast<ssize_t>(sizeof value));
  close(fd);
}

uint64_t get(const std::string& path, off_t at) {
  uint64_t value = 0;
  const int fd = open(path.c_str(), O_RDONLY);
  BOOST_REQUIRE(fd >= 0);
  BOOST_REQUIRE(pread(fd, &value, sizeof value, at) == static_cast<ssize_t>(sizeof value));
  close(fd);
  return value;
}

constexpr off_t kWritten = 64, kRead = 128, kDropped = 192;

// A ring of this process, filled by the test only, with the given header.
std::string plain_ring(const RingFolder& folder, const std::string& name, uint64_t capacity = 8) {
  std::string bytes(4096 + 64 * capacity, '\0');
  bytes.replace(0, 8, "CULPRING");
  const uint32_t version = 1, record = 64;
  memcpy(bytes.data() + 8, &version, 4);
  memcpy(bytes.data() + 12, &record, 4);
  memcpy(bytes.data() + 16, &capacity, 8);
  std::ofstream(folder.path() + "/" + name, std::ios::binary) << bytes;
  return folder.path() + "/" + name;
}

std::string own_name(uint64_t tid) { return fmt::format("{}-{}-{}.ring", getpid(), tid, uint64_t{1} << 62); }

BOOST_AUTO_TEST_CASE(records_come_once_and_in_order_however_often_the_ring_turns) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 4);
  uint64_t n = 0;
  for (int turn = 0; turn < 11; ++turn) {
    for (int i = 0; i < 3; ++i) BOOST_TEST(push(ring, n++) == 1);
    host.round();
    host.commit();
  }
  BOOST_TEST(host.only().seqs == numbers(0, n));
  BOOST_TEST(host.only().gaps.empty());
  BOOST_TEST(host.only().state.info.job == "j1");
  BOOST_TEST(host.only().state.info.path == first_path(folder));
  BOOST_TEST(*host.only().state.info.uid == getuid());
  BOOST_TEST(*host.only().state.info.pid == static_cast<uint32_t>(getpid()));
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_full_ring_drops_and_the_gap_stands_behind_what_was_in_it) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 4);
  for (uint64_t n = 0; n < 7; ++n) BOOST_TEST(push(ring, n) == (n < 4 ? 1 : 0));
  BOOST_TEST(culprit_ring_dropped(ring) == 3u);
  host.round();
  host.commit();
  BOOST_TEST(push(ring, 7) == 1);
  host.round();
  BOOST_TEST(host.only().seqs == (std::vector<uint64_t>{0, 1, 2, 3, 7}));
  BOOST_REQUIRE_EQUAL(host.only().gaps.size(), 1u);
  BOOST_TEST(host.only().gaps[0].first == 3u);
  BOOST_TEST(host.only().gaps[0].second == 4u);
  BOOST_TEST(host.reader->stats().dropped == 3u);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(room_is_given_back_only_when_the_store_has_the_records) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 4);
  for (uint64_t n = 0; n < 4; ++n) push(ring, n);
  host.round();
  BOOST_TEST(get(first_path(folder), kRead) == 0u);
  BOOST_TEST(push(ring, 4) == 0);
  host.reader->committed(host.only().state.info.id, 2 * 64);  // in the middle of a piece: none of it counts
  BOOST_TEST(get(first_path(folder), kRead) == 0u);
  host.commit();
  BOOST_TEST(get(first_path(folder), kRead) == 4u);
  BOOST_TEST(push(ring, 5) == 1);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_restart_loses_and_doubles_nothing_wherever_it_comes) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 8);
  uint64_t n = 0;
  uint64_t taken = 0;
  for (int turn = 0; turn < 40; ++turn) {
    for (int i = 0; i < 1 + turn % 7; ++i) taken += static_cast<uint64_t>(push(ring, n++));
    host.round(300 * kNsPerMs, turn % 3 == 0 ? 128 : 1 << 20);
    if (turn % 2 == 0) host.commit();
    if (turn % 5 != 4) continue;
    host.reader.reset();  // killed: stored, perhaps not committed
    host.start();
  }
  host.rounds(3);
  const RingHost::Retained& retained = host.only();
  BOOST_TEST(retained.seqs.size() == taken);
  BOOST_TEST(std::is_sorted(retained.seqs.begin(), retained.seqs.end()));
  BOOST_TEST((std::adjacent_find(retained.seqs.begin(), retained.seqs.end()) == retained.seqs.end()));
  BOOST_TEST(retained.missing() == culprit_ring_dropped(ring));
  BOOST_TEST(taken + retained.missing() == n);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_full_ring_that_was_stored_has_room_after_a_restart) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 8);
  for (uint64_t n = 0; n < 8; ++n) push(ring, n);
  host.round();
  host.reader.reset();  // killed: stored, but the ring's counter not advanced
  host.start();
  host.round();
  BOOST_TEST(push(ring, 8) == 1);
  host.rounds(1);
  BOOST_TEST(host.only().seqs == numbers(0, 9), boost::test_tools::per_element());
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_store_that_lost_its_end_costs_a_gap_of_what_was_given_back) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 8);
  for (uint64_t n = 0; n < 3; ++n) push(ring, n);
  host.rounds(1);
  const RingHost::Retained before = host.only();
  for (uint64_t n = 3; n < 7; ++n) push(ring, n);
  host.rounds(1);
  host.reader.reset();
  host.streams.begin()->second = before;
  for (uint64_t n = 7; n < 9; ++n) push(ring, n);
  host.rounds(2);
  BOOST_TEST(host.only().seqs == (std::vector<uint64_t>{0, 1, 2, 7, 8}));
  BOOST_TEST(host.only().missing() == 4u);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_dead_processs_ring_is_drained_then_removed_and_its_source_ends) {
  RingFolder folder;
  RingHost host(folder.path());
  in_child([&] {
    culprit_ring* ring = make_ring(folder.path(), 16);
    for (uint64_t n = 0; n < 9; ++n) push(ring, n);
  });
  host.round();
  BOOST_TEST(host.only().seqs == numbers(0, 9));
  BOOST_TEST(host.only().state.ended);
  BOOST_TEST(folder.files() == 1u);  // until the store has it
  host.round();
  BOOST_TEST(folder.files() == 1u);
  host.commit();
  BOOST_TEST(folder.files() == 0u);
  BOOST_TEST(host.reader->stats().removed == 1u);
}

BOOST_AUTO_TEST_CASE(a_ring_that_ended_before_the_daemon_was_killed_is_removed_and_not_reported_again) {
  RingFolder folder;
  RingHost host(folder.path());
  in_child([&] { push(make_ring(folder.path(), 16), 0); });
  host.round();
  BOOST_TEST(host.only().state.ended);
  host.reader.reset();
  host.rounds(2);
  BOOST_TEST(folder.files() == 0u);
  BOOST_TEST(host.only().seqs == numbers(0, 1));
}

BOOST_AUTO_TEST_CASE(a_ring_that_vanished_while_the_daemon_was_away_ends_with_a_gap) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 16);
  push(ring, 0);
  host.rounds(1);
  host.reader.reset();
  std::filesystem::remove(first_path(folder));
  host.rounds(2);
  BOOST_TEST(host.only().state.ended);
  BOOST_TEST(host.only().gaps.size() == 1u);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(the_lock_tells_that_a_process_lives_whatever_pid_the_name_says) {
  RingFolder folder;
  RingHost host(folder.path());
  host.options.proc = folder.path() + "/none";  // as from another container
  culprit_ring* ring = nullptr;
  Child child([&](int step) {
    if (step == 0) ring = make_ring(folder.path(), 16);
    if (step < 3) push(ring, static_cast<uint64_t>(step));
    if (step == 3) culprit_ring_close(ring);
  });
  for (int step = 0; step < 3; ++step) {
    child.step();
    host.round(2 * kNsPerSecond);
    host.commit();
    BOOST_TEST(!host.only().state.ended);
  }
  BOOST_TEST(*host.only().state.info.pid == static_cast<uint32_t>(child.pid()));
  child.step();  // closed, and the process continues
  host.round(2 * kNsPerSecond);
  host.commit();
  BOOST_TEST(host.only().state.ended);
  BOOST_TEST(host.only().seqs == numbers(0, 3));
  BOOST_TEST(folder.files() == 0u);
}

BOOST_AUTO_TEST_CASE(what_a_killed_process_pushed_last_is_there) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = nullptr;
  Child child([&](int step) {
    if (step == 0) ring = make_ring(folder.path(), 64);
    for (uint64_t i = 0; i < 10; ++i) push(ring, static_cast<uint64_t>(step) * 10 + i);
  });
  child.step();
  host.round(2 * kNsPerSecond);
  child.step();
  child.kill();
  host.round(2 * kNsPerSecond);
  host.commit();
  BOOST_TEST(host.only().seqs == numbers(0, 20));
  BOOST_TEST(host.only().state.ended);
  BOOST_TEST(folder.files() == 0u);
}

BOOST_AUTO_TEST_CASE(a_zombie_is_dead) {
  RingFolder folder;
  RingHost host(folder.path());
  int ready[2];
  BOOST_REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    push(make_ring(folder.path(), 4), 0);
    _exit(0);
  }
  close(ready[1]);
  char c;
  BOOST_TEST(::read(ready[0], &c, 1) == 0);  // its end is closed: it has exited and was not waited for
  siginfo_t info;
  BOOST_REQUIRE(waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  host.round();
  BOOST_TEST(host.only().state.ended);
  waitpid(child, nullptr, 0);
  close(ready[0]);
}

BOOST_AUTO_TEST_CASE(a_process_younger_than_the_ring_has_only_inherited_its_number) {
  const std::string stat = "77 (a) b) c) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 5000 1 1 1";
  RingFolder folder;
  std::filesystem::create_directories(folder.path() + "/77");
  std::ofstream(folder.path() + "/77/stat") << stat;
  const struct {
    const char* what;
    uint64_t pid, start;
    bool alive;
  } cases[] = {
      {"made after the process began (50 s after the boot)", 77, 51'000'000'000, true},
      {"made in the same tick", 77, 50'000'000'000, true},
      {"made before it began", 77, 49'000'000'000, false},
      {"named by the process's own start in ticks", 77, 5000, true},
      {"named by another process's start in ticks", 77, 4999, false},
      {"no such process", 78, 51'000'000'000, false},
  };
  for (const auto& c : cases)
    BOOST_TEST(find_ring_process(folder.path(), {c.pid, c.pid, c.start, false}).alive == c.alive, c.what);
  for (const char* broken :
       {"", "77", "77 (x", "77 (x) S 1 2", "77 (x) S 1 77 77 0 -1 4 1 0 0 0 0 0 0 0 20 0 1 0 x"}) {
    std::ofstream(folder.path() + "/77/stat") << broken;
    BOOST_TEST(!find_ring_process(folder.path(), {77, 77, 51'000'000'000, false}).alive);
  }
}

BOOST_AUTO_TEST_CASE(after_a_fork_the_child_has_no_ring_and_the_parents_goes_on) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 16);
  push(ring, 0);
  in_child([&] {
    if (push(ring, 99) != 0) _exit(1);
    culprit_ring_close(ring);
    if (fcntl(0, F_GETFD) < 0 && errno == EBADF && fcntl(1, F_GETFD) >= 0) _exit(2);  // not its descriptor 0
  });
  push(ring, 1);
  host.rounds(1);
  BOOST_TEST(host.only().seqs == numbers(0, 2));
  BOOST_TEST(!host.only().state.ended);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(what_is_no_ring_is_reported_once_and_never_opened_again) {
  const struct {
    const char* what;
    std::function<void(const std::string& path)> make;
    const char* reported;
  } cases[] = {
      {"empty", [](const auto& p) { std::ofstream(p).flush(); }, "it is empty"},
      {"text", [](const auto& p) { std::ofstream(p) << std::string(5000, 'x'); }, "begin with CULPRING"},
      {"short", [](const auto& p) { std::ofstream(p) << "CULPRING"; }, "truncated"},
      {"pipe", [](const auto& p) { mkfifo(p.c_str(), 0666); }, "not a regular file"},
      {"folder", [](const auto& p) { std::filesystem::create_directory(p); }, "not a regular file"},
      {"link", [](const auto& p) { std::filesystem::create_symlink("/etc/passwd", p); },
       "not a regular file"},
      {"dangling link", [](const auto& p) { std::filesystem::create_symlink("/no", p); },
       "not a regular file"},
      {"version", [](const auto& p) { put(p, 8, uint32_t{2}); }, "version 2"},
      {"record size", [](const auto& p) { put(p, 12, uint32_t{128}); }, "records of 128 bytes"},
      {"capacity 0", [](const auto& p) { put(p, 16, uint64_t{0}); }, "capacity of 0"},
      {"capacity 6", [](const auto& p) { put(p, 16, uint64_t{6}); }, "capacity of 6"},
      {"capacity 2^58", [](const auto& p) { put(p, 16, uint64_t{1} << 58); },
       "capacity of 288230376151711744"},
      {"capacity beyond the file", [](const auto& p) { put(p, 16, uint64_t{16}); },
       "shorter than its capacity"},
      {"hard link", [](const auto& p) { std::filesystem::create_hard_link(p, p + "2"); }, "hard link"},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.what) {
      RingFolder folder;
      RingHost host(folder.path());
      const std::string path = plain_ring(folder, own_name(1));
      const std::string what = c.what;
      const bool change = what.find("capacity") == 0 || what == "version" || what == "record size";
      if (!change && what != "hard link") std::filesystem::remove(path);
      c.make(path);
      host.rounds(30);  // longer than the interval of unconditional listings
      BOOST_REQUIRE_EQUAL(host.problems.size(), 1u);
      BOOST_TEST(host.problems[0].find(c.reported) != std::string::npos, host.problems[0]);
      BOOST_TEST(host.problems[0].find(path) == 0u, host.problems[0]);
      BOOST_TEST(host.streams.empty());
      BOOST_TEST(std::filesystem::exists(std::filesystem::symlink_status(path)));
    }
  }
}

BOOST_AUTO_TEST_CASE(names_that_are_none_are_reported) {
  for (const char* name :
       {"x.ring", "1-2.ring", "1-2-3-4.ring", "-1-2-3.ring", "1-2-99999999999999999999.ring"}) {
    RingFolder folder;
    RingHost host(folder.path());
    plain_ring(folder, name);
    host.rounds(20);
    BOOST_TEST(host.problems.size() == 1u, name);
    BOOST_TEST(host.reader->stats().rings == 0u);
  }
}

// Actions of a faulty producer, or an attacker, on an open ring after 3 records were read.
BOOST_AUTO_TEST_CASE(counts_that_make_no_sense_cost_a_gap_and_nothing_else) {
  const struct {
    const char* what;
    std::function<void(const std::string& path)> change;
    uint64_t records, missing;
    bool ends;
  } cases[] = {
      {"written far ahead", [](const auto& p) { put(p, kWritten, uint64_t{1000}); }, 3 + 8, 1000 - 8 - 3,
       false},
      {"written at the end of numbers", [](const auto& p) { put(p, kWritten, ~uint64_t{0}); }, 3 + 8,
       ~uint64_t{0} - 8 - 3, false},
      {"written backwards", [](const auto& p) { put(p, kWritten, uint64_t{1}); }, 3, 0, true},
      {"read ahead of ours",
       [](const auto& p) {
         put(p, kWritten, uint64_t{7});
         put(p, kRead, uint64_t{5});
       },
       3 + 2, 2, false},
      {"read beyond written", [](const auto& p) { put(p, kRead, uint64_t{500}); }, 3, 0, false},
      {"dropped backwards", [](const auto& p) { put(p, kDropped, uint64_t{0}); }, 3, 0, false},
      {"dropped all", [](const auto& p) { put(p, kDropped, ~uint64_t{0}); }, 3, ~uint64_t{0} - 2, false},
      {"truncated", [](const auto& p) { std::filesystem::resize_file(p, 0); }, 3, 0, true},
      {"records cut off",
       [](const auto& p) {
         put(p, kWritten, uint64_t{8});
         std::filesystem::resize_file(p, 4096 + 4 * 64);
       },
       3, 0, true},
      {"grown", [](const auto& p) { std::filesystem::resize_file(p, 1 << 20); }, 3, 0, false},
      {"another capacity", [](const auto& p) { put(p, 16, uint64_t{4}); }, 3, 0, true},
      {"another magic", [](const auto& p) { put(p, 0, uint64_t{0}); }, 3, 0, true},
  };
  for (const auto& c : cases) {
    BOOST_TEST_CONTEXT(c.what) {
      RingFolder folder;
      RingHost host(folder.path());
      const std::string path = plain_ring(folder, own_name(1));
      put(path, kWritten, uint64_t{3});
      put(path, kDropped, uint64_t{2});
      host.rounds(1);
      BOOST_TEST(host.only().missing() == 2u);
      c.change(path);
      host.rounds(40);
      BOOST_TEST(host.only().seqs.size() == c.records);
      BOOST_TEST(host.only().missing() - 2 == c.missing);
      BOOST_TEST(host.only().state.ended == c.ends);
      BOOST_TEST(host.problems.size() == (c.ends ? 1u : 0u));
      BOOST_TEST(std::filesystem::exists(path));
    }
  }
}

BOOST_AUTO_TEST_CASE(counts_that_change_at_each_look_do_not_hold_up_a_round) {
  RingFolder folder;
  RingHost host(folder.path());
  const std::string path = plain_ring(folder, own_name(1));
  Child child([&](int) {});
  const pid_t wild = fork();
  if (wild == 0) {
    for (uint64_t n = 1;; ++n) {
      put(path, kDropped, n);
      put(path, kWritten, n * 1000);
    }
  }
  for (int i = 0; i < 20; ++i) {
    const RingReader::RingRead out = host.round();
    host.commit();
    BOOST_TEST(out.batch.pieces.size() < 2 * ((1u << 20) / 4096));
  }
  kill(wild, SIGKILL);
  waitpid(wild, nullptr, 0);
}

BOOST_AUTO_TEST_CASE(an_unlinked_ring_is_read_on_and_its_name_is_free) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* old = make_ring(folder.path(), 16);
  const std::string path = first_path(folder);
  push(old, 0);
  host.rounds(1);
  std::filesystem::remove(path);
  push(old, 1);
  host.rounds(2);
  plain_ring(folder, std::filesystem::path(path).filename());
  put(path, kWritten, uint64_t{1});
  push(old, 2);
  host.rounds(3);
  BOOST_REQUIRE_EQUAL(host.streams.size(), 2u);
  BOOST_TEST(host.streams.begin()->second.seqs == numbers(0, 3));
  BOOST_TEST(host.streams.rbegin()->second.seqs.size() == 1u);
  culprit_ring_close(old);
}

BOOST_AUTO_TEST_CASE(more_rings_than_may_be_open_are_reported_and_the_others_are_read) {
  RingFolder folder;
  RingHost host(folder.path());
  host.options.files_max = 5;
  for (uint64_t i = 0; i < 9; ++i) put(plain_ring(folder, own_name(i)), kWritten, uint64_t{1});
  host.rounds(40);
  BOOST_TEST(host.streams.size() == 5u);
  BOOST_TEST(host.problems.size() == 1u);
  BOOST_TEST(host.reader->stats().unread == 4u);
  RingHost one_user(folder.path());
  one_user.options.files_of_uid_max = 3;
  one_user.rounds(20);
  BOOST_TEST(one_user.reader->stats().rings == 3u);
  BOOST_REQUIRE_EQUAL(one_user.problems.size(), 1u);
  BOOST_TEST(one_user.problems[0].find("of user") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_flood_in_one_ring_holds_up_no_other) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* flood = make_ring(folder.path(), 65536);
  std::vector<culprit_ring*> quiet;
  for (int i = 0; i < 3; ++i) quiet.push_back(make_ring(folder.path(), 16));
  for (uint64_t n = 0; n < 65536; ++n) push(flood, n);
  for (culprit_ring* ring : quiet) push(ring, 0);
  const RingReader::RingRead out = host.round(300 * kNsPerMs, 256 << 10);
  BOOST_TEST(out.more);
  BOOST_TEST(out.next_ns == host.now);
  BOOST_TEST(host.streams.size() == 4u);
  for (int i = 0; i < 40 && host.round(0, 256 << 10).more; ++i) {
  }
  for (const auto& [id, retained] : host.streams)
    BOOST_TEST((retained.seqs.size() == 1u || retained.seqs.size() == 65536u));
  culprit_ring_close(flood);
  for (culprit_ring* ring : quiet) culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_folder_without_rings_is_looked_at_twice_a_second) {
  RingFolder folder;
  RingHost host(folder.path());
  BOOST_TEST(host.round().next_ns - host.now == 500 * kNsPerMs);
}

BOOST_AUTO_TEST_CASE(a_watched_folder_without_rings_is_looked_at_when_it_changes) {
  RingFolder folder;
  RingHost host(folder.path());
  BOOST_TEST(host.round().local);
  RingReader::Round round{host.now, host.now, 1 << 20, true};
  const auto wait = [&] { return host.reader->round(round).next_ns - round.now_mono; };
  // The change may have the time of the first listing.
  round.now_mono += kNsPerSecond;
  (void)wait();
  round.now_mono += kNsPerSecond;
  BOOST_TEST(wait() == 5 * kNsPerSecond);
  culprit_ring* ring = make_ring(folder.path(), 16);
  round.now_mono += kNsPerSecond;
  BOOST_TEST(wait() < kNsPerSecond);
  BOOST_TEST(host.reader->stats().rings == 1u);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(idle_rings_are_looked_at_more_and_more_rarely) {
  RingFolder folder;
  RingHost host(folder.path());
  culprit_ring* ring = make_ring(folder.path(), 16);
  push(ring, 0);
  RingReader::RingRead out = host.round();
  BOOST_TEST(out.next_ns - host.now == 10 * kNsPerMs);
  for (int i = 0; i < 8; ++i) out = host.round(out.next_ns - host.now);
  BOOST_TEST(out.next_ns - host.now == 200 * kNsPerMs);
  push(ring, 1);
  out = host.round(out.next_ns - host.now);
  BOOST_TEST(out.next_ns - host.now == 10 * kNsPerMs);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(what_a_dead_process_did_not_finish_is_swept_and_a_living_ones_stays) {
  RingFolder folder;
  RingHost host(folder.path());
  const std::string dead = folder.path() + "/4194399-1-5.ring.tmp";
  const std::string alive = folder.path() + "/" + own_name(1) + ".tmp";
  for (const std::string& path : {dead, alive}) std::ofstream(path) << "x";
  host.round();
  BOOST_TEST(std::filesystem::exists(dead));
  for (int i = 0; i < 60; ++i) host.round();
  BOOST_TEST(!std::filesystem::exists(dead));
  BOOST_TEST(std::filesystem::exists(alive));
  BOOST_TEST(host.problems.empty());
}

BOOST_AUTO_TEST_CASE(stacks_of_a_killed_process_stay_an_hour_and_those_of_a_living_one_for_good) {
  RingFolder folder;
  RingHost host(folder.path());
  const std::string dead = folder.path() + "/4194399-5.stacks", locked = folder.path() + "/4194398-5.stacks";
  const std::string alive = fmt::format("{}/{}-{}.stacks", folder.path(), getpid(), uint64_t{1} << 62);
  const std::string other = folder.path() + "/mine.stacks";
  for (const std::string& path : {dead, locked, alive, other}) std::ofstream(path) << "{}\n";
  Child child([&](int) {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (fcntl(open(locked.c_str(), O_WRONLY), F_SETLK, &lock) != 0) _exit(1);
  });
  child.step();
  host.round();
  host.round(3599 * kNsPerSecond);
  BOOST_TEST(std::filesystem::exists(dead));
  host.round(6 * kNsPerSecond);  // the folder is listed again
  BOOST_TEST(!std::filesystem::exists(dead));
  for (const std::string& path : {locked, alive, other}) BOOST_TEST(std::filesystem::exists(path), path);
  BOOST_TEST(host.problems.empty());
}

BOOST_AUTO_TEST_CASE(the_job_is_what_the_caller_says_and_the_claim_is_valid_text) {
  RingFolder folder;
  RingHost host(folder.path());
  RingOwner seen;
  host.options.job_of = [&](const RingOwner& owner) {
    seen = owner;
    return std::string("of the cgroup");
  };
  culprit_ring* ring =
      make_ring(folder.path(), 4, "job \xff\xfe of somebody whose name is longer than all rooms");
  push(ring, 0);
  host.rounds(1);
  BOOST_TEST(host.only().state.info.job == "of the cgroup");
  BOOST_TEST(seen.header_job.find("job \xef\xbf\xbd\xef\xbf\xbd of") == 0u);
  BOOST_TEST(seen.uid == getuid());
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_missing_folder_is_reported_once_and_taken_when_it_comes) {
  RingFolder folder;
  RingHost host(folder.path() + "/later");
  host.rounds(10);
  BOOST_TEST(host.problems.size() == 1u);
  std::filesystem::create_directory(folder.path() + "/later");
  culprit_ring* ring = make_ring(folder.path() + "/later", 4);
  push(ring, 0);
  host.rounds(2);
  BOOST_TEST(host.only().seqs == numbers(0, 1));
  culprit_ring_close(ring);
}

// ---- ring.h

BOOST_AUTO_TEST_CASE(a_job_without_a_daemon_gets_a_sentence_and_goes_on) {
  const struct {
    const char* folder;
    size_t size;
    uint32_t capacity;
    int number;
    const char* reported;
  } cases[] = {
      {"/nowhere/at/all", sizeof(culprit_ring_options), 0, ENOENT, "/nowhere/at/all: No such file"},
      {"/proc", sizeof(culprit_ring_options), 0, ENOENT, "/proc: "},
      {"/tmp", sizeof(culprit_ring_options), 6, EINVAL, "power of two"},
      {"/tmp", sizeof(culprit_ring_options), 1u << 31, EINVAL, "power of two"},
      {"/tmp", 3, 0, EINVAL, "size"},
  };
  for (const auto& c : cases) {
    const culprit_ring_options options{c.size, c.folder, nullptr, 0, 0, c.capacity};
    char error[200] = "";
    errno = 0;
    BOOST_TEST(culprit_ring_create(&options, error, sizeof error) == nullptr);
    BOOST_TEST(errno == c.number, c.folder << " " << errno);
    BOOST_TEST(std::string(error).find(c.reported) != std::string::npos, error);
    BOOST_TEST(culprit_ring_create(&options, nullptr, 0) == nullptr);
  }
  BOOST_TEST(push(nullptr, 0) == 0);
  culprit_ring_close(nullptr);
}

BOOST_AUTO_TEST_CASE(the_file_is_open_to_the_daemons_group_only_where_the_folder_hands_it_on) {
  RingFolder folder;
  for (const mode_t mode : {01777, 03777}) {
    BOOST_REQUIRE(chmod(folder.path().c_str(), mode) == 0);
    culprit_ring* ring = make_ring(folder.path(), 4);
    const std::string path = first_path(folder);
    struct stat status {};
    BOOST_REQUIRE(stat(path.c_str(), &status) == 0);
    BOOST_TEST((status.st_mode & 0777) == (mode & S_ISGID ? 0660u : 0600u));
    BOOST_TEST(status.st_size == 4096 + 4 * 64);
    culprit_ring_close(ring);
    std::filesystem::remove(path);
  }
}

BOOST_AUTO_TEST_CASE(the_header_of_the_sdk_is_the_one_that_the_reader_knows) {
  RingFolder folder;
  culprit_ring* ring = make_ring(folder.path(), 32, "llama");
  for (uint64_t n = 0; n < 40; ++n) push(ring, n);
  std::ifstream in(first_path(folder), std::ios::binary);
  std::string bytes(kRingHeaderUsed, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const Result<RingHeader> header = parse_ring_header(bytes, 4096 + 32 * 64);
  BOOST_REQUIRE(header.has_value());
  BOOST_TEST(header->capacity == 32u);
  BOOST_TEST(header->job == "llama");
  BOOST_TEST(header->rank == 5u);
  BOOST_TEST(header->device == 1u);
  BOOST_TEST(header->counts.written == 32u);
  BOOST_TEST(header->counts.dropped == 8u);
  culprit_ring_close(ring);
}

BOOST_AUTO_TEST_CASE(a_read_count_that_cannot_be_frees_no_room) {
  RingFolder folder;
  culprit_ring* ring = make_ring(folder.path(), 4);
  for (uint64_t n = 0; n < 4; ++n) push(ring, n);
  for (const uint64_t read : {uint64_t{5}, uint64_t{1000}, ~uint64_t{0}}) {
    put(first_path(folder), kRead, read);
    BOOST_TEST(push(ring, 4) == 0);
  }
  put(first_path(folder), kRead, uint64_t{1});
  BOOST_TEST(push(ring, 4) == 1);
  put(first_path(folder), kRead, uint64_t{0});  // backwards
  BOOST_TEST(push(ring, 5) == 0);
  culprit_ring_close(ring);
}

}  // namespace
}  // namespace culprit::ingest::testing
