// Queries NCCL's RAS service, a listener in the job's processes: docs/detectors.md. Any process that listens
// on the port may accept a connection; all these processes belong to one user. The client only reads the
// status: it sends nothing that changes a job.
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

// The socket of the answering process, from /proc/net/tcp.
struct RasSocket {
  uint32_t uid = 0;    // uid of the socket's process
  uint64_t inode = 0;  // /proc/PID/fd names it: socket:[inode]
  bool operator==(const RasSocket&) const = default;
};

struct RasQuestion {
  std::string address;                      // "HOST:PORT", "[V6]:PORT"
  TimeNs within_ns = 20 * kNsPerSecond;     // RAS waits up to 11 s for ranks that do not answer
  const std::atomic<bool>* stop = nullptr;  // ends the wait early; borrowed
  std::string proc = "/proc";
  size_t most = limits::kRasBytes;  // maximum bytes of the answer
  // If set, nothing is sent until the kernel's socket table shows that a process of this user accepted the
  // connection.
  std::optional<uint32_t> only_uid = {};
  // Called before the query, while the process has its socket open. No query is sent if the callback returns
  // false or the socket is not found. May be empty.
  std::function<bool(const RasSocket&)> may_ask = {};
  // Reads the answer as it arrives, instead of RasReply::text. Each call of `next` returns more bytes, valid
  // until the next call; empty: the end. May be empty.
  using Next = std::function<std::string_view()>;
  std::function<void(const Next& next)> read_answer = {};
};

struct RasReply {
  std::string text;                 // the raw answer, if RasQuestion::read_answer is empty
  std::optional<RasSocket> socket;  // none: not found
};

// kNotFound: no process listens. kDenied: the listening process is not of user `only_uid`, or `may_ask`
// refused. kLimit: the answer has more than `most` bytes.
Result<RasReply> ask_ras(const RasQuestion& question);

// The numeric addresses of this host's interfaces, as NCCL prints them.
std::set<std::string> own_addresses();

// Finds the server's socket of the connection between these ports in a table like /proc/net/tcp.
std::optional<RasSocket> socket_between(std::string_view table, uint16_t server_port, uint16_t client_port);
// Whether the process has the socket open. Also false if the process's descriptors are not readable.
bool has_socket(const std::string& proc, uint32_t pid, uint64_t inode);

}  // namespace culprit::io
