#include "app/daemon/intake/batch_parts.h"

#include <boost/test/unit_test.hpp>

#include "store/record.h"
#include "store/spool.h"

using namespace culprit;
using namespace culprit::app;

namespace {

PieceBatch files(size_t count) {
  PieceBatch batch;
  for (StreamId id = 0; id < count; ++id) {
    StreamInfo& info = batch.opened.emplace_back();
    info.id = id;
    info.path = "/data/runs/a-job-with-a-name/logs/rank_" + std::to_string(id) + ".log";
    for (int i = 0; i < 2; ++i) {
      Piece& piece = batch.pieces.emplace_back();
      piece.stream = id;
      piece.offset = static_cast<uint64_t>(i) * 10;
      piece.bytes = "0123456789";
    }
  }
  return batch;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_batch_that_fits_stays_one_and_nothing_gives_none) {
  BOOST_TEST(parts_of({}, 1000).empty());
  const auto parts = parts_of(files(100), store::kBatchBytes);
  BOOST_REQUIRE(parts.size() == 1u);
  BOOST_TEST(parts[0].opened.size() == 100u);
  BOOST_TEST(parts[0].pieces.size() == 200u);
}

BOOST_AUTO_TEST_CASE(a_hundred_thousand_files_at_once_come_in_parts_that_the_spool_takes_in_their_order) {
  constexpr size_t kFiles = 100'000;
  const auto parts = parts_of(files(kFiles), store::kBatchBytes);
  BOOST_TEST(parts.size() > 1u);
  std::vector<uint64_t> sizes;
  size_t pieces = 0;
  for (const PieceBatch& part : parts) {
    BOOST_TEST(store::encoded_size_max(part) <= store::kBatchBytes);
    for (const StreamInfo& info : part.opened) {
      BOOST_REQUIRE_EQUAL(info.id, sizes.size());
      sizes.push_back(0);
    }
    for (const Piece& piece : part.pieces) {
      BOOST_REQUIRE_LT(piece.stream, sizes.size());
      BOOST_REQUIRE_EQUAL(piece.offset, sizes[piece.stream]);
      sizes[piece.stream] += piece.bytes.size();
      ++pieces;
    }
  }
  BOOST_TEST(sizes.size() == kFiles);
  BOOST_TEST(pieces == 2 * kFiles);
}
