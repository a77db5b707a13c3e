// Lines of a source around some that are meant: the context of evidence. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace culprit {

struct SourceLines {
  std::optional<std::string> host;  // as the evidence names it
  std::string file;
  uint64_t first = 0;              // number of lines[0], from 1
  std::vector<uint64_t> here;      // numbers of the lines that are meant, ascending
  std::vector<std::string> lines;  // any bytes, without ends
  std::vector<uint64_t> cut;       // by line: bytes left out of it
  // The host whose daemon read the source, if it is another one.
  std::optional<std::string> reader = {};
};

// Lines shown before and after one that is meant, and bytes kept of a line.
constexpr uint64_t kLinesAround = 5;
constexpr size_t kContextLineBytes = 400;

}  // namespace culprit
