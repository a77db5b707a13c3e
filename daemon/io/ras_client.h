// Asks NCCL's RAS service, a listener of the job's processes: docs/detectors.md. A connection lands in any
// process that listens on the port; all of them are of one user. The client only reads the status: it
// sends nothing that changes a job.
//
// Blocking, for a worker's thread; bounded in time and bytes. The peer is untrusted.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::io {

// The socket of the process that answers, by /proc/net/tcp.
struct RasSocket {
  uint32_t uid = 0;    // of its process
  uint64_t inode = 0;  // /proc/PID/fd names it: socket:[inode]
  bool operator==(const RasSocket&) const = default;
};

struct RasQuestion {
  std::string address;                      // "HOST:PORT", "[V6]:PORT"
  TimeNs within_ns = 20 * kNsPerSecond;     // RAS waits up to 11 s for ranks that do not answer
  const std::atomic<bool>* stop = nullptr;  // ends the wait early; borrowed
  std::string proc = "/proc";
  size_t most = limits::kRasBytes;  // of the answer
  // Nothing is sent before the kernel's table says that a process of this user accepted the connection.
  std::optional<uint32_t> only_uid = {};
  // Called before the question, while the process has its socket open. False, or a socket that is not found:
  // it is not asked. May be empty.
  std::function<bool(const RasSocket&)> may_ask = {};
  // Reads the answer as it comes, instead of RasReply::text: each call of `next` gives more bytes, valid
  // until the next call; empty: the end. May be empty.
  using Next = std::function<std::string_view()>;
  std::function<void(const Next& next)> read_answer = {};
};

struct RasReply {
  std::string text;                 // as it came, without RasQuestion::read_answer
  std::optional<RasSocket> socket;  // none: not found
};

// kNotFound: no process listens. kDenied: one of another user than `only_uid` does, or `may_ask` refused.
// kLimit: the answer has more than `most` bytes.
Result<RasReply> ask_ras(const RasQuestion& question);

// The numeric addresses of this host's interfaces, as NCCL prints them.
std::set<std::string> own_addresses();

// The server's socket between these ports, in a table like /proc/net/tcp.
std::optional<RasSocket> socket_between(std::string_view table, uint16_t server_port, uint16_t client_port);
// Whether the process has the socket open. False too if its descriptors are not readable.
bool has_socket(const std::string& proc, uint32_t pid, uint64_t inode);

}  // namespace culprit::io
