// The course of a training's own numbers in its logs, by writer: the loss, the norm of the gradient, the
// loss scale, the learning rate. Of each only what a judgement needs is kept: the spell of values that
// are not finite, and the values before it. Where only a few texts are passed on (condense.h), take() says
// which must be among them. Owned by one thread; pure.
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

// A line with a number, and the iteration that it counts itself; -1: it counts none.
struct NumberLine {
  LogPlace place;
  int64_t iteration = -1;
  double value = 0;
  std::string text;  // of lines that are evidence
};

// One number by one writer.
struct Course {
  static constexpr size_t kLast = 8;

  uint64_t finite = 0;                                    // values before the spell under way
  double best = std::numeric_limits<double>::infinity();  // the lowest of them
  std::vector<NumberLine> last;                           // of those, the newest last; no more than kLast
  uint64_t lost = 0;  // values in a row, until the last one, that are not finite
  NumberLine first_lost;

  void take(double value, const NumberLine& line);
};

// A leap of the learning rate from one line to the next.
struct RateJump {
  double from = 0, to = 0;
  NumberLine at;
};

// The numbers of one writer in one source, in the order of its lines.
struct WriterNumbers {
  Course loss, norm;
  uint64_t starved = 0;  // lines in a row of steps that were skipped at a scale of the loss of one or less
  NumberLine first_starved, last_starved;
  std::optional<double> scale, scale_most;  // the last one, and the largest since values were finite
  std::optional<double> rate;               // the last one
  uint32_t rates = 0;
  std::optional<RateJump> jump;  // the last one before values were lost
  NumberLine newest;             // the last line with a number
};

class Numbers {
 public:
  // A line in the form `form`. Whether its text has to be passed on.
  bool take(uint32_t form, const NumberLine& line, std::string_view message);
  const std::vector<WriterNumbers>& writers() const { return writers_; }

 private:
  bool tells(uint32_t form, std::string_view message, LineValues& values);
  bool follow(WriterNumbers& writer, const LineValues& values, const NumberLine& line);
  static bool follow_rate(WriterNumbers& writer, double rate, const NumberLine& line);

  enum class Speaks : uint8_t { kUnknown, kNo, kYes };
  std::vector<Speaks> forms_;  // whether lines of a form have numbers
  FlatMap<uint32_t> index_of_{16};
  std::vector<WriterNumbers> writers_;
};

}  // namespace culprit::logs
