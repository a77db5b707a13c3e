// The training's own numbers over time, by writer: loss, gradient norm, loss scale, learning rate. Stores
// only what a judgement needs: the current run of non-finite values, and the values before it. The condenser
// (condense.h) sends few texts; add() returns whether it must send a line. Owned by one thread; pure.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flat_map.h"
#include "core/logs/records.h"
#include "core/logs/values.h"

namespace culprit::logs {

// A line with a number, and its iteration; -1: the line has none.
struct NumberPlace {
  LogPlace place;
  int64_t iteration = -1;
  double value = 0;
};
struct NumberLine : NumberPlace {
  std::string text;  // for lines that are evidence
};

// One number of one writer.
struct Course {
  static constexpr size_t kLast = 8;

  uint64_t finite = 0;  // number of values before the current run of NaN or infinity
  double best = std::numeric_limits<double>::infinity();  // the lowest of these values
  std::vector<NumberPlace> last;  // the latest of these values, newest last; at most kLast
  uint64_t lost = 0;              // consecutive non-finite values up to now
  NumberLine first_lost;

  void add(double value, const NumberLine& line);
};

// A jump of the learning rate between two lines.
struct RateJump {
  double from = 0, to = 0;
  NumberLine at;
};

// The numbers of one writer in one source, in the order of its lines.
struct WriterNumbers {
  Course loss, norm;
  uint64_t starved = 0;  // consecutive skipped steps at a loss scale of at most one
  NumberLine first_starved, last_starved;
  // `scale`: the last one; `scale_most`: the largest since values were finite.
  std::optional<double> scale, scale_most;
  std::optional<double> rate;  // the last one
  uint32_t rates = 0;
  std::optional<RateJump> jump;  // the last jump before values became non-finite
  NumberPlace newest;            // the last line with a number
};

class Numbers {
 public:
  // A line of form `form`. Returns whether its text must be sent.
  bool add(uint32_t form, const NumberLine& line, std::string_view message);
  const std::vector<WriterNumbers>& writers() const { return writers_; }

 private:
  bool read_values(uint32_t form, std::string_view message, LineValues& values);
  bool follow(WriterNumbers& writer, const LineValues& values, const NumberLine& line);
  static bool follow_rate(WriterNumbers& writer, double rate, const NumberLine& line);

  enum class Speaks : uint8_t { kUnknown, kNo, kYes };
  std::vector<Speaks> forms_;  // by form: whether lines of the form have numbers
  FlatMap<uint32_t> index_of_{16};
  std::vector<WriterNumbers> writers_;
};

}  // namespace culprit::logs
