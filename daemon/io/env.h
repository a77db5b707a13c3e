// The daemon's interface to the system: clocks, timers, streams, watched folders, blocking work. io/uv
// implements it on libuv; tests and simulations have their own. All other code uses an Env, never libuv.
//
// Thread: one loop thread owns an Env and all objects it creates. Callbacks run there, one at a time, and
// only decode and enqueue. Any thread may call post(); the work of Worker::submit runs on the worker's
// thread. The caller owns the object it requested. Destroying an object stops its callbacks at once, also
// from within one of them. Objects must be destroyed before their Env.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/principal.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::io {

class Timer {
 public:
  virtual ~Timer() = default;
  // Calls back after `after_ns`, then every `repeat_ns` (0: once). Restarts a running timer.
  virtual void start(TimeNs after_ns, TimeNs repeat_ns = 0) = 0;
  virtual void stop() = 0;
};

// A thread with a queue for blocking work. Each module has its own Worker, so that a hung mount blocks
// nothing else. The destructor waits for the current task and drops the rest; abandon() does not wait.
class Worker {
 public:
  virtual ~Worker() = default;
  // `work` runs on the thread, in order; then `done` runs on the loop (may be empty).
  virtual void submit(std::function<void()> work, std::function<void()> done = {}) = 0;
  // Like submit(), but `done` runs when something else wakes the loop: a wake-up costs more than a short
  // `done`.
  virtual void submit_calmly(std::function<void()> work, std::function<void()> done) {
    submit(std::move(work), std::move(done));
  }
  virtual size_t queued() const = 0;  // unfinished tasks; any thread
  // Detaches the thread, so that a hung disk does not block the loop. Queued tasks are dropped, and no `done`
  // is called. Objects that the current task uses must outlive it: share them with its closure.
  virtual void abandon() = 0;
};

// Readiness of a descriptor that other code reads or writes: /dev/kmsg, libmicrohttpd's descriptor.
class Poll {
 public:
  virtual ~Poll() = default;
};

// The peer of a unix socket, as the kernel reports it.
struct PeerCredentials {
  uint32_t pid = 0, uid = 0, gid = 0;
  std::optional<Principal> pod = {};  // the peer's container, if the peer is root inside one (io/container.h)
  Principal who() const { return pod.value_or(uid); }
};

// A connected stream socket.
class Stream {
 public:
  virtual ~Stream() = default;
  struct Handlers {
    std::function<void(std::string_view)> on_bytes;  // borrowed for the call
    std::function<void(const Error*)> on_end;        // null: the peer closed the stream; the last callback
    // Called when the kernel has accepted all written bytes; never from within write().
    std::function<void()> on_sent = {};
  };
  virtual void start(Handlers handlers) = 0;
  // Stops reading (the kernel then blocks the peer), and continues.
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void write(std::string bytes) = 0;
  virtual size_t unsent() const = 0;  // written bytes that the kernel has not accepted
  virtual std::optional<PeerCredentials> peer() const = 0;
  virtual std::string address() const { return {}; }  // the peer's address, "10.0.0.7:40312"; TCP only
  // Before closing a unix stream: stops the peer's sending and passes the unread bytes in the kernel to
  // on_bytes, at most slightly more than `max`. Returns the number of bytes.
  virtual size_t drain(size_t max) = 0;
};

// A connection being established. Destroying it cancels.
class Connecting {
 public:
  virtual ~Connecting() = default;
};
struct ConnectOptions {
  TimeNs timeout_ns = 10 * kNsPerSecond;  // for the name look-up and all addresses
  // The connection ends if the peer's kernel acknowledges nothing for this long, or does not answer keepalive
  // probes for about as long.
  TimeNs silent_ns = 30 * kNsPerSecond;
};

class Listener {
 public:
  virtual ~Listener() = default;  // removes the file of its unix socket, unless another process replaced it
  virtual std::string address() const = 0;  // the requested address; for port 0 with the actual port
  // Number of times that a connection had to wait because the process had no free descriptor.
  virtual uint64_t descriptors_missing() const = 0;
};

// Reports which watched folder changed, not what changed. Reports are hints: some are spurious and some are
// lost (network mounts, overflow), so users also scan periodically.
class FolderWatch {
 public:
  virtual ~FolderWatch() = default;
  // An error if the kernel's limit of watches is reached or the folder cannot be watched.
  virtual Status add(const std::string& folder) = 0;
  virtual void remove(const std::string& folder) = 0;
};

class SignalWatch {
 public:
  virtual ~SignalWatch() = default;
};

enum class Clock : uint8_t { kWall, kMonotonic };

class Env {
 public:
  virtual ~Env() = default;

  // Any thread. Wall: since the Unix epoch, may step. Monotonic: for intervals.
  virtual TimeNs now(Clock clock) const = 0;
  // Runs `call` on the loop, in order. Any thread.
  virtual void post(std::function<void()> call) = 0;

  virtual std::unique_ptr<Timer> timer(std::function<void()> call) = 0;
  // An error if the process reached its limit of threads.
  virtual Result<std::unique_ptr<Worker>> worker(const std::string& name) = 0;
  // Calls back when `descriptor` is readable. Borrowed, never closed here.
  virtual Result<std::unique_ptr<Poll>> poll(int descriptor, std::function<void()> readable) = 0;
  // `address`: "unix:PATH" (a socket file without a server is replaced; `mode`: its permissions) or
  // "HOST:PORT", port 0: any.
  virtual Result<std::unique_ptr<Listener>> listen(
      const std::string& address, uint32_t mode,
      std::function<void(std::unique_ptr<Stream>)> on_connection) = 0;
  // `address`: "HOST:PORT", "[V6]:PORT". Tries all addresses of a name in order. Calls `done` once, never
  // from within; an error names the address and the reason of the last failure.
  virtual Result<std::unique_ptr<Connecting>> connect(
      const std::string& address, ConnectOptions options,
      std::function<void(Result<std::unique_ptr<Stream>>)> done) = 0;
  virtual Result<std::unique_ptr<FolderWatch>> folder_watch(
      std::function<void(const std::string& folder)> changed) = 0;
  virtual Result<std::unique_ptr<SignalWatch>> on_signal(int number, std::function<void()> call) = 0;

  // Runs until stop() was called and all earlier posts are done.
  virtual void run() = 0;
  virtual void stop() = 0;
};

}  // namespace culprit::io
