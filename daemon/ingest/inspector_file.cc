#include "ingest/inspector_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"
#include "ingest/comm_names.h"

namespace culprit::ingest {
namespace {

namespace dom = simdjson::dom;

constexpr size_t kLineReadBytes = 16 << 10;
constexpr uint64_t kNsPerUs = 1000;
// Sends and receives of a job, 16 bytes each while the lost ones are found: some 10 GB of files.
constexpr size_t kInspectorP2p = 16 << 20;

std::optional<uint64_t> natural_number(dom::object object, std::string_view key) {
  uint64_t value = 0;
  if (object.at_key(key).get_uint64().get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

std::string_view text_member(dom::object object, std::string_view key) {
  std::string_view value;
  return object.at_key(key).get_string().get(value) == simdjson::SUCCESS ? value : std::string_view();
}

std::optional<uint64_t> nanoseconds(dom::object object, std::string_view key) {
  const auto us = natural_number(object, key);
  if (!us || *us == 0 || *us > uint64_t{limits::kCommTimeMax} / kNsPerUs) return std::nullopt;
  return *us * kNsPerUs;
}

// "0x7f8c496ae9f661".
bool read_id(std::string_view text, uint64_t& out) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  if (text.empty() || text.size() > 16) return false;
  out = 0;
  for (const char c : text) {
    const int value = hex_value(c);
    if (value < 0) return false;
    out = out << 4 | static_cast<uint64_t>(value);
  }
  return true;
}

bool read_header(dom::object object, InspectorLine& out) {
  dom::object header, metadata;
  if (object.at_key("header").get(header) != simdjson::SUCCESS) return false;
  if (object.at_key("metadata").get(metadata) != simdjson::SUCCESS) return false;
  const auto rank = natural_number(header, "rank"), n_ranks = natural_number(header, "n_ranks");
  const auto pid = natural_number(metadata, "pid");
  const std::string_view host = text_member(metadata, "hostname");
  if (!rank || !n_ranks || !pid || host.size() > limits::kNameBytes) return false;
  if (*n_ranks > limits::kCommRanks || *rank >= *n_ranks) return false;
  out.rank = static_cast<uint32_t>(*rank);
  out.n_ranks = static_cast<uint32_t>(*n_ranks);
  out.pid = *pid;
  out.host = to_utf8(host);
  out.end_ns = nanoseconds(metadata, "dump_timestamp_us").value_or(0);
  return read_id(text_member(header, "id"), out.comm);
}

struct Span {
  uint64_t start_ns = UINT64_MAX, end_ns = 0;
};

// From the first start of a channel to the last end of one.
Span kernel_span(dom::object perf) {
  Span out;
  dom::array channels;
  if (perf.at_pointer("/event_trace_ts/kernel_events").get(channels) != simdjson::SUCCESS) return out;
  for (const dom::element element : channels) {
    dom::object channel;
    if (element.get(channel) != simdjson::SUCCESS) continue;
    if (const auto at = nanoseconds(channel, "kernel_start_ts")) out.start_ns = std::min(out.start_ns, *at);
    if (const auto at = nanoseconds(channel, "kernel_stop_ts")) out.end_ns = std::max(out.end_ns, *at);
  }
  return out;
}

// `out` has the time of writing as its end.
bool read_operation(dom::object perf, bool p2p, InspectorLine& out) {
  const auto key = [&](std::string_view name) { return fmt::format("{}_{}", p2p ? "p2p" : "coll", name); };
  const auto op = comm_op_named(text_member(perf, p2p ? "p2p" : "coll"));
  const auto sn = natural_number(perf, key("sn"));
  if (!op || !sn || is_p2p(*op) != p2p) return false;
  out.op = *op;
  out.sn = *sn;
  out.bytes = natural_number(perf, key("msg_size_bytes")).value_or(0);
  out.peer = kCommUnknown;
  if (p2p) {
    const auto peer = natural_number(perf, "p2p_peer");
    if (!peer || *peer >= out.n_ranks) return false;
    out.peer = static_cast<uint32_t>(*peer);
  }
  const std::string_view source = text_member(perf, key("timing_source"));
  out.device_time = source.empty() || source == "kernel_gpu";
  const uint64_t took_us = natural_number(perf, key("exec_time_us")).value_or(0);
  if (took_us > uint64_t{limits::kCommSpanMax} / kNsPerUs) return false;
  const uint64_t took_ns = took_us * kNsPerUs;
  const Span span = kernel_span(perf);
  out.has_times = span.end_ns > 0 && span.start_ns <= span.end_ns;
  if (out.has_times) out.end_ns = span.end_ns;
  out.start_ns = out.has_times ? span.start_ns : 0;
  if (out.device_time || !out.has_times) out.start_ns = out.end_ns - std::min(took_ns, out.end_ns);
  return out.end_ns > 0;
}

}  // namespace

InspectorPiece parse_inspector_line(std::string_view line, InspectorLine& out) {
  thread_local dom::parser parser;
  dom::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) return InspectorPiece::kBroken;
  dom::object perf;
  const bool p2p = object.at_key("p2p_perf").get(perf) == simdjson::SUCCESS;
  if (!p2p && object.at_key("coll_perf").get(perf) != simdjson::SUCCESS) return InspectorPiece::kOther;
  if (!read_header(object, out)) return InspectorPiece::kBroken;
  return read_operation(perf, p2p, out) ? InspectorPiece::kOperation : InspectorPiece::kBroken;
}

uint64_t inspector_stream(uint64_t comm, CommOp op) {
  return is_p2p(op) ? comm : comm ^ uint64_t { static_cast<uint16_t>(op) } << 60;
}

bool LimitedLines::next(std::string_view& line) {
  for (;;) {
    if (const size_t end = buffer_.find('\n', at_); end != buffer_.npos) {
      line = std::string_view(buffer_).substr(at_, end - at_);
      at_ = end + 1;
      if (!std::exchange(skipping_, false)) return true;
      continue;
    }
    buffer_.erase(0, at_);
    at_ = 0;
    if (ended_) {
      if (buffer_.empty() || skipping_) return false;
      cut_ = true;
      last_.swap(buffer_);
      buffer_.clear();
      line = last_;
      return true;
    }
    if (buffer_.size() > limits::kLineBytes) {
      too_long_ += !skipping_;
      skipping_ = true;
      buffer_.clear();
    }
    const size_t before = buffer_.size();
    buffer_.resize(before + kLineReadBytes);
    const size_t read = bytes_.read(buffer_.data() + before, kLineReadBytes);
    buffer_.resize(before + read);
    content_bytes_ += read;
    ended_ = read < kLineReadBytes;
  }
}

// ---- the processes of a job

void InspectorJob::add_file(const SourceFile& file, const std::atomic<bool>& stop) {
  auto bytes = Decompressor::open(file);
  if (!bytes) {
    std::string what = bytes.error().text;
    if (what.starts_with(file.path + ": ")) what.erase(0, file.path.size() + 2);
    problems_.push_back({file.path, std::nullopt, std::move(what)});
    return;
  }
  LimitedLines lines(std::move(*bytes));
  std::string_view line;
  InspectorLine one;
  uint64_t broken = 0;
  bool last_broken = false;
  while (!stop && lines.next(line)) {
    last_broken = false;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const InspectorPiece piece = parse_inspector_line(line, one);
    if (piece == InspectorPiece::kOperation) add_line(one);
    last_broken = piece == InspectorPiece::kBroken;
    broken += last_broken;
  }
  if (lines.bytes().problem()) problems_.push_back(*lines.bytes().problem());
  if (lines.cut() && last_broken) {
    --broken;
    problems_.push_back({file.path, std::nullopt, "its last line is cut off"});
  }
  if (broken > 0)
    problems_.push_back({file.path, std::nullopt,
                         fmt::format("{} could not be read as an operation", counted(broken, "line"))});
  if (lines.too_long() > 0)
    problems_.push_back({file.path, std::nullopt,
                         fmt::format("{} longer than {} passed over", counted(lines.too_long(), "line"),
                                     format_bytes(limits::kLineBytes))});
}

void InspectorJob::add_line(const InspectorLine& line) {
  ++operations_;
  const auto name = std::pair(line.host, line.pid);
  auto at = by_name_.find(name);
  if (at == by_name_.end()) {
    if (processes_.size() >= limits::kCommRanks) return void(++beyond_);
    // In this order no index leads nowhere if the memory ends here.
    Process& added = processes_.emplace_back();
    added.host = line.host;
    added.pid = line.pid;
    at = by_name_.emplace(name, static_cast<uint32_t>(processes_.size() - 1)).first;
  }
  Process& process = processes_[at->second];
  auto member = process.comms.find(line.comm);
  if (member == process.comms.end()) {
    if (members_ >= limits::kInspectorMembers) return void(++beyond_);
    ++members_;
    auto id = by_id_.find(line.comm);
    if (id == by_id_.end()) {
      comms_.push_back({line.comm, line.n_ranks, {}});
      id = by_id_.emplace(line.comm, static_cast<uint32_t>(comms_.size() - 1)).first;
    }
    comms_[id->second].members.emplace_back(line.rank, at->second);
    member = process.comms.try_emplace(line.comm).first;
    member->second.comm = id->second;
    member->second.rank = line.rank;
    member->second.first_ns = line.start_ns;
  }
  Membership& own = member->second;
  if (own.rank != line.rank) return void(++changed_ranks_);
  if (is_p2p(line.op) && !add_p2p(own, line)) return void(++beyond_);
  // Sends and receives share one number.
  const CommOp op = is_p2p(line.op) ? CommOp::kSend : line.op;
  auto stream =
      std::find_if(own.streams.begin(), own.streams.end(), [&](const Stream& s) { return s.op == op; });
  if (stream == own.streams.end()) stream = own.streams.insert(own.streams.end(), {op, line.sn, line.sn, 0});
  stream->first_sn = std::min(stream->first_sn, line.sn);
  stream->last_sn = std::max(stream->last_sn, line.sn);
  ++stream->count;
  own.first_ns = std::min(own.first_ns, line.start_ns);
  if (!line.has_times) {
    ++untimed_;
    // Operations of a stream do not overlap, unless many were written together, long after they ended.
    bunched_ += line.start_ns < own.last_written_ns;
    own.last_written_ns = line.end_ns;
  }
  process.first_ns = std::min(process.first_ns, line.start_ns);
  process.last_ns = std::max(process.last_ns, line.end_ns);
}

// False: beyond a limit.
bool InspectorJob::add_p2p(Membership& own, const InspectorLine& line) {
  const uint64_t key = inspector_pair(line.peer, line.op == CommOp::kSend);
  auto pair = own.pairs.find(key);
  if (p2p_ >= kInspectorP2p || (pair == own.pairs.end() && members_ >= limits::kInspectorMembers)) {
    own.lost_p2p = true;
    return false;
  }
  if (pair == own.pairs.end()) {
    pair = own.pairs.try_emplace(key).first;
    ++members_;
  }
  own.p2p.push_back({line.sn, key});
  ++p2p_;
  ++pair->second.count;
  return true;
}

uint32_t InspectorJob::find_process(const std::string& host, uint64_t pid) const {
  const auto at = by_name_.find(std::pair(host, pid));
  return at == by_name_.end() ? kNoProcess : at->second;
}

const InspectorJob::Membership* InspectorJob::find_member(uint32_t comm, uint32_t rank) const {
  const auto& members = comms_[comm].members;
  const auto at = std::lower_bound(members.begin(), members.end(), std::pair(rank, uint32_t{0}));
  if (at == members.end() || at->first != rank) return nullptr;
  const auto found = processes_[at->second].comms.find(comms_[comm].id);
  return found == processes_[at->second].comms.end() ? nullptr : &found->second;
}

uint32_t InspectorJob::global_rank(uint32_t comm, uint32_t rank) const {
  const auto& members = comms_[comm].members;
  const auto at = std::lower_bound(members.begin(), members.end(), std::pair(rank, uint32_t{0}));
  return at == members.end() || at->first != rank ? kCommUnknown : processes_[at->second].global;
}

bool InspectorJob::matches(const Membership& own, uint64_t pair) const {
  const Membership* peer = find_member(own.comm, static_cast<uint32_t>(pair >> 1));
  if (!peer || (!own.lost_p2p && !peer->lost_p2p)) return true;
  const auto other = peer->pairs.find(inspector_pair(own.rank, (pair & 1) == 0));
  return other != peer->pairs.end() && own.pairs.at(pair).all() == other->second.all();
}

}  // namespace culprit::ingest
