#include "app/plugins/trial.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/text.h"
#include "plughost/clock.h"
#include "plughost/events.h"
#include "plughost/process_link.h"

namespace culprit::app {
namespace {

using plughost::HostLink;
using plughost::MessageKind;

constexpr size_t kLinesMax = 1000;

}  // namespace

bool Trial::give_up(std::string problem) {
  if (problem_.empty()) problem_ = std::move(problem);
  return false;
}

void Trial::receive(MessageKind kind, std::string_view payload) {
  bool sound = true;
  if (kind == MessageKind::kFinding) {
    findings_.emplace_back(payload);
    return;
  }
  if (kind == MessageKind::kLog) {
    plughost::LogLine line;
    sound = decode(payload, line);
    if (lines_.size() < kLinesMax) lines_.push_back(line.text);
  } else if (kind == MessageKind::kHello) {
    sound = decode(payload, description_);
    answered_ = kind;
  } else if (kind == MessageKind::kDone) {
    plughost::Done done;
    sound = decode(payload, done);
    findings_dropped_ = done.findings_dropped;
    answered_ = kind;
    if (done.result < 0) {
      refused_ = true;
      give_up(
          fmt::format("{} returned {}", done.kind == MessageKind::kTick ? "tick" : "observe", done.result));
    }
  } else {
    if (kind == MessageKind::kRefused) refused_ = true;
    if (kind == MessageKind::kRefused) give_up(std::string(payload));
    if (kind == MessageKind::kReady) loaded_state_ = payload == std::string_view("\1", 1);
    if (kind == MessageKind::kState) state_ = payload;
    answered_ = kind;
  }
  if (!sound) give_up("it wrote to its channel to the daemon");
}

bool Trial::wait(MessageKind answer) {
  HostLink::Handlers handlers;
  handlers.message = [this](MessageKind kind, std::string_view payload) { receive(kind, payload); };
  handlers.output = [this](std::string_view line) {
    if (lines_.size() < kLinesMax) lines_.emplace_back(line);
  };
  const TimeNs begun = plughost::monotonic_ns();
  answered_ = {};
  std::vector<pollfd> descriptors;
  for (;;) {
    const HostLink::State state = link_->exchange(handlers);
    longest_ns_ = std::max(longest_ns_, plughost::monotonic_ns() - begun);
    if (!problem_.empty()) return false;
    if (answered_ == answer) return true;
    if (state == HostLink::State::kMalformed) return give_up("it wrote to its channel to the daemon");
    if (plughost::monotonic_ns() - begun >= options_.limits.call_ns)
      return give_up(
          fmt::format("a call did not return within {}", format_duration(options_.limits.call_ns)));
    std::string how;
    if (state == HostLink::State::kClosed) link_->kill();
    if (link_->ended(how)) {
      (void)link_->exchange(handlers);  // its last words, if it wrote them since the look above
      if (problem_.empty() && answered_ == answer) return true;
      return give_up(how.empty() ? "it exited" : how);
    }
    descriptors.clear();
    link_->add_descriptors(descriptors);
    // Polls with a timeout: a child of the plugin may hold its channel open.
    ::poll(descriptors.data(), descriptors.size(), state == HostLink::State::kClosed ? 1 : 20);
  }
}

bool Trial::load() {
  plughost::ProcessOptions process;
  process.host_program = options_.host_program;
  process.name = options_.name;
  process.library = options_.library;
  process.memory_bytes = options_.limits.memory_bytes;
  process.environment = options_.environment;
  auto link = plughost::ProcessLink::start(process);
  if (!link) return give_up(link.error().text);
  link_ = std::move(*link);
  return wait(MessageKind::kHello);
}

bool Trial::create(const std::string& state) {
  auto values = plughost::resolve_options(description_, options_.values);
  if (!values) return give_up(values.error().text);
  plughost::CreateRequest request;
  request.host = "node-3";
  request.version = CULPRIT_VERSION;
  request.limits = options_.limits;
  request.options = std::move(*values);
  request.state = state;
  link_->send(MessageKind::kCreate, encode(request));
  return wait(MessageKind::kReady);
}

bool Trial::observe(std::string_view records, uint64_t kinds) {
  std::string selected;
  const size_t count = plughost::select_events(records, kinds, &selected);
  if (count == 0) return true;
  link_->send_events(selected, count);
  const TimeNs begun = plughost::monotonic_ns();
  const bool done = wait(MessageKind::kDone);
  observing_ns_ += plughost::monotonic_ns() - begun;
  events_ += count;
  return done;
}

bool Trial::tick(TimeNs wall) {
  std::string payload;
  put(payload, wall);
  link_->send(MessageKind::kTick, payload);
  return wait(MessageKind::kDone);
}

bool Trial::stop() {
  link_->send(MessageKind::kStop, {});
  if (!wait(MessageKind::kState)) return false;
  const TimeNs begun = plughost::monotonic_ns();
  std::string how;
  while (!link_->ended(how)) {
    if (plughost::monotonic_ns() - begun >= options_.limits.call_ns) return give_up("destroy did not return");
    ::poll(nullptr, 0, 1);
  }
  return how.empty() || give_up(how);
}

}  // namespace culprit::app
