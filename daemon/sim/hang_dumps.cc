// Flight Recorder dumps: the last calls of each rank with a live process, as pickle or JSON.
#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/json_writer.h"
#include "sim/files.h"
#include "sim/hang_state.h"

namespace culprit::sim {
namespace {

constexpr size_t kDumpEntries = 20;
constexpr uint32_t kDumpMembersMax = 1'024;  // default groups above this size have no list of ranks

// Pickle protocol 2 as torch writes it: each string once, later by its memo number.
class PickleOut {
 public:
  PickleOut() { out_ = "\x80\x02"; }
  std::string finish() { return out_ + "."; }

  template <class Body>
  void dict(Body body) {
    out_ += "}(";
    body();
    out_ += 'u';
  }
  template <class Body>
  void list(Body body) {
    out_ += "](";
    body();
    out_ += 'e';
  }
  void pair(std::string_view a, std::string_view b) {
    text(a);
    text(b);
    out_ += '\x86';
  }
  void text(std::string_view value) {
    const auto [at, added] = memo_.try_emplace(std::string(value), static_cast<uint32_t>(memo_.size()));
    const bool small = at->second < 256;
    if (added) {
      out_ += 'X';
      little(value.size(), 4);
      out_ += value;
    }
    out_ += added ? (small ? 'q' : 'r') : (small ? 'h' : 'j');
    little(at->second, small ? 1 : 4);
  }
  void number(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K';
      little(static_cast<uint64_t>(value), 1);
    } else if (value >= -0x80000000ll && value <= 0x7fffffffll) {
      out_ += 'J';
      little(static_cast<uint64_t>(value), 4);
    } else {
      out_ += '\x8a';
      out_ += '\x08';
      little(static_cast<uint64_t>(value), 8);
    }
  }
  void boolean(bool value) { out_ += value ? '\x88' : '\x89'; }
  void none() { out_ += 'N'; }

 private:
  void little(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_ += static_cast<char>(value >> (8 * i) & 0xff);
  }
  std::string out_;
  std::map<std::string, uint32_t> memo_;
};

std::string_view version_of(const HangSite& s) {
  return s.torch == 203 ? "2.1" : s.torch == 205 ? "2.4" : mix64(s.seed, 0x6672) % 2 == 0 ? "2.9" : "2.10";
}

std::string dump_members(const HangSite& s, HangGroup kind, uint32_t group) {
  const uint32_t size = s.group_size(kind);
  if (size > kDumpMembersMax) return "[]";
  std::string out = "[";
  for (uint32_t i = 0; i < size; ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i == 0 ? "" : ", ", s.member(kind, group, i));
  return out + "]";
}

std::string dump_name(const HangSite& s, uint32_t rank, const HangAct& act) {
  if (!act.is_p2p()) return fmt::format("nccl:{}", recorder_name(act.op));
  const uint32_t own = s.stage_of(rank), other = act.with_next ? own + 1 : own - 1;
  return act.op == HangOp::kSend ? fmt::format("nccl:send {}->{}", own, other)
                                 : fmt::format("nccl:recv {}<-{}", own, other);
}

// What a dump says of a call, in both forms.
struct DumpEntry {
  const HangCall* call = nullptr;
  const HangAct* act = nullptr;
  uint32_t group = 0, record = 0;
  std::string_view state;
};

std::vector<DumpEntry> entries_of(const HangState& c, uint32_t r) {
  const HangRank& rank = c.rank(r);
  const size_t first = rank.calls.size() > kDumpEntries ? rank.calls.size() - kDumpEntries : 0;
  std::vector<DumpEntry> out;
  const auto before = static_cast<uint32_t>(rank.program->size() / 2) * c.site.steps_done;
  for (size_t i = std::min<size_t>(first, rank.device); i < rank.calls.size(); ++i) {
    const HangCall& call = rank.calls[i];
    const HangAct& act = rank.act_of(call);
    const bool started = c.site.started_times && i == rank.device && rank.arrived;
    out.push_back({&call, &act, c.site.group_of(act.group, r), before + static_cast<uint32_t>(i),
                   call.done_ns != 0 ? "completed"
                   : started         ? "started"
                                     : "scheduled"});
  }
  return out;
}

class DumpPickle {
 public:
  DumpPickle(const HangState& hang_state, uint32_t rank) : c_(hang_state), s_(hang_state.site), r_(rank) {}

  std::string make() {
    o_.dict([&] {
      key("version");
      o_.text(version_of(s_));
      key("pg_config");
      o_.dict([&] { config(); });
      if (s_.torch >= 205) {
        key("nccl_version");
        o_.text("2.21.5");
        key("pg_status");
        o_.dict([&] { status(); });
      }
      key("entries");
      o_.list([&] {
        for (const DumpEntry& one : entries_of(c_, r_)) o_.dict([&] { entry(one); });
      });
    });
    return o_.finish();
  }

 private:
  void key(std::string_view name) { o_.text(name); }
  void field(std::string_view name, int64_t value) {
    key(name);
    o_.number(value);
  }
  void config() {
    for (HangGroup kind : kAllHangGroups) {
      const uint32_t group = s_.group_of(kind, r_);
      const std::string name = fmt::format("{}", s_.group_name(kind, group));
      key(name);
      o_.dict([&] {
        key("name");
        o_.text(name);
        key("desc");
        o_.text(s_.description[static_cast<size_t>(kind)]);
        key("ranks");
        o_.text(dump_members(s_, kind, group));
      });
    }
  }
  void status() {
    for (HangGroup kind : kAllHangGroups) {
      const auto k = static_cast<size_t>(kind);
      key(fmt::format("{}", s_.group_id(kind)));
      o_.dict([&] {
        field("last_enqueued_collective", c_.rank(r_).enqueued[k]);
        field("last_started_collective", -1);
        field("last_completed_collective", c_.rank(r_).completed[k]);
      });
    }
  }
  void sizes(std::string_view name, uint64_t elements) {
    key(name);
    o_.list([&] { o_.list([&] { o_.number(static_cast<int64_t>(elements)); }); });
  }
  void types(std::string_view name, const HangAct& act) {
    key(name);
    o_.list([&] { o_.text(act.in <= 1 ? "Float" : "BFloat16"); });
  }
  void entry(const DumpEntry& one) {
    const HangAct& act = *one.act;
    if (s_.torch >= 205) {
      key("frames");
      o_.list([&] { frames(act); });
    }
    field("record_id", one.record);
    field("pg_id", s_.group_id(act.group));
    key("process_group");
    o_.pair(fmt::format("{}", s_.group_name(act.group, one.group)),
            s_.description[static_cast<size_t>(act.group)]);
    field("collective_seq_id", act.is_p2p() ? 0 : one.call->seq);
    field("p2p_seq_id", act.is_p2p() ? one.call->seq : 0);
    field("op_id", one.call->seq);
    key("profiling_name");
    o_.text(dump_name(s_, r_, act));
    field("time_created_ns", static_cast<int64_t>(one.call->created_ns));
    sizes("input_sizes", act.in);
    types("input_dtypes", act);
    sizes("output_sizes", act.out);
    types("output_dtypes", act);
    key("state");
    o_.text(one.state);
    key("time_discovered_started_ns");
    o_.none();
    key("time_discovered_completed_ns");
    if (one.call->done_ns != 0)
      o_.number(static_cast<int64_t>(one.call->done_ns + 50'000'000));
    else
      o_.none();
    key("retired");
    o_.boolean(one.call->done_ns != 0);
    field("timeout_ms", static_cast<int64_t>(s_.timeout_ns / 1'000'000));
    key("is_p2p");
    o_.boolean(act.is_p2p());
  }
  void frames(const HangAct& act) {
    for (const HangFrame& frame : hang_call_site(s_, act))
      o_.dict([&] {
        key("name");
        o_.text(frame.function);
        key("filename");
        o_.text(frame.file);
        field("line", frame.line);
      });
  }

  const HangState& c_;
  const HangSite& s_;
  const uint32_t r_;
  PickleOut o_;
};

// JSON as torch writes it: no frames, status numbers as strings, 0 for unknown times.
class DumpJson {
 public:
  DumpJson(const HangState& hang_state, uint32_t rank) : c_(hang_state), s_(hang_state.site), r_(rank) {}

  std::string make() {
    w_.object([&] {
      w_.field("version", version_of(s_));
      w_.member("pg_config", [&] { w_.object([&] { config(); }); });
      w_.member("pg_status", [&] { w_.object([&] { status(); }); });
      const std::vector<DumpEntry> entries = entries_of(c_, r_);
      if (!entries.empty())
        w_.list("entries", entries, [&](const DumpEntry& one) { w_.object([&] { entry(one); }); });
    });
    return w_.finish();
  }

 private:
  void config() {
    for (HangGroup kind : kAllHangGroups) {
      const uint32_t group = s_.group_of(kind, r_);
      const std::string name = fmt::format("{}", s_.group_name(kind, group));
      w_.member(name, [&] {
        w_.object([&] {
          w_.field("name", name);
          w_.field("desc", s_.description[static_cast<size_t>(kind)]);
          w_.field("ranks", dump_members(s_, kind, group));
        });
      });
    }
  }
  void status() {
    for (HangGroup kind : kAllHangGroups) {
      const auto k = static_cast<size_t>(kind);
      w_.member(fmt::format("{}", s_.group_id(kind)), [&] {
        w_.object([&] {
          w_.field("last_enqueued_collective", fmt::format("{}", c_.rank(r_).enqueued[k]));
          w_.field("last_started_collective", "-1");
          w_.field("last_completed_collective", fmt::format("{}", c_.rank(r_).completed[k]));
        });
      });
    }
  }
  void nested(std::string_view name, uint64_t elements) { w_.raw(name, fmt::format("[[{}]]", elements)); }
  void entry(const DumpEntry& one) {
    const HangAct& act = *one.act;
    const std::vector<std::string> type = {act.in <= 1 ? "Float" : "BFloat16"};
    const std::vector<std::string> group = {fmt::format("{}", s_.group_name(act.group, one.group)),
                                            s_.description[static_cast<size_t>(act.group)]};
    w_.field("record_id", one.record);
    w_.field("pg_id", s_.group_id(act.group));
    w_.values("process_group", group);
    w_.field("collective_seq_id", act.is_p2p() ? 0 : one.call->seq);
    w_.field("p2p_seq_id", act.is_p2p() ? one.call->seq : 0);
    w_.field("op_id", one.call->seq);
    w_.field("profiling_name", dump_name(s_, r_, act));
    w_.field("time_created_ns", one.call->created_ns);
    nested("input_sizes", act.in);
    w_.values("input_dtypes", type);
    nested("output_sizes", act.out);
    w_.values("output_dtypes", type);
    w_.field("state", one.state);
    w_.field("time_discovered_started_ns", 0u);
    w_.field("time_discovered_completed_ns",
             one.call->done_ns == 0 ? uint64_t{0} : one.call->done_ns + 50'000'000);
    w_.field("retired", one.call->done_ns != 0);
    w_.field("timeout_ms", s_.timeout_ns / 1'000'000);
    w_.field("is_p2p", act.is_p2p());
  }

  const HangState& c_;
  const HangSite& s_;
  const uint32_t r_;
  JsonWriter w_;
};

}  // namespace

Status write_hang_dumps(const HangState& c, const std::string& folder) {
  if (c.site.torch == 201) return {};  // it has no recorder
  std::filesystem::create_directories(folder + "/flight");
  for (uint32_t r = 0; r < c.site.world; ++r) {
    if (!c.captured[r] || !c.answers(r)) continue;
    const std::string text = c.site.json_dumps ? DumpJson(c, r).make() : DumpPickle(c, r).make();
    if (Status status = write_text(fmt::format("{}/flight/nccl_trace_rank_{}", folder, r), text); !status)
      return status;
  }
  return {};
}

}  // namespace culprit::sim
