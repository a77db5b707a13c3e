#include "store/archive.h"

#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "archive_fixture.h"
#include "store/archive_replay.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

namespace {

bool is(const Status& status, ErrorCode code) { return !status && status.error().code == code; }

// Changes one byte of a sound frame; with `resealed` its header's checksum is corrected.
std::string bent(const VerbatimFrame& frame, size_t at, bool resealed = false) {
  std::string bytes = frame.bytes;
  bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
  if (resealed) {
    const uint64_t sum = hash64(std::string_view(bytes).substr(0, 64));
    bytes.replace(64, 8, reinterpret_cast<const char*>(&sum), 8);
  }
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_CASE(frames_of_many_hosts_come_back_byte_for_byte_over_segments_and_restarts) {
  TempFolder folder;
  MemoryFiles files;
  Host a("a"), b("b"), c("c", LogKind::kCondensed);
  auto archive = open_archive(files, archive_options(folder));
  for (int round = 0; round < 6; ++round) {
    for (Host* host : {&a, &b, &c}) {
      host->write(20, 700);
      BOOST_TEST(host->send_and_commit(*archive));
    }
    if (round % 2 == 1) archive = open_archive(files, archive_options(folder));
    for (const Host* host : {&a, &b, &c}) check_whole(*archive, files, folder.path(), *host);
  }
  BOOST_TEST(archive->stats().segments > 6u);
  const auto all = archive->stored({.job = "j1", .path = "/log/0"});
  BOOST_REQUIRE((all && all->size() == 2u));  // a job's evidence over all hosts
  BOOST_TEST(((*all)[0].host == "a" && (*all)[1].host == "b"));
}

BOOST_AUTO_TEST_CASE(only_what_was_committed_is_reported_and_what_comes_again_is_dropped) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  host.write(10);
  auto archive = open_archive(files, archive_options(folder));
  BOOST_TEST((archive->begin(host.origin, 1) && !*archive->begin(host.origin, 1)));
  BOOST_TEST(host.send(*archive));
  BOOST_TEST(!*archive->begin(host.origin, 1));  // nothing is committed yet
  BOOST_TEST(host.send(*archive));
  BOOST_TEST(archive->stats().duplicates == 10u);
  const auto moved = archive->commit(1);
  BOOST_REQUIRE((moved && moved->size() == 1u));
  BOOST_TEST(((*moved)[0].epoch == host.origin.epoch && (*moved)[0].sequence == 10u));
  BOOST_TEST(archive->commit(1)->empty());
  BOOST_TEST((*archive->begin(host.origin, 1) == 10u));
  for (const VerbatimFrame& frame : host.frames(0)) must(archive->append(frame.bytes, 1));
  BOOST_TEST(archive->stats().duplicates == 20u);
  archive = open_archive(files, archive_options(folder));
  BOOST_TEST((*archive->begin(host.origin, 1) == 10u));
  check_whole(*archive, files, folder.path(), host);
}

BOOST_AUTO_TEST_CASE(a_log_is_one_hosts) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  host.write(1);
  auto archive = open_archive(files, archive_options(folder));
  BOOST_TEST(host.send_and_commit(*archive));
  for (int restart = 0; restart < 2; ++restart) {
    for (const LogOrigin& other : {LogOrigin{host.origin.epoch, "b", LogKind::kEvidence},
                                   LogOrigin{host.origin.epoch, "a", LogKind::kCondensed}}) {
      const auto begun = archive->begin(other, 1);
      BOOST_TEST((!begun && begun.error().code == ErrorCode::kDenied));
    }
    archive = open_archive(files, archive_options(folder));
  }
  BOOST_TEST(!archive->begin({0, "a", LogKind::kEvidence}, 1).has_value());
  BOOST_TEST(!archive->begin({7, "", LogKind::kEvidence}, 1).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_no_frame_or_does_not_follow_is_refused_and_changes_nothing) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  host.write(3);
  auto archive = open_archive(files, archive_options(folder));
  const auto frames = host.frames(0);
  BOOST_TEST(is(archive->append(frames[0].bytes, 1), ErrorCode::kInvalid));  // its log was never opened
  BOOST_REQUIRE(archive->begin(host.origin, 1).has_value());
  BOOST_TEST(is(archive->append(frames[1].bytes, 1), ErrorCode::kInvalid));  // the first frame is expected
  for (size_t at = 0; at < frames[0].bytes.size(); ++at)
    BOOST_TEST(is(archive->append(bent(frames[0], at), 1), ErrorCode::kInvalid));
  for (const size_t at :
       {size_t{4}, size_t{9}, size_t{12}, size_t{56}})  // kind, sizes and checksum, with a sound head
    BOOST_TEST(is(archive->append(bent(frames[0], at, true), 1), ErrorCode::kInvalid));
  for (size_t size = 0; size < frames[0].bytes.size(); size += 7)
    BOOST_TEST(is(archive->append(frames[0].bytes.substr(0, size), 1), ErrorCode::kInvalid));
  BOOST_TEST(is(archive->append(frames[0].bytes + "x", 1), ErrorCode::kInvalid));
  FrameHeader own = frames[0].header;  // only the archive itself declares origins
  own.kind = FrameKind::kOrigin;
  BOOST_TEST(is(archive->append(encode(own) + frames[0].bytes.substr(72), 1), ErrorCode::kInvalid));
  FrameHeader ahead = frames[0].header;
  ahead.kind = FrameKind::kCheckpointEnd;
  ahead.sequence = 5;
  BOOST_TEST(is(archive->append(encode(ahead) + frames[0].bytes.substr(72), 1), ErrorCode::kInvalid));
  BOOST_TEST(is(archive->skip(host.origin.epoch, {2, 4, 1, "x"}), ErrorCode::kInvalid));
  BOOST_TEST(is(archive->skip(99, {1, 4, 1, "x"}), ErrorCode::kInvalid));
  BOOST_TEST(host.send_and_commit(*archive));
  check_whole(*archive, files, folder.path(), host);
}

BOOST_AUTO_TEST_CASE(frames_that_never_come_are_a_gap_with_their_reason) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  host.write(10, 100, 1);
  const auto frames = host.frames(0);
  auto archive = open_archive(files, archive_options(folder));
  BOOST_REQUIRE(archive->begin(host.origin, 1).has_value());
  for (const int i : {0, 1, 2}) must(archive->append(frames[static_cast<size_t>(i)].bytes, 1));
  must(archive->skip(host.origin.epoch, {4, 5, 9, "not forwarded by policy"}));
  must(archive->skip(host.origin.epoch, {4, 6, 9, "not forwarded by policy"}));  // the first is repeated
  for (const int i : {6, 7, 8, 9}) must(archive->append(frames[static_cast<size_t>(i)].bytes, 1));
  BOOST_REQUIRE(archive->commit(1).has_value());
  for (int restart = 0; restart < 3; ++restart) {
    const auto stored = stored_of(*archive, host);
    BOOST_REQUIRE(stored.size() == 1u);
    const Given given = read_stored(files, folder.path(), stored[0].stored);
    BOOST_TEST(given.bytes == bytes_of(0, 0, 300) + std::string(300, '.') + bytes_of(0, 600, 1000));
    BOOST_REQUIRE(given.gaps.size() == 1u);
    BOOST_TEST(given.gaps[0].gap.reason == "not forwarded by policy");
    const auto skipped = archive->skipped("a", LogKind::kEvidence);
    BOOST_REQUIRE((skipped && skipped->size() == 1u));
    BOOST_TEST(((*skipped)[0].from == 4u && (*skipped)[0].to == 6u && (*skipped)[0].time_ns == 9));
    archive.reset();
    if (restart == 1) std::filesystem::remove(folder.path() + "/archive.db");
    archive = open_archive(files, archive_options(folder));
  }
}

BOOST_AUTO_TEST_CASE(a_host_that_dropped_its_first_frames_begins_with_a_checkpoint) {
  TempFolder folder;
  MemoryFiles files;
  SpoolOptions options = small_options();
  options.max_bytes = 400 << 10;
  Host host("a", LogKind::kEvidence, options);
  while (host.spool->stats().dropped_segments == 0) {
    host.spool->retain_after(host.spool->last_sequence());
    host.write(5, 9000);
  }
  auto archive = open_archive(files, archive_options(folder, 1 << 20));
  BOOST_TEST(host.send_and_commit(*archive));
  const auto stored = stored_of(*archive, host);
  BOOST_REQUIRE(stored.size() == 2u);
  for (const HostStream& stream : stored) {
    const StreamId id = stream.stored.state.info.id;
    const Given given = read_stored(files, folder.path(), stream.stored);
    BOOST_TEST(given.bytes.size() == host.sizes[id]);
    BOOST_TEST(check_bytes(id, given.bytes) == stream.stored.first_offset);
    BOOST_REQUIRE(given.gaps.size() == 1u);
    BOOST_TEST((given.gaps[0].offset == 0u && given.gaps[0].gap.reason == kDropped));
  }
  BOOST_TEST(archive->stats().orphans == 0u);
}

BOOST_AUTO_TEST_CASE(pieces_of_sources_that_no_frame_declared_are_counted) {
  TempFolder folder;
  MemoryFiles files;
  Host host("a");
  host.write(4);  // the first two frames declare the two sources
  auto archive = open_archive(files, archive_options(folder));
  BOOST_REQUIRE(archive->begin(host.origin, 1).has_value());
  BOOST_REQUIRE(archive->skip(host.origin.epoch, {1, 2, 1, "dropped"}).has_value());
  for (const VerbatimFrame& frame : host.frames(2)) BOOST_TEST(archive->append(frame.bytes, 1).has_value());
  BOOST_TEST(archive->stats().orphans == 2u);
}

BOOST_AUTO_TEST_CASE(hosts_are_reported_with_when_they_were_seen) {
  TempFolder folder;
  MemoryFiles files;
  Host a("a"), b("b");
  auto archive = open_archive(files, archive_options(folder));
  a.write(4), b.write(2);
  BOOST_TEST((a.send(*archive, 10) && b.send(*archive, 20)));
  archive->note_host("a", 30, "{\"version\":1}");
  BOOST_REQUIRE(archive->commit(30).has_value());
  archive->note_host("a", 40, "");
  BOOST_REQUIRE(archive->commit(40).has_value());
  archive = open_archive(files, archive_options(folder));
  const auto hosts = archive->hosts();
  BOOST_REQUIRE((hosts && hosts->size() == 2u));
  const HostRow& first = hosts->front();
  BOOST_TEST((first.host == "a" && first.first_ns == 30 && first.seen_ns == 40));
  BOOST_TEST(first.about == "{\"version\":1}");
  BOOST_TEST(first.bytes > (*hosts)[1].bytes);
}

BOOST_AUTO_TEST_CASE(a_replay_gives_condensed_frames_as_they_were_taken) {
  TempFolder folder;
  MemoryFiles files;
  Host a("a", LogKind::kCondensed), b("b", LogKind::kCondensed), raw("a");
  auto archive = open_archive(files, archive_options(folder));
  std::string live;
  const auto tell = [](std::string& out, const std::string& host, const Piece& piece) {
    out += fmt::format("{}:{}:{}:{}:{};", host, piece.stream, piece.offset, piece.gap ? piece.gap->bytes : 0,
                       piece.gap ? piece.gap->reason : "");
    out += piece.bytes;
  };
  for (int round = 0; round < 8; ++round)
    for (Host* host : {&a, &raw, &b}) {
      const auto at = archive->begin(host->origin, 1);
      BOOST_REQUIRE(at.has_value());
      host->write(10);
      for (const VerbatimFrame& frame : host->frames(at->value_or(0))) {
        PieceBatch taken;
        if (round == 3 && frame.header.sequence % 10 == 4) {
          must(archive->skip(host->origin.epoch, {frame.header.sequence, frame.header.sequence, 1, "why"}));
          continue;
        }
        must(archive->append(frame.bytes, 1, &taken));
        for (const Piece& piece : taken.pieces)
          if (host != &raw) tell(live, host->origin.host, piece);
      }
      BOOST_REQUIRE(archive->commit(1).has_value());
    }
  BOOST_TEST(live.find("why") != std::string::npos);
  for (int restart = 0; restart < 2; ++restart) {
    const auto plan = archive->replay_plan();
    BOOST_REQUIRE(plan.has_value());
    BOOST_TEST((plan->logs.size() == 2u && plan->segments.size() > 1u));
    std::string again;
    ArchiveVisitor visitor;
    visitor.wanted = [](const LogOrigin&, const StreamInfo&) { return true; };
    visitor.piece = [&](const LogOrigin& origin, const Piece& piece) {
      tell(again, origin.host, piece);
      return true;
    };
    const ReadDamage damage = replay(files, folder.path(), *plan, visitor);
    BOOST_TEST((damage.frames == 0u && damage.unreadable_segments == 0u));
    BOOST_TEST((again == live));
    archive = open_archive(files, archive_options(folder));
  }
  const auto of_b = archive->replay_plan({"b"});
  BOOST_TEST((of_b && of_b->logs.size() == 1u && of_b->logs.begin()->second.host == "b"));
}

BOOST_AUTO_TEST_CASE(above_its_size_evidence_goes_first_and_condensed_frames_last) {
  TempFolder folder;
  MemoryFiles files;
  Host raw("a"), condensed("a", LogKind::kCondensed);
  ArchiveOptions options = archive_options(folder, 64 << 10);
  options.max_bytes = 600 << 10;
  auto archive = open_archive(files, options);
  condensed.write(30, 9000);
  BOOST_TEST(condensed.send_and_commit(*archive));
  while (archive->stats().dropped_segments < 3) {
    raw.write(10, 9000);
    BOOST_TEST(raw.send_and_commit(*archive));
    must(archive->retain({}, 1));
    BOOST_TEST(archive->stats().bytes <= options.max_bytes);
  }
  check_whole(*archive, files, folder.path(), condensed);
  for (int restart = 0; restart < 2; ++restart) {
    for (const HostStream& stream : stored_of(*archive, raw)) {
      const StreamId id = stream.stored.state.info.id;
      BOOST_TEST(stream.stored.first_offset > 0u);
      const Given given = read_stored(files, folder.path(), stream.stored);
      BOOST_TEST(given.bytes.size() == raw.sizes[id]);
      BOOST_TEST(check_bytes(id, given.bytes) == stream.stored.first_offset);
      BOOST_REQUIRE(given.gaps.size() == 1u);
      BOOST_TEST(given.gaps[0].gap.reason == kDropped);
    }
    archive = open_archive(files, options);
  }
  while (condensed.written < 200) {  // there is too much of it alone, too
    condensed.write(10, 9000);
    BOOST_TEST(condensed.send_and_commit(*archive));
    must(archive->retain({"j1"}, 1));
    BOOST_TEST(archive->stats().bytes <= options.max_bytes + (64 << 10));
  }
  BOOST_TEST(stored_of(*archive, condensed)[0].stored.first_offset > 0u);
}

BOOST_AUTO_TEST_CASE(what_is_old_goes_but_not_what_running_jobs_need) {
  TempFolder folder;
  MemoryFiles files;
  ArchiveOptions options = archive_options(folder, 64 << 10);
  options.max_age_ns = 100;
  auto archive = open_archive(files, options);
  std::vector<std::unique_ptr<Host>> hosts;
  for (const LogKind kind : {LogKind::kEvidence, LogKind::kCondensed}) {
    hosts.push_back(std::make_unique<Host>("a", kind));
    hosts.back()->write(40, 9000);
    BOOST_TEST(hosts.back()->send_and_commit(*archive, 10));
    hosts.back()->write(2, 9000);
    BOOST_TEST(hosts.back()->send_and_commit(*archive, 200));
  }
  must(archive->retain({"j1"}, 250));
  BOOST_TEST(stored_of(*archive, *hosts[0])[0].stored.first_offset > 0u);
  BOOST_TEST(stored_of(*archive, *hosts[1])[0].stored.first_offset == 0u);
  must(archive->retain({"another"}, 250));
  BOOST_TEST(stored_of(*archive, *hosts[1])[0].stored.first_offset > 0u);
  for (const auto& host : hosts) {  // they continue at their positions
    host->write(5, 100);
    BOOST_TEST(host->send_and_commit(*archive, 260));
    const auto stored = stored_of(*archive, *host, "/log/0");
    BOOST_REQUIRE(stored.size() == 1u);
    BOOST_TEST(check_bytes(0, read_stored(files, folder.path(), stored[0].stored).bytes) ==
               stored[0].stored.first_offset);
    BOOST_TEST(stored[0].stored.state.size == host->sizes[0]);
  }
}

BOOST_AUTO_TEST_CASE(a_wiped_spools_log_goes_with_its_last_bytes) {
  TempFolder folder;
  MemoryFiles files;
  ArchiveOptions options = archive_options(folder, 64 << 10);
  options.max_age_ns = 100;
  auto archive = open_archive(files, options);
  {
    Host before("a");
    before.write(30, 9000);
    BOOST_TEST(before.send_and_commit(*archive, 10));
  }
  Host now("a");
  now.write(30, 9000);
  BOOST_TEST(now.send_and_commit(*archive, 200));
  must(archive->retain({}, 250));
  BOOST_TEST(archive->stats().logs == 2u);  // a segment has frames of both
  now.write(30, 9000);
  BOOST_TEST(now.send_and_commit(*archive, 400));
  must(archive->retain({}, 450));
  BOOST_TEST(archive->stats().logs == 1u);
  const auto stored = stored_of(*archive, now);
  BOOST_REQUIRE(stored.size() == 2u);
  BOOST_TEST(stored[0].stored.state.size == now.sizes[0]);
}

BOOST_AUTO_TEST_CASE(a_folder_of_another_kind_or_version_is_refused_and_left_alone) {
  TempFolder folder;
  for (const auto& header : {SegmentHeader{kSegmentVersion + 1, 5, 1, 1, SegmentKind::kEvidence},
                             SegmentHeader{kSegmentVersion, 5, 1, 1, SegmentKind::kSpool}}) {
    MemoryFiles files;
    files.put(folder.path() + "/" + segment_name(1), encode(header));
    const auto archive = Archive::open(files, archive_options(folder));
    BOOST_TEST((!archive && archive.error().code == ErrorCode::kInvalid));
    BOOST_TEST(files.bytes(folder.path() + "/" + segment_name(1)) == encode(header));
    BOOST_TEST(!std::filesystem::exists(folder.path() + "/archive.db"));
  }
}
