// One query to the engine, shared by all readers who request it meanwhile. A page or a scraper must not wait
// until an engine has read a large batch: after `kPatience` a reader gets the engine's last answer.
//
// Thread: the loop's. Owner: the API. Borrows `ask`'s parts, which outlive it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/time.h"
#include "io/env.h"

namespace culprit::app {

template <class Value>
class EngineAnswer {
 public:
  static constexpr TimeNs kPatience = 100 * kNsPerMs;
  using Done = std::function<void(std::shared_ptr<const Value>)>;
  // `ask` starts the query and calls `Done` on the loop, once.
  EngineAnswer(io::Env& env, std::function<void(Done)> ask)
      : env_(env), ask_(std::move(ask)), last_ns_(env.now(io::Clock::kMonotonic)) {}

  // `late`: the value is an earlier answer, or null if there was none yet.
  using Reader = std::function<void(std::shared_ptr<const Value> value, bool late)>;
  void get(Reader reader) {
    waiting_.push_back(std::move(reader));
    if (!asked_) {
      asked_ = true;
      ask_([this](std::shared_ptr<const Value> value) {
        asked_ = false;
        last_ = std::move(value);
        last_ns_ = env_.now(io::Clock::kMonotonic);
        answer(false);
      });
    }
    if (waiting_.empty()) return;
    if (!patience_) patience_ = env_.timer([this] { answer(true); });
    if (waiting_.size() == 1) patience_->start(kPatience);
  }
  // Age of the last answer; without an answer, the time since the start.
  TimeNs age() const { return env_.now(io::Clock::kMonotonic) - last_ns_; }

 private:
  void answer(bool late) {
    for (const Reader& reader : std::exchange(waiting_, {})) reader(last_, late);
  }

  io::Env& env_;
  std::function<void(Done)> ask_;
  std::vector<Reader> waiting_;
  std::shared_ptr<const Value> last_;
  TimeNs last_ns_;
  bool asked_ = false;
  std::unique_ptr<io::Timer> patience_;
};

}  // namespace culprit::app
