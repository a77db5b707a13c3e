// Time of an action's steps without waiting.
#pragma once

#include <atomic>

#include "respond/executor.h"

namespace culprit::respond::testing {

class FakePace final : public Pace {
 public:
  TimeNs now_ns = kNsPerSecond, paused_ns = 0;
  int pauses_left = 100'000;  // then the daemon stops

  FakePace() = default;
  FakePace(const FakePace& other)
      : Pace(other), now_ns(other.now_ns), paused_ns(other.paused_ns), pauses_left(other.pauses_left) {}

  TimeNs now() const override { return now_ns; }
  TimeNs wall() const override { return 1'795'978'557 * kNsPerSecond; }
  bool pause(TimeNs ns) override {
    now_ns += ns, paused_ns += ns;
    if (pauses_left-- <= 0) stop_.store(true);
    return !stop_.load();
  }
  const std::atomic<bool>& stop() const override { return stop_; }

 private:
  std::atomic<bool> stop_ = false;
};

inline ActionOrder order_for(OrderKind kind, std::string target = "n1") {
  ActionOrder out;
  out.op = "00112233445566aa";
  out.decision = "d-0001";
  out.kind = kind;
  out.target = std::move(target);
  out.code = "XID79";
  out.reason = "GPU 3 fell off the bus";
  return out;
}

}  // namespace culprit::respond::testing
