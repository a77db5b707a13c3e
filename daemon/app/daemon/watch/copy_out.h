// Copies this host's checkpoints to other hosts: looks at the folders, takes the newest whole checkpoint of
// each series once nothing in it changed for a while, and sends it to each address. One transfer at a time;
// it waits while the job writes its next checkpoint, for ten minutes in all.
//
// Thread: that of its Env, which also reads the files. Owned by CopyService.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "app/checkpoint/copyable.h"
#include "app/config/config.h"
#include "app/daemon/watch/copy_state.h"
#include "app/daemon/watch/save_watch.h"
#include "io/env.h"
#include "io/tls.h"
#include "respond/checkpoint/copy_sender.h"

namespace culprit::app {

struct CopyParts {
  Config::Copies copies;
  std::string host;
  TlsFiles tls;
  std::string socket;  // "unix:PATH"
  std::shared_ptr<CopyState> state;
  std::function<void(LogLevel, const std::string&)> log;  // any thread
  std::shared_ptr<const std::atomic<bool>> stop;
};

class CopyOut {
 public:
  CopyOut(io::Env& env, CopyParts parts);
  ~CopyOut();

 private:
  using Target = std::pair<std::string, std::string>;  // id of the manifest, address

  // A checkpoint that was seen.
  struct Seen {
    copies::Manifest manifest;
    TimeNs since_ns = 0;  // monotonic: unchanged
    bool present = true;
  };
  struct Attempt {
    TimeNs not_before_ns = 0;  // monotonic
    TimeNs delay_ns = 0;
    std::string error;  // of the last one
  };

  void look();
  void look_at(const std::string& folder);
  void see(const Copyable& copyable);
  void watch_saves();
  void hold();
  void send_next();
  void send(const copies::Manifest& manifest, const std::string& to);
  void run_command(const copies::Manifest& manifest);
  void sent(const Target& target, const std::string& name, Result<respond::checkpoint::CopySent> result);
  void account(const respond::checkpoint::CopySent& progress);
  void publish();
  void trouble(const std::string& key, const std::string& sentence);
  std::vector<std::string> addresses() const;
  TimeNs mono() const { return env_.now(io::Clock::kMonotonic); }
  TimeNs wall() const { return env_.now(io::Clock::kWall); }

  io::Env& env_;
  const CopyParts parts_;
  std::shared_ptr<const io::TlsCredentials> tls_;
  std::unique_ptr<io::Timer> timer_;
  std::map<std::string, Seen> seen_;  // by path
  std::map<Target, Attempt> attempts_;
  std::map<Target, TimeNs> done_;                // wall clock
  std::map<std::string, TimeNs> turns_;          // by series: when its last attempt began, monotonic
  std::map<std::string, std::string> troubles_;  // by folder, checkpoint or address
  std::set<std::string> present_;                // checkpoints of the latest look
  size_t left_out_ = 0;                          // of them: beyond the limit
  Target now_;
  std::unique_ptr<respond::checkpoint::CopySender> sender_;
  respond::checkpoint::CopySent accounted_;
  TimeNs held_since_ns_ = 0, held_ns_ = 0;  // the transfer; monotonic, 0: not held
  SaveWatch saves_;
};

}  // namespace culprit::app
