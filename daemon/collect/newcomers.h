// The connections whose peers have not proven who they are: bounds their number, in sum and per address, and
// selects the one that gives way to a new one.
//
// There are two pools of equal size: strangers, and addresses that had an accepted session within the last
// day. So strangers cannot take the places that the agents need to return. Within a full pool, and within a
// full address, the oldest connection without a handshake goes first; then the oldest one within a handshake,
// if it had time for it. Else the new connection is refused: closing handshakes that are under way would
// serve no one when many agents return at once.
//
// Owned by the Collector; the loop's thread. It never closes a connection.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "base/time.h"

namespace culprit::collect {

class Session;

class Newcomers {
 public:
  struct Limits {
    size_t all = 0;                     // in sum, half of it for known addresses
    size_t of_address = 0;              // a training user may share it with the agent
    TimeNs handshake_ns = 500'000'000;  // time of a handshake that is under way
    TimeNs known_ns = 24 * 3600 * kNsPerSecond;
  };
  explicit Newcomers(Limits limits) : limits_(limits) {}

  // A connection of `network` has come (io::network_of). Returns the connection to close for it.
  struct Verdict {
    bool admitted = true;
    Session* gives_way = nullptr;
  };
  Verdict judge(const std::string& network, TimeNs now);
  void add(Session& session, const std::string& network, TimeNs now);
  // It has proven who it is, or is gone; no effect if it is not here.
  void remove(Session& session);
  // The connection to close for a place in the process; null if there is none.
  Session* oldest();

  // A peer of this network had an accepted session at `now`.
  void prove(const std::string& network, TimeNs now);
  bool is_known(const std::string& network, TimeNs now) const;
  // Forgets networks that proved themselves too long ago.
  void forget(TimeNs now);

  size_t size() const { return entries_.size(); }

 private:
  // Connections by their number, which grows with time.
  struct Waiting {
    std::map<uint64_t, Session*> silent, begun;
    size_t size() const { return silent.size() + begun.size(); }
  };
  struct Entry {
    uint64_t number = 0;
    std::string network;
    bool known = false;  // the pool
    TimeNs since_ns = 0;
  };
  Session* first(Waiting& waiting, TimeNs now) const;

  const Limits limits_;
  uint64_t next_ = 0;
  Waiting pools_[2];  // strangers, known
  std::unordered_map<std::string, Waiting> networks_;
  std::unordered_map<Session*, Entry> entries_;
  std::unordered_map<std::string, TimeNs> proven_;  // the last time
};

}  // namespace culprit::collect
