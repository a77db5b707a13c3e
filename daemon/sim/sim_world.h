// A world for simulations: virtual time, one queue of events, a network in memory with faults. A seed makes
// all of it, so that a failure is a seed. Machines of it are SimEnv (sim_env.h), their disks SimFiles.
//
// One thread. A World outlives all that was made in it. Nothing here waits: run_for() jumps from event to
// event.
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

// Of connections that are made from now on; each is drawn once for each connection.
struct NetFaults {
  uint32_t refused_percent = 0;           // no listener
  uint32_t lost_percent = 0;              // no answer: the attempt runs into its time-out
  uint32_t cut_percent = 0;               // reset after some bytes, within a message as a rule
  uint32_t half_open_percent = 0;         // after some bytes nothing comes through, and no side is informed
  uint32_t slow_percent = 0;              // one direction has 1 to 2,000 bytes a second
  uint64_t fault_after_bytes = 64 << 10;  // cut and half open: at most so many
  TimeNs latency_ns = kNsPerMs;           // at most; drawn per connection, so that they overtake each other
  size_t kernel_bytes = 256 << 10;        // what a kernel takes of a writer; drawn up to this
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
  // Runs `call` then, whatever machine is up; those of one time in order.
  void at(TimeNs when_ns, std::function<void()> call);
  void after(TimeNs ns, std::function<void()> call) { at(now_ + ns, std::move(call)); }
  // Everything that falls due in this time. A chain of events that never lets time pass is a fault of the
  // program: false then.
  bool run_for(TimeNs ns);
  uint64_t events() const { return ran_; }

  // No faults from now on, also of connections that are there; those that are half-open stay so.
  void heal();
  // A machine whose cable is out: nothing is lost, and nothing comes through until it is back.
  void block(const std::string& machine, bool blocked);
  // Every connection of the machine, at once.
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

  // The connecting end, or nothing without a listener; draws the faults of the network.
  std::unique_ptr<io::Stream> dial(SimEnv& from, const std::string& address);
  void pump_soon(const std::shared_ptr<Link>& link, int to, TimeNs ns);
  void pump(const std::shared_ptr<Link>& link, int to);
  void tell_sent(const std::shared_ptr<Link>& link, int to);
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

// A connection between two machines; end 0 has connected. Of World and its streams alone.
struct Link {
  struct End {
    std::string machine;
    std::weak_ptr<bool> alive;  // of the machine: what it wrote stays on its way, and it hears nothing
    std::shared_ptr<io::Stream::Handlers> handlers;
    std::string wire;  // on its way to this end
    uint64_t delivered = 0;
    bool open = true, started = false, paused = false, ended = false;
    bool pumping = false;           // an event is under way
    bool hung_up = false;           // the other end is gone: behind the wire comes the end
    bool told = true;               // the other end knows that its kernel took all
    uint64_t bytes_per_second = 0;  // 0: any
  };
  End ends[2];
  bool half_open = false;
  uint64_t cut_at = ~uint64_t{0}, half_open_at = ~uint64_t{0};  // bytes of both directions
  uint64_t moved = 0;
  TimeNs latency_ns = 0;
  size_t kernel_bytes = 0;
  uint64_t number = 0;
};

}  // namespace culprit::sim
