// Recognises the kind of a file from its first bytes and its name (formats.md section 1): content first, name
// second. Pure functions; any thread. Inputs are untrusted.
#pragma once

#include <cstddef>
#include <string_view>

#include "ingest/source_list.h"

namespace culprit::ingest {

// Bytes of decompressed content for recognition: enough for some metric lines or the beginning of a dump.
constexpr size_t kHeadBytes = 16 << 10;
// Bytes of a compressed file that yield kHeadBytes of content: an incompressible zstd block of 128 KiB with
// headers.
constexpr size_t kCompressedHeadBytes = 192 << 10;

// Compression by magic bytes, whatever the name. zstd's skippable frames count as zstd.
Compression compression_of(std::string_view head);

struct NamedHead {
  std::string_view head;      // the first bytes of the decompressed content
  bool whole = false;         // `head` is the whole content
  std::string_view below;     // path below the argument, with any compression suffix
  std::string_view argument;  // the named file or folder; a folder may be called `stacks`
};
FileKind kind_of(const NamedHead& file);

// Whether the head is binary: many control characters, as in UTF-16, or a known binary format. Text may have
// some NULs, blocks of NULs (from a crash or a truncated log), terminal sequences or invalid UTF-8.
bool is_binary(std::string_view head);

}  // namespace culprit::ingest
