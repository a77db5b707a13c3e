#include "forward/forwarder.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "forward/session.h"

namespace culprit::forward {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::kWaiting:
      return "waiting";
    case Phase::kConnecting:
      return "connecting";
    case Phase::kHandshake:
      return "handshake";
    case Phase::kOpen:
      return "open";
    case Phase::kStopped:
      return "stopped";
  }
  return "";
}

std::string ForwarderStats::sentence() const {
  for (const peer::Log log : peer::kLogs)
    if (const auto& of = logs[static_cast<size_t>(log)]; phase == Phase::kOpen && !of.trouble.empty())
      return fmt::format("connected; of the {} log nothing is sent: {}", peer::name_of(log), of.trouble);
  switch (phase) {
    case Phase::kOpen:
      break;
    case Phase::kWaiting:
      return "not connected" + (last_error.empty() ? std::string() : ": " + last_error);
    case Phase::kConnecting:
    case Phase::kHandshake:
      return "connecting" + (last_error.empty() ? std::string() : ", after this: " + last_error);
    case Phase::kStopped:
      return "stopped";
  }
  if (stalled_since_ns != kNoTime)
    return "connected, but the collector has acknowledged nothing since " + format_time(stalled_since_ns);
  if (credit == 0) return "connected, but the collector takes nothing now";
  return "connected";
}

Forwarder::Forwarder(io::Env& env, ForwarderOptions options, FrameSource& source,
                     std::function<peer::Status()> status)
    : env_(env),
      options_(std::move(options)),
      source_(source),
      status_(std::move(status)),
      backoff_(options_.seed),
      route_(options_.to, options_.tls != nullptr),
      policy_(options_.evidence),
      attempt_(env.timer([this] { connect(); })) {}

Forwarder::~Forwarder() = default;

void Forwarder::start() { connect(); }

void Forwarder::connect() {
  CULPRIT_CHECK(owner_.here());
  ended_.reset();
  ++stats_.attempts;
  stats_.phase = Phase::kConnecting;
  stats_.next_attempt_ns = kNoTime;
  io::ConnectOptions options;
  options.timeout_ns = options_.connect_ns;
  auto connecting = env_.connect(route_.at(), options, [this](Result<std::unique_ptr<io::Stream>> stream) {
    connected(std::move(stream));
  });
  if (!connecting) return failed(connecting.error().text);
  connecting_ = std::move(*connecting);
}

void Forwarder::connected(Result<std::unique_ptr<io::Stream>> stream) {
  CULPRIT_CHECK(owner_.here());
  connecting_.reset();
  if (!stream) return failed(stream.error().text);
  stats_.phase = Phase::kHandshake;
  session_ = std::make_unique<Session>(*this, std::move(*stream));
}

void Forwarder::lost(const std::string& why, bool hopeless, TimeNs open_since_ns) {
  CULPRIT_CHECK(owner_.here());
  ended_ = std::move(session_);
  const bool settled = open_since_ns != kNoTime && mono() - open_since_ns >= options_.settled_ns;
  if (settled) backoff_.settled();
  if (hopeless) backoff_.hopeless();
  if (settled) return wait_after(why);  // the same collector: it may have restarted
  failed(why);
}

void Forwarder::moved(const std::string& to) {
  CULPRIT_CHECK(owner_.here());
  ended_ = std::move(session_);
  route_.move(to);
  ++stats_.moves;
  stats_.last_error.clear();
  closed();
  attempt_->start(Backoff::kLeastNs);
}

void Forwarder::failed(const std::string& why) {
  route_.failed(mono());
  wait_after(why);
}

void Forwarder::wait_after(const std::string& why) {
  closed();
  stats_.last_error = why;
  const TimeNs delay = backoff_.next();
  stats_.next_attempt_ns = wall() + delay;
  attempt_->start(delay);
}

void Forwarder::closed() {
  stats_.phase = Phase::kWaiting;
  stats_.connected_since_ns = stats_.stalled_since_ns = kNoTime;
  stats_.collector.clear();
  stats_.credit = 0;
  for (LogProgress& log : stats_.logs) {
    log.unacked_bytes = log.unacked_frames = 0;
    log.oldest_unacked_ns = kNoTime;
  }
}

void Forwarder::appended(peer::Log log) {
  CULPRIT_CHECK(owner_.here());
  if (session_) session_->appended(log);
}

void Forwarder::reopened() {
  CULPRIT_CHECK(owner_.here());
  if (!session_) return;  // the next Hello reports it
  session_->bye("a log was created again");
  lost("a log was created again", false, mono() - options_.settled_ns);
}

void Forwarder::finding(TimeNs at_ns) {
  CULPRIT_CHECK(owner_.here());
  policy_.finding(at_ns);
  if (session_) session_->finding();
}

void Forwarder::send(const peer::Message& result) {
  CULPRIT_CHECK(owner_.here());
  if (session_) session_->send(result);
}

void Forwarder::set_tls(std::shared_ptr<const io::TlsCredentials> tls) { options_.tls = std::move(tls); }

void Forwarder::set_evidence(EvidenceOptions evidence) {
  policy_.set(evidence);
  if (session_) session_->finding();
}

void Forwarder::stop() {
  CULPRIT_CHECK(owner_.here());
  attempt_->stop();
  connecting_.reset();
  if (session_) session_->bye("the agent stops");
  ended_ = std::move(session_);
  stats_.phase = Phase::kStopped;
}

ForwarderStats Forwarder::stats() const {
  ForwarderStats out = stats_;
  out.to = route_.at();
  return out;
}

}  // namespace culprit::forward
