// The context of evidence: the quoted lines of a source and the lines around these. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace culprit {

struct SourceLines {
  std::optional<std::string> host;  // host as named in the evidence
  std::string file;
  uint64_t first = 0;              // number of lines[0], from 1
  std::vector<uint64_t> here;      // numbers of the quoted lines, ascending
  std::vector<std::string> lines;  // any bytes, without line ends
  std::vector<uint64_t> cut;       // by line: bytes omitted
  // The host whose daemon read the source, if different.
  std::optional<std::string> reader = {};
};

// Lines shown before and after a quoted line; bytes kept of each line.
constexpr uint64_t kLinesAround = 5;
constexpr size_t kContextLineBytes = 400;

}  // namespace culprit
