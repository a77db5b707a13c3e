// What the kinds of objects of the Env on libuv share: the loop, its read buffer and the way by which other
// threads hand calls to it. Loop thread, but for Mailbox::post.
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

// Calls on their way to the loop. Threads share it, so that one that outlives the Env finds it closed.
class Mailbox {
 public:
  // Any thread. Dropped once the mailbox is closed.
  void post(std::function<void()> call);
  void open(uv_async_t* wake);
  void close();
  std::vector<std::function<void()>> take();

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
  uv_async_t* wake_ = nullptr;  // null: closed
};

// Large enough that a read costs little beside its bytes; libuv suggests the same.
constexpr size_t kReadBytes = 64 << 10;

struct Loop {
  uv_loop_t uv;
  std::shared_ptr<Mailbox> mailbox = std::make_shared<Mailbox>();
  // Bytes that were read are borrowed for one call, so that all streams can share the place.
  std::array<char, kReadBytes> buffer;
};

// `number` is libuv's, which is -errno.
Error uv_error(const std::string& subject, int number);
inline tl::unexpected<Error> uv_failure(const std::string& subject, int number) {
  return tl::unexpected<Error>(uv_error(subject, number));
}

// libuv's hold on a handle ends only after its close callback: `state`, which has the handle and what its
// callbacks need, lives until then, and so does a closure that is running as its owner goes.
template <class State>
void close_and_free(State* state) {
  uv_close(reinterpret_cast<uv_handle_t*>(&state->handle),
           [](uv_handle_t* handle) { delete static_cast<State*>(handle->data); });
}

// One for each kind, in the file of its name.
std::unique_ptr<Timer> make_timer(Loop& loop, std::function<void()> call);
Result<std::unique_ptr<Worker>> make_worker(Loop& loop, const std::string& name);
Result<std::unique_ptr<Poll>> make_poll(Loop& loop, int descriptor, std::function<void()> readable);
Result<std::unique_ptr<SignalWatch>> make_signal_watch(Loop& loop, int number, std::function<void()> call);
// Takes the descriptor of a connected socket, whatever comes of it.
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
