// The sessions of agents that are read at once: one for each host and job, the one that was told last. A host
// has a share of its own and no more: what it tells beyond goes for its own, first what it declared and sent
// no block of, then what it has not spoken of for the longest. Where all hosts together have too many, the
// one with the most gives up one of its own, so nobody can take the others' place.
//
// One thread: the engine's worker. Owns the sessions; a pointer holds until the next call that is not const.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "app/daemon/remote_stream.h"
#include "base/limits.h"

namespace culprit::app {

class RemoteSessions {
 public:
  // Sessions in all: some thousands of hosts with some jobs each.
  static constexpr size_t kAll = 65'536;
  static constexpr size_t kOfHost = limits::kLiveJobs;

  explicit RemoteSessions(size_t all = kAll) : all_(all) {}

  // By the log's epoch and its stream there.
  using Key = std::pair<uint64_t, StreamId>;
  // A session that takes the place of the host's one of that job.
  void open(Key key, const std::string& host, const StreamInfo& info, logs::Expander::FindRule find);
  // The one that takes a block; null: none does.
  RemoteStream* block(Key key);
  void end(Key key);
  void set_rules(const logs::Expander::FindRule& find);

  size_t size() const { return sessions_.size(); }
  uint64_t made_room() const { return made_room_; }

 private:
  struct Session {
    RemoteStream stream;
    uint64_t turn = 0;  // when it last spoke, in the order of all calls
    bool begun = false;
  };
  using Sessions = std::map<Key, Session>;
  using OfHost = std::map<std::string, Key>;  // by job

  void count(const std::string& host, size_t before, size_t after);
  void drop(Sessions::iterator session);
  void make_room(const std::string& host);

  const size_t all_;
  Sessions sessions_;
  std::map<std::string, OfHost> hosts_;
  std::set<std::pair<size_t, std::string>> by_count_;  // hosts
  uint64_t turns_ = 0, made_room_ = 0;
};

}  // namespace culprit::app
