#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "io/secret_file.h"
#include "io/tls_impl.h"

namespace culprit::io {
namespace {

// Limit of a PEM file: a chain and a private key, or the authorities of a site.
constexpr size_t kPemBytes = 4 << 20;

struct BioDelete {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Bio = std::unique_ptr<BIO, BioDelete>;

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  errno = in ? 0 : errno;
  std::string text;
  if (in) {
    text.resize(kPemBytes + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (errno != 0) return system_failure(path, errno);
  if (text.size() > kPemBytes)
    return fail(ErrorCode::kLimit, path + ": is no certificate or key: it is too large");
  return text;
}

std::string lower(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return name;
}

struct Texts {
  std::string cert, key, ca, crl;
  uint64_t hash() const { return mix64(mix64(hash64(cert), hash64(key)), mix64(hash64(ca), hash64(crl))); }
  ~Texts() { OPENSSL_cleanse(key.data(), key.size()); }
};

Status read_all(const TlsFiles& files, Texts& texts) {
  for (const auto& [path, text] : {std::pair(&files.cert, &texts.cert), std::pair(&files.key, &texts.key),
                                   std::pair(&files.ca, &texts.ca), std::pair(&files.crl, &texts.crl)}) {
    if (path == &files.crl && path->empty()) continue;
    auto read = path == &files.key ? read_secret(*path, kPemBytes) : read_file(*path);
    if (!read) return tl::unexpected(read.error());
    *text = std::move(*read);
  }
  return {};
}

// OpenSSL's latest error.
std::string reason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* text = error == 0 ? nullptr : ERR_reason_error_string(error);
  return text == nullptr ? "it is not understood" : text;
}

tl::unexpected<Error> wrong(const std::string& path, const std::string& what) {
  return fail(ErrorCode::kInvalid, path + ": " + what + " (" + reason() + ")");
}

Status use_certificate(SSL_CTX* context, const std::string& path, const std::string& text) {
  const Bio bio = bio_of(text);
  const X509Ptr own(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (!own || SSL_CTX_use_certificate(context, own.get()) != 1)
    return wrong(path, "has no usable certificate");
  while (X509Ptr between{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)})
    if (SSL_CTX_add1_chain_cert(context, between.get()) != 1)
      return wrong(path, "has an unusable certificate");
  ERR_clear_error();  // the end of the file is no error
  return {};
}

using Key = std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)>;

Result<Key> read_key(const std::string& path, const std::string& text) {
  const Bio bio = bio_of(text);
  // Returns no password; otherwise OpenSSL would ask for one at the terminal.
  const auto none = [](char*, int, int, void*) { return 0; };
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, none, nullptr), EVP_PKEY_free);
  if (!key) return wrong(path, "has no usable private key");
  return key;
}

Status use_key(SSL_CTX* context, const TlsFiles& files, const std::string& text) {
  const auto key = read_key(files.key, text);
  if (!key) return tl::unexpected(key.error());
  if (SSL_CTX_use_PrivateKey(context, key->get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return wrong(files.key, "is not the key of " + files.cert);
  return {};
}

Status use_authorities(SSL_CTX* context, const std::string& path, const std::string& text) {
  const Bio bio = bio_of(text);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  size_t count = 0;
  while (X509Ptr authority{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store, authority.get()) != 1) return wrong(path, "has an unusable certificate");
    if (SSL_CTX_add_client_CA(context, authority.get()) != 1)
      return wrong(path, "has an unusable certificate");
    ++count;
  }
  if (count == 0) return wrong(path, "has no certificate");
  ERR_clear_error();
  return {};
}

// Enables revocation checks: no certificate of a peer's chain may be revoked, and each authority must have a
// list.
Status use_revocations(SSL_CTX* context, const std::string& path, const std::string& text) {
  const Bio bio = bio_of(text);
  X509_STORE* store = SSL_CTX_get_cert_store(context);
  using List = std::unique_ptr<X509_CRL, void (*)(X509_CRL*)>;
  size_t count = 0;
  for (;; ++count) {
    const List list(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr), X509_CRL_free);
    if (!list) break;
    if (X509_STORE_add_crl(store, list.get()) != 1) return wrong(path, "has an unusable revocation list");
  }
  if (count == 0) return wrong(path, "has no revocation list");
  ERR_clear_error();
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return {};
}

// Whether each list is valid now: an outdated list rejects all certificates of its authority.
Status fits_time(const std::string& path, const std::string& text, TimeNs now_ns) {
  const Bio bio = bio_of(text);
  Status status;
  while (X509_CRL* list = PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr)) {
    const ASN1_TIME* next = X509_CRL_get0_nextUpdate(list);
    if (status && next != nullptr && time_of(next) < now_ns)
      status = fail(ErrorCode::kInvalid, path + ": is out of date since " + format_time(time_of(next)) +
                                             ": certificates of its authority are refused");
    X509_CRL_free(list);
  }
  ERR_clear_error();
  return status;
}

// Checks what peers verify: validity, names, purpose.
Status fits_use(X509* own, const std::string& path, const TlsUse& use) {
  const TimeNs from = time_of(X509_get0_notBefore(own)), to = time_of(X509_get0_notAfter(own));
  if (to < use.now_ns) return fail(ErrorCode::kInvalid, path + ": has expired at " + format_time(to));
  if (from > use.now_ns)
    return fail(ErrorCode::kInvalid, path + ": is valid from " + format_time(from) + " on");
  std::string names;
  bool named = use.name.empty();
  for (const std::string& name : dns_names(own)) {
    names += (names.empty() ? "" : ", ") + name;
    named = named || name == lower(use.name);
  }
  if (!named)
    return fail(ErrorCode::kInvalid, path + ": is that of " + (names.empty() ? "no host" : names) +
                                         " by its DNS names, and not of " + use.name);
  const bool connects = use.side == TlsStream::Side::kConnects;
  if (X509_check_purpose(own, connects ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER, 0) != 1)
    return fail(ErrorCode::kInvalid, path + ": its key usage does not allow it to be that of a " +
                                         (connects ? "client" : "server"));
  return {};
}

// Whether any authority is valid: some authorities of a site may have expired, not all. A self-signed
// certificate is its own authority.
Status fits_authority(const std::string& path, const std::string& text, const TlsUse& use) {
  const Bio bio = bio_of(text);
  std::string refused;
  while (X509Ptr one{PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)}) {
    const TimeNs to = time_of(X509_get0_notAfter(one.get()));
    const bool signs = X509_check_ca(one.get()) != 0 ||
                       X509_NAME_cmp(X509_get_subject_name(one.get()), X509_get_issuer_name(one.get())) == 0;
    if (signs && to >= use.now_ns) return {};
    if (!refused.empty()) continue;
    refused = signs ? "has expired at " + format_time(to)
                    : "is the certificate of " + name_of(one.get()) + ", and of no authority (CA:TRUE)";
  }
  ERR_clear_error();
  return fail(ErrorCode::kInvalid, path + ": " + refused);
}

// Whether our own authorities accept the certificate; peers may trust other authorities.
Status fits_own_authority(SSL_CTX* context, const TlsFiles& files, const TlsUse& use) {
  const std::unique_ptr<X509_STORE_CTX, void (*)(X509_STORE_CTX*)> check(X509_STORE_CTX_new(),
                                                                         X509_STORE_CTX_free);
  STACK_OF(X509)* between = nullptr;
  SSL_CTX_get0_chain_certs(context, &between);
  X509* own = SSL_CTX_get0_certificate(context);
  if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), own, between) != 1)
    return fail(ErrorCode::kIo, "TLS: there is no memory for it");
  X509_STORE_CTX_set_time(check.get(), 0, static_cast<time_t>(use.now_ns / kNsPerSecond));
  const bool holds = X509_verify_cert(check.get()) == 1;
  const int error = X509_STORE_CTX_get_error(check.get());
  ERR_clear_error();
  if (holds) return {};
  return fail(ErrorCode::kInvalid, files.cert + ": is not signed by the authority in " + files.ca + " (" +
                                       X509_verify_cert_error_string(error) +
                                       "): a peer that trusts this one alone refuses it");
}

}  // namespace

std::vector<TlsTrouble> examine(const TlsFiles& files, const TlsUse& use) {
  using File = TlsTrouble::File;
  std::vector<TlsTrouble> out;
  const auto holds = [&](File file, const auto& result) {
    if (!result) out.push_back({file, result.error(), false});
    return result.has_value();
  };
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(new_tls_context(), SSL_CTX_free);
  if (!context) return {{File::kCert, Error{ErrorCode::kIo, "TLS: there is no memory for it"}, false}};
  Texts texts;
  auto cert = read_file(files.cert), ca = read_file(files.ca);
  auto key = read_secret(files.key, kPemBytes);
  const bool usable =
      holds(File::kCert, cert) && holds(File::kCert, use_certificate(context.get(), files.cert, *cert));
  const bool fits =
      usable && holds(File::kCert, fits_use(SSL_CTX_get0_certificate(context.get()), files.cert, use));
  if (holds(File::kKey, key)) {
    texts.key = std::move(*key);
    if (usable)
      holds(File::kKey, use_key(context.get(), files, texts.key));
    else
      holds(File::kKey, read_key(files.key, texts.key));
  }
  const bool trusts = holds(File::kCa, ca) &&
                      holds(File::kCa, use_authorities(context.get(), files.ca, *ca)) &&
                      holds(File::kCa, fits_authority(files.ca, *ca, use));
  if (!files.crl.empty()) {
    const auto crl = read_file(files.crl);
    const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> apart(new_tls_context(), SSL_CTX_free);
    if (holds(File::kCrl, crl) && holds(File::kCrl, use_revocations(apart.get(), files.crl, *crl)))
      holds(File::kCrl, fits_time(files.crl, *crl, use.now_ns));
  }
  if (!fits || !trusts) return out;
  if (const Status own = fits_own_authority(context.get(), files, use); !own)
    out.push_back({File::kCert, own.error(), true});
  return out;
}

SSL_CTX* new_tls_context() {
  SSL_CTX* context = SSL_CTX_new(TLS_method());
  if (context == nullptr) return nullptr;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                   SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  // Saves 34 KB per connection: there are thousands of idle ones. Sends only the chain in the file: the
  // authority's own certificate proves nothing to a peer.
  SSL_CTX_set_mode(context,
                   SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_NO_AUTO_CHAIN);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, note_verification);
  SSL_CTX_set_max_cert_list(context, 64 << 10);
  return context;
}

std::string name_of(X509* certificate) {
  for (std::string& name : dns_names(certificate)) return std::move(name);
  char common[256] = "";
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, common, sizeof common);
  return *common == '\0' ? "a certificate without a name" : to_terminal(common);
}

std::vector<std::string> dns_names(X509* certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; all && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type != GEN_DNS) continue;
    const auto* bytes = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
    std::string text(bytes, static_cast<size_t>(ASN1_STRING_length(name->d.dNSName)));
    // Skips names with an inner NUL, which could pass a C string comparison falsely.
    if (text.empty() || text.find('\0') != text.npos) continue;
    names.push_back(to_terminal(lower(std::move(text))));
  }
  return names;
}

TimeNs time_of(const ASN1_TIME* time) {
  std::tm parts = {};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return kNoTime;
  const int64_t days = days_from_civil(parts.tm_year + 1900, static_cast<unsigned>(parts.tm_mon + 1),
                                       static_cast<unsigned>(parts.tm_mday));
  const int64_t seconds = days * 86400 + parts.tm_hour * 3600 + parts.tm_min * 60 + parts.tm_sec;
  // Clamped: a certificate may be valid until the year 9999, beyond 64-bit nanoseconds.
  return std::clamp(seconds, int64_t{0}, int64_t{9'000'000'000}) * kNsPerSecond;
}

TlsCredentials::TlsCredentials(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsCredentials::~TlsCredentials() = default;

Result<std::shared_ptr<const TlsCredentials>> TlsCredentials::load(const TlsFiles& files) {
  Texts texts;
  if (Status status = read_all(files, texts); !status) return tl::unexpected(status.error());
  auto impl = std::make_unique<Impl>();
  impl->files = files;
  impl->hash = texts.hash();
  impl->context.reset(new_tls_context());
  if (!impl->context) return fail(ErrorCode::kIo, "TLS: there is no memory for it");
  SSL_CTX* context = impl->context.get();
  Status status = use_certificate(context, files.cert, texts.cert);
  if (status) status = use_key(context, files, texts.key);
  if (status) status = use_authorities(context, files.ca, texts.ca);
  if (status && !files.crl.empty()) status = use_revocations(context, files.crl, texts.crl);
  if (!status) return tl::unexpected(status.error());
  X509* own = SSL_CTX_get0_certificate(context);
  impl->subject = name_of(own);
  impl->expires_ns = time_of(X509_get0_notAfter(own));
  return std::shared_ptr<const TlsCredentials>(new TlsCredentials(std::move(impl)));
}

bool TlsCredentials::outdated() const {
  Texts texts;
  return read_all(impl_->files, texts) && texts.hash() != impl_->hash;
}
const TlsFiles& TlsCredentials::files() const { return impl_->files; }
const std::string& TlsCredentials::subject() const { return impl_->subject; }
TimeNs TlsCredentials::expires_ns() const { return impl_->expires_ns; }

}  // namespace culprit::io
