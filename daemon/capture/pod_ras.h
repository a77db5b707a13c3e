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

constexpr size_t kPodRasBytes = 16 << 20;  // size limit of an answer: 30,000 ranks over all communicators
constexpr TimeNs kPodRasWithin = 20 * kNsPerSecond;

struct PodRas {
  uint32_t uid = 0;                    // of the process that answered and of the requested process
  std::vector<std::string> addresses;  // of the namespace, as NCCL prints them
  std::string text;                    // for ingest::parse_ras()
  bool operator==(const PodRas&) const = default;
};

// Enters the process's network namespace and queries RAS there. Sends nothing unless a process of the same
// user accepts the connection. Afterwards the caller remains in that namespace without any capability, so
// the caller should be a child that exits. kDenied: the kernel refuses the entry. kNotFound: the process
// has exited, or nothing listens. Blocking.
Result<PodRas> ask_pod_ras(const Target& target, uint16_t port, TimeNs within_ns);

// The answer as lines with newlines, each of at most kAnswerBytes. Pure.
std::string ras_lines(const Target& target, const Result<PodRas>& answer);
// Joins the lines about process `pid` to its answer; ignores other lines. An error is that of the answer,
// or says what is missing in the lines. Pure.
Result<PodRas> read_ras_lines(uint32_t pid, const std::vector<std::string>& lines);

}  // namespace culprit::capture
