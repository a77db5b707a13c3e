// What the daemon asks of the world: clocks, timers, streams, watched folders, blocking work. io/uv has the
// real one on libuv; tests and simulations have theirs. Rooms get an Env and never see libuv.
//
// Thread: one loop thread owns an Env and everything made by it. Callbacks run there, one at a time, and only
// decode and enqueue. post() alone may be called from any thread, and Worker::submit's work runs on the
// worker's thread. Objects are owned by whoever asked for them; destroying one stops its callbacks at once,
// also from within one of them. An object must go before its Env.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace culprit::io {

class Timer {
 public:
  virtual ~Timer() = default;
  // Calls back after `after_ns`, then every `repeat_ns` (0: once). Starts anew where it runs.
  virtual void start(TimeNs after_ns, TimeNs repeat_ns = 0) = 0;
  virtual void stop() = 0;
};

// A thread with a queue: what may block stands here, each room's apart, so that one hung mount holds up
// nothing else. Its destructor waits for the work under way and drops the rest; abandon() does not wait.
class Worker {
 public:
  virtual ~Worker() = default;
  // `work` runs on the thread, in order; then `done` on the loop (may be empty).
  virtual void submit(std::function<void()> work, std::function<void()> done = {}) = 0;
  virtual size_t queued() const = 0;  // not finished yet; any thread
  // Leaves the thread to itself, where a hung disk must not hold up the loop: what is queued is dropped, and
  // no `done` is called any more. What the work under way uses has to outlive it: share it with its closure.
  virtual void abandon() = 0;
};

// A descriptor that somebody else reads or writes: /dev/kmsg, libmicrohttpd's.
class Poll {
 public:
  virtual ~Poll() = default;
};

// Who is at the other end of a unix socket, by the kernel's word.
struct PeerCredentials {
  uint32_t pid = 0, uid = 0, gid = 0;
};

// A connected stream socket.
class Stream {
 public:
  virtual ~Stream() = default;
  struct Handlers {
    std::function<void(std::string_view)> on_bytes;  // borrowed for the call
    std::function<void(const Error*)> on_end;        // null: the peer closed it; then nothing more comes
    // The kernel has taken all that was handed to write(). Never called from within write().
    std::function<void()> on_sent = {};
  };
  virtual void start(Handlers handlers) = 0;
  // Reading stops (the peer is held up by the kernel) and goes on.
  virtual void pause() = 0;
  virtual void resume() = 0;
  virtual void write(std::string bytes) = 0;
  virtual size_t unsent() const = 0;  // bytes handed to write() that the kernel has not taken
  virtual std::optional<PeerCredentials> peer() const = 0;
  virtual std::string address() const { return {}; }  // of the peer, "10.0.0.7:40312"; of TCP alone
  // Before the end of a unix stream: what the kernel took of the peer and nobody has read goes to on_bytes
  // now, some more than `max` bytes at most; the peer can send no more. How many they were.
  virtual size_t drain(size_t max) = 0;
};

// A connection on its way. Destroying it gives up.
class Connecting {
 public:
  virtual ~Connecting() = default;
};
struct ConnectOptions {
  TimeNs timeout_ns = 10 * kNsPerSecond;  // over looking up the name and all its addresses
  // What was sent and is not acknowledged by the peer's kernel for so long ends the connection, and so does
  // silence for about as long (keepalive).
  TimeNs silent_ns = 30 * kNsPerSecond;
};

class Listener {
 public:
  virtual ~Listener() = default;            // removes its unix socket's file, where it is still its own
  virtual std::string address() const = 0;  // as it was asked for; with the port that was given for port 0
  // Times that the process had no descriptor left for a connection: it waits until there is one.
  virtual uint64_t descriptors_missing() const = 0;
};

// Tells that something changed below watched folders; which of them, not what. A hint: it may come too often
// and may be missed (network mounts, overflow), so whoever uses it also looks now and then.
class FolderWatch {
 public:
  virtual ~FolderWatch() = default;
  // An error where the kernel's limit of watches is reached or the folder cannot be watched.
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
  // An error where the process may have no more threads.
  virtual Result<std::unique_ptr<Worker>> worker(const std::string& name) = 0;
  // Calls back when `descriptor` can be read. It is borrowed, and never closed here.
  virtual Result<std::unique_ptr<Poll>> poll(int descriptor, std::function<void()> readable) = 0;
  // `address`: "unix:PATH" (an old socket file that nobody serves is replaced; `mode` are its permissions) or
  // "HOST:PORT", port 0: any.
  virtual Result<std::unique_ptr<Listener>> listen(
      const std::string& address, uint32_t mode,
      std::function<void(std::unique_ptr<Stream>)> on_connection) = 0;
  // `address`: "HOST:PORT", "[V6]:PORT". All addresses of a name are tried in their order. `done` is called
  // once, never from within; an error names the address and says why the last one failed.
  virtual Result<std::unique_ptr<Connecting>> connect(
      const std::string& address, ConnectOptions options,
      std::function<void(Result<std::unique_ptr<Stream>>)> done) = 0;
  virtual Result<std::unique_ptr<FolderWatch>> folder_watch(
      std::function<void(const std::string& folder)> changed) = 0;
  virtual Result<std::unique_ptr<SignalWatch>> on_signal(int number, std::function<void()> call) = 0;

  // Runs until stop() and everything posted before it is done.
  virtual void run() = 0;
  virtual void stop() = 0;
};

}  // namespace culprit::io
