#include "app/daemon/watch/copy_in.h"

#include <utility>

#include "io/files.h"

namespace culprit::app {
namespace {

constexpr TimeNs kBeatNs = kNsPerSecond;
// A refusal is shown for so long after its last occurrence.
constexpr TimeNs kTroubleNs = 600 * kNsPerSecond;

}  // namespace

CopyIn::CopyIn(io::Env& env, CopyParts parts)
    : env_(env), parts_(std::move(parts)), timer_(env.timer([this] { beat(); })) {
  timer_->start(0, kBeatNs);
}

CopyIn::~CopyIn() = default;

void CopyIn::report(const std::string& sentence) {
  if (sentence != trouble_) parts_.log(LogLevel::kWarning, "copies: " + sentence);
  trouble_ = sentence;
  trouble_ns_ = env_.now(io::Clock::kMonotonic);
}

Status CopyIn::load_tls() {
  if (!parts_.tls.used() || (tls_ != nullptr && !tls_->outdated())) return {};
  auto loaded = io::TlsCredentials::load({parts_.tls.cert, parts_.tls.key, parts_.tls.ca, parts_.tls.crl});
  if (!loaded) return tl::unexpected(loaded.error());
  tls_ = std::move(*loaded);
  if (server_) server_->set_tls(tls_);
  return {};
}

Status CopyIn::open_store() {
  const Config::Copies& copies = parts_.copies;
  if (store_ || copies.store.empty()) return {};
  respond::checkpoint::CopyStoreOptions options;
  options.folder = copies.store;
  options.max_bytes = copies.max_size;
  options.min_free = copies.min_free;
  options.keep = static_cast<size_t>(copies.keep);
  options.max_age_ns = copies.max_age_ns;
  auto opened = respond::checkpoint::CopyStore::open(io::real_files(), std::move(options));
  if (!opened) return tl::unexpected(opened.error());
  store_ = std::move(*opened);
  server_.reset();  // it had none
  return {};
}

Status CopyIn::open() {
  const Config::Copies& copies = parts_.copies;
  const Status stored = open_store();
  if (server_) return stored;
  respond::checkpoint::CopyServerOptions options;
  options.host = parts_.host;
  if (store_) options.listen = copies.listen;
  options.socket = parts_.socket;
  options.tls = tls_;
  options.accept = copies.accept;
  options.restore_anywhere = copies.restore_anywhere;
  options.peers = copies.to;
  options.peers.insert(options.peers.end(), copies.peers.begin(), copies.peers.end());
  options.copied = [state = parts_.state] { return state->copied(); };
  options.report = [this](const std::string& sentence) { report(sentence); };
  auto started = respond::checkpoint::CopyServer::start(env_, std::move(options), store_.get());
  if (!started) return tl::unexpected(started.error());
  server_ = std::move(*started);
  return stored;
}

void CopyIn::beat() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  Status status = load_tls();
  if (status || tls_ != nullptr) {
    const Status opened = open();
    if (!opened) status = opened;
  }
  if (!status) report(status.error().text);
  if (trouble_ns_ != kNoTime && now - trouble_ns_ > kTroubleNs) trouble_.clear();
  parts_.state->change([&](CopyCounters& counters) {
    if (store_) counters.store = store_->counters();
    if (server_) counters.server = server_->counters();
    counters.in_trouble = trouble_;
  });
}

}  // namespace culprit::app
