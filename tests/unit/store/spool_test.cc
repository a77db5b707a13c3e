#include "store/spool.h"

#include <boost/test/unit_test.hpp>

#include "fixture.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

namespace {

// Two files and a ring, their pieces interleaved; each frame is one commit.
void write_frames(Spool& spool, int frames, uint64_t size) {
  PieceBatch first;
  const StreamId ids[] = {spool.allocate(), spool.allocate(), spool.allocate()};
  for (const StreamId id : ids) first.opened.push_back(stream_info(id, "/log/" + std::to_string(id)));
  must(spool.append(first, 1));
  for (int i = 0; i < frames; ++i) {
    PieceBatch batch;
    for (const StreamId id : ids) batch.pieces.push_back(piece_of(id, size * static_cast<uint64_t>(i), size));
    must(spool.append(batch, 1));
    must_commit(spool);
  }
}

uint64_t size_of(const Spool& spool, StreamId id) {
  for (const StoredStream& stored : spool.streams())
    if (stored.state.info.id == id) return stored.state.size;
  return 0;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_byte_comes_back_over_segments_and_restarts) {
  MemoryFiles files;
  auto spool = open_spool(files);
  write_frames(*spool, 100, 3000);
  BOOST_TEST(spool->stats().segments > 2u);
  for (int restart = 0; restart < 2; ++restart) {
    for (const StreamId id : {0u, 1u, 2u}) {
      const Given given = read_stream(files, *spool, id);
      BOOST_TEST(given.bytes == bytes_of(id, 0, 300'000));
      BOOST_TEST(given.gaps.empty());
    }
    spool.reset();
    spool = open_spool(files);
  }
}

BOOST_AUTO_TEST_CASE(a_restart_finds_all_that_is_known_of_a_source) {
  MemoryFiles files;
  PieceBatch batch;
  StreamInfo info = stream_info(7, "trace.sock", "");
  info.kind = OriginKind::kSocket;
  info.uid = 1000, info.pid = 0, info.boot_ns = 99;
  batch.opened = {info, stream_info(3, "/log/a")};
  Piece last = piece_of(7, 0, 10);
  last.place.reset();
  last.ends = true;
  last.gap = Gap{5, 2, "dropped"};
  batch.pieces = {last, piece_of(3, 0, 20)};
  {
    auto spool = open_spool(files);
    must(spool->append(batch, 1));
    must_commit(*spool);
  }
  auto spool = open_spool(files);
  const auto streams = spool->streams();
  BOOST_REQUIRE(streams.size() == 2u);
  const StreamState& file = streams[0].state;
  BOOST_TEST(file.size == 20u);
  BOOST_TEST((file.place == batch.pieces[1].place));
  BOOST_TEST(!file.ended);
  const StreamState& socket = streams[1].state;
  BOOST_TEST((socket.info.kind == OriginKind::kSocket));
  BOOST_TEST((socket.info.uid == 1000u && socket.info.pid == 0u && socket.info.boot_ns == 99));
  BOOST_TEST(socket.info.opened_ns == 5);
  BOOST_TEST((socket.ended && !socket.place && socket.size == 10u));
  const Given given = read_stream(files, *spool, 7);
  BOOST_REQUIRE(given.gaps.size() == 1u);
  BOOST_TEST((given.gaps[0].offset == 0u && given.gaps[0].in_range == 0u));
  BOOST_TEST((given.gaps[0].gap.bytes == 5u && given.gaps[0].gap.records == 2u));
  BOOST_TEST(given.gaps[0].gap.reason == "dropped");
}

BOOST_AUTO_TEST_CASE(an_id_never_comes_again) {
  MemoryFiles files;
  SpoolOptions options = small_options();
  options.max_bytes = 200 << 10;  // so that ended streams are forgotten meanwhile
  StreamId highest = 0;
  for (int restart = 0; restart < 20; ++restart) {
    auto spool = open_spool(files, options);
    const StreamId id = spool->allocate();
    BOOST_TEST((restart == 0 || id > highest));
    highest = id;
    PieceBatch batch;
    batch.opened = {stream_info(id, "/x")};
    for (uint64_t i = 0; i < 3; ++i) batch.pieces.push_back(piece_of(id, i * 20'000, 20'000));
    batch.pieces.back().ends = true;
    must(spool->append(batch, 1));
    must_commit(*spool);
  }
  BOOST_TEST(open_spool(files, options)->streams().size() < 15u);
}

BOOST_AUTO_TEST_CASE(what_is_not_committed_is_reported_as_not_committed) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/log/a")};
  batch.pieces = {piece_of(0, 0, 1000)};
  must(spool->append(batch, 1));
  BOOST_TEST(spool->streams().empty());
  BOOST_TEST(spool->stats().pending_bytes > 1000u);
  const auto committed = spool->commit(1);
  BOOST_REQUIRE((committed && committed->size() == 1u));
  BOOST_TEST(((*committed)[0].stream == 0u && (*committed)[0].offset == 1000u));
  BOOST_TEST(spool->commit(1)->empty());
  batch.opened.clear();
  batch.pieces = {piece_of(0, 1000, 500)};
  must(spool->append(batch, 1));
  BOOST_TEST(size_of(*spool, 0) == 1000u);
  spool.reset();  // like a kill
  BOOST_TEST(size_of(*open_spool(files), 0) == 1000u);
}

BOOST_AUTO_TEST_CASE(a_batch_that_cannot_be_is_refused_as_a_whole) {
  MemoryFiles files;
  auto spool = open_spool(files);
  write_frames(*spool, 1, 100);
  const auto refused = [&](PieceBatch batch) {
    const Status status = spool->append(batch, 1);
    return !status && status.error().code == ErrorCode::kInvalid;
  };
  PieceBatch batch;
  batch.opened = {stream_info(10, "/x"), stream_info(1, "/log/1")};
  BOOST_TEST(refused(batch));  // 1 was declared
  batch.opened = {stream_info(10, "/x"), stream_info(10, "/x")};
  BOOST_TEST(refused(batch));
  batch.opened = {stream_info(kNoStream, "/x")};
  BOOST_TEST(refused(batch));
  batch.opened = {stream_info(10, "/x")};
  batch.pieces = {piece_of(11, 0, 10)};
  BOOST_TEST(refused(batch));  // 11 was never declared
  batch.pieces = {piece_of(1, 99, 10)};
  BOOST_TEST(refused(batch));
  batch.pieces = {piece_of(1, 100, 10), piece_of(1, 111, 10)};
  BOOST_TEST(refused(batch));
  batch.pieces = {piece_of(1, 100, 1)};
  batch.pieces[0].bytes.assign(kBatchBytes, 'x');
  BOOST_TEST(refused(batch));
  batch.pieces = {piece_of(1, 100, 10), piece_of(1, 110, 10), piece_of(10, 0, 5)};
  must(spool->append(batch, 1));
  must_commit(*spool);
  BOOST_TEST(size_of(*spool, 1) == 120u);
  BOOST_TEST(size_of(*spool, 10) == 5u);
}

BOOST_AUTO_TEST_CASE(the_newest_segment_alone_is_enough_to_start) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  for (StreamId id = 0; id < 10'000; ++id) {  // a checkpoint of several frames
    batch.opened.push_back(stream_info(id, "/var/log/train/" + std::to_string(id) + std::string(100, 'x')));
    batch.pieces.push_back(piece_of(id, 0, 50));
  }
  must(spool->append(batch, 1));
  must_commit(*spool);
  batch.opened.clear();
  const uint64_t before = spool->stats().segments;
  for (uint64_t n = 0; spool->stats().segments == before; ++n) {
    batch.pieces = {piece_of(0, 50 + n * 9000, 9000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
  }
  const auto expected = spool->streams();
  spool.reset();
  const std::vector<std::string> paths = files.paths();
  for (size_t i = 0; i + 1 < paths.size(); ++i) must(files.remove(paths[i]));
  spool = open_spool(files);
  const auto found = spool->streams();
  BOOST_REQUIRE(found.size() == 10'000u);
  for (size_t i = 0; i < found.size(); ++i) {
    BOOST_REQUIRE(found[i].state.info.path == expected[i].state.info.path);
    BOOST_REQUIRE(found[i].state.size == expected[i].state.size);
    BOOST_REQUIRE((found[i].state.place == expected[i].state.place));
  }
  BOOST_TEST(found[5].first_offset == 50u);
  BOOST_TEST(spool->allocate() == 10'000u);
}

BOOST_AUTO_TEST_CASE(above_its_bound_the_oldest_go_and_it_is_reported) {
  MemoryFiles files;
  SpoolOptions options = small_options();
  options.max_bytes = 1 << 20;
  auto spool = open_spool(files, options);
  PieceBatch batch;
  batch.opened = {stream_info(0, "/log/ended"), stream_info(1, "/log/a")};
  batch.pieces = {piece_of(0, 0, 100)};
  batch.pieces[0].ends = true;
  must(spool->append(batch, 1));
  batch.opened.clear();
  for (uint64_t i = 0; i < 300; ++i) {
    batch.pieces = {piece_of(1, i * 20'000, 20'000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    BOOST_REQUIRE(files.used() <= options.max_bytes);
    BOOST_REQUIRE(files.used() == spool->stats().bytes);
  }
  BOOST_TEST(files.used() > options.max_bytes * 8 / 10);
  BOOST_TEST(spool->stats().dropped_segments > 0u);
  for (int restart = 0; restart < 2; ++restart) {
    const auto streams = spool->streams();
    BOOST_REQUIRE(streams.size() == 1u);  // the other one ended, and no bytes of it are left
    const uint64_t first = streams[0].first_offset;
    BOOST_TEST(first > 0u);
    const Given given = read_stream(files, *spool, 1);
    BOOST_TEST(given.bytes.size() == 300 * 20'000u);
    BOOST_TEST(check_bytes(1, given.bytes) == first);
    BOOST_REQUIRE(given.gaps.size() == 1u);
    BOOST_TEST(given.gaps[0].in_range == first);
    BOOST_TEST(given.gaps[0].gap.reason.find("dropped") != std::string::npos);
    spool.reset();
    spool = open_spool(files, options);
  }
}

BOOST_AUTO_TEST_CASE(a_small_disk_makes_small_segments) {
  MemoryFiles files;
  files.capacity = 4 << 20;
  auto spool = open_spool(files, small_options(64 << 20));  // the disk has 4 GiB for the spool
  PieceBatch batch;
  batch.opened = {stream_info(0, "/log/a")};
  for (uint64_t i = 0; i < 600; ++i) {
    batch.pieces = {piece_of(0, i * 20'000, 20'000)};
    must(spool->append(batch, 1));
    must_commit(*spool);
    batch.opened.clear();
  }
  const Given given = read_stream(files, *spool, 0);
  BOOST_TEST(given.bytes.size() == 600 * 20'000u);
  BOOST_TEST(check_bytes(0, given.bytes) == spool->streams()[0].first_offset);
  BOOST_TEST(spool->stats().dropped_segments > 0u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_survived_and_recovered_from) {
  MemoryFiles files;
  auto spool = open_spool(files);
  write_frames(*spool, 1, 1000);
  files.capacity = files.used() + 100;  // files of others take the rest
  PieceBatch batch;
  uint64_t taken = 1000;
  for (;; taken += 50'000) {
    batch.pieces = {piece_of(0, taken, 50'000)};
    const Status status = spool->append(batch, 3);
    if (status) continue;
    BOOST_TEST(status.error().text.find(kFolder) != std::string::npos);
    break;
  }
  BOOST_TEST(taken > uint64_t{2} << 20);  // some bytes are kept in memory
  BOOST_TEST(spool->stats().pending_bytes <= uint64_t{17} << 20);
  BOOST_TEST(!spool->commit(4).has_value());
  BOOST_TEST(spool->stats().failing_since_ns == 3);
  BOOST_TEST(size_of(*spool, 0) == 1000u);
  files.capacity = uint64_t{1} << 40;
  must(spool->append(batch, 5));
  must_commit(*spool);
  BOOST_TEST(spool->stats().failing_since_ns == kNoTime);
  const Given given = read_stream(files, *spool, 0);
  BOOST_TEST(given.bytes.size() == taken + 50'000);
  BOOST_TEST(check_bytes(0, given.bytes) == 0u);
  BOOST_TEST(given.damage.bytes == 0u);  // the torn write was cut
}

BOOST_AUTO_TEST_CASE(a_write_that_stood_although_it_failed_is_no_second_copy) {
  MemoryFiles files;
  auto spool = open_spool(files);
  write_frames(*spool, 2, 1000);
  files.broken = {"append", "truncate"};
  files.fail_after_all = true;
  PieceBatch batch;
  batch.pieces = {piece_of(0, 2000, 500)};
  batch.pieces[0].gap = Gap{1, 1, "once"};
  must(spool->append(batch, 1));
  BOOST_TEST(!spool->commit(1).has_value());
  files.heal();
  files.broken = {"truncate"};
  must_commit(*spool);
  for (int restart = 0; restart < 2; ++restart) {
    const Given given = read_stream(files, *spool, 0);
    BOOST_TEST(given.bytes == bytes_of(0, 0, 2500));
    BOOST_TEST(given.gaps.size() == 1u);
    spool.reset();
    files.heal();
    spool = open_spool(files);
  }
}

BOOST_AUTO_TEST_CASE(ended_sources_beyond_the_bound_are_forgotten_first) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch live;
  live.opened = {stream_info(spool->allocate(), "/log/live")};
  live.pieces = {piece_of(0, 0, 10)};
  must(spool->append(live, 1));
  for (int round = 0; round < 10; ++round) {
    PieceBatch batch;
    for (int i = 0; i < 20'000; ++i) {
      const StreamId id = spool->allocate();
      batch.opened.push_back(stream_info(id, "r"));
      batch.pieces.push_back(piece_of(id, 0, 1));
      batch.pieces.back().ends = true;
    }
    must(spool->append(batch, 1));
    must_commit(*spool);
  }
  BOOST_TEST(spool->streams().size() <= kStreamsMax);
  BOOST_TEST(spool->streams().front().state.info.id == 0u);
  BOOST_TEST(spool->stats().forgotten_streams + spool->streams().size() == 200'001u);
}

BOOST_AUTO_TEST_CASE(streams_of_a_job_are_its_own_and_those_of_all) {
  MemoryFiles files;
  auto spool = open_spool(files);
  PieceBatch batch;
  batch.opened = {stream_info(0, "a", "j1"), stream_info(1, "a", "j2"),        stream_info(2, "kmsg", ""),
                  stream_info(3, "a", "j1"), stream_info(4, "trace.sock", ""), stream_info(5, "dump", "")};
  batch.opened[2].kind =
      OriginKind::kKernel;  // of every job, like a dump; other streams without a job belong to no job
  batch.opened[5].kind = OriginKind::kDump;
  batch.opened.push_back(stream_info(6, "journal/system", ""));
  batch.opened[6].kind = OriginKind::kJournal;
  must(spool->append(batch, 1));
  must_commit(*spool);
  const auto ids = [&](const std::string& job, const std::string& path) {
    std::string text;
    for (const StoredStream& stored : spool->streams_of(job, path))
      text += std::to_string(stored.state.info.id);
    return text;
  };
  BOOST_TEST(ids("j1", "") == "02356");
  BOOST_TEST(ids("j1", "a") == "03");
  BOOST_TEST(ids("j2", "kmsg") == "2");
  BOOST_TEST(ids("j2", "dump") == "5");
  BOOST_TEST(ids("j3", "a") == "");
}

// Versions refuse a frame with a number that they do not know.
BOOST_AUTO_TEST_CASE(a_journal_has_the_number_of_a_kernels_log_and_comes_back_as_a_journal) {
  struct Sink : RecordSink {
    std::vector<StreamInfo> streams;
    void on_stream(const StreamInfo& stream) override { streams.push_back(stream); }
    void on_piece(const Piece&, std::string_view) override {}
  } sink;
  std::string bytes, kernel;
  StreamInfo info = stream_info(1, "journal/system", "");
  info.kind = OriginKind::kJournal;
  put_stream(bytes, info);
  info.kind = OriginKind::kKernel;
  put_stream(kernel, info);
  BOOST_TEST(bytes == kernel);
  info.path = "/dev/kmsg";
  put_stream(bytes, info);
  BOOST_REQUIRE(read_records(bytes, sink));
  BOOST_REQUIRE_EQUAL(sink.streams.size(), 2u);
  BOOST_TEST((sink.streams[0].kind == OriginKind::kJournal));
  BOOST_TEST((sink.streams[1].kind == OriginKind::kKernel));
  bytes[2] = 8;  // no version writes it
  BOOST_TEST(!read_records(bytes, sink));
}

BOOST_AUTO_TEST_CASE(a_start_reports_until_when_all_seen_sources_were_stored) {
  constexpr TimeNs kMinute = 60 * kNsPerSecond;
  MemoryFiles files;
  {
    auto spool = open_spool(files);
    BOOST_TEST(spool->stored_until_ns() == kNoTime);
    PieceBatch batch;
    batch.opened = {stream_info(0, "/a")};
    for (const TimeNs minute : {100, 120, 135, 139}) {
      batch.pieces = {piece_of(0, 0, 0)};
      must(spool->append(batch, minute * kMinute));
      BOOST_REQUIRE(spool->commit(minute * kMinute).has_value());
      batch.opened.clear();
    }
  }
  // The newest is of minute 139: others of its last 10 minutes may lack sources.
  BOOST_TEST(open_spool(files)->stored_until_ns() == 120 * kMinute);
}

BOOST_AUTO_TEST_CASE(a_disk_that_fails_each_second_write_takes_evidence) {
  MemoryFiles files;
  auto spool = open_spool(files);
  uint64_t writes = 0;
  files.intercept = [&](const std::string& operation) { return operation == "append" && ++writes % 2 == 1; };
  PieceBatch batch;
  batch.opened = {stream_info(0, "/a")};
  batch.pieces = {piece_of(0, 0, 100)};
  must(spool->append(batch, 1));
  for (int i = 0; i < 4 && spool->last_sequence() == 0; ++i) (void)spool->commit(1);
  BOOST_TEST(spool->last_sequence() == 1u);
  files.intercept = {};
  spool.reset();
  spool = open_spool(files);
  BOOST_REQUIRE_EQUAL(spool->streams().size(), 1u);
  BOOST_TEST(spool->streams().front().state.size == 100u);
}
