// Finds templates of which one number counts up, where no word says that it is an iteration. It looks at the
// first lines of each form only. Pure; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace culprit::logs {

class CounterWatch {
 public:
  // The number that counts in this message, once the form has proved to count and until it stops.
  std::optional<int64_t> see(uint32_t writer, std::string_view message);
  bool decided() const { return seen_ >= kLook || column_ >= 0; }
  bool counts() const { return column_ >= 0; }

 private:
  static constexpr uint32_t kLook = 24;  // lines after which a form that does not count is left alone
  static constexpr size_t kColumns = 8;  // numbers of a line that are looked at
  void compare(std::span<const int64_t> now);

  uint32_t seen_ = 0;
  uint32_t writer_ = 0;
  int column_ = -1;
  std::vector<int64_t> last_;
  std::vector<int64_t> step_;
  std::vector<uint32_t> rises_;  // in a row, all by the same step
};

}  // namespace culprit::logs
