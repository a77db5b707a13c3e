#include <utility>

#include "base/check.h"
#include "io/uv/loop.h"

namespace culprit::io {
namespace {

struct TimerState {
  uv_timer_t handle;
  std::function<void()> call;
};

// Rounds up, never earlier than requested: libuv counts in milliseconds.
uint64_t milliseconds(TimeNs ns) { return ns <= 0 ? 0 : static_cast<uint64_t>((ns - 1) / kNsPerMs + 1); }

class UvTimer final : public Timer {
 public:
  UvTimer(Loop& loop, std::function<void()> call) : state_(new TimerState) {
    state_->call = std::move(call);
    CULPRIT_CHECK(uv_timer_init(&loop.uv, &state_->handle) == 0);
    state_->handle.data = state_;
  }
  ~UvTimer() override { close_and_free(state_); }

  void start(TimeNs after_ns, TimeNs repeat_ns) override {
    uv_update_time(
        state_->handle
            .loop);  // refreshes the loop's time, which is from the start of the turn; a callback may be slow
    uv_timer_start(
        &state_->handle, [](uv_timer_t* handle) { static_cast<TimerState*>(handle->data)->call(); },
        milliseconds(after_ns), milliseconds(repeat_ns));
  }
  void stop() override { uv_timer_stop(&state_->handle); }

 private:
  TimerState* const state_;
};

}  // namespace

std::unique_ptr<Timer> make_timer(Loop& loop, std::function<void()> call) {
  return std::make_unique<UvTimer>(loop, std::move(call));
}

}  // namespace culprit::io
