// Records of communication operations, as in `.comm` files and in rings (formats.md section 3). The layout in
// memory equals the layout in files (little-endian). Times are from the clock of the host that wrote the
// record; clocks of hosts may differ. Plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit {

constexpr std::string_view kCommMagic = "CULPCOMM";
constexpr uint32_t kCommVersion = 1;
constexpr size_t kCommHeaderBytes = 128;
constexpr size_t kCommRecordBytes = 64;
// An unknown step, peer or device.
constexpr uint32_t kCommUnknown = 0xffffffff;

enum class CommOp : uint16_t {
  kJoin,
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kAllToAll,
  kSend,
  kRecv,
  kBarrier,
  kGather,
  kScatter
};
constexpr uint16_t kCommOps = 12;

enum class CommGroup : uint8_t { kUnknown, kWorld, kDp, kTp, kPp, kEp, kCp, kEdp };
constexpr uint8_t kCommGroups = 8;

constexpr uint8_t kCommDeviceTimes = 1;  // flag: times are from the device

struct CommRecord {
  uint64_t start_ns = 0;  // the rank's entry
  uint64_t end_ns = 0;    // its exit; 0 while unfinished
  uint64_t comm = 0;      // id, equal on all ranks of the communicator
  uint64_t seq = 0;       // number within the communicator; for send and recv: within the pair
  uint64_t bytes = 0;     // moved per rank; 0: unknown
  uint32_t rank = 0;      // global
  uint32_t step = kCommUnknown;
  uint32_t peer = kCommUnknown;  // for send and recv: global rank
  uint32_t comm_size = 0;
  CommOp op = CommOp::kJoin;
  CommGroup group = CommGroup::kUnknown;
  uint8_t flags = 0;
  uint32_t device = kCommUnknown;  // local index on its host
  bool operator==(const CommRecord&) const = default;
};
static_assert(sizeof(CommRecord) == kCommRecordBytes && offsetof(CommRecord, op) == 56 &&
              offsetof(CommRecord, device) == 60);

struct CommHeader {
  std::string host, job;  // valid UTF-8; writers cut longer names to 63 and 47 bytes
};

// Parses the first kCommHeaderBytes of a file. The error is a reason without a subject.
Result<CommHeader> parse_comm_header(std::string_view bytes);
std::string comm_header_bytes(const CommHeader& header);

// The fault of a single record, or empty: unknown operation or group, negative span, rank beyond
// limits::kCommRanks, missing peer.
std::string_view comm_record_fault(const CommRecord& record);

bool is_p2p(CommOp op);
// Whether all ranks leave the operation together, so that the last rank to arrive has the shortest span.
// False for broadcast, reduce, gather, scatter and sends: their exits are not simultaneous.
bool is_synchronising(CommOp op);
std::string_view to_string(CommOp op);
std::string_view to_string(CommGroup group);

}  // namespace culprit
