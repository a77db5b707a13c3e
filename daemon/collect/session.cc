#include "collect/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "io/address.h"

namespace culprit::collect {
namespace {

using peer::Log;
using peer::Refusal;

// Delay before the connection is closed, so that the peer can read the refusal; an immediate close would
// discard it.
constexpr TimeNs kLingerNs = 2 * kNsPerSecond;
// Limit of unread answers to an agent; their content is repeated later.
constexpr size_t kQueueBytes = 64 << 10;

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all.empty() ? "no host" : all;
}

}  // namespace

size_t weight(const LogItem& item) {
  const auto* frame = std::get_if<peer::Frame>(&item);
  return sizeof item + (frame ? frame->bytes.size() : std::get<peer::Skipped>(item).reason.size());
}

Session::Session(Collector& owner, std::unique_ptr<io::Stream> stream)
    : owner_(owner),
      stream_(std::move(stream)),
      address_(stream_->address()),
      network_(io::network_of(address_)),
      begun_ns_(owner.mono()),
      last_received_ns_(begun_ns_) {}

void Session::begin() {
  CULPRIT_CHECK(thread_.here());
  if (owner_.options_.tls == nullptr) return start();
  state_ = State::kTls;
  auto tls = std::make_unique<io::TlsStream>(owner_.env_, std::move(stream_), owner_.options_.tls,
                                             io::TlsStream::Options{io::TlsStream::Side::kAccepts, address_},
                                             [this](Status status) { ready(std::move(status)); });
  tls_ = tls.get();
  verified_by_ = owner_.options_.tls;
  stream_ = std::move(tls);
}

void Session::ready(Status status) {
  if (status) return start();
  const auto self = shared_from_this();
  ++owner_.stats_.tls_failures;
  owner_.count_refusal(Refusal::kIdentity, status.error().text);
  close(status.error().text);
}

void Session::start() {
  CULPRIT_CHECK(thread_.here());
  state_ = State::kHello;
  stream_->start({[this](std::string_view bytes) { on_bytes(bytes); },
                  [this](const Error* error) {
                    const auto self = shared_from_this();
                    close(error == nullptr ? "the connection was closed" : error->text);
                  },
                  [this] {
                    if (state_ == State::kOpen) acknowledge();
                  }});
}

std::string Session::who() const {
  if (hello_.host.empty()) return address_;
  return hello_.host + " (" + address_ + ")";
}

bool Session::has_begun() const {
  if (state_ == State::kTls) return tls_->has_answered();
  return state_ == State::kHello && (tls_ != nullptr || splitter_.held() > 0);
}

// Silence counts only while the connection is read.
bool Session::is_silent(TimeNs now) const {
  return !paused_ && now - last_received_ns_ > 2 * owner_.options_.ping_ns;
}

// ---- received messages

void Session::on_bytes(std::string_view bytes) {
  CULPRIT_CHECK(thread_.here());
  const auto self = shared_from_this();
  last_received_ns_ = owner_.mono();
  if (state_ == State::kClosing) return;
  splitter_.add(bytes);
  while (state_ == State::kHello || state_ == State::kAsking || state_ == State::kOpen) {
    auto message = splitter_.next();
    if (!message) {
      refuse(Refusal::kProtocol, message.error().text);
    } else if (*message) {
      handle(std::move(**message));
    } else {
      hand_on();
      return;
    }
  }
}

void Session::handle(peer::Message message) {
  if (auto* hello = std::get_if<peer::Hello>(&message); hello && state_ == State::kHello)
    return on_hello(std::move(*hello));
  if (state_ == State::kOpen) {
    if (auto* frame = std::get_if<peer::Frame>(&message)) return on_frame(std::move(*frame));
    if (auto* skipped = std::get_if<peer::Skipped>(&message)) return on_skipped(std::move(*skipped));
    if (const auto* status = std::get_if<peer::Status>(&message)) {
      owner_.sink_.status(hello_.host, *status);
      const auto& others_jobs = owner_.options_.others_jobs;
      if (others_jobs && !status->jobs.empty() && has_room())
        write(peer::JobOwners{others_jobs(status->jobs)});
      return;
    }
    if (std::holds_alternative<peer::CheckResult>(message) ||
        std::holds_alternative<peer::AlignResult>(message)) {
      if (owner_.options_.checked) owner_.options_.checked(hello_.host, message);
      return;
    }
    if (const auto* ping = std::get_if<peer::Ping>(&message)) {
      if (has_room()) write(peer::Pong{ping->stamp});
      return;
    }
    if (std::holds_alternative<peer::Pong>(message) || std::holds_alternative<peer::Unknown>(message)) return;
    if (const auto* bye = std::get_if<peer::Bye>(&message)) {
      hand_on();
      return close(bye->sentence);
    }
    if (const auto* refused = std::get_if<peer::Refused>(&message)) return close(refused->sentence);
  }
  refuse(Refusal::kProtocol,
         fmt::format("a message of kind \"{}\" came {}", peer::name_of(message),
                     state_ == State::kHello ? "before hello" : "where it does not belong"));
}

void Session::on_hello(peer::Hello hello) {
  CULPRIT_CHECK(thread_.here());
  hello_ = std::move(hello);
  auto version = peer::choose_version(hello_.oldest, hello_.newest);
  if (!version) return refuse(Refusal::kVersion, version.error().text);
  version_ = *version;
  if (tls_ != nullptr) {
    const auto& names = tls_->peer_names();
    if (std::find(names.begin(), names.end(), lower_case(hello_.host)) == names.end())
      return refuse(Refusal::kIdentity, fmt::format("it calls itself {} and its certificate is that of {}",
                                                    hello_.host, joined(names)));
  }
  hello_.host = owner_.canonical(hello_.host);
  if (Status status = owner_.admit(*this); !status) return refuse(Refusal::kHostTaken, status.error().text);
  owner_.newcomers_.remove(*this);
  state_ = State::kAsking;
  clock_ahead_ns_ = hello_.time_ns - owner_.wall();
  owner_.sink_.hello(hello_, [weak = weak_from_this()](Result<std::vector<peer::LogMark>> marks) {
    if (const auto self = weak.lock()) self->answered(std::move(marks));
  });
}

void Session::answered(Result<std::vector<peer::LogMark>> marks) {
  CULPRIT_CHECK(thread_.here());
  if (state_ != State::kAsking) return;
  if (!marks) {
    const ErrorCode code = marks.error().code;
    const bool for_good = code == ErrorCode::kDenied || code == ErrorCode::kInvalid;
    return refuse(for_good ? Refusal::kIdentity : Refusal::kUnavailable, marks.error().text);
  }
  for (const peer::LogBounds& reported : hello_.logs)
    for (const peer::LogMark& mark : *marks)
      if (mark.log == reported.log && mark.epoch == reported.epoch) {
        const uint64_t committed = mark.known ? mark.committed : 0;
        const uint64_t archived = mark.archived.value_or(0);
        ins_[static_cast<size_t>(reported.log)] = {reported.epoch, true,     committed, committed,
                                                   committed,      archived, archived};
        if (!owner_.by_epoch_.try_emplace(reported.epoch, this).second)
          return refuse(Refusal::kIdentity, "another connection already sends this host's log");
      }
  batch_.host = hello_.host;
  for (size_t i = 0; i < ins_.size(); ++i) batch_.epochs[i] = ins_[i].epoch;
  state_ = State::kOpen;
  owner_.newcomers_.prove(network_, owner_.mono());
  since_ns_ = owner_.wall();
  last_received_ns_ = pinged_ns_ = owner_.mono();
  splitter_.allow(peer::kMessageBytes);
  peer::Welcome welcome;
  welcome.version = version_;
  welcome.program = owner_.options_.program;
  welcome.time_ns = std::max<TimeNs>(0, since_ns_);
  welcome.logs = std::move(*marks);
  welcome.credit = owner_.credit();
  write(welcome);
  owner_.sink_.connected(hello_.host, hello_, address_);
}

// Whether the frame range that begins at `first` continues the log; if not, refuses the peer.
bool Session::fits(Log log, uint64_t first, const char* what) {
  const In& in = ins_[static_cast<size_t>(log)];
  if (in.open && first <= in.cursor + 1) return true;
  refuse(Refusal::kBadFrame,
         in.open ? fmt::format("{} {} of the {} log came where {} is next", what, first, peer::name_of(log),
                               in.cursor + 1)
                 : fmt::format("{} of the {} log came without being announced", what, peer::name_of(log)));
  return false;
}

void Session::on_frame(peer::Frame frame) {
  CULPRIT_CHECK(thread_.here());
  const bool data = frame.kind == peer::FrameKind::kData;
  // A checkpoint has the sequence of the frame before it.
  if (!fits(frame.log, frame.sequence + (data ? 0 : 1), data ? "frame" : "a checkpoint before frame")) return;
  In& in = ins_[static_cast<size_t>(frame.log)];
  ++frames_, ++owner_.stats_.frames;
  bytes_ += frame.bytes.size();
  owner_.stats_.bytes += frame.bytes.size();
  if (data && (frame.sequence <= in.cursor || frame.sequence <= in.committed)) {
    ++duplicates_, ++owner_.stats_.duplicates;
    in.cursor = std::max(in.cursor, frame.sequence);
    return;
  }
  if (data) in.cursor = frame.sequence;
  keep(std::move(frame));
}

void Session::on_skipped(peer::Skipped skipped) {
  CULPRIT_CHECK(thread_.here());
  if (!fits(skipped.log, skipped.from, "a gap at frame")) return;
  In& in = ins_[static_cast<size_t>(skipped.log)];
  skipped.from = std::max(skipped.from, in.cursor + 1);
  if (skipped.to < skipped.from) return;
  CULPRIT_CHECK(skipped.to > in.cursor);
  in.cursor = skipped.to;
  owner_.stats_.skipped_frames += skipped.to - skipped.from + 1;
  auto* last = batch_.items.empty() ? nullptr : std::get_if<peer::Skipped>(&batch_.items.back());
  if (last && last->log == skipped.log && last->to + 1 == skipped.from && last->reason == skipped.reason)
    last->to = skipped.to;
  else
    keep(std::move(skipped));
}

void Session::keep(LogItem item) {
  batch_.bytes += weight(item);
  batch_.items.push_back(std::move(item));
}

void Session::hand_on() {
  if (state_ != State::kOpen) return;
  if (!batch_.items.empty()) {
    FrameSink::Batch batch{batch_.host, batch_.epochs, {}, std::exchange(batch_.bytes, 0)};
    batch.items.swap(batch_.items);
    held_bytes_ += batch.bytes;
    owner_.deliver(*this, std::move(batch));
  }
  if (state_ == State::kOpen) acknowledge();  // duplicates of committed frames
}

// ---- answers of the sink

void Session::taken(uint64_t bytes, const Status& status) {
  CULPRIT_CHECK(thread_.here());
  CULPRIT_CHECK(held_bytes_ >= bytes);
  held_bytes_ -= bytes;
  if (state_ != State::kOpen) return;
  if (!status) {
    const ErrorCode code = status.error().code;
    const bool its_fault =
        code == ErrorCode::kInvalid || code == ErrorCode::kDenied || code == ErrorCode::kLimit;
    return refuse(its_fault ? Refusal::kBadFrame : Refusal::kUnavailable, status.error().text);
  }
  read_or_not();
}

void Session::read_or_not() {
  if (state_ != State::kOpen) return;
  // Agents stay within their credit, except for one larger frame.
  const bool enough = held_bytes_ > std::max<uint64_t>(2 * owner_.options_.credit_bytes, peer::kMessageBytes);
  const bool pause = owner_.held_ || enough;
  if (pause == std::exchange(paused_, pause)) return;
  if (pause) return stream_->pause();
  last_received_ns_ = owner_.mono();
  stream_->resume();
}

void Session::committed(uint64_t epoch, uint64_t sequence) {
  CULPRIT_CHECK(thread_.here());
  for (In& in : ins_)
    if (in.open && in.epoch == epoch) in.committed = std::max(in.committed, sequence);
  acknowledge();
}

void Session::archived(uint64_t epoch, uint64_t sequence) {
  CULPRIT_CHECK(thread_.here());
  for (In& in : ins_)
    if (in.open && in.epoch == epoch) in.archived = std::max(in.archived, sequence);
  acknowledge();
}

void Session::acknowledge() {
  for (size_t i = 0; i < ins_.size(); ++i) {
    In& in = ins_[i];
    // An older connection may have committed more frames than this one has sent.
    const uint64_t sequence = std::min(in.committed, in.cursor);
    if (in.archived > in.archived_sent && has_room()) {
      in.archived_sent = in.archived;
      write(peer::Archived{static_cast<Log>(i), in.epoch, in.archived});
    }
    if (sequence <= in.acked || !has_room()) continue;
    CULPRIT_CHECK(sequence > in.acked && sequence <= in.committed);
    in.acked = sequence;
    write(peer::Ack{static_cast<Log>(i), in.epoch, sequence, owner_.credit()});
  }
}

bool Session::want(const peer::Message& wanted) {
  if (state_ != State::kOpen || !has_room()) return false;
  write(wanted);
  return true;
}

// ---- time and the end

void Session::sweep(TimeNs now, bool late, size_t& verifies) {
  CULPRIT_CHECK(thread_.here());
  const CollectorOptions& options = owner_.options_;
  if (state_ == State::kClosing && now >= closes_ns_) return close("refused");
  if ((state_ == State::kTls || state_ == State::kHello) && !late && now - begun_ns_ > options.handshake_ns)
    return refuse(Refusal::kTimeout, "it did not say hello in time");
  if (state_ != State::kOpen) return;
  if (const Status holds = certificate_holds(verifies); !holds)
    return refuse(Refusal::kIdentity, holds.error().text);
  if (!paused_ && now - last_received_ns_ > options.silence_ns)
    return refuse(Refusal::kTimeout,
                  fmt::format("it was silent for {} s", (now - last_received_ns_) / kNsPerSecond));
  if (now - pinged_ns_ < options.ping_ns || !has_room()) return;
  pinged_ns_ = now;
  owner_.newcomers_.prove(network_, now);
  write(peer::Ping{static_cast<uint64_t>(now)});
}

// Whether a new connection with the peer's certificate would still be accepted.
Status Session::certificate_holds(size_t& verifies) {
  if (tls_ == nullptr) return {};
  const bool expired = owner_.wall() >= tls_->peer_expires_ns();
  if (!expired && (verified_by_ == owner_.options_.tls || verifies == 0)) return {};
  verifies -= verifies > 0 ? 1 : 0;
  verified_by_ = owner_.options_.tls;
  return tls_->verify(*verified_by_);
}

void Session::refuse(Refusal code, const std::string& sentence) {
  CULPRIT_CHECK(thread_.here());
  if (state_ == State::kClosing || state_ == State::kClosed) return;
  owner_.count_refusal(code, who() + ": " + sentence);
  const bool can_say = state_ != State::kTls;
  leave(sentence);
  if (!can_say) return close(sentence);
  state_ = State::kClosing;
  closes_ns_ = owner_.mono() + kLingerNs;
  write(peer::Refused{code, sentence});
  if (std::exchange(paused_, false)) stream_->resume();  // received bytes are discarded
}

void Session::close(const std::string& why) {
  if (state_ == State::kClosed) return;
  leave(why);
  state_ = State::kClosed;
  owner_.newcomers_.remove(*this);
  tls_ = nullptr;
  stream_.reset();
  owner_.sessions_.erase(this);
}

void Session::bye(const std::string& sentence) {
  if (state_ == State::kOpen) write(peer::Bye{sentence});
}

void Session::leave(const std::string& why) {
  batch_.items.clear();
  batch_.bytes = 0;
  splitter_ = {};
  if (state_ == State::kClosing) return;
  const bool was_open = state_ == State::kOpen;
  state_ = State::kClosing;
  owner_.leave(*this);
  if (was_open) owner_.sink_.disconnected(hello_.host, why);
}

void Session::write(const peer::Message& message) {
  if (stream_) stream_->write(peer::encode(message));
}
bool Session::has_room() const { return stream_ && stream_->unsent() < kQueueBytes; }

HostConnection Session::facts() const {
  HostConnection facts;
  facts.host = hello_.host, facts.address = address_;
  facts.program = hello_.program, facts.boot_id = hello_.boot_id;
  facts.version = version_;
  facts.since_ns = since_ns_;
  facts.last_received_ns = owner_.wall() - (owner_.mono() - last_received_ns_);
  facts.clock_ahead_ns = clock_ahead_ns_;
  facts.frames = frames_, facts.bytes = bytes_, facts.duplicates = duplicates_;
  facts.held_bytes = held_bytes_;
  return facts;
}

}  // namespace culprit::collect
