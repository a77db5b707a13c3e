// What the members of a sweep and its coordinator say to each other: a line of words each, at most kLineMost
// bytes with its newline. Strict: a line that is not exactly of its form is an error. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "base/time.h"
#include "core/sweep/links.h"

namespace culprit::app::sweeping {

constexpr size_t kLineMost = 1024;

// A member joins. `port`: where other members reach it; `address`: on this one, else where it comes from.
struct Hello {
  uint32_t rank = 0;
  uint16_t port = 0;
  std::string host, address;  // address empty: as seen
  std::string busy;           // why no measurement may run there; empty: it may
};
// A pair measures. Of its members one connects to the other.
struct Task {
  uint64_t id = 0;
  bool connects = false;
  std::string address;  // of the other; `connects` alone
  uint16_t port = 0;
  uint64_t bytes = 0;  // in each direction
  uint32_t within_ms = 0;
};
// What a member measured for a task.
struct Done {
  enum class Answer : uint8_t {
    kMeasured,
    kUnreached,  // the network did not lead there
    kRefused,    // the host answered, the member did not
  };
  uint64_t id = 0;
  Answer answer = Answer::kRefused;
  bool measured = false;  // the bytes that arrived make a rate
  uint64_t bytes = 0, wrong = 0;
  TimeNs took_ns = 0;
  TimeNs waited_in_ns = 0, waited_out_ns = 0;  // this member, for a processor, while it received and sent
  TimeNs latency_ns = kNoTime;
};
// The sweep is over for the member. `named`: what it found of the member's host.
struct End {
  bool named = false;
  sweep::Trouble trouble = sweep::Trouble::kSlow;
  uint32_t bad = 0, tried = 0;
  double figure = 0, usual = 0;
};
using Message = std::variant<Hello, Task, Done, End>;

std::string to_line(const Message& message);  // with the newline
Result<Message> parse_message(std::string_view line);

}  // namespace culprit::app::sweeping
