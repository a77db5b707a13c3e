// Connections whose peers are not yet authenticated: limits their number, in total and per address, and
// selects the one to close for a new one.
//
// There are two pools of equal size: one for unknown addresses, and one for addresses that had an accepted
// session within the last day. So unknown peers cannot take the places that reconnecting agents need. When
// a pool or an address is full, the oldest connection that has not begun a handshake is closed; else the
// oldest one in a handshake, if it had time to finish. Otherwise the new connection is refused: if many
// agents reconnect at once, closing handshakes in progress would let none succeed.
//
// Owned by the Collector; the loop's thread. It never closes a connection itself.
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

  // Decides on a new connection of `network` (io::network_of), and on the connection to close for it.
  struct Verdict {
    bool admitted = true;
    Session* gives_way = nullptr;
  };
  Verdict judge(const std::string& network, TimeNs now);
  void add(Session& session, const std::string& network, TimeNs now);
  // Call when the session is authenticated or closed; no effect if it is not in a pool.
  void remove(Session& session);
  // The connection to close when the process is out of connections; null: none.
  Session* oldest();

  // A peer of this network had an accepted session at `now`.
  void prove(const std::string& network, TimeNs now);
  bool is_known(const std::string& network, TimeNs now) const;
  // Forgets networks whose last accepted session is too old.
  void forget(TimeNs now);

  size_t size() const { return entries_.size(); }

 private:
  // Connections by number; numbers increase with time.
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
