#include <utility>

#include "io/uv/loop.h"

namespace culprit::io {
namespace {

struct PollState {
  uv_poll_t handle;
  std::function<void()> call;
};
struct SignalState {
  uv_signal_t handle;
  std::function<void()> call;
};

class UvPoll final : public Poll {
 public:
  explicit UvPoll(PollState* state) : state_(state) {}
  ~UvPoll() override { close_and_free(state_); }

 private:
  PollState* const state_;
};

class UvSignalWatch final : public SignalWatch {
 public:
  explicit UvSignalWatch(SignalState* state) : state_(state) {}
  ~UvSignalWatch() override { close_and_free(state_); }

 private:
  SignalState* const state_;
};

}  // namespace

Result<std::unique_ptr<Poll>> make_poll(Loop& loop, int descriptor, std::function<void()> readable) {
  auto* state = new PollState;
  state->call = std::move(readable);
  if (const int failed = uv_poll_init(&loop.uv, &state->handle, descriptor)) {
    delete state;
    return uv_failure("descriptor " + std::to_string(descriptor), failed);
  }
  state->handle.data = state;
  auto poll = std::make_unique<UvPoll>(state);
  // An overwritten /dev/kmsg reports an error together with an urgent event. libuv treats a lone error as the
  // end, but an error with the urgent event as readable, which is correct here.
  const int failed =
      uv_poll_start(&state->handle, UV_READABLE | UV_PRIORITIZED,
                    [](uv_poll_t* handle, int, int) { static_cast<PollState*>(handle->data)->call(); });
  if (failed != 0) return uv_failure("descriptor " + std::to_string(descriptor), failed);
  return poll;
}

Result<std::unique_ptr<SignalWatch>> make_signal_watch(Loop& loop, int number, std::function<void()> call) {
  auto* state = new SignalState;
  state->call = std::move(call);
  if (const int failed = uv_signal_init(&loop.uv, &state->handle)) {
    delete state;
    return uv_failure("signal " + std::to_string(number), failed);
  }
  state->handle.data = state;
  auto watch = std::make_unique<UvSignalWatch>(state);
  const int failed = uv_signal_start(
      &state->handle, [](uv_signal_t* handle, int) { static_cast<SignalState*>(handle->data)->call(); },
      number);
  if (failed != 0) return uv_failure("signal " + std::to_string(number), failed);
  return watch;
}

}  // namespace culprit::io
