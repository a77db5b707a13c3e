// Stores other hosts' copies on this host and serves them: opens the store and the server, and tries again
// while either fails. Without its store it still serves this host's users.
//
// Thread: that of its Env. Owned by CopyService.
#pragma once

#include <memory>

#include "app/daemon/watch/copy_out.h"
#include "respond/checkpoint/copy_server.h"
#include "respond/checkpoint/copy_store.h"

namespace culprit::app {

class CopyIn {
 public:
  CopyIn(io::Env& env, CopyParts parts);
  ~CopyIn();

 private:
  void beat();
  Status open();
  Status open_store();
  Status load_tls();
  void report(const std::string& sentence);

  io::Env& env_;
  const CopyParts parts_;
  std::shared_ptr<const io::TlsCredentials> tls_;
  std::unique_ptr<respond::checkpoint::CopyStore> store_;
  std::unique_ptr<respond::checkpoint::CopyServer> server_;
  std::unique_ptr<io::Timer> timer_;
  TimeNs trouble_ns_ = kNoTime;
  std::string trouble_;
};

}  // namespace culprit::app
