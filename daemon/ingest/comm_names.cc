#include "ingest/comm_names.h"

#include <string>
#include <utility>

#include "base/ascii.h"

namespace culprit::ingest {
namespace {

constexpr size_t kNameMax = 128;

// Letters and digits only, in lower case.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, kNameMax))
    if (alpha(c) || digit(c)) out += lower(c);
  return out;
}

}  // namespace

std::optional<CommOp> comm_op_named(std::string_view name) {
  // The first part that occurs decides: "reducescatter" before "reduce".
  static constexpr std::pair<std::string_view, CommOp> kParts[] = {{"reducescatter", CommOp::kReduceScatter},
                                                                   {"allreduce", CommOp::kAllReduce},
                                                                   {"allgather", CommOp::kAllGather},
                                                                   {"alltoall", CommOp::kAllToAll},
                                                                   {"broadcast", CommOp::kBroadcast},
                                                                   {"barrier", CommOp::kBarrier},
                                                                   {"scatter", CommOp::kScatter},
                                                                   {"gather", CommOp::kGather},
                                                                   {"reduce", CommOp::kReduce}};
  const std::string text = plain(name);
  if (text == "send") return CommOp::kSend;
  if (text == "recv") return CommOp::kRecv;
  for (const auto& [part, op] : kParts)
    if (text.find(part) != text.npos) return op;
  return std::nullopt;
}

CommGroup comm_group_named(std::string_view description) {
  bool data = false, expert = false;
  CommGroup other = CommGroup::kUnknown;
  std::string word;
  const auto end_word = [&] {
    if (word == "dp" || word == "data" || word == "fsdp" || word == "ddp") data = true;
    if (word == "ep" || word == "expert") expert = true;
    if (word == "edp") data = expert = true;
    if (word == "tp" || word == "tensor") other = CommGroup::kTp;
    if (word == "pp" || word == "pipeline") other = CommGroup::kPp;
    if (word == "cp" || word == "context") other = CommGroup::kCp;
    word.clear();
  };
  if (description == "default_pg") return CommGroup::kWorld;
  for (const char c : description.substr(0, kNameMax)) {
    if (alpha(c))
      word += lower(c);
    else
      end_word();
  }
  end_word();
  // A group over two kinds ("dp_cp") is neither.
  if (other != CommGroup::kUnknown) return data || expert ? CommGroup::kUnknown : other;
  if (data) return expert ? CommGroup::kEdp : CommGroup::kDp;
  return expert ? CommGroup::kEp : CommGroup::kUnknown;
}

uint32_t element_bytes(std::string_view type) {
  static constexpr std::pair<std::string_view, uint32_t> kTypes[] = {
      {"bfloat16", 2},     {"half", 2},          {"float16", 2}, {"float", 4},  {"float32", 4},
      {"double", 8},       {"float64", 8},       {"int", 4},     {"int32", 4},  {"long", 8},
      {"int64", 8},        {"short", 2},         {"int16", 2},   {"char", 1},   {"int8", 1},
      {"byte", 1},         {"uint8", 1},         {"bool", 1},    {"uint16", 2}, {"uint32", 4},
      {"complexfloat", 8}, {"complexdouble", 16}};
  const std::string text = plain(type);
  for (const auto& [name, bytes] : kTypes)
    if (text == name) return bytes;
  return text.starts_with("float8") ? 1 : 0;
}

}  // namespace culprit::ingest
