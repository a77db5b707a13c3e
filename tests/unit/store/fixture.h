// Sources with bytes that follow from their offsets, a producer that appends them to a spool like a tailer,
// and a checker of the spool's output.
#pragma once

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "memory_files.h"
#include "store/evidence.h"
#include "store/spool.h"

namespace culprit::store::testing {

inline const std::string kFolder = "/state/spool";

// Byte `at` of stream `id`: lines of letters that differ between streams and offsets.
inline char byte_of(StreamId id, uint64_t at) {
  return at % 61 == 60 ? '\n' : static_cast<char>('a' + mix64(id * 1000003ull, at / 3) % 26);
}
inline std::string bytes_of(StreamId id, uint64_t from, uint64_t to) {
  std::string out;
  for (uint64_t at = from; at < to; ++at) out += byte_of(id, at);
  return out;
}

inline StreamInfo stream_info(StreamId id, std::string path, std::string job = "j1") {
  StreamInfo info;
  info.id = id;
  info.job = std::move(job);
  info.path = std::move(path);
  info.opened_ns = 5;
  return info;
}

inline Piece piece_of(StreamId id, uint64_t offset, uint64_t size) {
  Piece piece;
  piece.stream = id;
  piece.offset = offset;
  piece.bytes = bytes_of(id, offset, offset + size);
  piece.time_ns = static_cast<TimeNs>(offset);
  piece.place = FilePlace{1, id, 77, 256, offset + size};
  return piece;
}

inline SpoolOptions small_options(uint64_t segment_bytes = 64 << 10) {
  SpoolOptions options;
  options.folder = kFolder;
  options.segment_bytes = segment_bytes;
  return options;
}

inline std::unique_ptr<Spool> open_spool(MemoryFiles& files, SpoolOptions options = small_options()) {
  auto spool = Spool::open(files, std::move(options), 1);
  BOOST_REQUIRE_MESSAGE(spool.has_value(), (spool ? "" : spool.error().text));
  return std::move(*spool);
}

inline void must(const Status& status) {
  BOOST_REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text));
}
inline void must_commit(Spool& spool) {
  const auto committed = spool.commit(2);
  BOOST_REQUIRE_MESSAGE(committed.has_value(), (committed ? "" : committed.error().text));
}

// Result of a read: bytes at their offsets, dots for gaps.
struct Given {
  std::string bytes;
  std::vector<EvidenceGap> gaps;
  ReadDamage damage;
};
inline Given read_all(MemoryFiles& files, EvidenceRange range) {
  Given given;
  const uint64_t from = range.from;
  EvidenceSink sink;
  sink.bytes = [&](std::string_view bytes) {
    given.bytes += bytes;
    return true;
  };
  sink.gap = [&](const EvidenceGap& gap) {
    BOOST_TEST(gap.offset == from + given.bytes.size());
    given.gaps.push_back(gap);
    given.bytes.append(gap.in_range, '.');
  };
  const auto damage = EvidenceReader(files, kFolder).read(range, sink);
  BOOST_REQUIRE(damage.has_value());
  given.damage = *damage;
  return given;
}
inline Given read_stream(MemoryFiles& files, const Spool& spool, StreamId id) {
  for (const StoredStream& stored : spool.streams())
    if (stored.state.info.id == id) return read_all(files, {{stored}, 0, UINT64_MAX});
  return {};
}

// No byte is wrong; missing ones are reported.
inline uint64_t check_bytes(StreamId id, const std::string& bytes) {
  uint64_t missing = 0, wrong = 0;
  for (uint64_t at = 0; at < bytes.size(); ++at) {
    missing += bytes[at] == '.';
    wrong += bytes[at] != '.' && bytes[at] != byte_of(id, at);
  }
  BOOST_TEST(wrong == 0u);
  return missing;
}

}  // namespace culprit::store::testing
