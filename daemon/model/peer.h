// What an agent and its collector say to each other: plain values, and the bytes that they travel as.
//
// A connection carries messages: "CP", type u16, size of the body u32, body; numbers little-endian. The agent
// begins with Hello, the collector answers with Welcome or Refused. Then frames of the agent's logs follow,
// each as its spool has it on the disk, in the order of their sequences, and are acknowledged once they are
// committed. A body may have more at its end than this version knows (a newer minor one wrote it), and
// messages of an unknown type are passed over by their size. Header, Hello, Refused and what stands in them
// now stay as they are in every major version, so that any two peers can tell each other why they part.
//
// Values own what they hold. Pure functions, any thread; a Splitter belongs to one connection. Nothing here
// allocates more than the bytes that came, and no input is an assertion.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::peer {

struct Version {
  uint16_t major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};
constexpr Version kOldest = {1, 0}, kNewest = {1, 0};
// What both know: the newest major that both have, with the lesser minor. A sentence where there is none.
Result<Version> choose_version(Version oldest, Version newest);

// The logs of an agent. The condensed one goes first wherever both have something to send.
enum class Log : uint8_t { kCondensed = 0, kEvidence = 1 };
inline constexpr std::array kLogs = {Log::kCondensed, Log::kEvidence};
const char* name_of(Log log);

struct LogBounds {
  Log log = Log::kCondensed;
  uint64_t epoch = 0;  // of its spool
  uint64_t first = 1;  // the oldest data frame that is held
  uint64_t next = 1;   // behind the newest; first == next: none is held
  bool operator==(const LogBounds&) const = default;
};

// Agent.
struct Hello {
  Version oldest = kOldest, newest = kNewest;
  std::string program;  // "0.1.0"
  std::string host;     // the certificate must be of this name
  std::string boot_id;  // the kernel's: another one is another boot of the host
  TimeNs time_ns = 0;   // its wall clock
  std::vector<LogBounds> logs;
  bool operator==(const Hello&) const = default;
};

// What the collector holds of a log.
struct LogMark {
  Log log = Log::kCondensed;
  uint64_t epoch = 0;
  bool known = false;      // it holds something of this epoch
  uint64_t committed = 0;  // up to this sequence
  bool operator==(const LogMark&) const = default;
};

// Collector. `credit`: bytes of frames that may be on their way, sent and not acknowledged.
struct Welcome {
  Version version = kNewest;
  std::string program;
  TimeNs time_ns = 0;
  std::vector<LogMark> logs;
  uint64_t credit = 0;
  bool operator==(const Welcome&) const = default;
};

enum class FrameKind : uint8_t {
  kData = 0,
  kCheckpointPart = 1,  // streams as they stood behind `sequence`; more of it follows
  kCheckpointEnd = 2,
};

// A frame of a log, verbatim. Data frames go on from the last one's sequence without a hole; checkpoints
// stand where a reader begins who does not know what came before.
struct Frame {
  Log log = Log::kCondensed;
  FrameKind kind = FrameKind::kData;
  uint64_t sequence = 0;
  std::string bytes;
  bool operator==(const Frame&) const = default;
};

// Agent: these data frames will not come; they count as received, and are acknowledged like frames.
struct Skipped {
  Log log = Log::kCondensed;
  uint64_t from = 0, to = 0;  // both included
  std::string reason;         // "not forwarded by policy"
  bool operator==(const Skipped&) const = default;
};

// Collector: all of the log up to `sequence` is committed.
struct Ack {
  Log log = Log::kCondensed;
  uint64_t epoch = 0, sequence = 0;
  uint64_t credit = 0;
  bool operator==(const Ack&) const = default;
};

struct LogState {
  Log log = Log::kCondensed;
  uint64_t bytes = 0;           // of its spool on the disk
  uint64_t unacked_frames = 0;  // not committed by the collector
  TimeNs oldest_ns = kNoTime;   // when the oldest of those was packed
  bool operator==(const LogState&) const = default;
};

// Agent, every ten seconds: what `culprit hosts` shows.
struct Status {
  TimeNs time_ns = 0, started_ns = 0;
  uint64_t read_bytes = 0, sources = 0;             // taken from sources; sources that are followed
  uint64_t dropped_bytes = 0, dropped_records = 0;  // reported as gaps
  bool healthy = true;
  std::string trouble;            // one sentence where it is not
  std::vector<std::string> jobs;  // running
  std::vector<LogState> logs;
  bool operator==(const Status&) const = default;
};

// Collector: something happened in this time; evidence around it is to be sent, as far around as the agent's
// policy says.
struct Wanted {
  TimeNs from_ns = 0, to_ns = 0;
  std::string reason;
  bool operator==(const Wanted&) const = default;
};

// Collector: records of these steps of a job are to stand in the condensed log, as far as the agent has them.
struct StepsWanted {
  std::string job;
  std::vector<int64_t> steps;
  bool operator==(const StepsWanted&) const = default;
};

// Either, when nothing else was sent for a while; it comes back in a Pong.
struct Ping {
  uint64_t stamp = 0;
  bool operator==(const Ping&) const = default;
};
struct Pong {
  uint64_t stamp = 0;
  bool operator==(const Pong&) const = default;
};

enum class Refusal : uint16_t {
  kProtocol = 1,     // what came is no message, or none that fits here
  kVersion = 2,      // no major version that both know
  kIdentity = 3,     // the certificate is not of the host
  kHostTaken = 4,    // another live connection of this host
  kReplaced = 5,     // a newer connection of this host
  kTooMany = 6,      // connections, or bytes that wait
  kTimeout = 7,      // no Hello in time, or no sign of life
  kBadFrame = 8,     // a frame is damaged, or not the next one
  kUnavailable = 9,  // the collector cannot store now
};
constexpr size_t kRefusals = 10;    // by their numbers
const char* name_of(Refusal code);  // "version": a label of metrics

// Either, as the last message.
struct Refused {
  Refusal code = Refusal::kProtocol;
  std::string sentence;
  bool operator==(const Refused&) const = default;
};
struct Bye {
  std::string sentence;  // "the collector stops"
  bool operator==(const Bye&) const = default;
};

// Of a newer minor version.
struct Unknown {
  uint16_t type = 0;
  bool operator==(const Unknown&) const = default;
};

using Message = std::variant<Unknown, Hello, Welcome, Frame, Skipped, Ack, Status, Wanted, Ping, Pong,
                             Refused, Bye, StepsWanted>;
const char* name_of(const Message& message);

constexpr size_t kHeaderBytes = 8;
// Before a peer is known: a Hello has at most some names and two logs.
constexpr size_t kFirstMessageBytes = 16 << 10;
// A frame of the store has at most 8 MiB before it is compressed, which adds a 256th at most.
constexpr size_t kMessageBytes = (8 << 20) + (128 << 10);
// Of a sentence, a reason, a trouble.
constexpr size_t kSentenceBytes = 1024;
// Running jobs that a Status names.
constexpr size_t kStatusJobs = 64;
constexpr size_t kStepsWanted = 64;

// With its header. Texts that are longer than may be are cut.
std::string encode(const Message& message);
// An error says what is wrong with a body; it is the peer's fault.
Result<Message> decode(uint16_t type, std::string_view body);

// "node-3", "node-3.cluster.example": letters, digits, '-', '_' and '.', at most 253 bytes.
bool is_host_name(std::string_view name);

// Cuts what came of a connection into messages.
class Splitter {
 public:
  // Of the next messages; a larger one is an error.
  void allow(size_t message_bytes) { max_ = message_bytes; }
  void add(std::string_view bytes);
  // Nothing: more is needed. After an error nothing more comes.
  Result<std::optional<Message>> next();
  size_t held() const { return buffer_.size() - begin_; }  // bytes that no message was made of yet

 private:
  std::string buffer_;
  size_t begin_ = 0;
  size_t max_ = kFirstMessageBytes;
};

}  // namespace culprit::peer
