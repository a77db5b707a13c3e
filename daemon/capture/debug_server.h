// torch's debug server (torch.distributed.debug): where a rank started it, the process answers over HTTP with
// its Python stacks. It needs no right to trace, so it helps where a tracer may not look.
//
// The port is an ephemeral one. It is found by the thread "pt_workerserver" of the process: the descriptor of
// its accept(), else the process's only listening socket; no other port is ever tried. Only 127.0.0.1 and ::1
// are asked, in the process's own network namespace where that is ours. Nothing is sent before the kernel's
// table says that the process itself accepted the connection. No redirect is followed. Blocking; one thread.
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

// The body of an answer with status 200 and a length, or up to the end of the connection. An error says what
// is wrong with it. Pure.
Result<std::string> http_body(std::string_view answer);

// Whether the process has the server's thread.
bool has_debug_server(const ProcessLook& look, uint32_t pid);

// The text of faulthandler that the server gives. kNotFound: it does not listen where we may ask.
Result<std::string> ask_debug_server(const ProcessLook& look, uint32_t pid, TimeNs within_ns);

}  // namespace culprit::capture
