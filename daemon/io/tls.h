// TLS over a Stream; itself a Stream. OpenSSL uses memory BIOs, never a descriptor. TLS 1.2 and newer,
// certificates on both sides, no renegotiation. Without session tickets and resumption, reloaded certificates
// apply to every new connection.
//
// Thread: the loop's. TlsCredentials are loaded and compared on any thread, and immutable afterwards. The
// creator owns a TlsStream, which owns the stream below it. A TlsStream may be destroyed from within its
// callbacks. Errors name the peer by its certificate, with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"

namespace culprit::io {

struct TlsFiles {
  std::string cert;  // PEM: the certificate and its intermediates
  std::string key;
  std::string ca;        // authorities of the peers' certificates
  std::string crl = {};  // PEM: revocation lists, one per authority; empty: no revocation check
  bool operator==(const TlsFiles&) const = default;
};

// Certificates, key and authorities, for any number of connections.
class TlsCredentials {
 public:
  // Reads the files; blocks. An error names the faulty file: unreadable, a key of another certificate, or a
  // key that others may read (io/secret_file.h).
  static Result<std::shared_ptr<const TlsCredentials>> load(const TlsFiles& files);
  ~TlsCredentials();
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;

  // Whether the files changed; blocks. Unreadable files count as unchanged, so that a renewal in progress
  // does not interrupt service.
  bool outdated() const;
  const TlsFiles& files() const;
  // Subject and expiry of our own certificate.
  const std::string& subject() const;  // "node-3": its first DNS name, else its common name
  TimeNs expires_ns() const;

 private:
  friend class TlsStream;
  struct Impl;
  explicit TlsCredentials(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

class TlsStream final : public Stream {
 public:
  enum class Side : uint8_t { kConnects, kAccepts };
  struct Options {
    Side side = Side::kConnects;
    // kConnects: the name or address that the peer's certificate must have. kAccepts: the address of the
    // peer, for errors only; peer_names() has the names of its certificate.
    std::string peer;
  };
  // Starts the handshake. Calls `ready` once, never from within. On success start() may be called; on an
  // error (one sentence) the stream is unusable. The caller sets any time-out.
  TlsStream(Env& env, std::unique_ptr<Stream> below, std::shared_ptr<const TlsCredentials> credentials,
            Options options, std::function<void(Status)> ready);
  // Sends close_notify: nothing more follows.
  ~TlsStream() override;

  // DNS names of the peer's verified certificate, in lower case; once ready.
  const std::vector<std::string>& peer_names() const;

  // Whether the peer's first message arrived completely, so that this side answered. Until then a peer costs
  // no more than an idle one.
  bool has_answered() const;
  // Earliest expiry in the peer's certificate chain; once ready.
  TimeNs peer_expires_ns() const;
  // Whether the peer's certificate would be accepted now, with these credentials; once ready. Costs a
  // signature or two, some 0.2 ms.
  Status verify(const TlsCredentials& credentials) const;

  // An end without close_notify is an error: an attacker may have cut the connection.
  void start(Handlers handlers) override;
  void pause() override;
  void resume() override;
  void write(std::string bytes) override;  // once ready
  size_t unsent() const override;
  std::optional<PeerCredentials> peer() const override { return std::nullopt; }
  std::string address() const override;
  size_t drain(size_t max) override;

 private:
  struct Impl;
  const std::shared_ptr<Impl> impl_;
};

// A problem of certificate files that load() finds, or that only peers would notice.
struct TlsTrouble {
  enum class File : uint8_t { kCert, kKey, kCa, kCrl };
  File file = File::kCert;
  Error error;
  bool may_be_meant = false;  // works on this side, and may be intended by the peers' configuration
};
struct TlsUse {
  TlsStream::Side side = TlsStream::Side::kConnects;
  std::string name;  // required in the certificate; empty: any
  TimeNs now_ns = 0;
};
// Blocks.
std::vector<TlsTrouble> examine(const TlsFiles& files, const TlsUse& use);

// Bytes that a peer may send before the handshake is done: a certificate chain has some 10 KB.
constexpr size_t kTlsHandshakeBytes = 256 << 10;

}  // namespace culprit::io
