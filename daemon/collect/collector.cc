#include "collect/collector.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "base/check.h"
#include "collect/session.h"
#include "io/address.h"

namespace culprit::collect {
namespace {

using peer::Refusal;

constexpr TimeNs kSweepNs = kNsPerSecond;
// Certificates verified per sweep after new ones were loaded; this takes about 50 ms of the loop.
constexpr size_t kVerifies = 256;
// At most one line per reason in the log.
constexpr TimeNs kTellNs = 10 * kNsPerSecond;
// Smallest credit: a smaller one would cost a round trip per small frame.
constexpr uint64_t kLeastCredit = 64 << 10;

}  // namespace

std::string lower_case(std::string name) {
  std::ranges::transform(name, name.begin(), lower);
  return name;
}

Result<std::unique_ptr<Collector>> Collector::start(io::Env& env, CollectorOptions options, FrameSink& sink) {
  std::unique_ptr<Collector> collector(new Collector(env, std::move(options), sink));
  auto listener =
      env.listen(collector->options_.listen, 0,
                 [c = collector.get()](std::unique_ptr<io::Stream> stream) { c->accept(std::move(stream)); });
  if (!listener) return tl::unexpected(listener.error());
  collector->listener_ = std::move(*listener);
  collector->sweep_->start(kSweepNs, kSweepNs);
  return collector;
}

Collector::Collector(io::Env& env, CollectorOptions options, FrameSink& sink)
    : env_(env),
      options_(std::move(options)),
      sink_(sink),
      swept_ns_(mono()),
      newcomers_({options_.unknown_connections, options_.unknown_per_address}),
      alive_(std::make_shared<Collector*>(this)),
      sweep_(env.timer([this] { sweep(); })) {
  reported_ns_.fill(kNoTime);
  for (const std::string& host : options_.hosts) canonical(host);
  for (const auto& [address, seen_ns] : options_.known)
    newcomers_.prove(io::network_of(address), mono() - std::max<TimeNs>(0, wall() - seen_ns));
}

Collector::~Collector() { *alive_ = nullptr; }

void Collector::accept(std::unique_ptr<io::Stream> stream) {
  CULPRIT_CHECK(owner_.here());
  ++stats_.accepted;
  if (!make_room(stream->address())) return;
  auto session = std::make_shared<Session>(*this, std::move(stream));
  sessions_[session.get()] = session;
  newcomers_.add(*session, session->network(), mono());
  session->begin();
}

// Ensures room for a new connection, and may close another one for it. False: refuse the new connection.
bool Collector::make_room(const std::string& address) {
  auto [admitted, gives_way] = newcomers_.judge(io::network_of(address), mono());
  if (admitted && gives_way == nullptr && sessions_.size() >= options_.connections) {
    gives_way = newcomers_.oldest();
    admitted = gives_way != nullptr;
  }
  if (!admitted) {
    count_refusal(Refusal::kTooMany, address + ": there are too many connections");
    return false;
  }
  if (gives_way == nullptr) return true;
  const auto closed = gives_way->shared_from_this();
  count_refusal(Refusal::kTooMany,
                closed->who() + ": closed: no hello received, and newer connections need the slot");
  closed->close("no hello received, and newer connections need the slot");
  return true;
}

void Collector::sweep() {
  CULPRIT_CHECK(owner_.here());
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(sessions_.size());
  for (const auto& [_, session] : sessions_) all.push_back(session);
  const TimeNs now = mono();
  // After a stall of the loop, time-outs are invalid: the bytes of all peers are still unread.
  const bool late = now - std::exchange(swept_ns_, now) > 2 * kSweepNs;
  size_t verifies = kVerifies;
  for (const auto& session : all) session->sweep(now, late, verifies);
  newcomers_.forget(now);
  shed(all);
}

// Above the limit of incomplete messages, closes the connections with the largest ones: incomplete messages
// cannot be processed to free memory.
void Collector::shed(const std::vector<std::shared_ptr<Session>>& all) {
  uint64_t total = 0;
  for (const auto& session : all) total += session->partial_bytes();
  while (total > options_.held_bytes) {
    const auto& largest = *std::max_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a->partial_bytes() < b->partial_bytes();
    });
    total -= largest->partial_bytes();
    largest->refuse(Refusal::kTooMany, "too much is on its way from all hosts together");
  }
}

uint64_t Collector::credit() const {
  const uint64_t share = options_.held_bytes / std::max<size_t>(1, by_host_.size());
  return std::max(kLeastCredit, std::min(options_.credit_bytes, share));
}

std::string Collector::canonical(const std::string& host) {
  constexpr size_t kSpelled = 65'536;  // without TLS anyone names hosts
  std::string key = lower_case(host);
  if (const auto known = spelled_.find(key); known != spelled_.end()) return known->second;
  if (spelled_.size() < kSpelled) spelled_.emplace(std::move(key), host);
  return host;
}

Status Collector::admit(Session& session) {
  CULPRIT_CHECK(owner_.here());
  const auto [at, fresh] = by_host_.try_emplace(session.hello().host, &session);
  if (fresh) return {};
  Session& other = *at->second;
  const bool same_boot = other.hello().boot_id == session.hello().boot_id;
  if (!same_boot && !other.is_silent(mono()))
    return fail(ErrorCode::kDenied, "the host is connected already as " + other.who() + ", and alive");
  other.refuse(Refusal::kReplaced, "a newer connection of the host has come, from " + session.who());
  by_host_[session.hello().host] = &session;
  return {};
}

void Collector::leave(Session& session) {
  CULPRIT_CHECK(owner_.here());
  if (const auto at = by_host_.find(session.hello().host); at != by_host_.end() && at->second == &session)
    by_host_.erase(at);
  for (const peer::LogBounds& log : session.hello().logs)
    if (const auto at = by_epoch_.find(log.epoch); at != by_epoch_.end() && at->second == &session)
      by_epoch_.erase(at);
}

void Collector::deliver(Session& session, FrameSink::Batch batch) {
  CULPRIT_CHECK(owner_.here());
  const uint64_t bytes = batch.bytes;
  stats_.held_bytes += bytes;
  sink_.on_batch(std::move(batch),
                 [alive = alive_, weak = session.weak_from_this(), bytes](const Status& status) {
                   if (*alive == nullptr) return;
                   (*alive)->stats_.held_bytes -= bytes;
                   if (const auto still = weak.lock()) still->taken(bytes, status);
                   (*alive)->hold_or_go_on();
                 });
  hold_or_go_on();
  session.read_or_not();
}

void Collector::hold_or_go_on() {
  // Resumes only when half of the limit is free, so that not every frame pauses and resumes thousands of
  // connections.
  const bool hold = stats_.held_bytes > (held_ ? options_.held_bytes / 2 : options_.held_bytes);
  if (hold == std::exchange(held_, hold)) return;
  stats_.holds += hold ? 1 : 0;
  for (const auto& [_, session] : sessions_) session->read_or_not();
}

void Collector::committed(uint64_t epoch, uint64_t sequence) {
  CULPRIT_CHECK(owner_.here());
  if (const auto at = by_epoch_.find(epoch); at != by_epoch_.end()) at->second->committed(epoch, sequence);
}

void Collector::archived(uint64_t epoch, uint64_t sequence) {
  CULPRIT_CHECK(owner_.here());
  if (const auto at = by_epoch_.find(epoch); at != by_epoch_.end()) at->second->archived(epoch, sequence);
}

bool Collector::want(const std::string& host, const peer::Message& wanted) {
  CULPRIT_CHECK(owner_.here());
  const auto at = by_host_.find(host);
  return at != by_host_.end() && at->second->want(wanted);
}

void Collector::set_tls(std::shared_ptr<const io::TlsCredentials> tls) { options_.tls = std::move(tls); }

void Collector::stop() {
  CULPRIT_CHECK(owner_.here());
  listener_.reset();
  sweep_->stop();
  const auto all = std::exchange(sessions_, {});
  for (const auto& [_, session] : all) {
    session->bye("the collector stops");
    session->close("the collector stops");
  }
}

void Collector::count_refusal(Refusal code, const std::string& sentence) {
  const auto number = static_cast<size_t>(code);
  ++stats_.refused[number];
  stats_.last_refusal = sentence;
  const TimeNs now = mono();
  if (reported_ns_[number] != kNoTime && now - reported_ns_[number] < kTellNs) return;
  reported_ns_[number] = now;
  sink_.refused(code, sentence);
}

std::string Collector::address() const { return listener_ ? listener_->address() : options_.listen; }

CollectorStats Collector::stats() const {
  CollectorStats stats = stats_;
  stats.connections = sessions_.size();
  stats.unknown = newcomers_.size();
  for (const auto& [_, session] : by_host_) stats.hosts += session->state() == Session::State::kOpen ? 1 : 0;
  stats.descriptors_missing = listener_ ? listener_->descriptors_missing() : 0;
  return stats;
}

std::vector<HostConnection> Collector::hosts() const {
  std::vector<HostConnection> hosts;
  for (const auto& [_, session] : by_host_)
    if (session->state() == Session::State::kOpen) hosts.push_back(session->facts());
  return hosts;
}

}  // namespace culprit::collect
