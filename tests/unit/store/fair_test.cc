// Evidence makes room by owner: SpoolOptions::fair.
#include <boost/test/unit_test.hpp>

#include "fixture.h"
#include "store/frames.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

namespace {

constexpr uint64_t kMost = 1 << 20;
constexpr TimeNs kHour = 3600 * kNsPerSecond;

SpoolOptions fair_options(uint64_t most = kMost) {
  SpoolOptions options = small_options();
  options.max_bytes = most;
  options.fair = true;
  return options;
}

// Text that does not compress much: cheap to make, and to compare.
const std::string& block() {
  static const std::string text = [] {
    std::string out;
    for (uint64_t i = 0; out.size() < (1 << 20); ++i) {
      const uint64_t random = mix64(i, 7);
      for (int k = 0; k < 8; ++k) out += static_cast<char>('a' + (random >> (8 * k)) % 26);
    }
    return out;
  }();
  return text;
}
std::string text_of(StreamId id, uint64_t from, uint64_t to) {
  std::string out;
  for (uint64_t at = from; at < to;) {
    const uint64_t place = (at + id * 7'919) % block().size();
    const uint64_t size = std::min(to - at, block().size() - place);
    out.append(block(), place, size);
    at += size;
  }
  return out;
}
// Bytes that are missing; no other byte is wrong.
uint64_t check_text(StreamId id, const std::string& bytes) {
  const std::string expected = text_of(id, 0, bytes.size());
  uint64_t missing = 0, wrong = 0;
  for (size_t at = 0; at < bytes.size();) {
    const size_t dot = std::min(bytes.find('.', at), bytes.size());
    wrong += bytes.compare(at, dot - at, expected, at, dot - at) != 0;
    at = std::min(bytes.find_first_not_of('.', dot), bytes.size());
    missing += at - dot;
  }
  BOOST_TEST(wrong == 0u);
  return missing;
}

// Appends to streams of several owners, each frame one commit.
struct Writer {
  explicit Writer(MemoryFiles& disk, SpoolOptions its_options = fair_options())
      : files(disk), options(std::move(its_options)), spool(open_spool(files, options)) {}

  StreamId open(std::optional<uint32_t> uid, const std::string& job) {
    PieceBatch batch;
    batch.opened = {stream_info(spool->allocate(), "/log/" + job, job)};
    batch.opened[0].uid = uid;
    must(spool->append(batch, now));
    return batch.opened[0].id;
  }
  // Returns whether it was committed.
  bool try_write(StreamId id, uint64_t size) {
    PieceBatch batch;
    batch.pieces = {piece_of(id, sizes[id], 0)};
    batch.pieces[0].bytes = text_of(id, sizes[id], sizes[id] + size);
    batch.pieces[0].place->offset += size;
    if (!spool->append(batch, now)) return false;
    sizes[id] += size;
    if (!spool->commit(now)) return false;
    committed = sizes;
    return true;
  }
  void write(StreamId id, uint64_t size) {
    BOOST_REQUIRE_MESSAGE(try_write(id, size), spool->stats().last_error);
    largest = std::max(largest, spool->stats().bytes);
  }
  void restart() {
    spool.reset();
    spool = open_spool(files, options);
    for (const StoredStream& stored : spool->streams()) sizes[stored.state.info.id] = stored.state.size;
  }

  MemoryFiles& files;
  SpoolOptions options;
  std::unique_ptr<Spool> spool;
  TimeNs now = kHour;
  std::map<StreamId, uint64_t> sizes, committed;
  uint64_t largest = 0;
};

void must_be_whole(const Writer& writer, StreamId id) {
  const Given given = read_stream(writer.files, *writer.spool, id);
  BOOST_TEST(given.gaps.empty());
  BOOST_TEST((given.bytes == text_of(id, 0, writer.sizes.at(id))));
}

// Bytes that are missing from the beginning, for want of room.
uint64_t must_begin_later(const Writer& writer, StreamId id) {
  const Given given = read_stream(writer.files, *writer.spool, id);
  BOOST_TEST(given.bytes.size() == writer.sizes.at(id));
  for (const EvidenceGap& gap : given.gaps) BOOST_TEST(gap.gap.reason == kDropped);
  const uint64_t missing = check_text(id, given.bytes);
  BOOST_TEST(given.bytes.substr(missing).find('.') == std::string::npos);
  return missing;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_flood_of_one_user_removes_no_evidence_of_others) {
  MemoryFiles files;
  Writer writer(files);
  const StreamId kernel = writer.open({}, ""), honest = writer.open(12'003, "a"),
                 flood = writer.open(12'002, "m");
  for (int i = 0; i < 150; ++i) {
    if (i % 20 == 0) writer.write(honest, 2'000);
    if (i % 50 == 0) writer.write(kernel, 200);
    writer.write(flood, 30'000);
    if (i % 50 == 49) writer.restart();
  }
  BOOST_TEST(writer.largest <= kMost);
  BOOST_TEST(writer.spool->stats().segments < 40u);
  for (int restart = 0; restart < 2; ++restart, writer.restart()) {
    must_be_whole(writer, honest);
    must_be_whole(writer, kernel);
    const uint64_t missing = must_begin_later(writer, flood);
    BOOST_TEST((missing > 0 && missing < writer.sizes[flood]));
    for (const StoredStream& stored : writer.spool->streams())
      BOOST_TEST(stored.first_offset == (stored.state.info.id == flood ? missing : 0u));
  }
}

BOOST_AUTO_TEST_CASE(what_stays_is_replayed_in_its_order_and_the_rest_is_a_gap) {
  MemoryFiles files;
  Writer writer(files);
  const StreamId ids[] = {writer.open(1, "a"), writer.open(2, "b"), writer.open(3, "c")};
  for (int i = 0; i < 120; ++i) {
    writer.write(ids[0], 300);
    writer.write(ids[1], 300);
    writer.write(ids[2], 40'000);
  }
  std::map<StreamId, uint64_t> next, missing;
  ReplayVisitor visitor;
  visitor.wanted = [](const StreamInfo&) { return true; };
  visitor.piece = [&](const Piece& piece) {
    if (piece.gap) BOOST_TEST(piece.gap->reason == kDropped);
    missing[piece.stream] += piece.gap ? piece.gap->bytes : 0;
    BOOST_TEST(piece.offset - next[piece.stream] == (piece.gap ? piece.gap->bytes : 0));
    BOOST_TEST((piece.bytes == text_of(piece.stream, piece.offset, piece.offset + piece.bytes.size())));
    next[piece.stream] = piece.offset + piece.bytes.size();
    if (piece.stream == ids[1]) BOOST_TEST(next[ids[0]] == next[ids[1]]);
    return true;
  };
  BOOST_REQUIRE(replay(files, kFolder, writer.spool->last_sequence(), visitor).has_value());
  BOOST_TEST((next == writer.sizes));
  BOOST_TEST((missing[ids[0]] == 0 && missing[ids[1]] == 0 && missing[ids[2]] > 0));
}

BOOST_AUTO_TEST_CASE(of_one_user_the_largest_job_makes_room) {
  MemoryFiles files;
  Writer writer(files);
  const StreamId small = writer.open(1, "small"), large = writer.open(1, "large");
  for (int i = 0; i < 120; ++i) {
    if (i % 20 == 0) writer.write(small, 2'000);
    writer.write(large, 40'000);
  }
  must_be_whole(writer, small);
  BOOST_TEST(must_begin_later(writer, large) > 0u);
}

BOOST_AUTO_TEST_CASE(many_names_of_one_user_give_no_larger_share) {
  MemoryFiles files;
  Writer writer(files);
  const StreamId honest = writer.open(12'003, "a");
  std::vector<StreamId> floods;
  for (int i = 0; i < 60; ++i) floods.push_back(writer.open(12'002, "m" + std::to_string(i)));
  for (int i = 0; i < 10; ++i) {
    writer.write(honest, 2'000);
    for (const StreamId flood : floods) writer.write(flood, 6'000);
  }
  BOOST_TEST(writer.largest <= kMost);
  must_be_whole(writer, honest);
}

BOOST_AUTO_TEST_CASE(evidence_of_the_same_size_shares_the_room_and_the_oldest_goes) {
  MemoryFiles files;
  Writer writer(files);
  const StreamId ids[] = {writer.open(1, "a"), writer.open(2, "b")};
  for (int i = 0; i < 120; ++i)
    for (const StreamId id : ids) writer.write(id, 20'000);
  BOOST_TEST(writer.largest <= kMost);
  const uint64_t first = must_begin_later(writer, ids[0]), second = must_begin_later(writer, ids[1]);
  const uint64_t stored[] = {writer.sizes[0] - first, writer.sizes[1] - second};
  BOOST_TEST((stored[0] < 2 * stored[1] && stored[1] < 2 * stored[0]));
}

BOOST_AUTO_TEST_CASE(evidence_older_than_a_week_goes_first) {
  MemoryFiles files;
  Writer writer(files);
  const StreamId past = writer.open(1, "past"), present = writer.open(2, "present");
  for (int i = 0; i < 10; ++i) writer.write(past, 20'000);
  writer.now += 8 * 24 * kHour;
  for (int i = 0; i < 120; ++i) writer.write(present, 40'000);
  BOOST_TEST(must_begin_later(writer, past) > 100'000u);
}

BOOST_AUTO_TEST_CASE(the_time_around_a_diagnosis_is_kept_up_to_a_quarter) {
  MemoryFiles files;
  Writer writer(files, fair_options(3 << 20));
  const StreamId honest = writer.open(1, "a"), flood = writer.open(2, "m");
  uint64_t from = 0, to = 0;
  for (int i = 0; i < 120; ++i) {
    writer.now += kNsPerSecond;
    if (i == 20) {
      from = writer.sizes[honest];
      writer.spool->pin("a", writer.now, writer.now + kNsPerSecond);
      for (TimeNs at = writer.now; at < writer.now + 100 * kNsPerSecond; at += kNsPerSecond)
        writer.spool->pin("m", at, at);
    }
    writer.write(honest, 60'000);
    if (i == 21) to = writer.sizes[honest];
    writer.write(flood, 10'000);
  }
  BOOST_TEST(writer.largest <= uint64_t{3} << 20);
  const Given given = read_stream(files, *writer.spool, honest);
  for (const EvidenceGap& gap : given.gaps) BOOST_TEST(gap.gap.reason == kDropped);
  BOOST_TEST((given.bytes.substr(from, to - from) == text_of(honest, from, to)));
  const uint64_t missing = check_text(honest, given.bytes);
  BOOST_TEST(missing > writer.sizes[honest] / 4);  // the rest makes room
}

BOOST_AUTO_TEST_CASE(a_full_disk_takes_the_evidence_of_the_largest_user) {
  MemoryFiles files;
  files.capacity = 4 << 20;
  Writer writer(files, fair_options(64 << 20));
  const StreamId honest = writer.open(1, "a"), flood = writer.open(2, "m");
  for (int i = 0; i < 250; ++i) {
    if (i % 20 == 0) writer.write(honest, 2'000);
    writer.write(flood, 40'000);
  }
  must_be_whole(writer, honest);
  const Given given = read_stream(files, *writer.spool, flood);
  for (const EvidenceGap& gap : given.gaps) BOOST_TEST(gap.gap.reason == kDropped);
  BOOST_TEST(check_text(flood, given.bytes) > 0u);
  BOOST_TEST(writer.spool->stats().dropped_for_disk > 0u);
}

BOOST_AUTO_TEST_CASE(frames_that_a_peer_needs_are_never_rewritten) {
  MemoryFiles files;
  SpoolOptions options = fair_options();
  options.hold = true;
  Writer writer(files, options);
  const StreamId honest = writer.open(1, "a"), flood = writer.open(2, "m");
  bool full = false;
  for (int i = 0; i < 400 && !full; ++i) {
    full = !writer.try_write(honest, 500) || !writer.try_write(flood, 40'000);
    if (i == 30) writer.spool->retain_after(writer.spool->last_sequence());
  }
  BOOST_TEST(full);
  BOOST_TEST((writer.spool->stats().full && writer.spool->stats().evicted_bytes > 0));
  must(writer.spool->sync());
  FrameReader reader(files, kFolder, writer.spool->epoch());
  uint64_t last = writer.spool->acknowledged();
  const uint64_t until = writer.spool->synced_sequence();
  while (last < until) {
    const auto frames = reader.read({last, until});
    BOOST_REQUIRE((frames && !frames->empty()));
    for (const VerbatimFrame& frame : *frames) BOOST_TEST(frame.header.sequence == ++last);
  }
}

// Killed at each call, and each call failing once.
BOOST_AUTO_TEST_CASE(a_kill_or_a_failing_call_while_making_room_loses_nothing_of_others) {
  const auto run = [](MemoryFiles& files, Writer& writer, uint64_t fail_at, bool kill) {
    const StreamId honest = writer.open(12'003, "a"), flood = writer.open(12'002, "m");
    for (int i = 0; i < 40; ++i) writer.write(i % 8 == 0 ? honest : flood, i % 8 == 0 ? 2'000 : 30'000);
    const uint64_t begin = files.calls;
    files.fail_at = fail_at == 0 ? 0 : begin + fail_at;
    files.fail_for_good = kill;
    for (int i = 0; i < 60; ++i) {
      const bool done = writer.try_write(i % 8 == 0 ? honest : flood, i % 8 == 0 ? 2'000 : 30'000);
      if (!done && kill) break;
    }
    const uint64_t calls = files.calls - begin;
    files.heal();
    return calls;
  };
  const auto options = fair_options(512 << 10);
  MemoryFiles whole;
  Writer unharmed(whole, options);
  const uint64_t calls = run(whole, unharmed, 0, false);
  BOOST_TEST(unharmed.spool->stats().evicted_bytes > 0u);
  uint64_t lost_runs = 0;
  for (const bool kill : {true, false})
    for (uint64_t at = 1; at <= calls; at += 3) {
      MemoryFiles files;
      Writer writer(files, options);
      run(files, writer, at, kill);
      const std::map<StreamId, uint64_t> committed = writer.committed;
      writer.restart();
      for (const auto& [id, size] : committed) {
        const Given given = read_stream(files, *writer.spool, id);
        BOOST_TEST_CONTEXT("call " << at << (kill ? ", killed" : ", failing once")) {
          BOOST_TEST(given.bytes.size() >= size);
          const uint64_t missing = check_text(id, given.bytes);
          if (id == 0) lost_runs += missing > 0;
          if (id == 0) BOOST_TEST(missing == 0u);
        }
      }
      for (const std::string& path : files.paths()) BOOST_TEST(!path.ends_with(".new"));
    }
  BOOST_TEST_MESSAGE(
      calls << " calls, each third one the last one and failing once; evidence of another user is "
            << "lost in " << lost_runs << " runs");
}
