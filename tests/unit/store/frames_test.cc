// Frames for a peer: read verbatim, and kept until the peer has them.
#include "store/frames.h"

#include <boost/test/unit_test.hpp>

#include "archive_fixture.h"

using namespace culprit;
using namespace culprit::store;
using namespace culprit::store::testing;

BOOST_AUTO_TEST_CASE(frames_are_read_in_order_while_the_spool_is_written) {
  Host host("a");
  uint64_t after = 0;
  for (int round = 0; round < 30; ++round) {
    host.write(5, 9000);
    for (;;) {
      const auto found = host.reader->read({after, host.spool->synced_sequence(), 20'000});
      BOOST_REQUIRE(found.has_value());
      if (found->empty()) break;
      for (const VerbatimFrame& frame : *found) {
        BOOST_TEST(frame.header.sequence == after + 1);
        BOOST_TEST(frame.header.declares == (after < 2));  // the first of each stream
        BOOST_TEST(frame.bytes.size() == kFrameHeaderBytes + frame.header.stored_size);
        after = frame.header.sequence;
      }
    }
    BOOST_TEST(after == host.spool->last_sequence());
  }
  BOOST_TEST(host.spool->stats().segments > 3u);
  for (const uint64_t from : {0u, 70u, 149u}) {  // and again from any position
    const auto found = host.frames(from);
    BOOST_REQUIRE(found.size() == 150 - from);
    BOOST_TEST(found[0].header.sequence == from + 1);
  }
}

BOOST_AUTO_TEST_CASE(only_synced_frames_are_for_a_peer) {
  Host host("a");
  BOOST_TEST(host.spool->synced_sequence() == 0u);
  host.write(3);
  BOOST_TEST(host.spool->synced_sequence() == 3u);
  PieceBatch batch;
  batch.pieces = {piece_of(0, host.sizes[0], 10)};
  must(host.spool->append(batch, 1));
  must_commit(*host.spool);
  BOOST_TEST((host.spool->last_sequence() == 4u && host.spool->synced_sequence() == 3u));
  BOOST_TEST(host.frames(3).empty());
  host.files.broken = {"sync"};
  BOOST_TEST(!host.spool->sync().has_value());
  BOOST_TEST(host.spool->synced_sequence() == 3u);
  host.files.heal();
  must(host.spool->sync());
  BOOST_TEST(host.frames(3).size() == 1u);
}

BOOST_AUTO_TEST_CASE(what_is_not_acknowledged_is_held_and_then_nothing_more_is_taken) {
  SpoolOptions options = small_options();
  options.max_bytes = 600 << 10;
  Host host("a", LogKind::kEvidence, options);
  Status taken;
  uint64_t at = 0;
  PieceBatch batch;
  batch.opened = {stream_info(0, "/x")};
  for (int i = 0; i < 10'000 && taken; ++i) {
    batch.pieces = {piece_of(0, at, 60'000)};
    taken = host.spool->append(batch, 9);
    if (!taken) break;
    batch.opened.clear();
    at += 60'000;
    (void)host.spool->commit(9);
  }
  BOOST_REQUIRE(!taken.has_value());
  BOOST_TEST((taken.error().code == ErrorCode::kLimit));
  SpoolStats stats = host.spool->stats();
  BOOST_TEST((stats.full && stats.dropped_segments == 0 && stats.failing_since_ns == 9));
  // A segment that was begun for a frame that did not fit has a header and no frame.
  BOOST_TEST((stats.waiting_bytes <= stats.bytes && stats.waiting_bytes + 1000 > stats.bytes));
  BOOST_TEST(stats.bytes <= options.max_bytes);
  BOOST_TEST(host.spool->first_sequence() == 1u);
  // More data waits in memory than the spool holds: it continues as fast as the peer acknowledges.
  for (int i = 0; i < 200 && !taken; ++i) {
    host.spool->retain_after(host.spool->last_sequence());
    taken = host.spool->append(batch, 10);
    if (taken) taken = host.spool->commit(10).map([](const auto&) {});
    if (taken || taken.error().code != ErrorCode::kLimit) break;
    batch.pieces.clear();
  }
  must(taken);
  stats = host.spool->stats();
  BOOST_TEST((!stats.full && stats.dropped_segments > 0 && stats.failing_since_ns == kNoTime));
  BOOST_TEST(host.spool->first_sequence() <= host.spool->acknowledged() + 1);
}

BOOST_AUTO_TEST_CASE(a_full_spool_gives_up_the_oldest_that_the_peer_received_before_it_takes_nothing) {
  SpoolOptions options = small_options();
  options.max_bytes = 600 << 10;
  Host host("a", LogKind::kEvidence, options);
  const auto write = [&](int frames) {
    Status taken;
    PieceBatch batch;
    for (int i = 0; i < frames && taken; ++i) {
      if (host.spool->last_sequence() == 0) batch.opened = {stream_info(0, "/x")};
      batch.pieces = {piece_of(0, host.spool->last_sequence() * 60'000, 60'000)};
      taken = host.spool->append(batch, 9);
      if (taken) taken = host.spool->commit(9).map([](const auto&) {});
      batch.opened.clear();
    }
    return taken;
  };
  must(write(5));
  host.spool->retain_after(1, 4);
  const SpoolStats before = host.spool->stats();
  BOOST_TEST((before.received_bytes > 0 && before.given_up_bytes == 0));
  const Status taken = write(10'000);
  BOOST_TEST((!taken.has_value() && taken.error().code == ErrorCode::kLimit));
  const SpoolStats after = host.spool->stats();
  BOOST_TEST((after.full && after.given_up_bytes > 0 && after.given_up_bytes <= after.dropped_bytes));
  BOOST_TEST((host.spool->first_sequence() > 2 && host.spool->first_sequence() <= 5));
  must(host.spool->sync());
  BOOST_REQUIRE(!host.frames(4).empty());  // what the peer lacks is there
  BOOST_TEST(host.frames(4).front().header.sequence == 5u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_takes_nothing_that_is_held) {
  Host host("a");
  host.write(60, 9000);
  host.files.capacity = host.files.used() + 1000;
  PieceBatch batch;
  batch.pieces = {piece_of(0, host.sizes[0], 9000)};
  must(host.spool->append(batch, 1));  // it waits
  BOOST_TEST(!host.spool->commit(1).has_value());
  BOOST_TEST(host.spool->stats().dropped_segments == 0u);
  host.spool->retain_after(40);
  must_commit(*host.spool);
  BOOST_TEST(host.spool->stats().dropped_segments > 0u);
}

BOOST_AUTO_TEST_CASE(a_start_on_a_full_disk_keeps_what_is_held_and_lets_go_what_is_acknowledged) {
  Host host("a");
  host.write(60, 9000);
  host.spool.reset();
  host.files.capacity = host.files.used() + 1000;
  SpoolOptions options = small_options();
  options.hold = true;
  host.spool = open_spool(host.files, options);
  PieceBatch batch;
  batch.pieces = {piece_of(0, host.sizes[0], 9000)};
  must(host.spool->append(batch, 1));
  BOOST_TEST(!host.spool->commit(1).has_value());
  BOOST_TEST((host.frames(0).size() == 60u && host.spool->stats().dropped_segments == 0u));
  host.spool->retain_after(30);
  must_commit(*host.spool);
  must(host.spool->sync());
  BOOST_TEST((host.spool->first_sequence() > 1u && host.spool->first_sequence() <= 31u));
  BOOST_TEST(host.frames(30).size() == 31u);
}

BOOST_AUTO_TEST_CASE(what_was_acknowledged_is_known_after_a_restart) {
  Host host("a");
  host.write(30, 9000);
  host.spool->retain_after(20);
  host.write(30, 9000);
  const uint64_t first = host.spool->first_sequence(), epoch = host.spool->epoch();
  host.spool.reset();
  SpoolOptions options = small_options();
  options.hold = true;
  host.spool = open_spool(host.files, options);
  BOOST_TEST(host.spool->acknowledged() == 20u);
  BOOST_TEST((host.spool->epoch() == epoch && host.spool->first_sequence() == first));
  BOOST_TEST(host.spool->synced_sequence() == 60u);
  BOOST_TEST(host.frames(0).size() == 60u);
  BOOST_TEST(host.spool->stats().waiting_bytes < host.spool->stats().bytes);
}

BOOST_AUTO_TEST_CASE(what_is_acknowledged_waits_no_more_also_within_a_segment) {
  Host host("a");
  host.write(10, 300);
  const uint64_t all = host.spool->stats().waiting_bytes;
  BOOST_TEST((host.spool->stats().segments == 1u && all == host.spool->stats().bytes));
  host.spool->retain_after(5);
  BOOST_TEST(host.spool->stats().waiting_bytes == all / 2);
  host.spool->retain_after(10);
  BOOST_TEST(host.spool->stats().waiting_bytes == 0u);
}

BOOST_AUTO_TEST_CASE(a_damaged_frame_is_a_jump_in_the_sequence) {
  Host host("a");
  host.write(6, 300);
  const auto before = host.frames(0);
  std::string& bytes = host.files.bytes(kFolder + "/" + segment_name(1));
  bytes[bytes.find(before[2].bytes) + 100] ^= 1;
  const auto found = host.frames(0);
  BOOST_REQUIRE(found.size() == 5u);
  BOOST_TEST((found[1].header.sequence == 2u && found[2].header.sequence == 4u));
}

BOOST_AUTO_TEST_CASE(a_number_that_a_peer_has_is_never_given_again) {
  Host host("a");
  host.write(3);
  host.spool->raise_sequence(10);
  host.write(2);
  const auto found = host.frames(0);
  BOOST_REQUIRE(found.size() == 5u);
  BOOST_TEST((found[2].header.sequence == 3u && found[3].header.sequence == 11u));
}
