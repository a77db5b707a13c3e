// The daemon's end of the channel to one plugin: a separate process (process_link.h) or code in this
// process (local_link.h). Each message has one answer, in order: kReady or kRefused for kCreate, kDone for
// kEvents and kTick, kState for kStop. kFinding and kLog come at any time.
//
// One thread. No call waits, except for a plugin in this process.
#pragma once

#include <poll.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "plughost/messages.h"

namespace culprit::plughost {

class HostLink {
 public:
  struct Handlers {
    std::function<void(MessageKind kind, std::string_view payload)> message;
    std::function<void(std::string_view line)> output;  // of standard output or error
  };
  struct Use {
    uint64_t cpu_ns = 0, memory_bytes = 0;
  };
  enum class State : uint8_t { kOpen, kClosed, kMalformed };

  virtual ~HostLink() = default;  // kills

  virtual void send(MessageKind kind, std::string_view payload) = 0;
  // Before what waits in the queue.
  virtual void send_first(MessageKind kind, std::string_view payload) = 0;
  // False: the queue is full, and nothing was queued.
  virtual bool send_events(std::string_view records, size_t count) = 0;
  virtual size_t queued_events() const = 0;
  // Number of messages sent at least in part. The plugin may still process the last one.
  virtual uint64_t begun() const = 0;

  // Writes and reads what is possible now.
  virtual State exchange(const Handlers& handlers) = 0;
  virtual void add_descriptors(std::vector<pollfd>& out) const = 0;

  virtual void kill() = 0;
  // Whether the process has ended, and how: "" (exit status 0), "it exited with status 3", "SIGSEGV ended
  // it".
  virtual bool ended(std::string& how) = 0;
  virtual Use use() = 0;
  virtual TimeNs longest_call_ns() const { return 0; }  // 0: unknown here
  virtual int pid() const { return 0; }
  // Log lines dropped since the last call for lack of room: far more than are logged in a minute.
  virtual uint64_t take_lost_lines() { return 0; }
};

// Descriptors of the host program, and exit statuses that only its own code uses.
constexpr int kChannelDescriptor = 3;
constexpr int kLibraryDescriptor = 4;
constexpr int kExitChannel = 91;    // the channel does not work
constexpr int kExitMalformed = 92;  // a message is malformed

}  // namespace culprit::plughost
