// What stands before a line's message: who wrote it, when, how serious, and where the message begins.
// Pure; a parser object belongs to one thread and one source and remembers the shape that matched last, so
// that the usual line costs one attempt. Recognised shapes: FORMATS.md section 2.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/time.h"
#include "core/logs/timestamp.h"

namespace culprit::logs {

enum class Level : uint8_t { kNone, kDebug, kInfo, kWarning, kError, kFatal };

constexpr uint32_t kNoRank = 0xffffffff;

// Views point into the line.
struct Header {
  TimeNs time_ns = kNoTime;  // resolved to UTC, or kNoTime where the line has no timestamp
  bool kernel_time =
      false;            // time_ns counts from the host's boot ("[12345.678]"), to be placed by neighbours
  bool kernel = false;  // a kernel's message: its clock, or its name as the program's
  Level level = Level::kNone;  // as the line's own level field says, never from words in the message
  std::string_view host;       // empty: the line does not say
  uint32_t rank = kNoRank;     // global
  uint32_t local = kNoRank;    // local device or srun task on the host
  bool task = false;           // `rank` came from a bare "131: " prefix (srun -l): a task number, a rank only
                               // where tasks are as many as ranks
  uint32_t message = 0;        // offset of the message: all recognised header fields are before it. Behind a
                               // bare prefix ("[rank3]: ") its indentation is kept
};

struct HeaderOptions {
  Zone zone;                     // of times that name none
  TimeNs modified_ns = kNoTime;  // times without a year get the year that puts them nearest below this
};

// Whether words are names of hosts, remembered: judging one costs more than parsing the line that has it.
class HostCache {
 public:
  bool is_host(std::string_view name);

 private:
  static constexpr size_t kSlots = 1024;  // hosts of a large job that share one stream
  uint64_t slots_[kSlots] = {};  // a hash of the name, its lowest bit replaced by the answer; 0: free
};

class HeaderParser {
 public:
  explicit HeaderParser(const HeaderOptions& options);
  // Never fails: what is not recognised belongs to the message. The answer depends on the line and the
  // options alone; what is remembered only makes it come sooner.
  Header parse(std::string_view line);

 private:
  TimestampReader times_;
  HostCache hosts_;
};

}  // namespace culprit::logs
