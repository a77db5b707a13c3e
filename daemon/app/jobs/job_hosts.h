// The remote hosts of a job: up to which time each has reported, and whether the host has processes of the
// job. Reports are late by the interval of blocks and the delay of the connection. So silence proves
// something only about times that all hosts have reported.
//
// Two clocks: `until` is the agent's, `now` the collector's. Only times of one clock are compared; hosts of a
// job are assumed to agree within some seconds. One thread: the engine's worker.
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
  // The host has reported everything up to `until`. `active`: the report has lines, not only a sign of life.
  void on_report(const std::string& host, TimeNs until, TimeNs now, bool active);
  void alive(const std::string& host, bool alive);
  // The host's agent is disconnected since `since` (the collector's clock); kNoTime: connected. Returns
  // whether the state changed.
  bool away(const std::string& host, TimeNs since);
  // Disconnected hosts that may still run the job, with the start of the disconnection. Without a reported
  // connection state, silence counts as disconnected.
  std::map<std::string, TimeNs> away(TimeNs now) const;
  // After a restart of the collector: restarts the measurement of silence.
  void back(TimeNs now);

  bool contains(const std::string& host) const { return hosts_.contains(host); }
  bool empty() const { return hosts_.empty(); }
  // Hosts that may still have processes.
  std::vector<std::string> present() const {
    std::vector<std::string> out;
    for (const auto& [name, host] : hosts_)
      if (!host.exited()) out.push_back(name);
    return out;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> out;
    for (const auto& [name, host] : hosts_) out.push_back(name);
    return out;
  }
  size_t size() const { return hosts_.size(); }
  TimeNs active_ns() const { return active_ns_; }  // the collector's clock
  // Whether any host has processes of the job; false if all hosts reported that theirs exited.
  std::optional<bool> alive(TimeNs now) const;
  // Whether a host that may still run the job is silent: the network is cut, or the host is dead.
  bool somebody_missing(TimeNs now) const;
  // The watermark of all hosts that report; kNoTime if none ever did. It stops if all hosts are silent.
  TimeNs known_until(TimeNs now) const;
  // Whether all hosts that are not silent have reported up to `at`.
  bool have_reported(TimeNs at, TimeNs now) const;

 private:
  struct Host {
    TimeNs until_ns = kNoTime;          // on the host's clock
    TimeNs last_received_ns = kNoTime;  // the collector's clock
    std::optional<TimeNs> away_ns;      // the collector's clock: start of the disconnection; kNoTime:
                                        // connected
    std::optional<bool> alive;
    bool exited() const { return alive == false; }
  };
  static bool is_reporting(const Host& host, TimeNs now);
  // The host with the smallest `until` among the counted hosts; null: none.
  const Host* last(TimeNs now) const;
  template <class Change>
  void change(Host& host, const Change& change);

  std::map<std::string, Host> hosts_;
  // Hosts that may still have processes, sorted, since every block looks up the last host.
  std::set<std::pair<TimeNs, const Host*>> by_until_;
  size_t alive_ = 0, exited_ = 0;  // hosts that reported processes; hosts that reported that theirs exited
  TimeNs most_ns_ = kNoTime;       // largest `until` of any host
  TimeNs active_ns_ = kNoTime;
};

}  // namespace culprit::app
