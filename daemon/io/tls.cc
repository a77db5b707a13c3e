#include "io/tls.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "io/tls_impl.h"

namespace culprit::io {
namespace {

// Largest payload of a TLS record.
constexpr size_t kRecordBytes = 16 << 10;
// Bytes passed to OpenSSL at a time, so that its memory does not grow to the largest write.
constexpr size_t kWriteBytes = 64 << 10;

std::string day_of(TimeNs time) { return format_time(time).substr(0, 19) + " UTC"; }

// Returns "certificate expired" for "sslv3 alert certificate expired".
std::string alert_text(std::string_view reason) {
  const size_t at = reason.find("alert ");
  return std::string(at == reason.npos ? reason : reason.substr(at + 6));
}

std::string handshake_reason(unsigned long error) {
  const int code = ERR_GET_REASON(error);
  const char* text = ERR_reason_error_string(error);
  const std::string reason = text == nullptr ? "it is not understood" : text;
  if (code >= SSL_AD_REASON_OFFSET) return "the peer refuses the connection: " + alert_text(reason);
  if (code == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return "the peer has shown no certificate";
  if (code == SSL_R_UNSUPPORTED_PROTOCOL) return "the peer speaks no TLS that is new enough";
  if (code == SSL_R_WRONG_VERSION_NUMBER || code == SSL_R_HTTP_REQUEST || code == SSL_R_HTTPS_PROXY_REQUEST)
    return "what came is no TLS";
  return "the TLS handshake failed: " + reason;
}

}  // namespace

// Shared with callbacks that run while the owner is destroyed.
struct TlsStream::Impl : std::enable_shared_from_this<TlsStream::Impl> {
  struct SslDelete {
    void operator()(SSL* owned) const { SSL_free(owned); }
  };
  enum class State : uint8_t { kHandshake, kReady, kStarted, kEnded };

  Impl(Env& env_in, Options options_in) : env(env_in), options(std::move(options_in)) {}

  void begin();
  void on_bytes(std::string_view bytes);
  void below_ended(const Error* error);
  void shake();
  void shaken(Status status);
  void deliver();
  void deliver_later();
  void end(const Error* error);
  void flush();
  void close();
  void note_peer();
  Status verify(const TlsCredentials& by) const;
  std::string failure();

  Env& env;
  const Options options;
  std::shared_ptr<const TlsCredentials> credentials;
  std::unique_ptr<Stream> below;
  std::unique_ptr<SSL, SslDelete> ssl;
  BIO *in = nullptr, *out = nullptr;  // ssl's
  std::function<void(Status)> ready;
  Handlers handlers;
  State state = State::kHandshake;
  bool paused = false, closed = false;
  bool cut = false;  // the stream below has ended
  std::optional<Error> cut_by;
  size_t handshake_bytes = 0;
  bool answered = false;
  TimeNs peer_expires_ns = std::numeric_limits<TimeNs>::max();
  std::string refused;  // the problem of a certificate
  std::vector<std::string> names;
};

std::string refusal_of(X509_STORE_CTX* context) {
  X509* certificate = X509_STORE_CTX_get_current_cert(context);
  const int error = X509_STORE_CTX_get_error(context);
  const bool dated = error == X509_V_ERR_CERT_HAS_EXPIRED || error == X509_V_ERR_CERT_NOT_YET_VALID;
  // If an intermediate expired, the error names it; otherwise the peer's own certificate.
  if (!dated || certificate == nullptr) certificate = X509_STORE_CTX_get0_cert(context);
  const std::string name = certificate == nullptr ? "the peer" : name_of(certificate);
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return name + ": certificate expired on " + day_of(time_of(X509_get0_notAfter(certificate)));
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return name + ": certificate is valid only from " + day_of(time_of(X509_get0_notBefore(certificate)));
    case X509_V_ERR_CERT_REVOKED:
      return name + ": certificate is revoked";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
      return name + ": there is no revocation list here of an authority that signed its certificate";
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return name + ": the revocation list of its authority is out of date: it must be renewed here";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return name + ": certificate is not signed by an authority that is known here";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the peer's certificate is that of " + name;
    default:
      return name + ": certificate is refused: " + X509_verify_cert_error_string(error);
  }
}

int note_verification(int holds, X509_STORE_CTX* context) {
  if (holds == 1) return 1;
  const auto* ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(context, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto& refused = *static_cast<std::string*>(SSL_get_app_data(ssl));
  if (refused.empty()) refused = refusal_of(context);
  return 0;
}

void TlsStream::Impl::begin() {
  ssl.reset(SSL_new(credentials->impl_->context.get()));
  in = BIO_new(BIO_s_mem()), out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), in, out);
  SSL_set_app_data(ssl.get(), &refused);
  X509_VERIFY_PARAM* verify = SSL_get0_param(ssl.get());
  X509_VERIFY_PARAM_set_time(verify, env.now(Clock::kWall) / kNsPerSecond);
  if (options.side == Side::kConnects) {
    X509_VERIFY_PARAM_set_hostflags(
        verify, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_ip_asc(verify, options.peer.c_str()) != 1) {
      SSL_set1_host(ssl.get(), options.peer.c_str());
      SSL_set_tlsext_host_name(ssl.get(), options.peer.c_str());
    }
    ERR_clear_error();
    SSL_set_connect_state(ssl.get());
  } else {
    SSL_set_accept_state(ssl.get());
  }
  below->start({[this](std::string_view bytes) { on_bytes(bytes); },
                [this](const Error* error) { below_ended(error); },
                [this] {
                  if (state == State::kStarted && handlers.on_sent) handlers.on_sent();
                }});
  if (options.side == Side::kAccepts) return;
  env.post([weak = weak_from_this()] {
    if (const auto self = weak.lock(); self && self->state == State::kHandshake && !self->closed)
      self->shake();
  });
}

void TlsStream::Impl::on_bytes(std::string_view bytes) {
  const auto self = shared_from_this();  // a callback may destroy the owner
  if (state == State::kEnded) return;
  BIO_write(in, bytes.data(), static_cast<int>(bytes.size()));
  if (state == State::kHandshake) {
    handshake_bytes += bytes.size();
    if (handshake_bytes > kTlsHandshakeBytes)
      return shaken(fail(ErrorCode::kLimit, options.peer + ": the TLS handshake is too long"));
    shake();
  }
  deliver();
}

void TlsStream::Impl::below_ended(const Error* error) {
  const auto self = shared_from_this();
  cut = true;
  if (error != nullptr) cut_by = *error;
  if (state == State::kHandshake)
    return shaken(fail(ErrorCode::kIo, options.peer + ": the connection ended during the TLS handshake" +
                                           (error == nullptr ? "" : " (" + error->text + ")")));
  deliver();
}

void TlsStream::Impl::shake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl.get());
  const int error = SSL_get_error(ssl.get(), done);
  const std::string why = done == 1 || error == SSL_ERROR_WANT_READ ? "" : failure();
  flush();  // includes the alert with the reason for the peer
  if (done == 1) {
    note_peer();
    below->pause();  // paused until start()
    return shaken({});
  }
  if (!why.empty()) shaken(fail(ErrorCode::kDenied, options.peer + ": " + why));
}

void TlsStream::Impl::note_peer() {
  if (X509* peer = SSL_get0_peer_certificate(ssl.get())) names = dns_names(peer);
  STACK_OF(X509)* chain = SSL_get0_verified_chain(ssl.get());
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i)
    peer_expires_ns = std::min(peer_expires_ns, time_of(X509_get0_notAfter(sk_X509_value(chain, i))));
}

Status TlsStream::Impl::verify(const TlsCredentials& by) const {
  X509* peer = SSL_get0_peer_certificate(ssl.get());
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> check(X509_STORE_CTX_new(),
                                                                         X509_STORE_CTX_free);
  if (peer == nullptr || !check ||
      X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(by.impl_->context.get()), peer,
                          SSL_get_peer_cert_chain(ssl.get())) != 1)
    return fail(ErrorCode::kIo, options.peer + ": its certificate cannot be verified again");
  // Checks the peer's purpose and name, as in a handshake.
  X509_STORE_CTX_set_default(check.get(), options.side == Side::kConnects ? "ssl_server" : "ssl_client");
  X509_VERIFY_PARAM* verify = X509_STORE_CTX_get0_param(check.get());
  X509_VERIFY_PARAM_set1(verify, SSL_get0_param(ssl.get()));
  X509_VERIFY_PARAM_set_time(verify, env.now(Clock::kWall) / kNsPerSecond);
  const bool holds = X509_verify_cert(check.get()) == 1;
  ERR_clear_error();
  if (holds) return {};
  return fail(ErrorCode::kDenied, options.peer + ": " + refusal_of(check.get()));
}

std::string TlsStream::Impl::failure() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  return refused.empty() ? handshake_reason(error) : refused;
}

void TlsStream::Impl::shaken(Status status) {
  state = status ? State::kReady : State::kEnded;
  const auto call = std::exchange(ready, {});
  if (call && !closed) call(std::move(status));
}

void TlsStream::Impl::deliver() {
  char record[kRecordBytes];
  while (!closed && !paused && state == State::kStarted) {
    ERR_clear_error();
    const int size = SSL_read(ssl.get(), record, sizeof record);
    if (size > 0) {
      handlers.on_bytes(std::string_view(record, static_cast<size_t>(size)));
      continue;
    }
    const int error = SSL_get_error(ssl.get(), size);
    if (error == SSL_ERROR_ZERO_RETURN) return end(nullptr);
    if (error != SSL_ERROR_WANT_READ) {
      const Error why{ErrorCode::kIo, options.peer + ": " + failure()};
      flush();
      return end(&why);
    }
    flush();  // the reply to a key update
    if (!cut) return;
    if (cut_by) return end(&*cut_by);
    const Error why{ErrorCode::kIo, options.peer + ": the connection was cut"};
    return end(&why);
  }
}

// Delivers from the loop: callbacks must not run within the caller's call.
void TlsStream::Impl::deliver_later() {
  env.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->deliver();
  });
}

void TlsStream::Impl::end(const Error* error) {
  state = State::kEnded;
  if (below) below->pause();
  const auto call = handlers.on_end;
  if (call) call(error);
}

void TlsStream::Impl::flush() {
  const size_t size = BIO_ctrl_pending(out);
  if (size == 0 || !below) return;
  std::string bytes(size, '\0');
  const int got = BIO_read(out, bytes.data(), static_cast<int>(size));
  bytes.resize(static_cast<size_t>(std::max(got, 0)));
  answered = true;
  below->write(std::move(bytes));
}

void TlsStream::Impl::close() {
  closed = true;
  if (state == State::kReady || state == State::kStarted) {
    SSL_shutdown(ssl.get());
    flush();
    ERR_clear_error();
  }
  below.reset();
}

TlsStream::TlsStream(Env& env, std::unique_ptr<Stream> below,
                     std::shared_ptr<const TlsCredentials> credentials, Options options,
                     std::function<void(Status)> ready)
    : impl_(std::make_shared<Impl>(env, std::move(options))) {
  impl_->credentials = std::move(credentials);
  impl_->below = std::move(below);
  impl_->ready = std::move(ready);
  impl_->begin();
}
TlsStream::~TlsStream() { impl_->close(); }

const std::vector<std::string>& TlsStream::peer_names() const { return impl_->names; }
bool TlsStream::has_answered() const { return impl_->answered; }
TimeNs TlsStream::peer_expires_ns() const { return impl_->peer_expires_ns; }
Status TlsStream::verify(const TlsCredentials& credentials) const { return impl_->verify(credentials); }

void TlsStream::start(Handlers handlers) {
  impl_->handlers = std::move(handlers);
  if (impl_->state != Impl::State::kReady) return;
  impl_->state = Impl::State::kStarted;
  impl_->below->resume();
  impl_->deliver_later();
}
void TlsStream::pause() {
  impl_->paused = true;
  impl_->below->pause();
}
void TlsStream::resume() {
  if (!std::exchange(impl_->paused, false)) return;
  if (impl_->state != Impl::State::kStarted) return;
  impl_->below->resume();
  impl_->deliver_later();
}

void TlsStream::write(std::string bytes) {
  if (impl_->state != Impl::State::kReady && impl_->state != Impl::State::kStarted) return;
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::string_view part = rest.substr(0, kWriteBytes);
    ERR_clear_error();
    // A memory BIO accepts all bytes at once; a failure is permanent and is reported by reading.
    if (SSL_write(impl_->ssl.get(), part.data(), static_cast<int>(part.size())) <= 0) break;
    impl_->flush();
    rest.remove_prefix(part.size());
  }
}
size_t TlsStream::unsent() const { return impl_->below->unsent(); }
std::string TlsStream::address() const { return impl_->below->address(); }
// Unix streams only.
size_t TlsStream::drain(size_t) { return 0; }

}  // namespace culprit::io
