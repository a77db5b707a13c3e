// Messages between an agent and its collector: plain values and their encoding.
//
// A connection carries messages: "CP", type u16, size of the body u32, body; numbers little-endian. The agent
// begins with Hello, the collector answers with Welcome or Refused. Frames of the agent's logs follow in
// order of sequence numbers, each encoded as in the agent's spool on disk. The collector acknowledges
// committed frames. The body of a newer minor version may be longer; the unknown rest is ignored. Messages of
// an unknown type are skipped by their size. The present form of the header, Hello and Refused stays in every
// major version: any two peers can exchange the reason of a refusal.
//
// Values own their data. Pure functions, any thread; a Splitter belongs to one connection. Memory is bounded
// by the received bytes, and no input fails an assertion.
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
#include "model/advice.h"
#include "model/message_frame.h"

namespace culprit::peer {

struct Version {
  uint16_t major = 0, minor = 0;
  auto operator<=>(const Version&) const = default;
};
constexpr Version kOldest = {1, 0}, kNewest = {1, 0};
// The newest major version that both peers know, with the lesser minor version. An error if there is none.
Result<Version> choose_version(Version oldest, Version newest);

// The logs of an agent. If both have data to send, the condensed log goes first.
enum class Log : uint8_t { kCondensed = 0, kEvidence = 1 };
inline constexpr std::array kLogs = {Log::kCondensed, Log::kEvidence};
const char* name_of(Log log);

struct LogBounds {
  Log log = Log::kCondensed;
  uint64_t epoch = 0;  // epoch of the agent's spool
  uint64_t first = 1;  // oldest stored data frame
  uint64_t next = 1;   // after the newest stored frame; first == next: none is stored
  bool operator==(const LogBounds&) const = default;
};

// From the agent.
struct Hello {
  Version oldest = kOldest, newest = kNewest;
  std::string program;  // "0.1.0"
  std::string host;     // must equal the name in the certificate
  std::string boot_id;  // the kernel's boot id: changes with each boot of the host
  TimeNs time_ns = 0;   // wall clock of the agent
  std::vector<LogBounds> logs;
  bool operator==(const Hello&) const = default;
};

// The state of a log at the collector.
struct LogMark {
  Log log = Log::kCondensed;
  uint64_t epoch = 0;
  bool known = false;      // the collector has frames of this epoch
  uint64_t committed = 0;  // up to this sequence number
  // Up to here the log is in object storage, as far as the collector knows; nothing: none is put there.
  std::optional<uint64_t> archived = {};
  bool operator==(const LogMark&) const = default;
};

// From the collector. `credit`: bytes of frames that the agent may send before they are acknowledged.
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
  kCheckpointPart = 1,  // the streams after `sequence`; further parts follow
  kCheckpointEnd = 2,
};

// A frame of a log, verbatim. Data frames continue the sequence without a gap. Checkpoints precede the data
// for a reader that does not know the earlier frames.
struct Frame {
  Log log = Log::kCondensed;
  FrameKind kind = FrameKind::kData;
  uint64_t sequence = 0;
  std::string bytes;
  bool operator==(const Frame&) const = default;
};

// From the agent: data frames that will not be sent. Skipped frames count as received and are acknowledged
// like others.
struct Skipped {
  Log log = Log::kCondensed;
  uint64_t from = 0, to = 0;  // both inclusive
  std::string reason;         // "not forwarded by policy"
  bool operator==(const Skipped&) const = default;
};

// From the collector: the log is committed up to `sequence`.
struct Ack {
  Log log = Log::kCondensed;
  uint64_t epoch = 0, sequence = 0;
  uint64_t credit = 0;
  bool operator==(const Ack&) const = default;
};

struct LogState {
  Log log = Log::kCondensed;
  uint64_t bytes = 0;           // of the spool on disk
  uint64_t unacked_frames = 0;  // not committed by the collector
  TimeNs oldest_ns = kNoTime;   // time when the oldest unacknowledged frame was packed
  bool operator==(const LogState&) const = default;
};

// From the agent, every ten seconds; shown by `culprit hosts`.
struct Status {
  TimeNs time_ns = 0, started_ns = 0;
  uint64_t read_bytes = 0, sources = 0;             // bytes read from sources; sources that are followed
  uint64_t dropped_bytes = 0, dropped_records = 0;  // reported as gaps
  bool healthy = true;
  std::string trouble;            // one sentence; empty if healthy
  std::vector<std::string> jobs;  // running
  std::vector<LogState> logs;
  bool operator==(const Status&) const = default;
};

// From the collector: requests the evidence around this time; the agent's policy sets the range.
struct Wanted {
  TimeNs from_ns = 0, to_ns = 0;
  std::string reason;
  bool operator==(const Wanted&) const = default;
};

// From the collector: requests records of these steps of a job in the condensed log, if the agent has them.
struct StepsWanted {
  std::string job;
  std::vector<int64_t> steps;
  bool operator==(const StepsWanted&) const = default;
};

// From the collector: requests a capture of the job's processes on the host. An agent 1.0 without this
// message skips it. The flags are sent in the highest bits of the sample: an agent that does not know the
// flags captures.
struct StacksWanted {
  std::string job;
  uint32_t sample = 0;    // from 1: counts the captures of one run
  bool moves = false;     // the job makes progress: one state of a process proves nothing
  bool ras_only = false;  // query only NCCL RAS; capture no processes
  bool operator==(const StacksWanted&) const = default;
};

// From the collector: requests the end of the job's processes on the host, so that the job can run again. An
// agent without this message, or one that does not allow it, skips it.
struct EndTasks {
  std::string job;
  std::string decision;      // "d-0001", for the agent's log
  uint32_t grace_ms = 5000;  // between SIGTERM and SIGKILL
  bool operator==(const EndTasks&) const = default;
};

// From the collector: requests a check of the host (docs/checks.md). An agent that does not allow it answers
// so; an agent without this message skips it.
struct CheckHost {
  std::string decision;        // "d-0001"; comes back with the result
  uint32_t within_ms = 60000;  // limit of the whole check
  bool operator==(const CheckHost&) const = default;
};
enum class CheckAnswer : uint8_t { kPassed = 0, kFailed = 1, kNoAnswer = 2 };
// From the agent: the answer to a CheckHost.
struct CheckResult {
  std::string decision;
  CheckAnswer answer = CheckAnswer::kNoAnswer;
  std::string why;  // one sentence
  bool operator==(const CheckResult&) const = default;
};

// From the collector: requests an equal step on each device of the host, to be compared with other hosts'
// (docs/checks.md). An agent that does not allow it answers so; an agent without this message skips it.
struct AlignHost {
  std::string decision;        // "d-0001"; comes back with the result
  uint32_t within_ms = 60000;  // limit of the step
  bool operator==(const AlignHost&) const = default;
};
// The result of the step on one device.
struct AlignRow {
  std::string at, kind, digest;  // "cuda:3"; torch and the device's model; empty digest: no answer
  bool stable = true;            // equal steps gave equal digests
  bool operator==(const AlignRow&) const = default;
};
// From the agent: the answer to an AlignHost. The host is the one of the connection.
struct AlignResult {
  std::string decision;
  std::vector<AlignRow> rows;  // empty: no answer
  bool later = false;          // there may be an answer later: a process of a job is in the way
  std::string why;             // one sentence, of no answer
  bool operator==(const AlignResult&) const = default;
};
// From the collector: what the comparison says of the host, for the reports of its jobs.
struct AlignJudged {
  std::string decision;
  CheckAnswer answer = CheckAnswer::kNoAnswer;
  std::string why;  // one sentence
  bool operator==(const AlignJudged&) const = default;
};

// From the collector: advice for the job's processes on the host (docs/formats.md, "Advice"). An agent
// without this message, or one that does not allow it, skips it.
struct Advise {
  std::string job;
  std::string decision;     // "d-0001", or who asks, for the agent's log
  uint32_t uid = kAnyUser;  // only for processes of this user
  Advice advice;
  static constexpr uint32_t kAnyUser = UINT32_MAX;
  bool operator==(const Advise&) const = default;
};

// A job whose partition another member of the collector's cluster owns (docs/cluster.md).
struct JobOwner {
  std::string job;
  std::string address;  // of the owner, for agents
  uint64_t epoch = 0;   // of the partition: a higher one is newer
  bool operator==(const JobOwner&) const = default;
};
// From a collector in a cluster, after each Status with jobs: those of them that others own. The collector
// accepts frames of all jobs all the same. An agent without this message skips it and stays.
struct JobOwners {
  std::vector<JobOwner> others;
  bool operator==(const JobOwners&) const = default;
};

// From a collector that puts the log into object storage (docs/cluster.md): all frames up to `sequence` are
// in objects that are noted, or will never come. An agent without this message skips it, and frees its spool
// at each Ack.
struct Archived {
  Log log = Log::kEvidence;
  uint64_t epoch = 0, sequence = 0;
  bool operator==(const Archived&) const = default;
};

// From a peer that sent nothing else for a while; the other peer answers with a Pong.
struct Ping {
  uint64_t stamp = 0;
  bool operator==(const Ping&) const = default;
};
struct Pong {
  uint64_t stamp = 0;
  bool operator==(const Pong&) const = default;
};

enum class Refusal : uint16_t {
  kProtocol = 1,     // the input is no message, or the message is not valid at this point
  kVersion = 2,      // no common major version
  kIdentity = 3,     // the certificate belongs to another host
  kHostTaken = 4,    // another connection of this host is live
  kReplaced = 5,     // a newer connection of this host replaced this one
  kTooMany = 6,      // too many connections or queued bytes
  kTimeout = 7,      // no Hello in time, or no messages for too long
  kBadFrame = 8,     // a damaged frame, or a frame out of sequence
  kUnavailable = 9,  // the collector cannot store data now
};
constexpr size_t kRefusals = 10;    // number of refusals
const char* name_of(Refusal code);  // "version": a label of metrics

// From either peer, as the last message.
struct Refused {
  Refusal code = Refusal::kProtocol;
  std::string sentence;
  bool operator==(const Refused&) const = default;
};
struct Bye {
  std::string sentence;  // "the collector stops"
  bool operator==(const Bye&) const = default;
};

// A message of a newer minor version.
struct Unknown {
  uint16_t type = 0;
  bool operator==(const Unknown&) const = default;
};

using Message = std::variant<Unknown, Hello, Welcome, Frame, Skipped, Ack, Status, Wanted, Ping, Pong,
                             Refused, Bye, StepsWanted, StacksWanted, EndTasks, CheckHost, CheckResult,
                             Advise, AlignHost, AlignResult, AlignJudged, JobOwners, Archived>;
const char* name_of(const Message& message);

constexpr size_t kHeaderBytes = kMessageHeaderBytes;
// Limit of the first message, sent before the peer is authenticated: a Hello has a few names and two logs.
constexpr size_t kFirstMessageBytes = 16 << 10;
// Limit of later messages: a frame of the store has at most 8 MiB, and compression adds at most 1/256.
constexpr size_t kMessageBytes = (8 << 20) + (128 << 10);
// Limit of a sentence, a reason and a trouble text.
constexpr size_t kSentenceBytes = 1024;
// Running jobs in a Status.
constexpr size_t kStatusJobs = 64;
constexpr size_t kStepsWanted = 64;
// Devices of a host in an AlignResult, and bytes of each of their texts.
constexpr size_t kAlignRows = 64, kAlignBytes = 200;

// The message with its header. Texts beyond their limit are cut.
std::string encode(const Message& message);
// An error names the fault in the body, which the peer caused.
Result<Message> decode(uint16_t type, std::string_view body);

// "node-3", "node-3.cluster.example": letters, digits, '-', '_' and '.', at most 253 bytes.
bool is_host_name(std::string_view name);

// Cuts the received bytes of a connection into messages.
class Splitter : public MessageBuffer {
 public:
  Splitter();
  // nullopt: more bytes are needed. After an error no message follows.
  Result<std::optional<Message>> next();
};

}  // namespace culprit::peer
