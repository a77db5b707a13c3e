// The lines around one line of a source, located by counting line ends. Pure; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::serve {

class LineWindow {
 public:
  // `line` counts from 1. `around`: number of lines before and after it; at most kAroundMax.
  static constexpr uint64_t kAroundMax = 200;
  static constexpr size_t kLineBytes = 2000;  // of a line; the rest is counted only
  LineWindow(uint64_t line, uint64_t around);

  // Adds the next bytes of the source. `gap`: bytes before these were lost, so line numbers may be wrong
  // from here on.
  void add(std::string_view bytes, bool gap);
  bool done() const { return number_ > last_; }
  uint64_t read_bytes() const { return read_; }
  // {"line", "first", "lines": [text], "cut": [number of bytes removed from each], "from_byte", "to_byte",
  // "sure"}. `sure`: nothing was lost before the end of these lines.
  std::string finish();

 private:
  void take(std::string_view part);

  const uint64_t line_, first_, last_;
  uint64_t number_ = 1;  // of the line that the next byte belongs to
  uint64_t read_ = 0, from_ = 0, to_ = 0;
  bool sure_ = true;
  std::vector<std::string> lines_;
  std::vector<uint64_t> cut_;
};

}  // namespace culprit::serve
