// Effects of a disk on a spool, and the properties that must hold.
#include <boost/test/unit_test.hpp>

#include "fixture.h"
#include "store/segment.h"
#include "store/spool.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

namespace {

constexpr int kFrames = 5;
constexpr uint64_t kPieceSize = 90;

const std::string kFirst = kFolder + "/" + segment_name(1);

// Frames of one piece each, of streams 0 and 1 in turn; returns the end of each in the file.
std::vector<uint64_t> small_segment(MemoryFiles& files) {
  auto spool = open_spool(files);
  std::vector<uint64_t> ends;
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a"), stream_info(1, "/b")};
  must(spool->append(batch, 1));
  must_commit(*spool);
  ends.push_back(files.bytes(kFirst).size());
  batch.opened.clear();
  for (uint64_t i = 0; i < kFrames; ++i) {
    batch.pieces = {piece_of(i % 2, i / 2 * kPieceSize, kPieceSize)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    ends.push_back(files.bytes(kFirst).size());
  }
  return ends;
}

// Continues at the spool's position, as a tailer does; then only bytes in reported gaps may be missing.
uint64_t go_on_and_check(MemoryFiles& files, Spool& spool) {
  uint64_t missing = 0;
  for (const StreamId id : {0u, 1u}) {
    uint64_t size = 0;
    bool known = false;
    for (const StoredStream& retained : spool.streams()) {
      if (retained.state.info.id != id) continue;
      known = true;
      size = retained.state.size;
      BOOST_TEST((size == 0 || (retained.state.place && retained.state.place->offset == size)));
    }
    PieceBatch batch;
    if (!known) batch.opened = {stream_info(id, "/a")};
    if (size < 300) batch.pieces = {piece_of(id, size, 300 - size)};
    must(spool.append(batch, 1));
    must_commit(spool);
    const Given given = read_stream(files, spool, id);
    BOOST_TEST(given.bytes.size() == 300u);
    missing += check_bytes(id, given.bytes);
  }
  return missing;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_segment_cut_anywhere_is_a_prefix_of_its_frames) {
  MemoryFiles whole;
  const auto ends = small_segment(whole);
  const std::string bytes = whole.bytes(kFirst);
  for (size_t size = 0; size <= bytes.size(); ++size) {
    MemoryFiles files;
    files.put(kFirst, bytes.substr(0, size));
    auto spool = open_spool(files);
    uint64_t frames = 0;
    while (frames < ends.size() && ends[frames] <= size) frames += 1;
    uint64_t stored = 0;
    for (const StoredStream& retained : spool->streams()) stored += retained.state.size;
    BOOST_TEST(stored == (frames == 0 ? 0 : (frames - 1) * kPieceSize));
    BOOST_TEST(go_on_and_check(files, *spool) == 0u);
    spool.reset();
    BOOST_TEST(go_on_and_check(files, *open_spool(files)) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(garbage_and_zeros_behind_the_last_frame_are_cut) {
  MemoryFiles whole;
  small_segment(whole);
  const std::string bytes = whole.bytes(kFirst);
  const std::string frame_start = bytes.substr(bytes.size() - 120, 60);
  for (const std::string& tail :
       {std::string(1, '\0'), std::string(5000, '\0'), std::string(300, 'C'), std::string("CFRM"),
        "CFRMCFRM" + std::string(100, 'x'), frame_start, std::string(300'000, '\x7f')}) {
    MemoryFiles files;
    files.put(kFirst, bytes + tail);
    auto spool = open_spool(files);
    BOOST_TEST(spool->stats().cut_bytes == tail.size());
    BOOST_TEST(files.bytes(kFirst).size() == bytes.size());
    BOOST_TEST(go_on_and_check(files, *spool) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_never_gives_a_wrong_byte) {
  MemoryFiles whole;
  small_segment(whole);
  const std::string bytes = whole.bytes(kFirst);
  uint64_t holes = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    MemoryFiles files;
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    files.put(kFirst, flipped);
    auto spool = open_spool(files);
    holes += go_on_and_check(files, *spool) > 0;
  }
  BOOST_TEST(holes > 0u);
}

BOOST_AUTO_TEST_CASE(a_damaged_frame_is_a_gap_and_those_after_it_are_read) {
  MemoryFiles files;
  const auto ends = small_segment(files);
  for (const uint64_t at : {ends[1] + 10, ends[1] + kFrameHeaderBytes + 10}) {  // its header, its content
    std::string& bytes = files.bytes(kFirst);
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    auto spool = open_spool(files);
    const Given given = read_stream(files, *spool, 1);  // the second frame is stream 1's
    BOOST_TEST(given.bytes == std::string(kPieceSize, '.') + bytes_of(1, kPieceSize, 2 * kPieceSize));
    BOOST_REQUIRE(given.gaps.size() == 1u);
    BOOST_TEST(given.gaps[0].gap.reason.find("damaged") != std::string::npos);
    BOOST_TEST(given.damage.bytes == ends[2] - ends[1]);
    BOOST_TEST(!given.damage.first.empty());
    BOOST_TEST(read_stream(files, *spool, 0).bytes == bytes_of(0, 0, 3 * kPieceSize));
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
  }
}

BOOST_AUTO_TEST_CASE(a_segment_without_its_checkpoint_is_read_and_written_no_more) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a")};
  for (uint64_t i = 0; spool->stats().segments < 3; ++i) {
    batch.pieces = {piece_of(0, i * 9'000, 9'000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    batch.opened.clear();
  }
  const uint64_t size = spool->streams()[0].state.size;
  spool.reset();
  const std::string newest = files.paths().back();
  for (const size_t at :
       {size_t{20}, kSegmentHeaderBytes + 20, kSegmentHeaderBytes + kFrameHeaderBytes + 4}) {
    std::string& bytes = files.bytes(newest);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    const size_t before = bytes.size();
    spool = open_spool(files);
    BOOST_TEST(spool->streams()[0].state.size == size);
    BOOST_TEST(read_stream(files, *spool, 0).bytes == bytes_of(0, 0, size));
    spool.reset();
    BOOST_TEST(files.bytes(newest).size() == before);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
  }
  for (const size_t at :
       {size_t{20}, kSegmentHeaderBytes + 20, kSegmentHeaderBytes + kFrameHeaderBytes + 4}) {
    std::string& bytes = files.bytes(newest);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    const std::string before = bytes;
    spool = open_spool(files);
    batch.pieces = {piece_of(0, size, 100)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    BOOST_TEST(files.paths().size() == 4u);
    BOOST_TEST(files.bytes(newest) == before);
    BOOST_TEST(read_stream(files, *spool, 0).bytes == bytes_of(0, 0, size + 100));
    spool.reset();
    must(files.remove(files.paths().back()));
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
  }
}

BOOST_AUTO_TEST_CASE(an_id_with_a_damaged_declaration_is_never_reused) {
  MemoryFiles files;
  const auto ends = small_segment(files);
  std::string& bytes = files.bytes(kFirst);
  bytes[ends[0] - 10] = static_cast<char>(bytes[ends[0] - 10] ^ 1);  // the frame that declared both
  auto spool = open_spool(files);
  BOOST_TEST(spool->streams().empty());
  const StreamId id = spool->allocate();
  BOOST_TEST(id == 2u);
  PieceBatch batch;
  batch.opened = {stream_info(id, "/a")};
  batch.pieces = {piece_of(id, 0, 10)};
  must(spool->append(batch, 1));
  must_commit(*spool);
  BOOST_TEST(read_stream(files, *spool, id).bytes == bytes_of(id, 0, 10));
}

BOOST_AUTO_TEST_CASE(each_call_that_fails_once_or_for_good_loses_and_doubles_nothing) {
  const auto run = [](MemoryFiles& files, uint64_t rounds) {
    SpoolOptions options = small_options();
    auto opened = Spool::open(files, options, 1);
    for (int attempt = 0; !opened && attempt < 2; ++attempt) opened = Spool::open(files, options, 1);
    if (!opened) return uint64_t{0};
    Spool& spool = **opened;
    uint64_t sent = 0, durable = 0;
    const auto streams = spool.streams();
    bool reported = !streams.empty();
    if (reported) sent = durable = streams[0].state.size;
    for (uint64_t i = 0; i < rounds; ++i) {
      PieceBatch batch;
      if (!reported) batch.opened = {stream_info(0, "/a")};
      batch.pieces = {piece_of(0, sent, 20'000)};
      if (spool.append(batch, 1)) reported = true, sent += 20'000;
      if (spool.commit(1)) durable = sent;
      (void)spool.sync();
    }
    if (spool.commit(1)) durable = sent;
    return durable;
  };
  MemoryFiles quiet;
  run(quiet, 20);
  const uint64_t calls = quiet.calls;
  BOOST_TEST(quiet.paths().size() > 2u);
  for (uint64_t n = 1; n <= calls; ++n)
    for (const int how : {0, 1, 2, 3}) {
      MemoryFiles files;
      files.fail_at = n;
      files.fail_for_good = how & 1;
      files.fail_after_all = how & 2;
      const uint64_t durable = run(files, 20);
      if (!files.fail_for_good) BOOST_TEST(durable == 400'000u);
      files.heal();
      auto spool = open_spool(files);
      const auto streams = spool->streams();
      BOOST_TEST((streams.empty() ? 0 : streams[0].state.size) >= durable);
      spool.reset();
      const uint64_t sent = run(files, 3);
      spool = open_spool(files);
      const Given given = read_stream(files, *spool, 0);
      BOOST_TEST(given.bytes.size() == sent);
      BOOST_TEST(check_bytes(0, given.bytes) == 0u);
      BOOST_TEST(given.gaps.empty());
    }
}

BOOST_AUTO_TEST_CASE(a_newer_version_is_refused_and_left_alone) {
  MemoryFiles files;
  small_segment(files);
  SegmentHeader newer;
  newer.version = 2, newer.epoch = 5, newer.number = 2, newer.created_ns = 1;
  const std::string path = kFolder + "/" + segment_name(2);
  files.put(path, encode(newer) + "what it holds");
  const auto before = files.paths();
  const auto spool = Spool::open(files, small_options(), 1);
  BOOST_REQUIRE(!spool.has_value());
  BOOST_TEST(spool.error().text.find(segment_name(2)) != std::string::npos);
  BOOST_TEST(spool.error().text.find("newer") != std::string::npos);
  BOOST_TEST(files.paths() == before);
  BOOST_TEST(files.bytes(path) == encode(newer) + "what it holds");
}

BOOST_AUTO_TEST_CASE(segments_of_another_spool_are_kept_and_not_read) {
  MemoryFiles other, files;
  small_segment(other);
  small_segment(files);
  // Copied in as an older segment: its streams 0 and 1 are not ours.
  const std::string foreign = kFolder + "/" + segment_name(2);
  std::string bytes = files.bytes(kFirst);
  files.put(kFirst, other.bytes(kFirst));
  files.put(foreign, bytes);
  auto spool = open_spool(files);
  // A renamed segment is damaged, since it has its number inside; none of it is returned.
  BOOST_TEST(spool->stats().segments == 2u);
  BOOST_TEST(go_on_and_check(files, *spool) == 0u);
  BOOST_TEST(files.bytes(kFirst) == other.bytes(kFirst));
}

BOOST_AUTO_TEST_CASE(files_that_are_no_segments_are_left_alone) {
  MemoryFiles files;
  for (const char* name :
       {"x", "0000000000000001.seg.bak", "000000000000000G.seg", "1.seg", "index.db", "000000000000000A.seg"})
    files.put(kFolder + "/" + name, "content");
  const auto before = files.paths();
  auto spool = open_spool(files);
  BOOST_TEST(spool->stats().segments == 0u);
  BOOST_TEST(files.paths() == before);
}

BOOST_AUTO_TEST_CASE(a_segment_that_goes_during_a_read_is_a_gap) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a")};
  for (uint64_t i = 0; i < 20; ++i) {
    batch.pieces = {piece_of(0, i * 20'000, 20'000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    batch.opened.clear();
  }
  const auto streams = spool->streams();
  must(files.remove(kFirst));
  const Given given = read_all(files, {streams, 0, UINT64_MAX});
  BOOST_TEST(given.bytes.size() == 400'000u);
  const uint64_t missing = check_bytes(0, given.bytes);
  BOOST_TEST((missing > 0 && missing < 400'000));
}
