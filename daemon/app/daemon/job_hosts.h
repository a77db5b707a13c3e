// The hosts of a job whose agents speak of it from elsewhere: up to when each has told what happened there,
// and whether the job's processes are on it. What an agent tells comes late, by its blocks and by what was
// between it and us: silence says something only of times that all of them have told of.
//
// Two clocks: `until` is the agent's, `now` ours; only times of one clock are compared, but that hosts whose
// clocks agree to some seconds are one job's. One thread: the engine's worker.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"

namespace culprit::app {

class JobHosts {
 public:
  // The host has told everything up to `until`. `active`: with lines, not only that it is there.
  void told(const std::string& host, TimeNs until, TimeNs now, bool active);
  void alive(const std::string& host, bool alive);
  // The host's agent is away since then (our clock); kNoTime: it is connected. Returns whether that is new.
  bool away(const std::string& host, TimeNs since);
  // Hosts that may still run the job and whose agents are away, with the time since when. Without a reported
  // connection state, silence counts as away.
  std::map<std::string, TimeNs> away(TimeNs now) const;
  // After a restart: they have not been silent, we were.
  void back(TimeNs now);

  bool contains(const std::string& host) const { return hosts_.contains(host); }
  bool empty() const { return hosts_.empty(); }
  size_t size() const { return hosts_.size(); }
  TimeNs active_ns() const { return active_ns_; }  // ours
  // Whether processes of it are anywhere: false where all hosts said that theirs are gone.
  std::optional<bool> alive(TimeNs now) const;
  // Somebody who may still have it was not heard of lately: the network is cut, or the host is dead.
  bool somebody_missing(TimeNs now) const;
  // Up to when all that are heard have told; kNoTime where nobody has. Where all are silent it stands still.
  TimeNs known_until(TimeNs now) const;
  // Those that are heard have told of that time.
  bool have_told_of(TimeNs at, TimeNs now) const;

 private:
  struct Host {
    TimeNs until_ns = kNoTime;      // its clock
    TimeNs heard_ns = kNoTime;      // ours
    std::optional<TimeNs> away_ns;  // ours: since when it is not connected; kNoTime: it is
    std::optional<bool> alive;
    bool gone() const { return alive == false; }
  };
  static bool is_heard(const Host& host, TimeNs now);
  // The host that has told the least, of those that are waited for; null: none is.
  const Host* last(TimeNs now) const;
  template <class Change>
  void change(Host& host, const Change& change);

  std::map<std::string, Host> hosts_;
  // Those that are not gone. Every block of each asks who is last, so it is not looked for among all of them.
  std::set<std::pair<TimeNs, const Host*>> by_until_;
  size_t alive_ = 0, gone_ = 0;  // that said so
  TimeNs most_ns_ = kNoTime;     // told by any
  TimeNs active_ns_ = kNoTime;
};

}  // namespace culprit::app
