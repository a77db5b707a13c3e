// Effects of a disk, a kill and a lost index on an archive, and the properties that must hold.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <csignal>

#include "archive_fixture.h"
#include "base/crash_point.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

namespace {

std::string segment_path(const TempFolder& folder, uint64_t number) {
  return folder.path() + "/" + segment_name(number);
}

// Two hosts of both kinds, with frames in several commits over several segments.
struct Filled {
  TempFolder folder;
  MemoryFiles files;
  Host raw{"a"}, condensed{"b", LogKind::kCondensed};
  Filled() {
    auto archive = open_archive(files, archive_options(folder));
    for (int i = 0; i < 8; ++i)
      for (Host* host : {&raw, &condensed}) {
        host->write(10);
        BOOST_REQUIRE(host->send_and_commit(*archive));
      }
    BOOST_REQUIRE(archive->stats().segments > 4u);
  }
  std::unique_ptr<Archive> open() { return open_archive(files, archive_options(folder)); }
};

// Sends in small commits until all is stored, and dies at the crash point; reports the acknowledged sequence.
void send_and_die(const std::string& point, const ArchiveOptions& options, Host& host, uint64_t* reported) {
  if (!arm_crash_point(point)) _exit(3);
  auto archive = Archive::open(io::real_files(), options);
  if (!archive) _exit(4);
  const auto at = (*archive)->begin(host.origin, 1);
  if (!at) _exit(5);
  uint64_t n = 0;
  for (const VerbatimFrame& frame : host.frames(at->value_or(0))) {
    if (!(*archive)->append(frame.bytes, 1)) _exit(6);
    if (++n % 7 != 0) continue;
    const auto moved = (*archive)->commit(1);
    if (!moved || moved->empty()) _exit(7);
    *reported = moved->front().sequence;
    if (!(*archive)->retain({}, 1)) _exit(8);
  }
  _exit(0);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_kill_at_any_point_loses_nothing_that_was_reported_and_doubles_nothing) {
  auto* reported = static_cast<uint64_t*>(
      mmap(nullptr, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  int killed = 0;
  for (const char* point :
       {"store.archive_segment_begun", "store.archive_mid_write", "store.archive_written",
        "store.archive_before_sync", "store.archive_before_transaction", "store.index_before_commit",
        "store.index_after_commit", "store.archive_after_transaction"})
    for (const char* which : {":1", ":3"}) {
      TempFolder folder;
      const ArchiveOptions options = archive_options(folder);
      Host host("a");
      host.write(120, 700);
      for (int round = 0; round < 2; ++round) {
        *reported = 0;
        const pid_t child = fork();
        if (child == 0) send_and_die(std::string(point) + which, options, host, reported);
        int status = 0;
        waitpid(child, &status, 0);
        killed += WIFSIGNALED(status);
        BOOST_TEST(((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || WEXITSTATUS(status) == 0));
        auto archive = open_archive(io::real_files(), options);
        BOOST_TEST(archive->begin(host.origin, 1)->value_or(0) >= *reported);
      }
      auto archive = open_archive(io::real_files(), options);
      BOOST_TEST(host.send_and_commit(*archive));
      check_whole(*archive, io::real_files(), folder.path(), host);
    }
  BOOST_TEST(killed > 20);
  munmap(reported, sizeof(uint64_t));
}

// A power loss removes the name of a segment whose folder was not synced, and leaves later segments. What
// those imply about earlier frames is no proof that the frames are stored.
BOOST_AUTO_TEST_CASE(a_segment_that_a_loss_of_power_took_from_between_others_comes_again) {
  for (const int committed : {0, 10})
    for (uint64_t lost = committed == 0 ? 1 : 2; lost < 6; ++lost) {
      TempFolder folder;
      MemoryFiles files;
      Host host("a");
      {
        auto archive = open_archive(files, archive_options(folder));
        host.write(committed, 700);
        BOOST_TEST(host.send_and_commit(*archive));
        host.write(200, 700);
        BOOST_TEST(host.send(*archive));
      }
      BOOST_REQUIRE(files.paths().size() > lost + 1);
      must(files.remove(segment_path(folder, lost)));
      auto archive = open_archive(files, archive_options(folder));
      const uint64_t known = archive->begin(host.origin, 1)->value_or(0);
      BOOST_TEST((known >= static_cast<uint64_t>(committed) && known < 200u));
      BOOST_TEST(host.send_and_commit(*archive));
      check_whole(*archive, files, folder.path(), host);
    }
}

BOOST_AUTO_TEST_CASE(a_kill_while_the_oldest_goes_leaves_what_is_reported) {
  for (const char* point :
       {"store.archive_before_drop", "store.archive_file_dropped", "store.index_before_commit:4",
        "store.archive_dropped", "store.archive_dropped:2"}) {
    TempFolder folder;
    ArchiveOptions options = archive_options(folder, 64 << 10);
    Host host("a");
    host.write(60, 9000);
    {
      auto archive = open_archive(io::real_files(), options);
      BOOST_TEST(host.send_and_commit(*archive));
    }
    const pid_t child = fork();
    if (child == 0) {
      if (!arm_crash_point(point)) _exit(3);
      options.max_bytes = 100 << 10;
      auto archive = Archive::open(io::real_files(), options);
      _exit(archive && (*archive)->retain({}, 1) ? 0 : 4);
    }
    int status = 0;
    waitpid(child, &status, 0);
    BOOST_TEST(WIFSIGNALED(status));
    auto archive = open_archive(io::real_files(), options);
    for (const HostStream& stream : stored_of(*archive, host)) {
      const StreamId id = stream.stored.state.info.id;
      const Given given = read_stored(io::real_files(), folder.path(), stream.stored);
      BOOST_TEST(given.bytes.size() == host.sizes[id]);
      BOOST_TEST(check_bytes(id, given.bytes) == stream.stored.first_offset);
    }
    host.write(2, 9000);
    BOOST_TEST(host.send_and_commit(*archive));
  }
}

BOOST_AUTO_TEST_CASE(every_call_of_the_disk_may_fail_once_or_for_good) {
  for (const bool for_good : {false, true})
    for (uint64_t at = 1;; ++at) {
      TempFolder folder;
      MemoryFiles files;
      Host host("a");
      host.write(60, 700);
      files.fail_at = at;
      files.fail_for_good = for_good;
      files.fail_after_all = at % 2 == 0;
      uint64_t reported = 0;
      auto opened = Archive::open(files, archive_options(folder));
      if (opened) {
        const auto begun = (*opened)->begin(host.origin, 1);
        uint64_t n = 0;
        for (const VerbatimFrame& frame : host.frames(0)) {
          if (!(*opened)->append(frame.bytes, 1)) break;
          if (++n % 7 != 0) continue;
          if (const auto moved = (*opened)->commit(1); moved && !moved->empty())
            reported = moved->front().sequence;
        }
      }
      const bool passed = files.calls < at;
      if (opened && for_good && !passed) BOOST_TEST((*opened)->stats().failing_since_ns == 1);
      files.heal();
      // Half of the time the process dies of it.
      if (!opened || at % 3 == 0) {
        if (opened) opened->reset();
        opened = Archive::open(files, archive_options(folder));
        BOOST_REQUIRE(opened.has_value());
      }
      BOOST_TEST(((*opened)->begin(host.origin, 1)->value_or(0) >= reported));
      BOOST_TEST(host.send_and_commit(**opened));
      BOOST_TEST((*opened)->stats().failing_since_ns == kNoTime);
      check_whole(**opened, files, folder.path(), host);
      if (passed) break;
    }
}

BOOST_AUTO_TEST_CASE(a_full_disk_acknowledges_nothing_and_goes_on_when_there_is_room) {
  TempFolder folder;
  MemoryFiles files;
  files.capacity = 1 << 20;
  Host host("a");
  host.write(800, 9000);
  auto archive = open_archive(files, archive_options(folder, 32 << 20));
  BOOST_TEST(!host.send_and_commit(*archive));
  BOOST_TEST(archive->stats().failing_since_ns == 1);
  BOOST_TEST(!archive->stats().last_error.empty());
  BOOST_TEST((!*archive->begin(host.origin, 1)));
  files.capacity = 64 << 20;
  BOOST_TEST(host.send_and_commit(*archive));
  check_whole(*archive, files, folder.path(), host);
}

BOOST_AUTO_TEST_CASE(on_a_full_disk_the_oldest_evidence_makes_room) {
  TempFolder folder;
  MemoryFiles files;
  Host condensed("a", LogKind::kCondensed), host("a");
  auto archive = open_archive(files, archive_options(folder, 256 << 10));
  condensed.write(40, 9000);
  BOOST_TEST(condensed.send_and_commit(*archive));
  files.capacity = 6 << 20;
  for (int i = 0; i < 60; ++i) {
    host.write(20, 9000);
    BOOST_TEST(host.send_and_commit(*archive));
  }
  BOOST_TEST(archive->stats().dropped_segments > 0u);
  check_whole(*archive, files, folder.path(), condensed);
  for (const HostStream& stream : stored_of(*archive, host))
    BOOST_TEST(
        check_bytes(stream.stored.state.info.id, read_stored(files, folder.path(), stream.stored).bytes) ==
        stream.stored.first_offset);
}

BOOST_AUTO_TEST_CASE(where_others_fill_the_disk_nothing_is_dropped_and_nothing_taken_until_they_leave) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  auto archive = open_archive(files, archive_options(folder, 256 << 10));
  for (int i = 0; i < 20; ++i) {
    host.write(20, 9000);
    BOOST_REQUIRE(host.send_and_commit(*archive));
  }
  files.others = files.capacity - files.used() - (1 << 20);
  host.write(800, 9000);
  BOOST_TEST(!host.send_and_commit(*archive));
  const auto refused = archive->commit(1);
  BOOST_REQUIRE(!refused);
  BOOST_TEST(refused.error().text.find("others fill this disk") != std::string::npos, refused.error().text);
  files.others = 0;
  BOOST_TEST(host.send_and_commit(*archive));
  BOOST_TEST(archive->stats().dropped_segments == 0u);
  check_whole(*archive, files, folder.path(), host);
}

BOOST_AUTO_TEST_CASE(a_lost_or_damaged_index_is_made_again_of_the_segments) {
  for (const bool lost : {true, false}) {
    Filled filled;
    const std::string path = filled.folder.path() + "/archive.db";
    if (lost) {
      std::filesystem::remove(path);
    } else {
      FILE* file = fopen(path.c_str(), "r+");
      BOOST_REQUIRE(file != nullptr);
      fseek(file, 100, SEEK_SET);
      for (int i = 0; i < 20'000; ++i) fputc('x', file);
      fclose(file);
    }
    auto archive = filled.open();
    BOOST_TEST(archive->moved_aside().empty() == lost);
    for (Host* host : {&filled.raw, &filled.condensed}) {
      BOOST_TEST((*archive->begin(host->origin, 1) == 80u));
      check_whole(*archive, filled.files, filled.folder.path(), *host);
      host->write(5);
      BOOST_TEST(host->send_and_commit(*archive));
      check_whole(*archive, filled.files, filled.folder.path(), *host);
    }
    BOOST_TEST((archive->begin({filled.raw.origin.epoch, "b", LogKind::kEvidence}, 1).error().code ==
                ErrorCode::kDenied));
  }
}

BOOST_AUTO_TEST_CASE(an_index_is_made_again_also_where_the_oldest_went) {
  Filled filled;
  must(filled.files.remove(segment_path(filled.folder, 1)));
  must(filled.files.remove(segment_path(filled.folder, 2)));
  for (const bool lost : {false, true}) {
    if (lost) std::filesystem::remove(filled.folder.path() + "/archive.db");
    auto archive = filled.open();
    if (!lost) BOOST_TEST(archive->stats().missing_segments == 2u);
    for (Host* host : {&filled.raw, &filled.condensed}) {
      BOOST_TEST((*archive->begin(host->origin, 1) == 80u));
      const auto stored = stored_of(*archive, *host);
      BOOST_REQUIRE(stored.size() == 2u);
      for (const HostStream& stream : stored) {
        const StreamId id = stream.stored.state.info.id;
        BOOST_TEST(stream.stored.first_offset > 0u);
        const Given given = read_stored(filled.files, filled.folder.path(), stream.stored);
        BOOST_TEST(given.bytes.size() == host->sizes[id]);
        BOOST_TEST(check_bytes(id, given.bytes) == stream.stored.first_offset);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_is_a_gap_with_and_without_the_index) {
  Filled filled;
  uint64_t holes = 0;
  const std::string path = segment_path(filled.folder, 1), db = filled.folder.path() + "/archive.db";
  filled.open().reset();
  std::filesystem::copy_file(db, db + ".kept");
  for (size_t at = 0; at < filled.files.bytes(path).size(); at += 197)
    for (const bool lost : {false, true}) {
      char& byte = filled.files.bytes(path)[at];
      byte = static_cast<char>(byte ^ 0x20);
      if (lost) std::filesystem::remove(db);
      {
        auto archive = filled.open();
        for (const HostStream& stream : stored_of(*archive, filled.raw)) {
          const StreamId id = stream.stored.state.info.id;
          const Given given = read_stored(filled.files, filled.folder.path(), stream.stored);
          BOOST_TEST(given.bytes.size() == filled.raw.sizes[id]);
          const uint64_t missing = check_bytes(id, given.bytes);
          holes += missing > 0;
          // Of one frame; without the index also of frames of unknown hosts.
          BOOST_TEST(missing <= (lost ? 10'000u : 1000u));
          BOOST_TEST((missing == 0) == given.gaps.empty());
        }
      }
      byte = static_cast<char>(byte ^ 0x20);
      std::filesystem::copy_file(db + ".kept", db, std::filesystem::copy_options::overwrite_existing);
      std::filesystem::remove(db + "-wal");
    }
  BOOST_TEST(holes > 25u);
}

BOOST_AUTO_TEST_CASE(a_newest_segment_cut_anywhere_gives_what_is_left_and_takes_the_rest_again) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  host.write(6, 200);
  {
    auto archive = open_archive(files, archive_options(folder));
    BOOST_TEST(host.send(*archive));
    BOOST_TEST(archive->commit(1).has_value());
  }
  const std::string whole = files.bytes(segment_path(folder, 1)), db = folder.path() + "/archive.db";
  for (size_t size = 0; size < whole.size(); size += 5) {
    std::filesystem::remove(db);  // with the index the missing frames would have been acknowledged
    MemoryFiles cut;
    cut.put(segment_path(folder, 1), whole.substr(0, size));
    auto archive = open_archive(cut, archive_options(folder));
    BOOST_TEST(host.send_and_commit(*archive));
    check_whole(*archive, cut, folder.path(), host);
  }
}
