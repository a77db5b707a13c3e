#include "model/comm.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit {
namespace {

constexpr size_t kHostBytes = 64, kJobBytes = 48;
constexpr size_t kHostAt = 16, kJobAt = kHostAt + kHostBytes;
static_assert(kJobAt + kJobBytes == kCommHeaderBytes);

constexpr std::string_view kOps[kCommOps] = {"join",      "all_reduce", "all_gather", "reduce_scatter",
                                             "broadcast", "reduce",     "all_to_all", "send",
                                             "recv",      "barrier",    "gather",     "scatter"};
constexpr std::string_view kGroups[kCommGroups] = {"unknown", "world", "dp", "tp", "pp", "ep", "cp", "edp"};

std::string name_of(std::string_view padded) {
  return to_utf8(padded.substr(0, std::min(padded.find('\0'), padded.size())));
}

void put_name(std::string& out, std::string_view name, size_t size) {
  name = name.substr(0, size - 1);
  out.append(name);
  out.append(size - name.size(), '\0');
}

}  // namespace

Result<CommHeader> parse_comm_header(std::string_view bytes) {
  if (!bytes.starts_with(kCommMagic))
    return fail(ErrorCode::kInvalid, "no communication trace: it does not begin with CULPCOMM");
  if (bytes.size() < kCommHeaderBytes) return fail(ErrorCode::kInvalid, "the header is cut off");
  const auto version = get_at<uint32_t>(bytes, 8);
  if (version != kCommVersion)
    return fail(ErrorCode::kInvalid,
                "version " + std::to_string(version) + ", which is not known here (1 is)");
  const auto size = get_at<uint32_t>(bytes, 12);
  if (size != kCommRecordBytes)
    return fail(ErrorCode::kInvalid, "records of " + std::to_string(size) + " bytes, where version 1 has 64");
  return CommHeader{name_of(bytes.substr(kHostAt, kHostBytes)), name_of(bytes.substr(kJobAt, kJobBytes))};
}

std::string comm_header_bytes(const CommHeader& header) {
  std::string out(kCommMagic);
  put(out, kCommVersion);
  put(out, static_cast<uint32_t>(kCommRecordBytes));
  put_name(out, header.host, kHostBytes);
  put_name(out, header.job, kJobBytes);
  return out;
}

std::string_view comm_record_fault(const CommRecord& r) {
  if (static_cast<uint16_t>(r.op) >= kCommOps) return "an operation that does not exist";
  if (static_cast<uint8_t>(r.group) >= kCommGroups) return "a kind of group that does not exist";
  if (r.rank >= limits::kCommRanks) return "a rank that is beyond all jobs";
  if (r.comm_size > limits::kCommRanks) return "a communicator that is beyond all jobs";
  if (is_p2p(r.op) && r.peer >= limits::kCommRanks) return "a send or receive without a peer";
  if (r.start_ns > static_cast<uint64_t>(limits::kCommTimeMax)) return "a time that is none";
  if (r.end_ns != 0 && r.end_ns < r.start_ns) return "an end before the start";
  if (r.end_ns != 0 && r.end_ns - r.start_ns > static_cast<uint64_t>(limits::kCommSpanMax))
    return "a span of more than a week";
  if (r.end_ns > static_cast<uint64_t>(limits::kCommTimeMax)) return "a time that is none";
  return {};
}

bool is_p2p(CommOp op) { return op == CommOp::kSend || op == CommOp::kRecv; }

bool is_synchronising(CommOp op) {
  switch (op) {
    case CommOp::kAllReduce:
    case CommOp::kAllGather:
    case CommOp::kReduceScatter:
    case CommOp::kAllToAll:
    case CommOp::kBarrier:
      return true;
    default:
      return false;
  }
}

std::string_view to_string(CommOp op) { return kOps[static_cast<uint16_t>(op) % kCommOps]; }
std::string_view to_string(CommGroup group) { return kGroups[static_cast<uint8_t>(group) % kCommGroups]; }

}  // namespace culprit
