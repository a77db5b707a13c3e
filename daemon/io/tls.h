// TLS over a Stream, and itself one: OpenSSL with memory BIOs, so that it never sees a descriptor. TLS 1.2
// and newer, certificates on both sides, no renegotiation, no session tickets or resumption (a reload of
// certificates then holds for every new connection).
//
// Thread: the loop's, but for TlsCredentials, which are loaded and compared on any thread and only read from
// then on. A TlsStream is owned by whoever made it, and owns the stream below it; it may be destroyed from
// within its calls. Errors name the peer by its certificate and say what is wrong with it.
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
  std::string cert;  // PEM: the certificate, and those between it and the authority
  std::string key;
  std::string ca;  // whose certificates peers must have
  bool operator==(const TlsFiles&) const = default;
};

// What certificates, key and authorities make: for any number of connections.
class TlsCredentials {
 public:
  // Reads the files; blocks. An error says which of them cannot be read or does not fit: a key that is
  // another certificate's is found here, not at the first connection.
  static Result<std::shared_ptr<const TlsCredentials>> load(const TlsFiles& files);
  ~TlsCredentials();
  TlsCredentials(const TlsCredentials&) = delete;
  TlsCredentials& operator=(const TlsCredentials&) = delete;

  // Whether the files hold something else now; blocks. What cannot be read counts as unchanged: a renewal
  // that is under way must not end what works.
  bool outdated() const;
  const TlsFiles& files() const;
  // Of our own certificate.
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
    // Of kConnects: the name or address that the peer's certificate must have. Of kAccepts: the peer's
    // address, for errors alone; whose certificate it is, peer_names() tells.
    std::string peer;
  };
  // The handshake begins at once. `ready` is called once, never from within: ok, then start() may be called;
  // else the stream is of no use, and the error says why in one sentence. There is no time-out here.
  TlsStream(Env& env, std::unique_ptr<Stream> below, std::shared_ptr<const TlsCredentials> credentials,
            Options options, std::function<void(Status)> ready);
  // Says that nothing more follows (close_notify).
  ~TlsStream() override;

  // DNS names of the peer's certificate, in lower case; of a proven one, once ready.
  const std::vector<std::string>& peer_names() const;

  // An end without close_notify is an error: somebody may have cut the connection.
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

// What is wrong with files that somebody has set up, and with which of them: what load() says, and what only
// peers would say. Empty: nothing is.
struct TlsTrouble {
  enum class File : uint8_t { kCert, kKey, kCa };
  File file = File::kCert;
  Error error;
  bool may_be_meant = false;  // nothing fails on this side, and peers may be set up for it
};
struct TlsUse {
  TlsStream::Side side = TlsStream::Side::kConnects;
  std::string name;  // that the certificate must have; empty: any
  TimeNs now_ns = 0;
};
// Blocks.
std::vector<TlsTrouble> examine(const TlsFiles& files, const TlsUse& use);

// What a peer may send before the handshake is done: a chain of certificates is some 10 KB.
constexpr size_t kTlsHandshakeBytes = 256 << 10;

}  // namespace culprit::io
