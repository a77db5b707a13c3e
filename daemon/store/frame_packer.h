// Packs content into frames, with one zstd context for all frames of a spool. Owned by a Spool; used on its
// thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/segment.h"

struct ZSTD_CCtx_s;

namespace culprit::store {

// Raw size at which a frame is packed. Larger frames compress little better (zstd's window at level 1 is
// 512 KiB), and a damaged frame loses this much evidence.
constexpr size_t kFrameBytes = 512 << 10;

class FramePacker {
 public:
  // `folder`: for messages.
  FramePacker(std::string folder, int level);
  ~FramePacker();
  FramePacker(const FramePacker&) = delete;
  FramePacker& operator=(const FramePacker&) = delete;

  // Appends header and payload to `out`; `raw` is at most kFrameRawMax. Sets sizes and hash of the header.
  Status pack(FrameHeader& header, std::string_view raw, std::string& out);

 private:
  char* place_for(size_t bound);

  const std::string folder_;
  ZSTD_CCtx_s* const context_;
  std::unique_ptr<char[]> place_;  // output of zstd: a string would be zeroed for each frame
  size_t size_ = 0;
};

}  // namespace culprit::store
