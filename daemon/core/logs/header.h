// Parses the header of a line: host and rank, time, level, and the offset of the message. Pure. A parser
// belongs to one thread and one source. It remembers the last matching shape, so that the usual line needs
// one attempt. Recognised shapes: docs/formats.md section 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "core/logs/timestamp.h"

namespace culprit::logs {

enum class Level : uint8_t { kNone, kDebug, kInfo, kWarning, kError, kFatal };

constexpr uint32_t kNoRank = 0xffffffff;

// The service that wrote a line of a system's log, by its tag ("sshd[123]: ").
enum class Service : uint8_t {
  kNone,     // none: the kernel, a job's program, or no system's log
  kNode,     // runs jobs or watches the machine: schedulers, container engines, monitors of devices, mounts
  kForeign,  // does something else: sshd, a backup, a database; kNode where an agent sent the line condensed
};
Service service_of(std::string_view tag);

// Views point into the line.
struct Header {
  TimeNs time_ns = kNoTime;  // resolved to UTC; kNoTime: the line has no timestamp
  // `time_ns` counts from the host's boot ("[12345.678]"); neighbouring lines give the real time.
  bool kernel_time = false;
  bool kernel = false;  // a kernel message: by its clock, or by the program name "kernel"
  Service service = Service::kNone;
  Level level = Level::kNone;  // from the line's level field, never from words of the message
  std::string_view host;       // empty: not in the line
  uint32_t rank = kNoRank;     // global
  uint32_t local = kNoRank;    // local device or srun task on the host
  // `rank` is from a bare prefix "131: " (srun -l): a task number. It is the rank only if there are as many
  // tasks as ranks.
  bool task = false;
  // Offset of the message, after all recognised header fields. After a bare prefix ("[rank3]: ") the message
  // keeps its indentation.
  uint32_t message = 0;
};

struct HeaderOptions {
  Zone zone;                     // for times without a zone
  TimeNs modified_ns = kNoTime;  // times without a year get the latest year that is not after this
};

// Caches which words are host names: the decision costs more than parsing a line.
class HostCache {
 public:
  bool is_host(std::string_view name);

 private:
  static constexpr size_t kSlots = 1024;  // enough for the hosts of a large job in one stream
  uint64_t slots_[kSlots] = {};           // hash of the name with the answer in its lowest bit; 0: free
};

class HeaderParser {
 public:
  explicit HeaderParser(const HeaderOptions& options);
  // Never fails: unrecognised text belongs to the message. The result depends only on the line and the
  // options; the cache only saves time.
  Header parse(std::string_view line);
  // The time that a text begins with, as a date or since the epoch; kNoTime: none.
  TimeNs time_of(std::string_view text);

 private:
  TimestampReader times_;
  HostCache hosts_;
};

// Describes the header that was parsed, for a person whose rule does not match: "the message begins after
// 'rank 13: '". Empty: the message is the whole line.
std::string begins_after(std::string_view line);

}  // namespace culprit::logs
