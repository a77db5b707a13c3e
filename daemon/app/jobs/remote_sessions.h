// The open sessions of agents: the latest one for each host and job. Each host has a fixed share. Beyond its
// share, a new session replaces one of the same host: first a declared one without blocks, then the least
// recently used. If all hosts together exceed the limit, the host with the most sessions loses one, so no
// host can displace others.
//
// One thread: the engine's worker. Owns the sessions; a pointer is valid until the next non-const call.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "app/jobs/remote_stream.h"
#include "base/limits.h"

namespace culprit::app {

class RemoteSessions {
 public:
  // Total number of sessions: some thousands of hosts with some jobs each.
  static constexpr size_t kAll = 65'536;
  static constexpr size_t kOfHost = limits::kLiveJobs;

  explicit RemoteSessions(size_t all = kAll) : all_(all) {}

  // The log's epoch and the stream in the log.
  using Key = std::pair<uint64_t, StreamId>;
  // Opens a session; it replaces the host's session of that job.
  void open(Key key, const std::string& host, const StreamInfo& info, wire::LineExpander::FindRule find);
  // The session of a block; null: unknown.
  RemoteStream* block(Key key);
  void end(Key key);
  void set_rules(const wire::LineExpander::FindRule& find);

  size_t size() const { return sessions_.size(); }
  uint64_t made_room() const { return made_room_; }

 private:
  struct Session {
    RemoteStream stream;
    uint64_t turn = 0;  // time of the last use, as a count of all calls
    bool begun = false;
  };
  using Sessions = std::map<Key, Session>;
  using OfHost = std::map<std::string, Key>;  // by job

  void count(const std::string& host, size_t before, size_t after);
  void drop(Sessions::iterator session);
  void make_room(const std::string& host);

  const size_t all_;
  wire::FormShapes shapes_;  // of all hosts
  Sessions sessions_;
  std::map<std::string, OfHost> hosts_;
  std::set<std::pair<size_t, std::string>> by_count_;  // number of sessions, host
  uint64_t turns_ = 0, made_room_ = 0;
};

}  // namespace culprit::app
