// Detects templates with a number that counts up but is not named as an iteration. Checks only the first
// lines of each form. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace culprit::logs {

class CounterWatch {
 public:
  // The counting number of this message; only after the form proved to count, and until it stops counting.
  std::optional<int64_t> see(uint32_t writer, std::string_view message);
  bool decided() const { return seen_ >= kLook || column_ >= 0; }
  bool counts() const { return column_ >= 0; }

 private:
  static constexpr uint32_t kLook = 24;  // lines after which a form without a counter is no longer checked
  static constexpr size_t kColumns = 8;  // numbers per line that are checked
  void compare(std::span<const int64_t> now);

  uint32_t seen_ = 0;
  uint32_t writer_ = 0;
  int column_ = -1;
  std::vector<int64_t> last_;
  std::vector<int64_t> step_;
  std::vector<uint32_t> rises_;  // consecutive rises by the same step
};

}  // namespace culprit::logs
