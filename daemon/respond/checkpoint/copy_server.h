// Takes copies of other hosts' checkpoints, and gives them back. Two listeners: TCP with TLS for the agents
// of other hosts, whose name is that of their certificate; and a unix socket for users of this host, whose
// uid the kernel reports. A user gets copies whose files are all the user's own; root gets all. A request of
// a local user for another host's copies is passed on there, with the user's uid.
//
// Thread: the loop's, which also reads and writes the store: it has no other work. Owned by the caller.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/env.h"
#include "io/tls.h"
#include "model/copies.h"
#include "respond/checkpoint/copy_store.h"

namespace culprit::respond::checkpoint {

struct CopyServerOptions {
  std::string host;                                     // this one
  std::string listen;                                   // HOST:PORT; empty: takes nothing from other hosts
  std::string socket;                                   // "unix:PATH"; empty: no local users
  std::shared_ptr<const io::TlsCredentials> tls;        // null: no TLS, on loopback only
  std::vector<std::string> accept;                      // hosts that may store copies here; empty: all
  bool restore_anywhere = true;                         // other hosts than the owner may restore its copies
  std::vector<std::string> peers;                       // addresses that users of this host may ask
  std::function<std::vector<copies::Copied>()> copied;  // state of this host's own copies
  std::function<void(const std::string&)> report;       // a refusal or failure, in a sentence
};

struct CopyServerCounters {
  uint64_t sessions = 0, refused = 0;
  uint64_t served = 0, served_bytes = 0;  // files and bytes given back
  size_t connections = 0;
};

class CopySession;

class CopyServer {
 public:
  // `store` may be null: nothing is stored here, and requests are passed on. Borrowed.
  static Result<std::unique_ptr<CopyServer>> start(io::Env& env, CopyServerOptions options, CopyStore* store);
  ~CopyServer();

  void set_tls(std::shared_ptr<const io::TlsCredentials> tls) { options_.tls = std::move(tls); }
  CopyServerCounters counters() const;
  std::string address() const { return listener_ ? listener_->address() : ""; }

 private:
  friend class CopySession;
  CopyServer(io::Env& env, CopyServerOptions options, CopyStore* store);
  void accept(std::unique_ptr<io::Stream> stream, bool local);
  void sweep();
  void leave(CopySession& session);
  // The connection that stores this copy of the host gives way to a newer one.
  void supersede(const std::string& host, const std::string& id);
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }

  io::Env& env_;
  CopyServerOptions options_;
  CopyStore* const store_;
  CopyServerCounters counters_;
  std::map<CopySession*, std::shared_ptr<CopySession>> sessions_;
  std::unique_ptr<io::Listener> listener_, local_;
  std::unique_ptr<io::Timer> sweep_;
};

}  // namespace culprit::respond::checkpoint
