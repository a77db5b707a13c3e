// Records of communication operations: formats.md section 3, as they stand in `.comm` files and in rings. A
// record is copied as it lies in memory (little-endian). Times are of the clock of the host that wrote it:
// clocks of different hosts need not agree. Plain values; any thread.
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
// Of step, peer and device.
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

constexpr uint8_t kCommDeviceTimes = 1;  // a flag

struct CommRecord {
  uint64_t start_ns = 0;  // the rank's entry
  uint64_t end_ns = 0;    // its exit; 0 while unfinished
  uint64_t comm = 0;      // the same on all of its ranks
  uint64_t seq = 0;       // of a collective, among all of the communicator; of send, recv: of the pair
  uint64_t bytes = 0;     // moved per rank; 0: unknown
  uint32_t rank = 0;      // global
  uint32_t step = kCommUnknown;
  uint32_t peer = kCommUnknown;  // global rank, of send and recv
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
  std::string host, job;  // valid UTF-8; longer names are cut to 63 and 47 bytes when they are written
};

// Of the first kCommHeaderBytes of a file. The error is a reason without a subject.
Result<CommHeader> parse_comm_header(std::string_view bytes);
std::string comm_header_bytes(const CommHeader& header);

// What is wrong with a record by itself (an operation or group that does not exist, a span that is negative,
// a rank beyond limits::kCommRanks, a peer that is none); empty where nothing is.
std::string_view comm_record_fault(const CommRecord& record);

bool is_p2p(CommOp op);
// All ranks leave together, so that the last to arrive has the shortest span. Not broadcast, reduce, gather,
// scatter and sends: their exits are not simultaneous.
bool is_synchronising(CommOp op);
std::string_view word(CommOp op);
std::string_view word(CommGroup group);

}  // namespace culprit
