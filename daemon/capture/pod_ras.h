// NCCL's RAS service of a job in a network namespace of its own (a pod): its answer, and the lines in which
// culprit-capture hands it to the daemon.
//
//   {"kind":"part","pid":7,"part":0,"text":"..."}                  any number, in order
//   {"kind":"ras","pid":7,"uid":1000,"parts":1,"addresses":[...]}  the end of an answer
//   {"kind":"ras","pid":7,"why":"...","code":"denied"}             there is none
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "capture/request.h"

namespace culprit::capture {

constexpr size_t kPodRasBytes = 16 << 20;  // of an answer: 30,000 ranks over all communicators
constexpr TimeNs kPodRasWithin = 20 * kNsPerSecond;

struct PodRas {
  uint32_t uid = 0;                    // of the process that answered, and of the one that was named
  std::vector<std::string> addresses;  // of the namespace, as NCCL prints them
  std::string text;                    // for ingest::parse_ras()
  bool operator==(const PodRas&) const = default;
};

// Enters the namespace of the process and asks there; nothing is sent unless a process of the same user
// accepts the connection. The caller stays there and has no capability afterwards: for a child that ends.
// kDenied: the kernel does not let us enter. kNotFound: the process has exited, or none listens. Blocking.
Result<PodRas> ask_pod_ras(const Target& target, uint16_t port, TimeNs within_ns);

// The lines of an answer, each within kAnswerBytes and with its newline. Pure.
std::string ras_lines(const Target& target, const Result<PodRas>& answer);
// The answer of the lines about one process; other lines do not count. An error is that of the answer, or
// says what the lines lack. Pure.
Result<PodRas> read_ras_lines(uint32_t pid, const std::vector<std::string>& lines);

}  // namespace culprit::capture
