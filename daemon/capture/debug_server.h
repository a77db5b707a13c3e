// torch's debug server (torch.distributed.debug): if a rank started it, the process answers over HTTP with
// its Python stacks. This needs no right to trace, so it works where a tracer is not permitted.
//
// The port is ephemeral. It is found by the process's thread "pt_workerserver": the descriptor of the
// thread's accept(), else the process's only listening socket. No other port is tried. Only 127.0.0.1 and
// ::1 are used, and only if the process shares our network namespace. Nothing is sent until the kernel's
// table shows that the process itself accepted the connection. No redirect is followed. Blocking; one
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "capture/process.h"

namespace culprit::capture {

// A row of /proc/net/tcp or tcp6.
struct TcpRow {
  std::string local, remote;  // addresses as the table writes them
  uint16_t local_port = 0, remote_port = 0;
  uint8_t state = 0;  // 0x0a: it listens
  uint32_t uid = 0;
  uint64_t inode = 0;  // 0: not accepted yet
};
// At most `most` rows. Pure.
std::vector<TcpRow> parse_tcp(std::string_view table, size_t most = 65'536);

// Body of an HTTP answer with status 200, by its length or up to the end of the connection. An error
// describes what is wrong with the answer. Pure.
Result<std::string> http_body(std::string_view answer);

// Whether the process has the server's thread.
bool has_debug_server(const ProcessLook& look, uint32_t pid);

// The server's faulthandler text. kNotFound: the server does not listen on a permitted address.
Result<std::string> ask_debug_server(const ProcessLook& look, uint32_t pid, TimeNs within_ns);

}  // namespace culprit::capture
