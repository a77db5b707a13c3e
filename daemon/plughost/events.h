// Binary events for plugins: the daemon writes them, and the host process of a plugin reads them.
// Little-endian, between processes of one release. Records follow each other and are self-contained, so
// that batches can be joined, and filtered by kind. Texts end with NUL, so that culprit_event can borrow
// them.
//
// Values; one thread at a time. The reader accepts any bytes without a fault.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "culprit/plugin.h"
#include "model/comm.h"

namespace culprit::plughost {

struct EventHead {
  uint32_t kind = 0;  // CULPRIT_EVENT_*
  TimeNs time_ns = kNoTime;
  std::string_view job, host, source;
  int64_t rank = CULPRIT_NONE, device = CULPRIT_NONE;
};

struct StackThread {
  std::string_view name;
  std::span<const std::string_view> frames;  // from the innermost outwards
};

class EventWriter {
 public:
  // An event of kind CULPRIT_EVENT_LOG or CULPRIT_EVENT_KERNEL. Cuts longer texts at limits::kLineBytes.
  void line(const EventHead& head, std::string_view text, std::string_view message_template,
            std::span<const std::string_view> parameters, uint64_t line);
  void metric(const EventHead& head, std::string_view name, double value, int64_t step);
  // The event's rank and device are those of the record, not of the head.
  void comm(const EventHead& head, const CommRecord& record);
  void step(const EventHead& head, std::string_view phase, int64_t step, uint32_t state);
  void stack(const EventHead& head, std::span<const StackThread> threads);
  void counter(const EventHead& head, std::string_view name, double value);

  size_t bytes() const { return bytes_.size(); }
  size_t count() const { return count_; }
  // Hand a batch on before it reaches this.
  bool is_full() const;
  std::string take();

 private:
  class Record;

  std::string bytes_;
  size_t count_ = 0;
};

// Number of events in a batch whose kind is in `kinds` (bits). Appends their records to `out` if it is not
// null. Stops at bytes that are no record.
size_t select_events(std::string_view bytes, uint64_t kinds, std::string* out);

class EventReader {
 public:
  // Decodes a batch; events() borrow its texts. False: the bytes are malformed, and events() is empty.
  bool read(std::string_view bytes);
  const culprit_event* const* events() const { return events_.data(); }
  size_t count() const { return events_.size(); }

 private:
  class Decoder;

  std::vector<const culprit_event*> events_;
  std::unique_ptr<std::byte[]> arena_;  // the structs
  size_t arena_bytes_ = 0;
};

}  // namespace culprit::plughost
