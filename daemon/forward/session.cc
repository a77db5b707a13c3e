#include "forward/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "io/address.h"

namespace culprit::forward {
namespace {

using peer::FrameKind;
using peer::Log;

constexpr TimeNs kTickNs = kNsPerSecond;
// Limit of bytes queued in the socket; a condensed frame may have to wait behind them.
constexpr size_t kQueueBytes = 512 << 10;
constexpr size_t kReadBytes = 512 << 10;
constexpr size_t kReadFrames = 4096;
// Limit of a log's frames in flight: within any byte window, small frames cost memory for their numbers.
constexpr size_t kUnackedFrames = 32'768;
// Time without an acknowledgement after which the collector counts as stalled: commits take milliseconds,
// or seconds on a slow disk.
constexpr TimeNs kStallNs = 10 * kNsPerSecond;

// Time that the collector has for its last acknowledgements before the agent leaves it for the owner of its
// jobs. What it has not acknowledged then is sent again, under the same numbers.
constexpr TimeNs kLeaveNs = 30 * kNsPerSecond;

constexpr const char* kByPolicy = "not forwarded by policy";
constexpr const char* kElsewhere = "another collector has it";
constexpr const char* kFreed = "no longer held by the agent";
constexpr const char* kUnreadable = "cannot be read from the agent's disk";

// Whether the refusal is permanent, so that the next attempt would fail too.
bool is_hopeless(peer::Refusal code) {
  return code == peer::Refusal::kVersion || code == peer::Refusal::kIdentity ||
         code == peer::Refusal::kProtocol || code == peer::Refusal::kBadFrame;
}

}  // namespace

Session::Session(Forwarder& owner, std::unique_ptr<io::Stream> stream)
    : owner_(owner),
      alive_(std::make_shared<Session*>(this)),
      begun_ns_(owner.mono()),
      last_received_ns_(begun_ns_) {
  splitter_.allow(peer::kFirstMessageBytes);
  tick_ = owner_.env_.timer([this] { tick(); });
  tick_->start(kTickNs, kTickNs);
  if (owner_.options_.tls == nullptr) {
    stream_ = std::move(stream);
    start();
    return;
  }
  const auto to = io::split_address(owner_.route_.at());
  auto tls = std::make_unique<io::TlsStream>(
      owner_.env_, std::move(stream), owner_.options_.tls,
      io::TlsStream::Options{io::TlsStream::Side::kConnects, to ? to->host : owner_.route_.at()},
      [this](Status status) { ready(std::move(status)); });
  tls_ = tls.get();
  verified_by_ = owner_.options_.tls;
  stream_ = std::move(tls);
}

Session::~Session() { *alive_ = nullptr; }

void Session::ready(Status status) {
  if (!status) return lose(status.error().text, status.error().code == ErrorCode::kDenied);
  start();
}

void Session::start() {
  CULPRIT_CHECK(thread_.here());
  stream_->start({[this](std::string_view bytes) { on_bytes(bytes); },
                  [this](const Error* error) { on_end(error); }, [this] { pump(); }});
  send_hello();
}

void Session::send_hello() {
  peer::Hello hello;
  hello.program = owner_.options_.program;
  hello.host = owner_.options_.host;
  hello.boot_id = owner_.options_.boot_id;
  hello.time_ns = std::max<TimeNs>(0, owner_.wall());
  for (const Log log : peer::kLogs) hello.logs.push_back(owner_.source_.bounds(log));
  reported_ = hello.logs;
  write(hello);
}

void Session::on_bytes(std::string_view bytes) {
  CULPRIT_CHECK(thread_.here());
  last_received_ns_ = owner_.mono();
  splitter_.add(bytes);
  while (!dead_) {
    auto message = splitter_.next();
    if (!message) return lose(owner_.route_.at() + ": " + message.error().text, true);
    if (!*message) return;
    if (handle(**message)) continue;
    return lose(fmt::format("{}: a message of kind \"{}\" came where it does not belong", owner_.route_.at(),
                            peer::name_of(**message)),
                true);
  }
}

void Session::on_end(const Error* error) {
  CULPRIT_CHECK(thread_.here());
  lose(error == nullptr ? owner_.route_.at() + ": closed the connection" : error->text);
}

// ---- time

void Session::tick() {
  CULPRIT_CHECK(thread_.here());
  const TimeNs now = owner_.mono();
  const ForwarderOptions& options = owner_.options_;
  if (!open_ && now - begun_ns_ > options.handshake_ns)
    return lose(owner_.route_.at() + ": took the connection and did not welcome it in time");
  if (now - last_received_ns_ > options.silence_ns)
    return lose(fmt::format("{}: has been silent for {} s", owner_.route_.at(),
                            (now - last_received_ns_) / kNsPerSecond));
  if (!open_) return;
  if (const Status holds = certificate_holds(); !holds) return lose(holds.error().text, true);
  if (now - beaten_ns_ >= options.ping_ns) beat(now);
  note_stall(now);
  for (Out& out : outs_) out.waits = false;
  pump();
  leave_if_done();
}

// Whether a new connection would still accept the collector's certificate.
Status Session::certificate_holds() {
  if (tls_ == nullptr) return {};
  if (owner_.wall() < tls_->peer_expires_ns() && verified_by_ == owner_.options_.tls) return {};
  verified_by_ = owner_.options_.tls;
  return verified_by_ == nullptr ? Status() : tls_->verify(*verified_by_);
}

void Session::beat(TimeNs now) {
  // In a full queue, a ping measures nothing and only lengthens the queue.
  if (stream_->unsent() >= kQueueBytes) return;
  beaten_ns_ = now;
  peer::Status status = owner_.status_ ? owner_.status_() : peer::Status();
  status.time_ns = std::max<TimeNs>(0, owner_.wall());
  for (const peer::LogBounds& reported : reported_) {
    const auto at = std::find_if(status.logs.begin(), status.logs.end(),
                                 [&](const peer::LogState& state) { return state.log == reported.log; });
    peer::LogState& state = at == status.logs.end() ? status.logs.emplace_back() : *at;
    state.log = reported.log;
    const uint64_t next = owner_.source_.bounds(reported.log).next;
    state.unacked_frames = next - std::min(next, progress(reported.log).acked + 1);
    if (state.oldest_ns == kNoTime) state.oldest_ns = progress(reported.log).oldest_unacked_ns;
  }
  jobs_ = status.jobs;
  write(status);
  write(peer::Ping{static_cast<uint64_t>(now)});
}

void Session::note_stall(TimeNs now) {
  ForwarderStats& stats = owner_.stats_;
  const bool stalled = waiting_since_ns_ != kNoTime && now - waiting_since_ns_ >= kStallNs;
  if (!stalled)
    stats.stalled_since_ns = kNoTime;
  else if (stats.stalled_since_ns == kNoTime)
    stats.stalled_since_ns = owner_.wall() - (now - waiting_since_ns_);
}

// ---- messages of the collector

// False: the message is not permitted in this state.
bool Session::handle(const peer::Message& message) {
  if (const auto* refused = std::get_if<peer::Refused>(&message)) {
    lose(owner_.route_.at() + ": refuses this host: " + refused->sentence, is_hopeless(refused->code));
    return true;
  }
  if (const auto* bye = std::get_if<peer::Bye>(&message)) {
    lose(owner_.route_.at() + ": " + bye->sentence);
    return true;
  }
  if (const auto* answer = std::get_if<peer::Welcome>(&message)) return welcome(*answer);
  if (!open_) return false;
  if (const auto* ack = std::get_if<peer::Ack>(&message)) return acknowledge(*ack);
  if (const auto* ping = std::get_if<peer::Ping>(&message)) return write(peer::Pong{ping->stamp}), true;
  if (const auto* pong = std::get_if<peer::Pong>(&message)) {
    const TimeNs now = owner_.mono();
    // The pong echoes our own timestamp; a later value is invalid.
    if (pong->stamp <= static_cast<uint64_t>(now))
      owner_.stats_.round_trip_ns = now - static_cast<TimeNs>(pong->stamp);
    return true;
  }
  if (const auto* wanted = std::get_if<peer::Wanted>(&message)) {
    owner_.policy_.around(wanted->from_ns, wanted->to_ns);
    finding();
    return true;
  }
  if (const auto* wanted = std::get_if<peer::StepsWanted>(&message)) {
    owner_.source_.steps_wanted(wanted->job, wanted->steps);
    return true;
  }
  if (const auto* wanted = std::get_if<peer::StacksWanted>(&message)) {
    owner_.source_.stacks_wanted(*wanted);
    return true;
  }
  if (const auto* end = std::get_if<peer::EndTasks>(&message)) {
    owner_.source_.end_tasks(*end);
    return true;
  }
  if (std::holds_alternative<peer::CheckHost>(message) || std::holds_alternative<peer::AlignHost>(message) ||
      std::holds_alternative<peer::AlignJudged>(message)) {
    owner_.source_.check_host(message);
    return true;
  }
  if (const auto* owners = std::get_if<peer::JobOwners>(&message)) {
    on_owners(*owners);
    return true;
  }
  if (const auto* archived = std::get_if<peer::Archived>(&message)) {
    on_archived(*archived);
    return true;
  }
  if (const auto* advise = std::get_if<peer::Advise>(&message)) {
    owner_.source_.advise(*advise);
    return true;
  }
  return std::holds_alternative<peer::Unknown>(message);
}

void Session::send(const peer::Message& result) {
  if (open_) write(result);
}

bool Session::welcome(const peer::Welcome& welcome) {
  if (open_ || welcome.version < peer::kOldest || welcome.version > peer::kNewest) return false;
  open_ = true;
  splitter_.allow(peer::kMessageBytes);
  ForwarderStats& stats = owner_.stats_;
  open_since_ns_ = owner_.mono();
  stats.phase = Phase::kOpen;
  stats.collector = welcome.program;
  stats.connected_since_ns = owner_.wall();
  stats.credit = welcome.credit;
  ++stats.sessions;
  for (const peer::LogBounds& reported : reported_) {
    LogProgress& log = progress(reported.log);
    log.epoch = reported.epoch;
    log.trouble = "the collector takes nothing of this log";
    for (const peer::LogMark& mark : welcome.logs)
      if (mark.log == reported.log && mark.epoch == reported.epoch) begin_log(reported, mark);
  }
  if (!dead_) beat(open_since_ns_);
  pump();
  return true;
}

void Session::begin_log(const peer::LogBounds& reported, const peer::LogMark& mark) {
  Out& out = this->out(reported.log);
  LogProgress& log = progress(reported.log);
  if (mark.known && mark.committed >= reported.next) {
    log.trouble = fmt::format("the collector has {} frames and this host {}: its disk has lost some",
                              mark.committed, reported.next - 1);
    return owner_.source_.fell_behind(reported.log, mark.committed);
  }
  out.enabled = true;
  out.epoch = reported.epoch;
  out.cursor = mark.known ? mark.committed : 0;
  out.with_checkpoint = !mark.known || out.cursor + 1 < reported.first;
  log.trouble.clear();
  log.sent = log.acked = out.cursor;
  out.archives = mark.archived.has_value();
  const uint64_t known = owner_.source_.archived(reported.log, mark.archived);
  if (out.cursor > 0) owner_.source_.acknowledged(reported.log, out.cursor);
  // The next owner of a job needs the past of its condensed log, which is small. Evidence stays where it is.
  if (reported.log != Log::kEvidence) return;
  if (out.archives) {
    // What another collector received and no object has is sent again: it may be lost with its disk. Equal:
    // the declarations that were to follow the gap may have been lost.
    const uint64_t archived = std::min(known, reported.next - 1);
    if (archived == 0 || archived < out.cursor) return;
    out.with_checkpoint = true;
    out.elsewhere = archived;
    return;
  }
  const Forwarder::Acked& acked = owner_.acked_[static_cast<size_t>(reported.log)];
  if (acked.epoch != reported.epoch || acked.by == owner_.route_.at()) return;
  // Also where the gap is there already: the declarations that were to follow it may have been lost.
  out.with_checkpoint = true;
  out.elsewhere = std::min(acked.sequence, reported.next - 1);
}

bool Session::acknowledge(const peer::Ack& ack) {
  CULPRIT_CHECK(thread_.here());
  Out& out = this->out(ack.log);
  owner_.stats_.credit = ack.credit;
  if (!out.enabled || ack.epoch != out.epoch) return true;
  if (ack.sequence > out.cursor) return false;
  LogProgress& log = progress(ack.log);
  if (ack.sequence > log.acked) {
    CULPRIT_CHECK(ack.sequence <= out.cursor);
    log.acked = ack.sequence;
    Forwarder::Acked& newest = owner_.acked_[static_cast<size_t>(ack.log)];
    if (newest.epoch != ack.epoch || newest.sequence < ack.sequence)
      newest = {ack.epoch, ack.sequence, owner_.route_.at()};
    while (!out.sent.empty() && out.sent.front().to <= ack.sequence) {
      if (ack.log == Log::kEvidence && out.sent.front().packed_ns != kNoTime) {
        if (out.unarchived.size() == kUnackedFrames) out.unarchived.pop_back();
        out.unarchived.push_back(out.sent.front());
      }
      CULPRIT_CHECK(unacked_bytes_ >= out.sent.front().bytes);
      unacked_bytes_ -= out.sent.front().bytes;
      log.unacked_bytes -= out.sent.front().bytes;
      log.unacked_frames -= out.sent.front().skipped ? 0 : 1;
      out.sent.pop_front();
    }
    log.oldest_unacked_ns = out.sent.empty() ? kNoTime : out.sent.front().packed_ns;
    const bool waits = std::any_of(outs_.begin(), outs_.end(), [](const Out& o) { return !o.sent.empty(); });
    waiting_since_ns_ = waits ? owner_.mono() : kNoTime;
    owner_.stats_.stalled_since_ns = kNoTime;
    if (!out.archives) decided(out, ack.sequence);
    owner_.source_.acknowledged(ack.log, ack.sequence);
  }
  pump();
  leave_if_done();
  return true;
}

void Session::on_archived(const peer::Archived& archived) {
  Out& out = this->out(archived.log);
  if (!out.enabled || !out.archives || archived.epoch != out.epoch) return;
  decided(out, archived.sequence);
  owner_.source_.archived(archived.log, archived.sequence);
}

// Decided when no collector can lose it any more, not on sending: frames that are lost with the connection,
// or with a collector's disk, must be selected again.
void Session::decided(Out& out, uint64_t sequence) {
  TimeNs packed_ns = kNoTime;
  for (; !out.unarchived.empty() && out.unarchived.front().to <= sequence; out.unarchived.pop_front())
    packed_ns = out.unarchived.front().packed_ns;
  if (packed_ns != kNoTime) owner_.policy_.decided(packed_ns);
}

void Session::on_owners(const peer::JobOwners& owners) {
  const auto to = owner_.route_.owner(jobs_, owners.others, owner_.mono());
  if (!to) return leaves_to_.clear(), pump();
  if (leaves_to_.empty()) leaves_ns_ = owner_.mono();
  leaves_to_ = *to;
  leave_if_done();
}

void Session::leave_if_done() {
  if (dead_ || leaves_to_.empty()) return;
  const bool waits = std::any_of(outs_.begin(), outs_.end(),
                                 [](const Out& out) { return out.reading || !out.sent.empty(); });
  if (waits && owner_.mono() - leaves_ns_ < kLeaveNs) return;
  bye("moves to " + leaves_to_ + ", which owns its jobs");
  owner_.moved(leaves_to_);
}

// ---- sending

void Session::appended(Log log) {
  CULPRIT_CHECK(thread_.here());
  // While the policy waits for frames to age, new frames have no effect.
  if (log == Log::kCondensed || !owner_.policy_.waits_for_time()) out(log).waits = false;
  pump();
}

void Session::finding() {
  out(Log::kEvidence).waits = false;
  pump();
}

// The source may answer from within read(); the loop then continues without recursion.
void Session::pump() {
  CULPRIT_CHECK(thread_.here());
  again_ = true;
  if (std::exchange(pumping_, true)) return;
  while (std::exchange(again_, false) && !dead_)
    for (const Log log : peer::kLogs)
      if (!dead_ && may_read(log)) read(log);
  pumping_ = false;
}

bool Session::may_read(Log log) {
  const Out& out = this->out(log);
  if (!open_ || !leaves_to_.empty() || !out.enabled || out.reading || out.waits ||
      stream_->unsent() >= kQueueBytes || out.sent.size() >= kUnackedFrames || room(log) == 0)
    return false;
  if (out.cursor + 1 >= owner_.source_.bounds(log).next) return false;
  if (log == Log::kCondensed) return true;
  return !this->out(Log::kCondensed).reading && !may_read(Log::kCondensed) &&
         owner_.policy_.allowance(owner_.mono()) > 0;
}

// Evidence may not use the last quarter of the window.
uint64_t Session::room(Log log) const {
  const uint64_t window = std::min(owner_.options_.window_bytes, owner_.stats_.credit);
  const uint64_t share = log == Log::kCondensed ? window : window - window / 4;
  return share - std::min(share, unacked_bytes_);
}

void Session::read(Log log) {
  Out& out = this->out(log);
  ReadRequest request;
  request.log = log;
  request.after = out.cursor;
  request.with_checkpoint = out.with_checkpoint;
  request.declares_until = out.elsewhere;
  request.max_bytes = std::min<uint64_t>(room(log), kReadBytes);
  request.max_frames = kReadFrames;
  if (log == Log::kEvidence) {
    request.selection = owner_.policy_.selection(owner_.wall());
    request.max_bytes = std::min<uint64_t>(request.max_bytes, owner_.policy_.allowance(owner_.mono()));
  } else {
    request.selection.until_ns = std::numeric_limits<TimeNs>::max();
  }
  out.reading = true;
  owner_.source_.read(std::move(request), [alive = alive_, log](Result<std::vector<SourceFrame>> frames) {
    if (*alive != nullptr) (*alive)->on_frames(log, std::move(frames));
  });
}

void Session::on_frames(Log log, Result<std::vector<SourceFrame>> frames) {
  CULPRIT_CHECK(thread_.here());
  Out& out = this->out(log);
  out.reading = false;
  if (dead_) return;
  progress(log).trouble = frames ? "" : frames.error().text;
  if (!frames || frames->empty()) {
    out.waits = true;
    return pump();  // the other log may continue
  }
  const bool jumps = !out.with_checkpoint && frames->front().sequence > out.cursor + 1 &&
                     owner_.source_.bounds(log).first > out.cursor + 1;
  if (jumps) {
    out.with_checkpoint = true;  // the frames that declared these streams were deleted
    return pump();
  }
  out.with_checkpoint = false;
  send_frames(log, std::move(*frames));
  pump();
}

void Session::send_frames(Log log, std::vector<SourceFrame> frames) {
  CULPRIT_CHECK(thread_.here());
  Out& out = this->out(log);
  uint64_t unselected = 0;  // up to here; one message for consecutive ones
  TimeNs unselected_ns = kNoTime;
  const auto tell_unselected = [&] {
    if (unselected > out.cursor)
      skip(log, unselected, unselected <= out.elsewhere ? kElsewhere : kByPolicy, unselected_ns);
  };
  for (SourceFrame& frame : frames) {
    const bool data = frame.kind == FrameKind::kData;
    const uint64_t reached = std::max(out.cursor, unselected);
    if (data && frame.sequence <= reached) continue;
    // The sequence of a checkpoint is that of the frame before it; a data frame has its own.
    const uint64_t before = data ? frame.sequence - 1 : frame.sequence;
    if (before > reached) {
      tell_unselected();
      skip(log, before,
           before <= out.elsewhere                     ? kElsewhere
           : before < owner_.source_.bounds(log).first ? kFreed
                                                       : kUnreadable);
    }
    if (frame.sequence > out.elsewhere && unselected <= out.elsewhere) tell_unselected();
    if (data && frame.bytes.empty()) {
      unselected = frame.sequence;
      unselected_ns = frame.packed_ns;
      continue;
    }
    tell_unselected();
    send_frame(log, std::move(frame));
  }
  tell_unselected();
}

void Session::send_frame(Log log, SourceFrame frame) {
  LogProgress& reported = progress(log);
  const uint64_t size = frame.bytes.size();
  write(peer::Frame{log, frame.kind, frame.sequence, std::move(frame.bytes)});
  reported.bytes += size;
  if (log == Log::kEvidence) owner_.policy_.sent(size);
  if (frame.kind != FrameKind::kData) return;
  ++reported.frames;
  out_of_hand(log, {frame.sequence, size, frame.packed_ns, false});
}

void Session::skip(Log log, uint64_t to, const char* reason, TimeNs packed_ns) {
  const uint64_t from = out(log).cursor + 1;
  write(peer::Skipped{log, from, to, reason});
  CULPRIT_CHECK(to >= from);
  progress(log).skipped_frames += to - from + 1;
  out_of_hand(log, {to, 0, packed_ns, true});
}

void Session::out_of_hand(Log log, Sent sent) {
  Out& out = this->out(log);
  LogProgress& reported = progress(log);
  CULPRIT_CHECK(sent.to > out.cursor);
  out.cursor = reported.sent = sent.to;
  unacked_bytes_ += sent.bytes;
  reported.unacked_bytes += sent.bytes;
  reported.unacked_frames += sent.skipped ? 0 : 1;
  if (reported.oldest_unacked_ns == kNoTime) reported.oldest_unacked_ns = sent.packed_ns;
  if (waiting_since_ns_ == kNoTime) waiting_since_ns_ = owner_.mono();
  if (!sent.skipped || out.sent.empty() || !out.sent.back().skipped) return out.sent.push_back(sent);
  out.sent.back().to = sent.to;
  if (sent.packed_ns != kNoTime) out.sent.back().packed_ns = sent.packed_ns;
}

// ---- the end

void Session::write(const peer::Message& message) {
  if (!dead_) stream_->write(peer::encode(message));
}

void Session::bye(const std::string& sentence) {
  if (open_) write(peer::Bye{sentence});
  dead_ = true;
  tick_->stop();
  stream_.reset();
}

void Session::lose(const std::string& why, bool hopeless) {
  if (std::exchange(dead_, true)) return;
  tick_->stop();
  stream_.reset();
  owner_.lost(why, hopeless, open_since_ns_);
}

}  // namespace culprit::forward
