#include "respond/checkpoint/copy_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "io/address.h"
#include "model/peer.h"

namespace culprit::respond::checkpoint {
namespace {

// After a refusal, bytes under way are discarded for so long: a reset would take the sentence with it.
constexpr TimeNs kLeavingNs = 3 * kNsPerSecond;
constexpr TimeNs kHandshakeNs = 10 * kNsPerSecond;
// A sender may read what is stored here already, at its rate, before it sends more.
constexpr TimeNs kIdleNs = 900 * kNsPerSecond;

std::string lower_case(std::string name) {
  std::ranges::transform(name, name.begin(), lower);
  return name;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::any_of(all,
                             [&](const std::string& each) { return lower_case(each) == lower_case(one); });
}

}  // namespace

// ---- the connection

void CopySession::begin(std::unique_ptr<io::Stream> stream) {
  if (local_ || owner_.options_.tls == nullptr) {
    stream_ = std::move(stream);
    return started();
  }
  const std::string address = stream->address();
  auto tls = std::make_unique<io::TlsStream>(owner_.env_, std::move(stream), owner_.options_.tls,
                                             io::TlsStream::Options{io::TlsStream::Side::kAccepts, address},
                                             [this](const Status& status) {
                                               if (status) return started();
                                               ++owner_.counters_.refused;
                                               owner_.options_.report(status.error().text);
                                               close();
                                             });
  tls_ = tls.get();
  stream_ = std::move(tls);
}

void CopySession::started() {
  state_ = State::kHello;
  stream_->start({[this](std::string_view bytes) { on_bytes(bytes); }, [this](const Error*) { close(); },
                  [this] {
                    if (upstream_) return upstream_->resume();
                    const auto self = shared_from_this();
                    stream_->resume();
                    handle_messages();
                    pump();
                  }});
}

void CopySession::close() {
  if (std::exchange(state_, State::kEnded) == State::kEnded) return;
  incoming_.reset();
  file_.reset();
  connecting_.reset();
  // Streams may be on the stack: they end with the session, and nothing is called before.
  owner_.leave(*this);
}

void CopySession::refuse(const std::string& sentence, bool full) {
  if (state_ == State::kEnded || state_ == State::kLeaving) return;
  ++owner_.counters_.refused;
  if (!local_) owner_.options_.report((host_.empty() ? from_ : host_) + ": " + sentence);
  end_with({full, sentence});
}

void CopySession::end_with(const copies::Refused& refused) {
  write(refused);
  incoming_.reset();
  file_.reset();
  state_ = State::kLeaving;
  refused_ns_ = owner_.mono();
}

bool CopySession::stores(const std::string& host, const std::string& id) const {
  return state_ == State::kStoring && host_ == host && incoming_->id() == id;
}

void CopySession::give_way() { end_with({false, "a newer connection of this host sends this copy"}); }

void CopySession::write(const copies::Message& message) { stream_->write(copies::encode(message)); }

void CopySession::sweep(TimeNs now) {
  if (state_ == State::kLeaving) {
    if (now - refused_ns_ > kLeavingNs) close();
    return;
  }
  if (state_ == State::kHandshake || state_ == State::kHello) {
    if (now - began_ns_ > kHandshakeNs) close();
    return;
  }
  if (now - received_ns_ > kIdleNs) return refuse("nothing came for a long time");
  if (tls_ != nullptr && owner_.env_.now(io::Clock::kWall) >= tls_->peer_expires_ns())
    refuse("its certificate has expired");
}

void CopySession::on_bytes(std::string_view bytes) {
  const auto self = shared_from_this();
  received_ns_ = owner_.mono();
  if (state_ == State::kLeaving) return;
  if (state_ == State::kRelay) {
    if (!upstream_) return refuse("a message came before the other host answered");
    upstream_->write(std::string(bytes));
    if (upstream_->unsent() > copies::kSocketBytes) stream_->pause();
    return;
  }
  splitter_.add(bytes);
  handle_messages();
}

// A peer that asks and does not read waits with its questions: answers would fill the memory.
void CopySession::handle_messages() {
  const auto self = shared_from_this();
  while (state_ != State::kEnded && state_ != State::kLeaving && state_ != State::kRelay) {
    if (stream_->unsent() > copies::kSocketBytes) return stream_->pause();
    if (!waiting_) {
      auto message = splitter_.next();
      if (!message) return refuse(message.error().text);
      if (!*message) return;
      waiting_ = std::move(**message);
    }
    if (catches_up(*waiting_)) return;
    const auto message = std::exchange(waiting_, std::nullopt);
    handle(*message);
  }
}

// True: a turn of the loop later there is more to hash, or the copy failed.
bool CopySession::catches_up(const copies::Message& message) {
  if (state_ != State::kStoring) return false;
  const auto* data = std::get_if<copies::Data>(&message);
  const auto* end = std::get_if<copies::FileEnd>(&message);
  const auto* reading = std::get_if<copies::Reading>(&message);
  if (data == nullptr && end == nullptr && reading == nullptr) return false;
  const auto ready = incoming_->catch_up(data != nullptr  ? data->file
                                         : end != nullptr ? end->file
                                                          : reading->file);
  if (!ready) return store_failed(ready.error()), true;
  if (*ready) return false;
  received_ns_ = owner_.mono();
  write(copies::Ack{received_bytes_});  // a sign of life
  if (std::exchange(catching_up_, true)) return true;
  stream_->pause();
  owner_.env_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->catching_up_ = false;
    if (self->state_ == State::kEnded) return;
    self->stream_->resume();
    self->handle_messages();
  });
  return true;
}

void CopySession::handle(const copies::Message& message) {
  if (state_ == State::kHello) {
    if (const auto* hello = std::get_if<copies::Hello>(&message)) return this->hello(*hello);
    return refuse("a hello comes first");
  }
  if (std::holds_alternative<copies::Unknown>(message)) return;
  if (state_ == State::kStoring) {
    if (std::holds_alternative<copies::Reading>(message)) return;
    if (const auto* data = std::get_if<copies::Data>(&message)) return this->data(*data);
    if (const auto* end = std::get_if<copies::FileEnd>(&message)) return file_end(*end);
    if (std::holds_alternative<copies::Commit>(message)) return commit();
  } else {
    if (const auto* offer = std::get_if<copies::Offer>(&message); offer && state_ == State::kOpen)
      return this->offer(*offer);
    if (std::holds_alternative<copies::List>(message)) return list();
    if (const auto* get = std::get_if<copies::Get>(&message)) return this->get(*get);
    if (std::holds_alternative<copies::Ask>(message) && local_) return answer();
    if (const auto* fetch = std::get_if<copies::Fetch>(&message); fetch && state_ == State::kServing)
      return this->fetch(*fetch);
    if (const auto* ack = std::get_if<copies::Ack>(&message);
        ack && state_ == State::kServing && ack->bytes >= acked_ && ack->bytes <= sent_) {
      acked_ = ack->bytes;
      return pump();
    }
  }
  refuse(fmt::format("a {} came where it does not belong", copies::name_of(message)));
}

void CopySession::hello(const copies::Hello& hello) {
  if (hello.version != copies::kVersion)
    return refuse(fmt::format("it speaks version {} about copies, and this program {}", hello.version,
                              copies::kVersion));
  if (Status known = identify(hello); !known) return refuse(known.error().text);
  splitter_.allow(copies::kMessageBytes);
  if (local_ && !hello.to.empty()) return relay(hello.to);
  state_ = State::kOpen;
  write(copies::Welcome{copies::kVersion, owner_.options_.host});
}

Status CopySession::identify(const copies::Hello& hello) {
  if (local_) {
    const auto peer = stream_->peer();
    // Root inside a container is not root of this host.
    if (!peer || peer->pod) return fail(ErrorCode::kDenied, "the user of this connection is unknown");
    host_ = owner_.options_.host;
    if (peer->uid != 0 && peer->uid != ::geteuid()) uid_ = peer->uid;
    return {};
  }
  host_ = lower_case(hello.host);
  if (!peer::is_host_name(host_)) return fail(ErrorCode::kDenied, "the host has no usable name");
  if (hello.uid != 0) uid_ = hello.uid;
  if (tls_ == nullptr) return {};
  const auto& names = tls_->peer_names();
  if (std::ranges::find(names, host_) != names.end()) return {};
  return fail(ErrorCode::kDenied,
              fmt::format("it calls itself {} and its certificate has another name", hello.host));
}

// ---- storing

void CopySession::offer(const copies::Offer& offer) {
  if (local_ || uid_) return refuse("only agents of other hosts store copies");
  if (owner_.store_ == nullptr) return refuse("this host stores no copies: copies.store is not set");
  if (!owner_.options_.accept.empty() && !contains(owner_.options_.accept, host_))
    return refuse("copies.accept of this host does not name it");
  owner_.supersede(host_, id_of(offer.manifest));
  auto incoming = owner_.store_->receive(host_, offer.manifest, owner_.env_.now(io::Clock::kWall));
  if (!incoming) {
    const bool full = incoming.error().code == ErrorCode::kLimit;
    return refuse(incoming.error().text, full);
  }
  if (!*incoming) return write(copies::Accepted{true, {}});
  incoming_ = std::move(*incoming);
  state_ = State::kStoring;
  write(copies::Accepted{false, incoming_->have()});
}

void CopySession::data(const copies::Data& data) {
  if (Status stored = incoming_->append(data); !stored) return store_failed(stored.error());
  received_bytes_ += data.bytes.size();
  write(copies::Ack{received_bytes_});
}

void CopySession::file_end(const copies::FileEnd& end) {
  const auto equal = incoming_->end_file(end);
  if (!equal) return store_failed(equal.error());
  write(copies::FileStored{end.file, *equal});
}

// A full disk gets its space back; what a peer did wrong is its own problem.
void CopySession::store_failed(const Error& error) {
  const bool ours = error.code != ErrorCode::kInvalid && error.code != ErrorCode::kBusy;
  if (ours) incoming_->abandon();
  refuse(error.text, ours);
}

void CopySession::commit() {
  if (Status done = incoming_->commit(owner_.env_.now(io::Clock::kWall)); !done)
    return store_failed(done.error());
  incoming_.reset();
  state_ = State::kOpen;
  write(copies::Stored{});
}

// ---- restoring

bool CopySession::may_read(const CopyStore::Copy& copy) const {
  const bool own = local_ || lower_case(copy.entry.host) == host_;
  if (!own && !owner_.options_.restore_anywhere) return false;
  return !uid_ || copy.owner == uid_;
}

void CopySession::list() {
  copies::Listing out;
  if (owner_.store_ != nullptr)
    for (const CopyStore::Copy* copy : owner_.store_->copies())
      if (out.entries.size() < copies::kEntries && may_read(*copy)) out.entries.push_back(copy->entry);
  write(out);
}

void CopySession::get(const copies::Get& get) {
  const CopyStore::Copy* copy = owner_.store_ ? owner_.store_->find(get.host, get.id) : nullptr;
  if (copy == nullptr || !may_read(*copy)) return refuse("there is no such copy for this user");
  auto manifest = owner_.store_->manifest(*copy);
  if (!manifest) return refuse(manifest.error().text);
  manifest_ = std::move(*manifest);
  id_ = get.id;
  of_host_ = get.host;
  file_.reset();
  state_ = State::kServing;
  write(copies::Found{*manifest_});
}

void CopySession::fetch(const copies::Fetch& fetch) {
  if (file_ || fetch.file >= manifest_->files.size()) return refuse("there is no such file to fetch now");
  const CopyStore::Copy* copy = owner_.store_->find(of_host_, id_);
  if (copy == nullptr) return refuse("the copy was removed, as a newer one is complete");
  auto file = owner_.store_->open_file(*copy, fetch.file);
  if (!file) return refuse(file.error().text);
  file_ = std::move(*file);
  file_index_ = fetch.file;
  offset_ = 0;
  pump();
}

void CopySession::pump() {
  if (state_ != State::kServing || !file_ || sent_ - acked_ >= copies::kWindowBytes ||
      stream_->unsent() >= copies::kSocketBytes)
    return;
  const copies::File& file = manifest_->files[file_index_];
  if (offset_ == file.size) {
    ++owner_.counters_.served;
    file_.reset();
    return write(copies::FileEnd{file_index_, file.digest});
  }
  copies::Data data{file_index_, offset_, {}};
  data.bytes.resize(static_cast<size_t>(std::min<uint64_t>(copies::kChunkBytes, file.size - offset_)));
  const auto n = file_->read_at(data.bytes.data(), data.bytes.size(), offset_);
  if (!n) return refuse(n.error().text);
  if (*n != data.bytes.size()) return refuse("the stored copy is damaged: a file became shorter");
  offset_ += *n;
  sent_ += *n;
  owner_.counters_.served_bytes += *n;
  write(data);
  if (std::exchange(posted_, true)) return;
  owner_.env_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->posted_ = false;
    self->pump();
  });
}

void CopySession::answer() {
  copies::Answer out;
  out.peers = owner_.options_.peers;
  out.copies = owner_.options_.copied();
  write(out);
}

// ---- another host's copies

void CopySession::relay(const std::string& to) {
  if (uid_ && !contains(owner_.options_.peers, to))
    return refuse(to + " is in neither copies.to nor copies.peers of this host: only root may name it");
  state_ = State::kRelay;
  to_ = to;
  auto connecting = owner_.env_.connect(
      to, {}, [this](Result<std::unique_ptr<io::Stream>> stream) { relay_connected(std::move(stream)); });
  if (!connecting) return refuse(connecting.error().text);
  connecting_ = std::move(*connecting);
}

void CopySession::relay_connected(Result<std::unique_ptr<io::Stream>> stream) {
  if (state_ != State::kRelay) return;
  if (!stream) return refuse(stream.error().text);
  if (owner_.options_.tls == nullptr) {
    pending_ = std::move(*stream);
    return relay_open();
  }
  const auto to = io::split_address(to_);
  pending_ = std::make_unique<io::TlsStream>(
      owner_.env_, std::move(*stream), owner_.options_.tls,
      io::TlsStream::Options{io::TlsStream::Side::kConnects, to ? to->host : to_},
      [this](const Status& status) {
        if (state_ != State::kRelay) return;
        if (!status) return refuse(status.error().text);
        relay_open();
      });
}

void CopySession::relay_open() {
  upstream_ = std::move(pending_);
  upstream_->start({[this](std::string_view bytes) {
                      if (state_ != State::kRelay) return;
                      received_ns_ = owner_.mono();
                      stream_->write(std::string(bytes));
                      if (stream_->unsent() > copies::kSocketBytes) upstream_->pause();
                    },
                    [this](const Error*) { close(); }, [this] { stream_->resume(); }});
  copies::Hello hello;
  hello.host = owner_.options_.host;
  hello.uid = uid_.value_or(0);
  upstream_->write(copies::encode(hello));
}

}  // namespace culprit::respond::checkpoint
