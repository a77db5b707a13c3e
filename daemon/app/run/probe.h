// Whether a service that an attempt could not reach answers again: an address by a TCP connection, a path by
// stat. Nothing is sent. Each probe runs in a child process, since a name server or a network file system may
// block for minutes. Targets come from the attempt's own failing lines, which are untrusted: their number and
// size are limited. One thread: forks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/launch.h"
#include "base/time.h"
#include "model/report.h"

namespace culprit::app {

struct ProbeTarget {
  std::string host;  // a name or an address; empty: `path` is the target
  uint16_t port = 0;
  std::string path;  // absolute

  std::string text() const;  // "hub.example:443", "/data/part-3"
  bool operator==(const ProbeTarget&) const = default;
};

// Targets in a line: URLs, HOST:PORT and absolute paths.
std::vector<ProbeTarget> targets_in(std::string_view line);
// Targets in the evidence of the report's leading diagnosis; no address where the user has a proxy.
std::vector<ProbeTarget> targets_of(const Report& report, const Lookup& variable);

// The targets that do not answer within this time, which holds for all of them together.
std::vector<ProbeTarget> unanswered(const std::vector<ProbeTarget>& targets, TimeNs within_ns);

}  // namespace culprit::app
