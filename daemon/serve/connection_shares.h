// Which connection of the HTTP server gives way when nearly all are taken. Pure; any thread.
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

// The index of a connection of the client that has the most. If more than `waiting_max` connections of that
// client wait for a request, the oldest one of these; else its oldest answer. So idle connections and half
// requests go before answers, and answers that a client does not read cannot keep out its own requests.
// Requires a member.
size_t gives_way(std::span<const OpenConnection> connections, size_t waiting_max);

}  // namespace culprit::serve
