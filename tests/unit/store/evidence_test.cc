#include "store/evidence.h"

#include <boost/test/unit_test.hpp>

#include "fixture.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

BOOST_AUTO_TEST_CASE(streams_of_one_path_are_one_source_and_any_range_of_it_can_be_read) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "trace.sock"), stream_info(1, "trace.sock"), stream_info(2, "trace.sock")};
  for (uint64_t i = 0; i < 4; ++i)
    for (const StreamId id : {2u, 0u}) batch.pieces.push_back(piece_of(id, i * 5, 5));
  must(spool->append(batch, 1));
  must_commit(*spool);
  const std::string whole = bytes_of(0, 0, 20) + bytes_of(2, 0, 20);
  const auto streams = spool->streams_of("j1", "trace.sock");
  for (uint64_t from = 0; from <= 41; ++from)
    for (uint64_t to = from; to <= 41; ++to) {
      const Given given = read_all(files, {streams, from, to});
      BOOST_TEST(given.bytes == whole.substr(std::min<size_t>(from, 40), to - from));
      BOOST_TEST(given.gaps.empty());
    }
  BOOST_TEST(read_all(files, {streams, 0, UINT64_MAX}).bytes == whole);
}

BOOST_AUTO_TEST_CASE(a_range_begins_and_ends_in_any_segment) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a"), stream_info(1, "/b")};
  for (uint64_t i = 0; i < 50; ++i) {
    // The other stream starts late, so that segments begin without it.
    batch.pieces = {piece_of(0, i * 9'000, 9'000)};
    if (i >= 30) batch.pieces.push_back(piece_of(1, (i - 30) * 9'000, 9'000));
    must(spool->append(batch, 1));
    must_commit(*spool);
    batch.opened.clear();
  }
  BOOST_TEST(spool->stats().segments > 3u);
  for (const StoredStream& stream : spool->streams())
    for (uint64_t from = 0; from < stream.state.size; from += 8'999)
      for (const uint64_t size : {1, 9'001, 100'000}) {
        const uint64_t to = std::min(from + size, stream.state.size);
        const Given given = read_all(files, {{stream}, from, to});
        BOOST_TEST((given.bytes == bytes_of(stream.state.info.id, from, to)));
      }
}

BOOST_AUTO_TEST_CASE(gaps_are_reported_where_they_are_and_once) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a")};
  batch.pieces = {piece_of(0, 0, 10), piece_of(0, 10, 10), piece_of(0, 20, 0)};
  batch.pieces[1].gap = Gap{7, 1, "middle"};
  batch.pieces[2].gap = Gap{9, 0, "end"};
  batch.pieces[2].ends = true;
  must(spool->append(batch, 1));
  must_commit(*spool);
  const auto streams = spool->streams();
  const auto reported = [&](uint64_t from, uint64_t to) {
    std::string text;
    for (const EvidenceGap& gap : read_all(files, {streams, from, to}).gaps)
      text += std::to_string(gap.offset) + gap.gap.reason + " ";
    return text;
  };
  BOOST_TEST(reported(0, UINT64_MAX) == "10middle 20end ");
  BOOST_TEST(reported(0, 10) == "");
  BOOST_TEST(reported(0, 11) == "10middle ");
  BOOST_TEST(reported(10, 20) == "10middle 20end ");
  BOOST_TEST(reported(11, 19) == "");
}

BOOST_AUTO_TEST_CASE(a_reader_sees_what_is_committed_while_the_writer_goes_on) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a")};
  for (uint64_t i = 0; i < 60; ++i) {
    batch.pieces = {piece_of(0, i * 7'000, 7'000)};
    must(spool->append(batch, 1));
    batch.opened.clear();
    if (i % 3 != 0) continue;
    must_commit(*spool);
    const auto streams = spool->streams();
    PieceBatch more;
    more.pieces = {piece_of(0, (i + 1) * 7'000, 7'000)};
    must(spool->append(more, 1));
    must_commit(*spool);
    BOOST_TEST(read_all(files, {streams, 0, UINT64_MAX}).bytes.size() == (i + 1) * 7'000);
    BOOST_TEST(read_stream(files, *spool, 0).bytes == bytes_of(0, 0, (i + 2) * 7'000));
    i += 1;
  }
  // A frame that is being written: half of it is on the disk.
  const std::string path = files.paths().back();
  const auto streams = spool->streams();
  files.bytes(path) += files.bytes(path).substr(64, 100);
  BOOST_TEST(read_all(files, {streams, 0, UINT64_MAX}).bytes == bytes_of(0, 0, streams[0].state.size));
}

BOOST_AUTO_TEST_CASE(a_sink_that_has_enough_gets_no_more) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a"), stream_info(1, "/a")};
  batch.pieces = {piece_of(0, 0, 10), piece_of(0, 10, 10), piece_of(1, 0, 10)};
  must(spool->append(batch, 1));
  must_commit(*spool);
  std::string got;
  EvidenceSink sink;
  sink.bytes = [&](std::string_view bytes) {
    got += bytes;
    return got.size() < 10;
  };
  BOOST_TEST(EvidenceReader(files, kFolder).read({spool->streams()}, sink).has_value());
  BOOST_TEST(got == bytes_of(0, 0, 10));
}

BOOST_AUTO_TEST_CASE(a_replay_gives_wanted_pieces_in_order_up_to_the_mark) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a", "j1"), stream_info(1, "/b", "j2")};
  uint64_t mark = 0;
  for (uint64_t i = 0; i < 60; ++i) {
    batch.pieces = {piece_of(0, i * 9'000, 9'000), piece_of(1, i * 9'000, 9'000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    batch.opened.clear();
    if (i == 39) mark = spool->last_sequence();
  }
  BOOST_TEST(spool->stats().segments > 2u);
  std::string got;
  uint64_t reported = 0;
  ReplayVisitor visitor;
  visitor.wanted = [&](const StreamInfo& info) {
    reported += 1;
    return info.job == "j2";
  };
  visitor.piece = [&](const Piece& piece) {
    BOOST_TEST(piece.stream == 1u);
    BOOST_TEST(piece.offset == got.size());
    BOOST_TEST((piece.place && piece.place->offset == piece.offset + 9'000 && !piece.gap));
    got += piece.bytes;
    return true;
  };
  BOOST_TEST(replay(files, kFolder, mark, visitor).has_value());
  BOOST_TEST(reported == 2u);
  BOOST_TEST(got == bytes_of(1, 0, 40 * 9'000));
}

BOOST_AUTO_TEST_CASE(a_replay_tells_what_was_dropped_before_it_began) {
  MemoryFiles files;
  SpoolOptions options = small_options();
  options.max_bytes = 400 << 10;
  auto spool = open_spool(files, options);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a")};
  for (uint64_t i = 0; i < 100; ++i) {
    batch.pieces = {piece_of(0, i * 20'000, 20'000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    batch.opened.clear();
  }
  std::vector<Piece> pieces;
  ReplayVisitor visitor{[](const StreamInfo&) { return true; },
                        [&](const Piece& piece) {
                          pieces.push_back(piece);
                          return true;
                        }};
  BOOST_TEST(replay(files, kFolder, spool->last_sequence(), visitor).has_value());
  BOOST_REQUIRE(pieces.size() > 2u);
  BOOST_REQUIRE(pieces[0].gap.has_value());
  BOOST_TEST(pieces[0].gap->bytes == pieces[0].offset);
  BOOST_TEST(pieces[0].gap->reason.find("dropped") != std::string::npos);
  BOOST_TEST(pieces[0].offset == spool->streams()[0].first_offset);
  BOOST_TEST(!pieces[1].gap.has_value());
}
