#include "plughost/local_link.h"

#include <algorithm>

#include "base/limits.h"
#include "plughost/clock.h"

namespace culprit::plughost {
namespace {

// Limit of unread answers if a thread of the plugin logs without end; exchange() empties them.
constexpr size_t kAnswersMax = 4096;

}  // namespace

LocalLink::LocalLink(std::string name, int library, std::function<void(std::string_view)> entering)
    : name_(std::move(name)), entering_(std::move(entering)) {
  session_.emplace(name_, [this](MessageKind kind, std::string_view payload) {
    const std::lock_guard lock(mutex_);
    if (kind == MessageKind::kLog && answers_.size() >= kAnswersMax)
      ++lost_lines_;
    else
      answers_.emplace_back(kind, payload);
  });
  enter([&] { session_->open(library); });
}

LocalLink::~LocalLink() {
  enter([&] { session_.reset(); });
}

template <class Call>
void LocalLink::enter(Call call) {
  const TimeNs began = clock_ns(CLOCK_MONOTONIC), cpu_began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (entering_) entering_(name_);
  call();
  if (entering_) entering_("");
  cpu_ns_ += static_cast<uint64_t>(clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_began);
  longest_call_ns_ = std::max(longest_call_ns_, clock_ns(CLOCK_MONOTONIC) - began);
}

void LocalLink::send(MessageKind kind, std::string_view payload) {
  if (over_) return;
  ++begun_;
  enter([&] {
    if (session_->handle(kind, payload)) return;
    over_ = true;
    failed_ = kind != MessageKind::kStop;
  });
}

bool LocalLink::send_events(std::string_view records, size_t) {
  if (over_ || records.size() > limits::kPluginMessageBytes) return false;
  send(MessageKind::kEvents, records);
  return true;
}

HostLink::State LocalLink::exchange(const Handlers& handlers) {
  for (;;) {
    std::pair<MessageKind, std::string> answer;
    {
      const std::lock_guard lock(mutex_);
      if (answers_.empty()) break;
      answer = std::move(answers_.front());
      answers_.pop_front();
    }
    handlers.message(answer.first, answer.second);
  }
  if (failed_) return State::kMalformed;
  return over_ ? State::kClosed : State::kOpen;
}

uint64_t LocalLink::take_lost_lines() {
  const std::lock_guard lock(mutex_);
  return std::exchange(lost_lines_, 0);
}

bool LocalLink::ended(std::string& how) {
  how.clear();
  return over_;
}

}  // namespace culprit::plughost
