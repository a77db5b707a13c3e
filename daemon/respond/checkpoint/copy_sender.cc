#include "respond/checkpoint/copy_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/address.h"

namespace culprit::respond::checkpoint {
namespace {

constexpr uint64_t kSignBytes = 256 << 20;
constexpr TimeNs kWaitNs = 20 * kNsPerMs;
// Unused rate that may be used later: smooths over the timer's steps.
constexpr double kBurstSeconds = 0.1;

}  // namespace

CopySender::CopySender(io::Env& env, CopySenderOptions options, copies::Manifest manifest,
                       std::function<void(Result<CopySent>)> done)
    : env_(env),
      options_(std::move(options)),
      manifest_(std::move(manifest)),
      done_(std::move(done)),
      tick_(env.timer([this] { tick(); })),
      wait_(env.timer([this] { pump(); })),
      buffer_(copies::kChunkBytes, '\0'),
      began_ns_(mono()),
      received_ns_(began_ns_) {
  splitter_.allow(copies::kMessageBytes);
  tick_->start(kNsPerSecond, kNsPerSecond);
  auto connecting = env_.connect(
      options_.to, {}, [this](Result<std::unique_ptr<io::Stream>> stream) { connected(std::move(stream)); });
  if (connecting)
    connecting_ = std::move(*connecting);
  else
    end(tl::unexpected(connecting.error()));
}

CopySender::~CopySender() { *alive_ = false; }

void CopySender::connected(Result<std::unique_ptr<io::Stream>> stream) {
  if (state_ != State::kConnecting) return;
  // kNotFound is a checkpoint that left, and not a name that is unknown.
  if (!stream) return end(fail(ErrorCode::kIo, stream.error().text));
  state_ = State::kHandshake;
  if (options_.tls == nullptr) return open(std::move(*stream));
  const auto to = io::split_address(options_.to);
  stream_ = std::make_unique<io::TlsStream>(
      env_, std::move(*stream), options_.tls,
      io::TlsStream::Options{io::TlsStream::Side::kConnects, to ? to->host : options_.to},
      [this](Status status) {
        if (!status) return end(tl::unexpected(status.error()));
        open(nullptr);
      });
}

void CopySender::open(std::unique_ptr<io::Stream> stream) {
  if (stream) stream_ = std::move(stream);
  state_ = State::kHello;
  received_ns_ = mono();
  stream_->start(
      {[this](std::string_view bytes) { on_bytes(bytes); },
       [this](const Error* error) {
         end(fail(ErrorCode::kIo, options_.to + ": " + (error ? error->text : "closed the connection")));
       },
       [this] { pump(); }});
  copies::Hello hello;
  hello.host = options_.host;
  write(hello);
}

void CopySender::write(const copies::Message& message) { stream_->write(copies::encode(message)); }

void CopySender::on_bytes(std::string_view bytes) {
  received_ns_ = mono();
  splitter_.add(bytes);
  while (state_ != State::kEnded) {
    auto message = splitter_.next();
    if (!message) return end(fail(message.error().code, options_.to + ": " + message.error().text));
    if (!*message) break;
    handle(**message);
  }
}

void CopySender::handle(const copies::Message& message) {
  if (const auto* refused = std::get_if<copies::Refused>(&message))
    return end(fail(refused->full ? ErrorCode::kLimit : ErrorCode::kDenied,
                    options_.to + ": refuses the copy: " + refused->sentence));
  if (const auto* welcome = std::get_if<copies::Welcome>(&message); welcome && state_ == State::kHello) {
    if (welcome->host == options_.host)
      return end(
          fail(ErrorCode::kDenied, options_.to + ": is this host itself, whose loss it would not survive"));
    state_ = State::kOffered;
    return write(copies::Offer{manifest_});
  }
  if (const auto* answer = std::get_if<copies::Accepted>(&message); answer && state_ == State::kOffered)
    return accepted(*answer);
  const bool sending = state_ == State::kSending || state_ == State::kCommitted;
  if (const auto* ack = std::get_if<copies::Ack>(&message);
      ack && sending && ack->bytes >= data_acked_ && ack->bytes <= data_sent_) {
    data_acked_ = ack->bytes;
    return pump();
  }
  if (const auto* stored = std::get_if<copies::FileStored>(&message);
      stored && sending && stored->file == stored_ && stored_ < file_) {
    if (!stored->equal)
      return end(fail(ErrorCode::kIo, fmt::format("{}: the bytes of {} did not arrive as they were read",
                                                  options_.to, manifest_.files[stored->file].path)));
    ++stored_;
    return pump();
  }
  if (std::holds_alternative<copies::Stored>(message) && state_ == State::kCommitted) return end(progress_);
  if (std::holds_alternative<copies::Unknown>(message)) return;
  end(fail(ErrorCode::kInvalid,
           fmt::format("{}: a {} came where it does not belong", options_.to, copies::name_of(message))));
}

void CopySender::accepted(const copies::Accepted& accepted) {
  if (accepted.complete) {
    progress_.was_complete = true;
    return end(progress_);
  }
  bool sound = accepted.have.size() == manifest_.files.size();
  for (size_t i = 0; sound && i < accepted.have.size(); ++i)
    sound = accepted.have[i] <= manifest_.files[i].size;
  if (!sound) return end(fail(ErrorCode::kInvalid, options_.to + ": has more than was offered"));
  have_ = accepted.have;
  state_ = State::kSending;
  refilled_ns_ = mono();
  pump();
}

void CopySender::refill() {
  const TimeNs now = mono();
  const double rate = static_cast<double>(options_.rate);
  tokens_ += rate * static_cast<double>(now - refilled_ns_) / kNsPerSecond;
  tokens_ = std::min(tokens_, std::max(rate * kBurstSeconds, static_cast<double>(copies::kChunkBytes)));
  refilled_ns_ = now;
}

void CopySender::hold(bool held) {
  if (std::exchange(held_, held) && !held) pump();
}

bool CopySender::may_send() const {
  return !held_ && data_sent_ - data_acked_ < copies::kWindowBytes &&
         stream_->unsent() < copies::kSocketBytes;
}

// Reads one chunk; the loop then turns, so that acknowledgements are seen.
void CopySender::pump() {
  if (state_ != State::kSending || !may_send()) return;
  if (!source_) {
    if (file_ < manifest_.files.size()) {
      if (!next_file()) return;
    } else {
      if (stored_ < file_) return;  // the confirmations come
      state_ = State::kCommitted;
      return write(copies::Commit{});
    }
  }
  refill();
  if (tokens_ <= 0) return wait_->start(kWaitNs);
  const Status sent = offset_ < manifest_.files[file_].size ? send_part() : end_file();
  if (!sent) return end(tl::unexpected(sent.error()));
  if (std::exchange(posted_, true)) return;
  env_.post([this, alive = alive_] {
    if (!*alive) return;
    posted_ = false;
    pump();
  });
}

// Opens the next file, which must be as the manifest says.
bool CopySender::next_file() {
  const copies::File& file = manifest_.files[file_];
  auto source = SourceFile::open(manifest_.root, file.path);
  if (!source) return end(tl::unexpected(source.error())), false;
  const auto facts = source->facts();
  const auto mark = source->changed_mark();
  if (!facts || !mark || *facts != file) {
    end(fail(ErrorCode::kBusy, manifest_.root + "/" + file.path + ": changed since the copy began"));
    return false;
  }
  source_ = std::move(*source);
  mark_ = *mark;
  offset_ = 0;
  return true;
}

Status CopySender::send_part() {
  const copies::File& file = manifest_.files[file_];
  const size_t want = static_cast<size_t>(std::min<uint64_t>(copies::kChunkBytes, file.size - offset_));
  const auto n = source_->read(buffer_.data(), want, offset_);
  if (!n) return tl::unexpected(n.error());
  if (*n != want) return fail(ErrorCode::kBusy, manifest_.root + "/" + file.path + ": became shorter");
  hash_.add({buffer_.data(), want});
  tokens_ -= static_cast<double>(want);
  progress_.read += want;
  const uint64_t end = offset_ + want;
  if (end > have_[file_]) {
    const uint64_t from = std::max(offset_, have_[file_]);
    copies::Data data;
    data.file = static_cast<uint32_t>(file_);
    data.offset = from;
    data.bytes.assign(buffer_.data() + (from - offset_), static_cast<size_t>(end - from));
    data_sent_ += data.bytes.size();
    progress_.sent += data.bytes.size();
    write(data);
  } else if (offset_ / kSignBytes != end / kSignBytes) {
    write(copies::Reading{static_cast<uint32_t>(file_)});
  }
  offset_ = end;
  return {};
}

Status CopySender::end_file() {
  const copies::File& file = manifest_.files[file_];
  const auto facts = source_->facts();
  const auto mark = source_->changed_mark();
  if (!facts || !mark || *facts != file || *mark != mark_)
    return fail(ErrorCode::kBusy, manifest_.root + "/" + file.path + ": changed while it was read");
  write(copies::FileEnd{static_cast<uint32_t>(file_), hash_.finish()});
  source_.reset();
  ++file_;
  return {};
}

void CopySender::tick() {
  const TimeNs now = mono();
  if (state_ == State::kConnecting || state_ == State::kHandshake || state_ == State::kHello) {
    if (now - began_ns_ > options_.handshake_ns)
      end(fail(ErrorCode::kIo, options_.to + ": took the connection and did not answer in time"));
    return;
  }
  // While this side reads what the other has already, no answer is due.
  const bool waits = state_ != State::kSending || data_sent_ > data_acked_ || stored_ < file_;
  if (!waits) received_ns_ = std::max(received_ns_, now - options_.silence_ns / 2);
  if (waits && now - received_ns_ > options_.silence_ns)
    end(fail(ErrorCode::kIo,
             fmt::format("{}: has been silent for {} s", options_.to, (now - received_ns_) / kNsPerSecond)));
}

void CopySender::end(Result<CopySent> result) {
  if (std::exchange(state_, State::kEnded) == State::kEnded) return;
  tick_->stop();
  wait_->stop();
  env_.post([this, alive = alive_, result = std::move(result)] {
    if (!*alive) return;
    stream_.reset();
    connecting_.reset();
    done_(result);
  });
}

}  // namespace culprit::respond::checkpoint
