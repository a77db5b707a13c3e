#include "app/jobs/packed_text.h"

#include <zstd.h>

#include <utility>

#include "base/check.h"

namespace culprit::app {
namespace {

constexpr size_t kPackedBlock = 256 << 10;  // larger blocks compress little better
constexpr int kPackedLevel = 1;

}  // namespace

void PackedText::append(std::string_view bytes) {
  if (const size_t last = bytes.find_last_not_of(" \t\r\n"); last != bytes.npos) last_mark_ = bytes[last];
  size_ += bytes.size();
  open_ += bytes;
  if (open_.size() < kPackedBlock) return;
  Block block{std::string(ZSTD_compressBound(open_.size()), '\0'), open_.size()};
  const size_t packed =
      ZSTD_compress(block.bytes.data(), block.bytes.size(), open_.data(), open_.size(), kPackedLevel);
  if (ZSTD_isError(packed) || packed >= open_.size())
    block.bytes = open_;
  else
    block.bytes = std::string(block.bytes, 0, packed);  // drops the space for the worst case
  packed_bytes_ += block.bytes.size();
  blocks_.push_back(std::move(block));
  open_.clear();
}

std::string PackedText::unpack() const {
  std::string out;
  out.resize(size_);
  size_t at = 0;
  for (const Block& block : blocks_) {
    if (block.bytes.size() == block.size) {
      block.bytes.copy(out.data() + at, block.size);
    } else {
      const size_t got = ZSTD_decompress(out.data() + at, block.size, block.bytes.data(), block.bytes.size());
      CULPRIT_CHECK(got == block.size);
    }
    at += block.size;
  }
  open_.copy(out.data() + at, open_.size());
  return out;
}

}  // namespace culprit::app
