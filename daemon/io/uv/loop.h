// Shared by the objects of the Env on libuv: the loop, its read buffer, and the mailbox for calls from other
// threads. Loop thread, except Mailbox::post.
#pragma once

#include <uv.h>

#include <array>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/env.h"

namespace culprit::io {

// Calls queued for the loop. Shared with threads, so that a thread that outlives the Env finds the mailbox
// closed.
class Mailbox {
 public:
  // Any thread. Calls to a closed mailbox are dropped. kLater: the call waits for the loop's next turn
  // without a wake-up.
  enum class Wake : uint8_t { kNow, kLater };
  void post(std::function<void()> call, Wake wake = Wake::kNow);
  void open(uv_async_t* wake);
  void close();
  std::vector<std::function<void()>> drain();

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
  bool woken_ = false;          // since the last drain()
  uv_async_t* wake_ = nullptr;  // null: closed
};

// Large enough that the cost per read is small; libuv suggests the same.
constexpr size_t kReadBytes = 64 << 10;

struct Loop {
  uv_loop_t uv;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  // Callbacks borrow the bytes for one call, so that all streams share this buffer.
  std::array<char, kReadBytes> buffer;
};

// `number` is libuv's, which is -errno.
Error uv_error(const std::string& subject, int number);
inline tl::unexpected<Error> uv_failure(const std::string& subject, int number) {
  return tl::unexpected<Error>(uv_error(subject, number));
}

// libuv uses a handle until its close callback. `state` holds the handle and its callbacks' data, and lives
// until then. So does a closure that runs while its owner is destroyed.
template <class State>
void close_and_free(State* state) {
  uv_close(reinterpret_cast<uv_handle_t*>(&state->handle),
           [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

// Factories, one per kind of object, each defined in the file of that name.
std::unique_ptr<Timer> make_timer(Loop& loop, std::function<void()> call);
Result<std::unique_ptr<Worker>> make_worker(Loop& loop, const std::string& name);
Result<std::unique_ptr<Poll>> make_poll(Loop& loop, int descriptor, std::function<void()> readable);
Result<std::unique_ptr<SignalWatch>> make_signal_watch(Loop& loop, int number, std::function<void()> call);
// Takes ownership of the descriptor of a connected socket, also on failure.
Result<std::unique_ptr<Stream>> make_stream(Loop& loop, int descriptor);
using OnConnection = std::function<void(std::unique_ptr<Stream>)>;
Result<std::unique_ptr<Listener>> make_listener(Loop& loop, const std::string& address, uint32_t mode,
                                                OnConnection on_connection);
using OnConnected = std::function<void(Result<std::unique_ptr<Stream>>)>;
Result<std::unique_ptr<Connecting>> make_connecting(Loop& loop, const std::string& address,
                                                    ConnectOptions options, OnConnected done);
using OnFolder = std::function<void(const std::string& folder)>;
Result<std::unique_ptr<FolderWatch>> make_folder_watch(Loop& loop, OnFolder changed);

}  // namespace culprit::io
