#include "sim/hang_job.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/json_writer.h"
#include "sim/files.h"
#include "sim/hang_fault.h"
#include "sim/hang_site.h"
#include "sim/hang_state.h"
#include "sim/hang_world.h"

namespace culprit::sim {
namespace {

bool writes(const HangJobOptions& o, std::string_view source) {
  return o.sources.empty() || std::find(o.sources.begin(), o.sources.end(), source) != o.sources.end();
}

Status check_hang_options(const HangJobOptions& o) {
  const auto known = [](const std::vector<NamedChoice>& list, std::string_view name) {
    return std::any_of(list.begin(), list.end(), [&](const NamedChoice& one) { return one.name == name; });
  };
  if (!known(hang_kinds(), o.kind))
    return fail(ErrorCode::kInvalid, fmt::format("kind: {}: unknown; see --list", o.kind));
  for (const std::string& source : o.sources)
    if (!known(hang_sources(), source))
      return fail(ErrorCode::kInvalid, fmt::format("sources: {}: unknown; see --list", source));
  if (!(o.capture >= 0 && o.capture <= 1))
    return fail(ErrorCode::kInvalid, "capture: it is a share from 0 to 1");
  return {};
}

std::string job_toml(const HangSite& s) {
  std::string hosts;
  for (const std::string& name : s.host_names)
    fmt::format_to(std::back_inserter(hosts), "{}\"{}\"", hosts.empty() ? "" : ", ", name);
  return fmt::format(
      "[job]\nid = \"{}\"\nhosts = [{}]\nranks_per_host = {}\n[parallel]\ntp = {}\npp = {}\ndp = {}\n", s.job,
      hosts, s.ranks_per_host, s.tp, s.pp, s.dp);
}

class HangTruth {
 public:
  HangTruth(const HangJobOptions& options, const HangState& hang_state)
      : o_(options), c_(hang_state), s_(hang_state.site) {}

  std::string make() {
    w_.object([&] {
      w_.field("seed", o_.seed);
      w_.field("kind", c_.fault.kind);
      w_.field("class", c_.fault.class_name);
      job();
      w_.values("ranks", c_.fault.ranks);
      w_.list("hosts", c_.fault.hosts, [&](uint32_t host) { w_.write(s_.host_names[host]); });
      w_.values("gone", c_.fault.exited);
      operation();
      evidence();
    });
    return w_.finish() + "\n";
  }

 private:
  void job() {
    w_.field("world", s_.world);
    w_.field("ranks_per_host", s_.ranks_per_host);
    w_.member("parallel", [&] {
      w_.object([&] {
        w_.field("tp", s_.tp);
        w_.field("pp", s_.pp);
        w_.field("dp", s_.dp);
      });
    });
  }
  // The operation's number on the ranks that reach it: the count of completed operations plus one.
  void operation() {
    if (!c_.fault.has_operation) {
      w_.null("group");
      w_.null("op");
      w_.null("seq");
      return;
    }
    const uint32_t r = c_.fault.operation_rank;
    const HangProgram& program = *c_.rank(r).program;
    const HangAct& act = program[c_.fault.operation_act];
    uint64_t seq = c_.world.calls_before(r, act.group);
    for (uint32_t i = 0; i <= c_.fault.operation_act; ++i)
      if (program[i].what == HangAct::What::kCall && program[i].group == act.group) ++seq;
    const uint32_t group = s_.group_of(act.group, r);
    w_.member("group", [&] {
      w_.object([&] {
        w_.field("name", fmt::format("{}", s_.group_name(act.group, group)));
        w_.field("description", s_.description[static_cast<size_t>(act.group)]);
        w_.field("size", s_.group_size(act.group));
        std::vector<uint32_t> members;
        for (uint32_t i = 0; i < s_.group_size(act.group); ++i)
          members.push_back(s_.member(act.group, group, i));
        w_.values("ranks", members);
      });
    });
    w_.field("op", recorder_name(act.op));
    w_.field("seq", seq);
  }
  void evidence() {
    uint64_t waiting = 0, captured = 0, at_fault = 0;
    for (uint32_t r = 0; r < s_.world; ++r) {
      waiting += c_.rank(r).waits() && c_.answers(r) ? 1 : 0;
      captured += c_.captured[r];
      at_fault += c_.captured[r] && c_.fault.is_at_fault(r) ? 1 : 0;
    }
    w_.field("waiting", waiting);
    w_.field("since_ns", c_.since_ns);
    w_.field("captured", captured);
    w_.field("captured_at_fault", at_fault);
    w_.field("torch", fmt::format("{}.{}", s_.torch / 100, s_.torch % 100));
    constexpr std::string_view kLaunchers[] = {"torchrun", "slurm", "plain"};
    constexpr std::string_view kForms[] = {"py-spy json", "py-spy text", "faulthandler", "gdb", "eu-stack"};
    w_.field("launcher", kLaunchers[static_cast<size_t>(s_.launcher)]);
    w_.field("stack_form", kForms[static_cast<size_t>(s_.stack_form)]);
    w_.field("ras_form", s_.ras_json ? "json" : "text");
    w_.field("dump_form", s_.json_dumps ? "json" : "pickle");
    w_.values("logged", logged_causes());
  }
  // What logs say of the cause.
  std::vector<std::string> logged_causes() const {
    std::vector<std::string> out;
    if (!c_.fault.exited.empty() && s_.launcher != HangLauncher::kPlain) out.push_back("launcher");
    if (c_.kernel_line || (c_.fault.kind == "storage" && s_.storage_lines)) out.push_back("kernel");
    const bool end = !c_.fault.ranks.empty() && c_.captured[c_.fault.ranks.front()];
    if (c_.fault.end == HangEnd::kException && end) out.push_back("traceback");
    if (s_.started_times) out.push_back("started");
    return out;
  }

  const HangJobOptions& o_;
  const HangState& c_;
  const HangSite& s_;
  JsonWriter w_;
};

}  // namespace

const std::vector<NamedChoice>& hang_kinds() {
  static const std::vector<NamedChoice> kKinds = {
      {"loader", "a rank waits in its data loader"},
      {"lock", "a rank waits for a lock of its process"},
      {"gc", "a rank's garbage collection does not end"},
      {"tokenize", "a rank prepares data while the others wait in a barrier"},
      {"save", "a rank writes a file while the others wait in a barrier"},
      {"killed", "a rank is killed"},
      {"exception", "a rank ends with a traceback"},
      {"stopped", "a rank is stopped (SIGSTOP)"},
      {"device", "peers complete an operation, and the device of one rank does not"},
      {"kernel", "all hand an operation over, and the device of one rank does not reach it"},
      {"network", "no operation between two hosts completes"},
      {"collective", "a rank calls another operation than its peers"},
      {"size", "a rank calls an operation with another size than its peers"},
      {"left-early", "a replica leaves the loop one step before the others"},
      {"storage", "all ranks are late in a checkpoint; no rank is at fault"},
      {"order", "a replica calls two groups in another order than the others"},
  };
  return kKinds;
}

const std::vector<NamedChoice>& hang_sources() {
  static const std::vector<NamedChoice> kSources = {
      {"watchdog", "logs/: progress, torch's watchdog, launcher, kernel"},
      {"flight", "flight/nccl_trace_rank_<rank>: Flight Recorder dumps"},
      {"ras", "ras_1, ras_2: answers of NCCL RAS, 10 s apart"},
      {"stacks", "stacks/<host>/rank_<rank>: stacks of each process"},
  };
  return kSources;
}

Status simulate_hang(const HangJobOptions& o, const std::string& out) {
  if (Status status = check_hang_options(o); !status) return status;
  if (Status status = check_empty(out); !status) return status;
  Result<HangSite> site = make_hang_site(o);
  if (!site) return tl::unexpected(site.error());
  Result<HangFault> fault = make_hang_fault(*site, o.kind, Random(mix64(o.seed, 0x746c7568)));
  if (!fault) return tl::unexpected(fault.error());
  HangWorld world(*site, fault->program_of, fault->deviations, fault->cut);
  world.run();
  const HangState hang_state(*site, *fault, world, o.capture);
  const std::string job = out + "/job";
  std::error_code error;
  std::filesystem::create_directories(job, error);
  if (error) return fail(ErrorCode::kIo, job + ": " + error.message());
  if (Status status = write_text(job + "/job.toml", job_toml(*site)); !status) return status;
  struct Writer {
    std::string_view source;
    Status (*write)(const HangState&, const std::string&);
  };
  constexpr Writer kWriters[] = {{"watchdog", write_hang_logs},
                                 {"flight", write_hang_dumps},
                                 {"ras", write_hang_ras},
                                 {"stacks", write_hang_stacks}};
  for (const Writer& one : kWriters) {
    if (!writes(o, one.source)) continue;
    if (Status status = one.write(hang_state, job); !status) return status;
  }
  return write_text(out + "/truth.json", HangTruth(o, hang_state).make());
}

}  // namespace culprit::sim
