// The directory of a zip in torch.save's form: stored entries, no comment. The zip may be part of a larger
// file. Reads only headers; returns the entries' checksums as ranges. Pure; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/read_budget.h"
#include "core/checkpoint/check.h"

namespace culprit::checkpoint {

// Bytes [begin, begin + size) of a file.
struct Extent {
  ByteSource& source;
  const std::string& path;
  uint64_t begin = 0, size = 0;
  ReadBudget* budget = nullptr;  // of the current reader, charged with the bytes read. Borrowed

  // Exactly `n` bytes at `at` of the extent; an error if the file ends before.
  Result<std::string> read(uint64_t at, uint64_t n) const;
};

// Bytes with a checksum.
struct Range {
  uint64_t begin = 0, end = 0;  // in the file
  uint32_t crc = 0;             // CRC-32
  std::string name;             // of the record, for messages
};

// Appends the checksums of the zip's entries; none if the writer computed none. A problem has no file name.
std::optional<Problem> read_zip(const Extent& in, std::vector<Range>& ranges);

}  // namespace culprit::checkpoint
