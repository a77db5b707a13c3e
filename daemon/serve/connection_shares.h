// Selects the HTTP connection to close when nearly all are in use. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace culprit::serve {

struct OpenConnection {
  std::string_view who;  // a user or a network
  uint64_t number = 0;   // in order of arrival
  bool waiting = false;  // for a whole request; else it is answered
};

// Index of a connection of the client with most connections. If more than `waiting_max` of them wait for a
// request, the oldest waiting one; else the oldest with an answer in progress. So idle connections and
// incomplete requests are closed before answers. Answers that a client does not read cannot block its own
// requests. Requires at least one connection.
size_t gives_way(std::span<const OpenConnection> connections, size_t waiting_max);

}  // namespace culprit::serve
