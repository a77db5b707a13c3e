// Creates the listening socket of a server. Used at the server's start, on the loop; blocks only for the
// system calls.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace culprit::serve {

struct Listening {
  int descriptor = -1;  // non-blocking, listening; the caller closes it
  bool local = false;   // a unix socket
  std::string path;     // of the unix socket's file; the caller removes it at the end
  std::string address;  // as clients write it: "unix:PATH", "127.0.0.1:7420"
};

// `address`: "unix:PATH": a socket file without a server is replaced; a served socket or another kind of file
// is an error; `mode`: its permissions from its creation on. Or "HOST:PORT", "[V6]:PORT", port 0: any.
// "127.0.0.1:7420" or "[::1]:7420"; "?" for other kinds of addresses.
std::string address_text(const sockaddr_storage& at, socklen_t size);

Result<Listening> listen_at(const std::string& address, uint32_t mode);

}  // namespace culprit::serve
