#include "ingest/profiler_trace.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "base/ascii.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/text.h"
#include "ingest/comm_names.h"
#include "ingest/flight_reader.h"

namespace culprit::ingest {
namespace {

namespace dom = simdjson::dom;

constexpr double kNsPerUs = 1000;
// Operations of one group in a step have neighbouring numbers. Steps are this far apart: operation 3 of
// step 7 is 7000003.
constexpr uint64_t kStepStride = 1'000'000;

std::string_view trace_text(dom::object object, std::string_view key) {
  std::string_view value;
  return object.at_key(key).get_string().get(value) == simdjson::SUCCESS ? value : std::string_view();
}

// 2001 in nanoseconds: earlier times lack the base of their clock.
constexpr uint64_t kFirstDated = 1'000'000'000'000'000'000;

// A number, also within quotes.
std::optional<int64_t> trace_number(dom::object object, std::string_view key) {
  dom::element element;
  int64_t value = 0;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return std::nullopt;
  if (element.get_int64().get(value) == simdjson::SUCCESS) return value;
  std::string_view quoted;
  if (element.get_string().get(quoted) != simdjson::SUCCESS) return std::nullopt;
  const auto [end, error] = std::from_chars(quoted.data(), quoted.data() + quoted.size(), value);
  return error == std::errc() && end == quoted.data() + quoted.size() ? std::optional(value) : std::nullopt;
}

std::optional<uint32_t> rank_number(dom::object object, std::string_view key) {
  const auto value = trace_number(object, key);
  if (!value || *value < 0 || *value >= int64_t{limits::kCommRanks}) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

// "[0, 1, 2]"; empty if it is cut off with dots or has something else.
std::vector<uint32_t> ranks_in_text(std::string_view list) {
  std::vector<uint32_t> out;
  if (!list.starts_with('[') || !list.ends_with(']')) return {};
  for (const std::string_view part : split(list.substr(1, list.size() - 2), ',')) {
    const std::string_view digits = trim(part);
    if (!all_digits(digits) || digits.size() > 7) return {};
    out.push_back(digits_value(digits));
  }
  return out;
}

struct ProfiledStep {
  int64_t begin_ns = 0, end_ns = 0;
  uint32_t number = 0;
};

// Steps in order; the one that an instant falls in.
std::optional<uint32_t> step_at(const std::vector<ProfiledStep>& steps, int64_t ns) {
  auto at = std::upper_bound(steps.begin(), steps.end(), ns,
                             [](int64_t t, const ProfiledStep& s) { return t < s.begin_ns; });
  if (at == steps.begin() || ns > (--at)->end_ns) return std::nullopt;
  return at->number;
}

struct ProfiledGroup {
  uint64_t id = 0;
  uint32_t size = 0;
  CommGroup kind = CommGroup::kUnknown;
  uint64_t first_ns = UINT64_MAX;  // of the operations that are not left out
};

struct ProfiledOperation {
  CommRecord record;
  int64_t call = -1;  // id that it shares with the host's call; -1: none
  int64_t seq = -1;   // PyTorch's number; -1: none
};

}  // namespace

class ProfilerTrace::Reader {
 public:
  Reader(JsonElements elements, std::string name, const TraceOwner& owner, size_t ops_max)
      : elements_(std::move(elements)), name_(std::move(name)), owner_(owner), ops_max_(ops_max) {}

  void read(ProfilerTrace& out, const std::atomic<bool>& stop) {
    JsonElements::Piece piece;
    while (!stop && elements_.next(piece)) {
      if (piece.element)
        add_event(piece.text);
      else if (piece.key == "distributedInfo")
        add_distributed(piece.text);
      else if (piece.key == "baseTimeNanoseconds")
        add_base(piece.text);
    }
    out.consumed_ = elements_.bytes().consumed();
    out.content_bytes_ = elements_.content_bytes();
    out.header_.host = host_of_trace(name_);
    if (out.header_.host.empty()) out.header_.host = owner_.host;
    if (!rank_) rank_ = owner_.rank ? owner_.rank : rank_in_name(name_);
    seen_ = operations_.size();
    if (rank_) make_records(out);
    add_problems(out, stop);
  }

 private:
  void add_base(std::string_view value) {
    int64_t base = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), base);
    if (error == std::errc() && base >= 0 && base <= limits::kCommTimeMax) base_ns_ = base;
  }

  void add_distributed(std::string_view value) {
    dom::object info;
    if (parser_.parse(value.data(), value.size()).get(info) != simdjson::SUCCESS) return void(++broken_);
    rank_ = rank_number(info, "rank");
    world_ = rank_number(info, "world_size").value_or(0);
    dom::array groups;
    if (info.at_key("pg_config").get(groups) != simdjson::SUCCESS) return;
    for (const dom::element element : groups) {
      dom::object group;
      dom::array members;
      if (element.get(group) != simdjson::SUCCESS) continue;
      std::string_view name = trace_text(group, "pg_name");
      std::vector<uint32_t> ranks;
      if (group.at_key("ranks").get(members) == simdjson::SUCCESS)
        for (const dom::element member : members)
          if (uint64_t rank = 0;
              member.get_uint64().get(rank) == simdjson::SUCCESS && rank < limits::kCommRanks)
            ranks.push_back(static_cast<uint32_t>(rank));
      if (name.empty() || name.size() > limits::kNameBytes || ranks.empty()) continue;
      if (configured_.size() < limits::kDumpGroups)
        configured_.emplace(std::string(name), hash_of(name, std::move(ranks)));
    }
  }

  static uint64_t hash_of(std::string_view name, std::vector<uint32_t> ranks) {
    std::sort(ranks.begin(), ranks.end());
    return hash64({reinterpret_cast<const char*>(ranks.data()), ranks.size() * sizeof ranks[0]},
                  hash64(name));
  }

  // Most events are about other work: they are not parsed.
  void add_event(std::string_view event) {
    const bool step = find_text(event, "ProfilerStep#") != npos;
    const bool collective = find_text(event, "Collective name") != npos;
    if (!step && !collective && find_text(event, "\"nccl") == npos) return;
    dom::object object;
    if (parser_.parse(event.data(), event.size()).get(object) != simdjson::SUCCESS) return void(++broken_);
    double ts = 0, dur = 0;
    if (trace_text(object, "ph") != "X" || object.at_key("ts").get_double().get(ts) != simdjson::SUCCESS)
      return;
    if (object.at_key("dur").get_double().get(dur) != simdjson::SUCCESS) dur = 0;
    constexpr double kMost = static_cast<double>(limits::kCommTimeMax) / kNsPerUs;
    constexpr double kLongest = static_cast<double>(limits::kCommSpanMax) / kNsPerUs;
    if (!(ts >= 0 && dur >= 0 && dur < kLongest && ts + dur < kMost)) return void(++broken_);
    const int64_t begin = std::llround(ts * kNsPerUs), end = begin + std::llround(dur * kNsPerUs);
    const std::string_view category = trace_text(object, "cat"), name = trace_text(object, "name");
    if (step && name.starts_with("ProfilerStep#"))
      return add_step(category, name.substr(13), {begin, end, 0});
    dom::object args;
    if (object.at_key("args").get(args) != simdjson::SUCCESS) return;
    if (name == "record_param_comms") return add_call(args, begin);
    if (category != "kernel" || find_text(name, "nccl") == npos) return;
    if (collective)
      add_kernel(args, begin, end);
    else
      ++nameless_;
  }

  void add_step(std::string_view category, std::string_view digits, ProfiledStep step) {
    if (!all_digits(digits) || digits.size() > 9) return;
    step.number = digits_value(digits);
    std::vector<ProfiledStep>& steps = category == "gpu_user_annotation" ? device_steps_ : host_steps_;
    if (steps.size() < limits::kProfilerSteps) steps.push_back(step);
  }

  void add_call(dom::object args, int64_t begin) {
    const auto id = trace_number(args, "External id");
    ++calls_;
    if (id && called_.size() < 2 * limits::kProfilerOps) called_.try_emplace(*id, begin);
  }

  void add_kernel(dom::object args, int64_t begin, int64_t end) {
    const std::string_view name = trace_text(args, "Collective name");
    const auto op = comm_op_named(name);
    const std::string_view group = trace_text(args, "Process Group Name");
    if (!op || group.empty() || group.size() > limits::kNameBytes) return void(++nameless_);
    if (operations_.size() >= ops_max_) return void(++beyond_);
    ProfiledOperation one;
    CommRecord& r = one.record;
    r.start_ns = static_cast<uint64_t>(std::max<int64_t>(begin, 1));
    r.end_ns = static_cast<uint64_t>(std::max<int64_t>(end, begin + 1));
    r.op = *op;
    r.flags = kCommDeviceTimes;
    r.comm_size = rank_number(args, "Group size").value_or(0);
    const int64_t elements = std::max(trace_number(args, "In msg nelems").value_or(0),
                                      trace_number(args, "Out msg nelems").value_or(0));
    if (elements > 0 && elements < int64_t{1} << 48)
      r.bytes = static_cast<uint64_t>(elements) * element_bytes(trace_text(args, "dtype"));
    if (const auto device = trace_number(args, "device");
        device && *device >= 0 && *device < limits::kDevicesOfHost)
      r.device = static_cast<uint32_t>(*device);
    if (is_p2p(*op)) {
      const auto peer = rank_number(args, *op == CommOp::kSend ? "Dst Rank" : "Src Rank");
      if (!peer) return void(++nameless_);
      r.peer = *peer;
    }
    note_group(args, group, r);
    one.call = trace_number(args, "External id").value_or(-1);
    one.seq = trace_number(args, "Seq").value_or(-1);
    operations_.push_back(one);
  }

  // Groups of several members may share a name: the members count too, where they are known on all ranks.
  void note_group(dom::object args, std::string_view name, CommRecord& r) {
    const std::string_view listed = trace_text(args, "Process Group Ranks");
    const auto configured = configured_.find(name);
    if (configured != configured_.end()) {
      r.comm = configured->second;
    } else {
      const std::vector<uint32_t> ranks = ranks_in_text(listed);
      r.comm = ranks.empty() ? hash64(name) : hash_of(name, ranks);
    }
    auto [at, fresh] = groups_.try_emplace(r.comm);
    ProfiledGroup& group = at->second;
    if (fresh) {
      group.size = r.comm_size;
      group.kind = comm_group_named(trace_text(args, "Process Group Description"));
      if (world_ > 1 && r.comm_size == world_) group.kind = CommGroup::kWorld;
    }
    r.group = group.kind;
    if (r.comm_size == 0) r.comm_size = group.size;
  }

  // The step of the host's call counts: the device may run its kernel in the next one.
  std::optional<uint32_t> step_of(const ProfiledOperation& one) const {
    const auto call = called_.find(one.call);
    if (call != called_.end() && !host_steps_.empty()) return step_at(host_steps_, call->second);
    const auto& steps = device_steps_.empty() ? host_steps_ : device_steps_;
    return step_at(steps, static_cast<int64_t>(one.record.start_ns));
  }

  void make_records(ProfilerTrace& out) {
    const auto by_begin = [](const ProfiledStep& a, const ProfiledStep& b) {
      return a.begin_ns < b.begin_ns;
    };
    std::sort(host_steps_.begin(), host_steps_.end(), by_begin);
    std::sort(device_steps_.begin(), device_steps_.end(), by_begin);
    std::stable_sort(operations_.begin(), operations_.end(),
                     [](const ProfiledOperation& a, const ProfiledOperation& b) {
                       return a.record.start_ns < b.record.start_ns;
                     });
    const auto base = static_cast<uint64_t>(base_ns_);  // the detectors check the sums
    drop_undated(base);
    const bool stepped = !host_steps_.empty() || !device_steps_.empty();
    for (ProfiledOperation& one : operations_) {
      one.record.rank = *rank_;
      if (!stepped) continue;
      if (const auto step = step_of(one))
        one.record.step = *step;
      else
        ++between_;
    }
    number_operations();
    for (const auto& [id, group] : groups_) {
      if (group.first_ns == UINT64_MAX) continue;
      CommRecord join;
      join.start_ns = join.end_ns = group.first_ns + base;
      join.comm = id;
      join.rank = *rank_;
      join.comm_size = group.size;
      join.group = group.kind;
      out.records_.push_back(join);
    }
    for (ProfiledOperation& one : operations_) {
      one.record.start_ns += base;
      one.record.end_ns += base;
      if (!stepped || one.record.step != kCommUnknown) out.records_.push_back(one.record);
    }
    operations_ = {};
  }

  // Without the base of its clock a trace has times since the host's start, which match no other rank.
  void drop_undated(uint64_t base) {
    undated_ = std::erase_if(
        operations_, [&](const ProfiledOperation& one) { return one.record.start_ns + base < kFirstDated; });
    for (const ProfiledOperation& one : operations_) {
      uint64_t& first = groups_.at(one.record.comm).first_ns;
      first = std::min(first, one.record.start_ns);
    }
  }

  // Numbers collectives within their group, and sends and receives within their pair. PyTorch's number counts
  // where it distinguishes them; else their order within the step, since profiles may begin at other steps.
  void number_operations() {
    struct Stream {
      int64_t last_seq = -1;
      bool rising = true;
      uint32_t step = kCommUnknown;
      uint64_t in_step = 0;
    };
    std::map<std::tuple<uint64_t, uint32_t, uint16_t>, Stream> streams;
    const auto stream_of = [&](const CommRecord& r) -> Stream& {
      return streams[{r.comm, r.peer, is_p2p(r.op) ? static_cast<uint16_t>(r.op) : uint16_t{0}}];
    };
    for (const ProfiledOperation& one : operations_) {
      Stream& stream = stream_of(one.record);
      stream.rising = stream.rising && !is_p2p(one.record.op) && one.seq > stream.last_seq;
      stream.last_seq = one.seq;
    }
    for (ProfiledOperation& one : operations_) {
      CommRecord& r = one.record;
      Stream& stream = stream_of(r);
      if (std::exchange(stream.step, r.step) != r.step) stream.in_step = 0;
      r.seq = stream.rising ? static_cast<uint64_t>(one.seq) : stream.in_step++;
      if (!stream.rising && r.step != kCommUnknown) r.seq += uint64_t{r.step} * kStepStride;
    }
  }

  void add_problems(ProfilerTrace& out, const std::atomic<bool>& stop) const {
    const auto add = [&](std::string what) {
      out.problems_.push_back({name_, std::nullopt, std::move(what)});
    };
    if (elements_.bytes().problem())
      out.problems_.push_back(*elements_.bytes().problem());
    else if (!elements_.complete() && !stop)
      add("ends early: the events behind the end are missing");
    if (elements_.damages() > 0)
      add(fmt::format("{} passed over", counted(elements_.damages(), "damaged place")));
    if (broken_ > 0) add(fmt::format("{} could not be read", counted(broken_, "event")));
    if (elements_.too_long() > 0)
      add(fmt::format("{} passed over: too long", counted(elements_.too_long(), "event")));
    if (beyond_ > 0) add(fmt::format("{} beyond the limit left out", counted(beyond_, "operation")));
    if (undated_ > 0 && !out.records_.empty())
      add(fmt::format("{} at times of no calendar left out", counted(undated_, "operation")));
    if (between_ > 0)
      add(fmt::format("{} outside of all profiled steps left out", counted(between_, "operation")));
    if (!rank_ && seen_ > 0)
      add("passed over: its rank is unknown, as neither the trace nor its name says it");
    else if (out.records_.empty() && undated_ > 0)
      add("passed over: its times are of no calendar, as baseTimeNanoseconds is missing or damaged");
    else if (out.records_.empty() && nameless_ > 0)
      add(fmt::format("passed over: {} without a process group; PyTorch 2.3 and later write it",
                      counted(nameless_, "collective kernel")));
    else if (out.records_.empty() && calls_ > 0)
      add("passed over: it has calls of collectives, but not their kernels: profile with "
          "ProfilerActivity.CUDA");
    else if (out.records_.empty())
      add("passed over: a profiler's trace without communication");
    else if (nameless_ > 0)
      add(fmt::format("{} without a process group left out", counted(nameless_, "collective kernel")));
  }

  JsonElements elements_;
  std::string name_;
  const TraceOwner& owner_;
  size_t ops_max_;
  dom::parser parser_;
  int64_t base_ns_ = 0;
  std::optional<uint32_t> rank_;
  uint32_t world_ = 0;
  std::map<std::string, uint64_t, std::less<>> configured_;  // ids of groups by name
  std::map<uint64_t, ProfiledGroup> groups_;
  std::unordered_map<int64_t, int64_t> called_;  // time of the host's call by its id
  std::vector<ProfiledStep> host_steps_, device_steps_;
  std::vector<ProfiledOperation> operations_;
  size_t seen_ = 0;
  uint64_t broken_ = 0, nameless_ = 0, calls_ = 0, beyond_ = 0, between_ = 0, undated_ = 0;
};

std::string host_of_trace(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view suffix : {".gz", ".zst", ".xz"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  constexpr std::string_view kEnd = ".pt.trace.json";
  if (!name.ends_with(kEnd)) return "";
  name.remove_suffix(kEnd.size());
  const size_t dot = name.rfind('.');
  if (dot == npos || !all_digits(name.substr(dot + 1))) return "";
  name = name.substr(0, dot);
  const size_t bar = name.rfind('_');
  if (bar == npos || bar == 0 || !all_digits(name.substr(bar + 1))) return "";
  return to_utf8(name.substr(0, bar));
}

Result<std::unique_ptr<ProfilerTrace>> ProfilerTrace::open(const SourceFile& file, const TraceOwner& owner,
                                                           size_t ops_max, const std::atomic<bool>& stop) {
  auto bytes = Decompressor::open(file);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  return over(std::move(*bytes), file.path, owner, ops_max, stop);
}

std::unique_ptr<ProfilerTrace> ProfilerTrace::over(Decompressor bytes, std::string name,
                                                   const TraceOwner& owner, size_t ops_max,
                                                   const std::atomic<bool>& stop) {
  std::unique_ptr<ProfilerTrace> out(new ProfilerTrace());
  JsonElements elements(std::move(bytes), "traceEvents",
                        {{"distributedInfo", limits::kProfilerGroupsBytes}, {"baseTimeNanoseconds", 64}},
                        limits::kProfilerEventBytes);
  Reader(std::move(elements), std::move(name), owner, std::min(ops_max, limits::kProfilerOps))
      .read(*out, stop);
  return out;
}

void ProfilerTrace::next(std::vector<CommRecord>& out, size_t most) {
  const size_t n = std::min(most, records_.size() - given_);
  out.assign(records_.begin() + static_cast<std::ptrdiff_t>(given_),
             records_.begin() + static_cast<std::ptrdiff_t>(given_ + n));
  given_ += n;
}

}  // namespace culprit::ingest
