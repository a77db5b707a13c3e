// The socket that a server listens on. For the server's start, on the loop; blocks only where the system
// does.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace culprit::serve {

struct Listening {
  int descriptor = -1;  // non-blocking, listening; the taker closes it
  bool local = false;   // a unix socket
  std::string path;     // of the unix socket's file; the taker removes it at the end
  std::string address;  // as clients write it: "unix:PATH", "127.0.0.1:7420"
};

// `address`: "unix:PATH": a socket file that nobody serves is replaced, one that is served, or a file that is
// no socket, is an error; `mode` are its permissions from its first moment on. Or "HOST:PORT", "[V6]:PORT",
// port 0: any.
Result<Listening> listen_at(const std::string& address, uint32_t mode);

}  // namespace culprit::serve
