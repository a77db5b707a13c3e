// A world for simulations: virtual time, one queue of events, and an in-memory network with faults. A seed
// determines everything, so a failure is reproducible by its seed. Its machines are SimEnv (sim_env.h),
// their disks SimFiles.
//
// One thread. A World outlives all its objects. No call waits: run_for() jumps from event to event.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "base/time.h"
#include "io/env.h"
#include "sim/random.h"

namespace culprit::sim {

// Faults of later connections; drawn once per connection.
struct NetFaults {
  uint32_t refused_percent = 0;  // no listener
  uint32_t lost_percent = 0;     // no answer: the attempt times out
  uint32_t cut_percent = 0;      // reset after some bytes, usually within a message
  // Half-open: after some bytes none arrive any more, and no side is informed.
  uint32_t half_open_percent = 0;
  uint32_t slow_percent = 0;              // one direction has 1 to 2,000 bytes a second
  uint64_t fault_after_bytes = 64 << 10;  // upper limit of the position of a cut or a half-open state
  // Upper limit; random per connection, so one connection may overtake another.
  TimeNs latency_ns = kNsPerMs;
  size_t kernel_bytes = 256 << 10;  // upper limit of the bytes that a kernel buffers for a writer; random
};

class SimEnv;
struct Link;

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), net_random_(Random(seed).fork(1)) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  NetFaults faults;
  Random& random() { return random_; }  // for the author of schedules

  TimeNs monotonic_ns() const { return now_; }
  // Runs `call` at this time, whichever machines are up. Calls of the same time run in order.
  void at(TimeNs when_ns, std::function<void()> call);
  void after(TimeNs ns, std::function<void()> call) { at(now_ + ns, std::move(call)); }
  // Runs all events of the next `ns`. False for a chain of events without progress of time, which is a
  // program error.
  bool run_for(TimeNs ns);
  uint64_t events() const { return ran_; }

  // Ends all faults, also of existing connections; half-open ones stay.
  void heal();
  // Unplugs or plugs a machine's cable; while it is unplugged, no byte arrives and none is lost.
  void block(const std::string& machine, bool blocked);
  // Resets all connections of the machine.
  void cut_all(const std::string& machine);
  void set_half_open(const std::string& machine);

  uint64_t connections = 0, refused = 0, cuts = 0, half_opens = 0;  // so far

 private:
  friend class SimEnv;
  friend class SimStream;
  friend class SimListener;
  struct Event {
    TimeNs when;
    uint64_t order;
    std::function<void()> call;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  struct Accepts {
    std::weak_ptr<bool> alive;  // of the machine
    std::string machine;
    std::function<void(std::unique_ptr<io::Stream>)> call;
  };

  // Returns the connecting end, or null without a listener; draws the faults of the connection.
  std::unique_ptr<io::Stream> dial(SimEnv& from, const std::string& address);
  void pump_soon(const std::shared_ptr<Link>& link, int to, TimeNs ns);
  void pump(const std::shared_ptr<Link>& link, int to);
  void notify_sent(const std::shared_ptr<Link>& link, int to);
  void reset(const std::shared_ptr<Link>& link);
  void end(const std::shared_ptr<Link>& link, int to, const Error* error);
  bool is_blocked(const Link& link) const;

  Random random_, net_random_;
  TimeNs now_ = kNsPerSecond;
  uint64_t ran_ = 0, order_ = 0;
  std::vector<Event> events_;  // a heap
  std::map<std::string, Accepts> listening_;
  std::map<std::string, bool> blocked_;
  std::vector<std::weak_ptr<Link>> links_;
};

// A connection between two machines; end 0 is the connecting one. For World and its streams only.
struct Link {
  struct End {
    std::string machine;
    std::weak_ptr<bool> alive;  // of the machine; sent bytes still arrive after its death
    std::shared_ptr<io::Stream::Handlers> handlers;
    std::string wire;  // bytes on the way to this end
    uint64_t delivered = 0;
    bool open = true, started = false, paused = false, ended = false;
    bool pumping = false;           // an event is scheduled
    bool hung_up = false;           // the other end is closed: this end closes after the bytes in flight
    bool reported = true;           // the other end knows that its kernel accepted all bytes
    uint64_t bytes_per_second = 0;  // 0: no limit
  };
  End ends[2];
  bool half_open = false;
  uint64_t cut_at = ~uint64_t{0}, half_open_at = ~uint64_t{0};  // in bytes of both directions
  uint64_t moved = 0;
  TimeNs latency_ns = 0;
  size_t kernel_bytes = 0;
  uint64_t number = 0;
};

}  // namespace culprit::sim
