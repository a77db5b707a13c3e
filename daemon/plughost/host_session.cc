#include "plughost/host_session.h"

#include "base/bytes.h"
#include "plughost/clock.h"

namespace culprit::plughost {

void HostSession::send(MessageKind kind, std::string_view payload) {
  const std::lock_guard lock(mutex_);
  send_(kind, payload);
}

void HostSession::open(int descriptor) {
  auto library = open_library(descriptor, name_);
  if (!library) return refuse(library.error());
  library_ = std::move(*library);
  send(MessageKind::kHello, encode(library_->description));
}

bool HostSession::handle(MessageKind kind, std::string_view payload) {
  switch (kind) {
    case MessageKind::kCreate:
      return create(payload);
    case MessageKind::kEvents:
      return observe(payload);
    case MessageKind::kTick:
      return tick(payload);
    case MessageKind::kStop:
      return stop();
    default:
      return false;
  }
}

bool HostSession::create(std::string_view payload) {
  CreateRequest request;
  if (!decode(payload, request) || !library_ || detector_) return false;
  Detector::Setup setup;
  setup.host = std::move(request.host);
  setup.version = std::move(request.version);
  setup.options = std::move(request.options);
  setup.limits = request.limits;
  setup.mono = monotonic_ns;
  setup.code_of_plugin = code_of_plugin_;
  setup.found = [this](PluginFinding&& finding) { send(MessageKind::kFinding, encode(finding)); };
  setup.log = [this](uint32_t severity, std::string text) {
    send(MessageKind::kLog, encode(LogLine{severity, std::move(text)}));
  };
  auto detector = Detector::create(*library_, std::move(setup));
  if (!detector) {
    refuse(detector.error());
    return true;
  }
  detector_ = std::move(*detector);
  const bool loaded = !request.state.empty() && detector_->load_state(request.state);
  send(MessageKind::kReady, loaded ? std::string_view("\1", 1) : std::string_view("\0", 1));
  return true;
}

void HostSession::done(MessageKind kind, int32_t result) {
  send(MessageKind::kDone, encode(Done{kind, result, detector_->findings_dropped()}));
}

bool HostSession::observe(std::string_view payload) {
  if (!detector_ || !events_.read(payload)) return false;
  done(MessageKind::kEvents, detector_->observe(events_.events(), events_.count()));
  return true;
}

bool HostSession::tick(std::string_view payload) {
  Cursor in(payload);
  const auto wall = in.get<TimeNs>();
  if (!detector_ || in.bad()) return false;
  done(MessageKind::kTick, detector_->tick(wall));
  return true;
}

bool HostSession::stop() {
  send(MessageKind::kState, detector_ ? detector_->save_state() : std::string());
  detector_.reset();
  return false;
}

}  // namespace culprit::plughost
