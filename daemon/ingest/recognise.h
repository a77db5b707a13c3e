// What a file is, from its first bytes and its name (formats.md section 1): content first, name second. Pure
// functions of what they are given; any thread. The inputs may be anything.
#pragma once

#include <cstddef>
#include <string_view>

#include "ingest/source_list.h"

namespace culprit::ingest {

// Bytes of decompressed content that recognition looks at: some lines of metrics, the opening of a dump.
constexpr size_t kHeadBytes = 16 << 10;
// Bytes of a compressed file that surely hold kHeadBytes of content, if it has them: a zstd block of 128 KiB
// that did not compress, and its headers.
constexpr size_t kCompressedHeadBytes = 192 << 10;

// By magic, whatever the name. zstd's skippable frames count as zstd.
Compression compression_of(std::string_view head);

struct NamedHead {
  std::string_view head;      // the first bytes of the decompressed content
  bool whole = false;         // nothing follows them
  std::string_view below;     // the path below the argument, with the suffix of a compression if it has one
  std::string_view argument;  // `stacks` may be the folder that was named
};
FileKind kind_of(const NamedHead& file);

// No text: mostly control characters, UTF-16, or a well-known binary format. Text with some NULs, blocks of
// NULs (as a crash or a truncated log leaves), terminal sequences or bytes that are no UTF-8 is text.
bool is_binary(std::string_view head);

}  // namespace culprit::ingest
