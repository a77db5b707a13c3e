#include "sim/mixed_job.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "base/hash.h"
#include "model/json_writer.h"
#include "sim/comm_play.h"
#include "sim/files.h"
#include "sim/hang_fault.h"
#include "sim/hang_site.h"
#include "sim/hang_state.h"
#include "sim/hang_world.h"
#include "sim/job.h"
#include "sim/mixed_plan.h"

namespace culprit::sim {
namespace {

struct MixedKind {
  std::string_view name, help, category, component, symptom, comm, hang;
};
// In the order of MixedFault.
constexpr MixedKind kMixedKinds[] = {
    {"thermal", "a device is hot and computes slower", "hardware", "gpu", "slowdown", "gpu", ""},
    {"cable", "a link flaps and carries less", "hardware", "network", "slowdown", "link", ""},
    {"cable-down", "a link goes down, and the job stands", "hardware", "network", "hang", "", "network"},
    {"memory", "a device's memory fails, and its replica differs", "hardware", "gpu_memory", "numeric", "",
     ""},
    {"storage", "a file server does not answer, and the job stands in a checkpoint", "platform", "storage",
     "hang", "", "storage"},
    {"disk", "a host's disk is busy, and a rank of it stalls again and again", "platform", "storage",
     "slowdown", "stall-periodic", ""},
    {"oom", "the kernel kills a rank for lack of memory, and its peers wait", "user", "host_memory", "hang",
     "", "killed"},
    {"planned", "the loss moves after a planned change: no fault", "", "", "", "", ""},
    {"healthy-thermal", "a device is hot and not slower: no fault", "", "", "", "", ""},
    {"healthy-ecc", "memory corrects errors: no fault", "", "", "", "", ""},
    {"healthy-flap", "a link flapped before the job began: no fault", "", "", "", "", ""},
    {"healthy-plan", "the learning rate is set to another value: no fault", "", "", "", "", ""},
};
constexpr uint32_t kMixedSteps = 40, kNumericSteps = 100;
// Time from the launcher's first line to the first iteration.
constexpr TimeNs kStartUp = 90 * kNsPerSecond;

class MixedJob {
 public:
  MixedJob(const MixedJobOptions& options, const std::string& out)
      : o_(options), out_(out), job_(out + "/job"), random_(mix64(options.seed, 0x6d69786564)) {
    const auto at = std::ranges::find(kMixedKinds, o_.fault, &MixedKind::name);
    kind_ = at;
    p_.fault = static_cast<MixedFault>(at - kMixedKinds);
    p_.ranks_per_host = o_.ranks_per_host;
  }

  Status write() {
    std::error_code error;
    std::filesystem::create_directories(job_ + "/plugins", error);
    if (error) return fail(ErrorCode::kIo, job_ + ": " + error.message());
    if (Status status = is_mixed_hang(p_.fault) ? write_hang() : write_running(); !status) return status;
    for (uint32_t host = 0; has("counters") && host < p_.hosts.size(); ++host) {
      const std::string lines = mixed_counter_lines(p_, host);
      if (lines.empty()) continue;
      const std::string path = fmt::format("{}/plugins/{}.ndjson", job_, p_.hosts[host]);
      if (Status status = write_text(path, lines); !status) return status;
    }
    if (has("metrics"))
      if (Status status = write_text(job_ + "/metrics.ndjson", mixed_metric_lines(p_, random_.fork(6)));
          !status)
        return status;
    if (Status status = write_text(job_ + "/job.toml", job_toml()); !status) return status;
    return write_text(out_ + "/truth.json", truth());
  }

 private:
  bool has(std::string_view input) const { return std::ranges::find(o_.without, input) == o_.without.end(); }

  CommJobOptions comm_options(uint32_t steps) {
    CommJobOptions c;
    c.world = o_.ranks;
    c.ranks_per_host = o_.ranks_per_host;
    c.steps = steps;
    c.seed = random_.fork(1).next();
    c.micro_batches = 4;
    c.layers = 1;
    c.virtual_stages = 1;
    return c;
  }

  // A job that hangs: its hang state is that of `simulate hang`, with records of the previous steps.
  Status write_hang() {
    HangJobOptions h;
    h.ranks = o_.ranks;
    h.ranks_per_host = o_.ranks_per_host;
    h.kind = kind_->hang;
    h.seed = random_.fork(2).next();
    Result<HangSite> site = make_hang_site(h);
    if (!site) return tl::unexpected(site.error());
    Result<HangFault> fault = make_hang_fault(*site, h.kind, random_.fork(3));
    if (!fault) return tl::unexpected(fault.error());
    site->storage_lines = false;
    HangWorld world(*site, fault->program_of, fault->deviations, fault->cut);
    world.run();
    HangState hang_state(*site, *fault, world, 1);
    hang_state.kernel_line = false;
    p_.hosts = site->host_names;
    p_.tp = site->tp, p_.pp = site->pp, p_.dp = site->dp;
    if (!fault->ranks.empty()) p_.rank = fault->ranks[0];
    p_.fault_hosts = fault->hosts;
    if (p_.fault == MixedFault::kCableDown && p_.fault_hosts.size() > 1) p_.peer = p_.fault_hosts[1];
    const uint64_t stops = hang_state.fault_ns != 0 ? hang_state.exit_ns() : hang_state.since_ns;
    p_.onset_at_ns = static_cast<TimeNs>(p_.fault == MixedFault::kOom ? stops : hang_state.since_ns);
    if (Status status = play_before(*site); !status) return status;
    add_mixed_signs(p_, random_.fork(5));
    for (const MixedKernelLine& line : p_.kernel)
      if (has("kernel"))
        hang_state.kernel.push_back({line.host, static_cast<uint64_t>(line.at_ns), line.text});
    shown_.insert(p_.shows.begin(), p_.shows.end());
    return write_hang_state(hang_state);
  }

  Status write_hang_state(const HangState& hang_state) {
    struct Writer {
      std::string_view input;
      Status (*write)(const HangState&, const std::string&);
    };
    constexpr Writer kWriters[] = {{"logs", write_hang_logs},
                                   {"flight", write_hang_dumps},
                                   {"ras", write_hang_ras},
                                   {"stacks", write_hang_stacks}};
    for (const Writer& one : kWriters) {
      if (has(one.input)) {
        if (Status status = one.write(hang_state, job_); !status) return status;
      } else if (one.input == "logs") {
        if (Status status = write_hang_kernel_logs(hang_state, job_); !status) return status;
      }
    }
    for (const std::string_view input : {"logs", "flight", "ras", "stacks"}) shown_.insert(input);
    return {};
  }

  // The records of the last complete steps.
  Status play_before(const HangSite& hang) {
    CommJobOptions c = comm_options(kMixedSteps);
    c.tp = hang.tp, c.pp = hang.pp, c.dp = hang.dp;
    Result<CommSite> site = make_comm_site(c);
    if (!site) return tl::unexpected(site.error());
    site->first_step = hang.steps_done > kMixedSteps ? hang.steps_done - kMixedSteps + 1 : 1;
    Result<CommPlay> play = play_comm(*site, {}, nullptr);
    if (!play) return tl::unexpected(play.error());
    double total = 0;
    for (const double ms : play->with_ms) total += ms;
    p_.epoch_ns = static_cast<TimeNs>(hang.start_ns) - static_cast<TimeNs>(total * 1e6);
    p_.onset = kMixedSteps;
    return write_comm(c, *site, {}, *play);
  }

  Status write_comm(CommJobOptions& c, CommSite& site, const std::vector<CommFault>& faults,
                    const CommPlay& play) {
    p_.first_step = site.first_step;
    double at = 0;
    for (const double ms : play.with_ms)
      p_.step_ends_ns.push_back(p_.epoch_ns + static_cast<TimeNs>((at += ms) * 1e6));
    if (!has("comm")) return {};
    site.host_names = p_.hosts;
    site.job = name_;
    c.epoch_ns = static_cast<uint64_t>(p_.epoch_ns);
    CommFiles files(c, site, {}, job_);
    if (Status status = files.begin(); !status) return status;
    const Result<CommPlay> done = play_comm(site, faults, &files);
    return done ? Status{} : Status{tl::unexpected(done.error())};
  }

  // A job that continues: its trace sets the pace of its logs.
  Status write_running() {
    const bool numeric = p_.fault == MixedFault::kMemory || p_.fault == MixedFault::kPlanned ||
                         p_.fault == MixedFault::kHealthyPlan;
    CommJobOptions c = comm_options(numeric ? kNumericSteps : kMixedSteps);
    std::vector<CommFault> faults;
    Result<CommSite> site = make_comm_site(c);
    for (uint64_t attempt = 0; attempt < 20; ++attempt) {
      if (!site) return tl::unexpected(site.error());
      if (Status status = choose_fault(c, *site, faults); !status) return status;
      if (!needs_place(faults)) break;
      ++c.seed;
      site = make_comm_site(c);
    }
    if (needs_place(faults))
      return fail(ErrorCode::kInvalid, "fault: every place of it has a twin; choose another seed");
    Result<CommPlay> play = play_comm(*site, faults, nullptr);
    if (!play) return tl::unexpected(play.error());
    p_.tp = site->tp, p_.pp = site->pp, p_.dp = site->dp;
    Site log_site = make_site(log_options(c.steps));
    Run run = make_run(log_site, random_.fork(4).next(), 0);
    for (const RunHost& host : run.hosts) p_.hosts.push_back(host.name);
    run.first_iteration_ns = run.start_ns + kStartUp;
    run.first_iteration = std::max<int64_t>(0, int64_t{site->first_step} - 1);
    site->first_step = static_cast<uint32_t>(run.first_iteration) + 1;
    p_.epoch_ns = run.first_iteration_ns;
    if (Status status = write_comm(c, *site, faults, *play); !status) return status;
    if (p_.fault == MixedFault::kMemory) choose_rank(c.steps);
    if (p_.fault == MixedFault::kPlanned || p_.fault == MixedFault::kHealthyPlan)
      p_.onset = static_cast<uint32_t>(random_.fork(8).range(c.steps / 2, c.steps * 3 / 4));
    add_mixed_signs(p_, random_.fork(5));
    if (!kind_->comm.empty()) shown_.insert("comm");
    if (numeric) shown_.insert("metrics");
    shown_.insert(p_.shows.begin(), p_.shows.end());
    for (const double ms : play->with_ms) run.steps_us.push_back(static_cast<int64_t>(ms * 1e3));
    return write_logs(log_site, run);
  }

  // Chooses the fault of the trace; draws again if the fault looks the same at another place.
  Status choose_fault(const CommJobOptions& c, CommSite& site, std::vector<CommFault>& faults) {
    if (kind_->comm.empty()) return {};
    Random random = random_.fork(3);
    const std::string_view name = kind_->comm == "link" && random.chance(50) ? "nic" : kind_->comm;
    CommJobOptions placed = c;
    if (name != "stall-periodic") placed.onset = fmt::format("{}", random.range(2, c.steps / 2));
    for (int attempt = 0; attempt < 30; ++attempt) {
      Result<CommFault> fault = make_comm_fault(name, placed, site, random.fork(attempt));
      if (!fault) return tl::unexpected(fault.error());
      if (fault->twin) continue;
      choose_severity(site, *fault, random.fork(100), 1.25, 2.5);
      const auto first = std::ranges::find(fault->active, uint8_t{1});
      p_.onset = static_cast<uint32_t>(first - fault->active.begin());
      p_.fault_hosts = fault->hosts;
      if (!fault->ranks.empty()) p_.rank = fault->ranks[0];
      if (fault->kind == "link") p_.peer = fault->link.second, p_.fault_hosts = {fault->link.first};
      faults.push_back(std::move(*fault));
      return {};
    }
    return {};
  }
  bool needs_place(const std::vector<CommFault>& faults) const {
    return !kind_->comm.empty() && faults.empty();
  }

  void choose_rank(uint32_t steps) {
    Random random = random_.fork(8);
    p_.rank = static_cast<uint32_t>(random.below(o_.ranks));
    p_.fault_hosts = {p_.host_of(*p_.rank)};
    p_.onset = static_cast<uint32_t>(random.range(steps / 2, steps * 3 / 4));
  }

  LogJobOptions log_options(uint32_t steps) {
    Random random = random_.fork(7);
    constexpr std::string_view kLayouts[] = {"files",   "host-dirs",     "ranks",   "torchrun", "slurm",
                                             "srun-l",  "rank-stream",   "pdsh",    "mpirun",   "syslog",
                                             "workers", "default-files", "journald"};
    constexpr std::string_view kFrameworks[] = {"megatron",   "megatron-deepspeed", "nemo",
                                                "hf-trainer", "lightning",          "plain"};
    LogJobOptions l;
    l.hosts = o_.ranks / o_.ranks_per_host;
    l.ranks_per_host = o_.ranks_per_host;
    l.fault = "none";
    l.layout = has("logs") ? kLayouts[random.below(std::size(kLayouts))] : "files";
    l.framework = kFrameworks[random.below(std::size(kFrameworks))];
    l.seed = random.next();
    l.iterations = steps;
    return l;
  }

  Status write_logs(Site& site, Run& run) {
    site.tp = p_.tp, site.pp = p_.pp, site.dp = p_.dp;
    site.checkpoint_every = site.evaluate_every = 1u << 30;
    site.log_every = 1;
    site.kernel_logs = has("kernel");
    site.job_file = false;
    run.ends = random_.fork(9).chance(50) && !is_mixed_fault(p_.fault);
    for (const MixedKernelLine& line : p_.kernel)
      run.planned.push_back({line.at_ns, line.host, kKernelSlot, Shape::kDmesg, Tone::kInfo, line.text});
    for (const MixedKernelLine& line : p_.chat)
      run.planned.push_back({line.at_ns, line.host, 0, Shape::kPython, Tone::kInfo, line.text});
    std::ranges::stable_sort(run.planned, {}, &PlannedLine::time_ns);
    // The logs end while the job goes on.
    std::erase_if(run.planned,
                  [&](const PlannedLine& line) { return line.time_ns >= p_.step_ends_ns.back(); });
    if (!has("logs") && !has("kernel")) return {};
    if (!has("logs"))
      std::erase_if(run.planned, [](const PlannedLine& line) { return line.slot != kKernelSlot; });
    const Tables tables = has("logs") ? compile_tables(site) : Tables{};
    if (!has("logs")) site.chatter_per_host = 0;
    Sink sink(site, run, job_);
    JobWriter writer(site, tables, run, sink);
    if (auto done = writer.write(nullptr, 0); !done) return tl::unexpected(done.error());
    return sink.finish();
  }

  std::string job_toml() const {
    std::string hosts;
    for (const std::string& host : p_.hosts)
      fmt::format_to(std::back_inserter(hosts), "{}\"{}\"", hosts.empty() ? "" : ", ", host);
    return fmt::format(
        "[job]\nid = \"{}\"\nhosts = [{}]\nranks_per_host = {}\n[parallel]\ntp = {}\npp = {}\ndp = {}\n",
        name_, hosts, p_.ranks_per_host, p_.tp, p_.pp, p_.dp);
  }

  std::string truth() const {
    const bool fault = is_mixed_fault(p_.fault);
    JsonWriter w;
    const auto word = [&](std::string_view key, std::string_view value) {
      fault ? w.field(key, value) : w.null(key);
    };
    w.object([&] {
      w.field("seed", o_.seed);
      w.field("fault", o_.fault);
      w.field("failed", fault);
      word("category", kind_->category);
      word("component", kind_->component);
      word("symptom", kind_->symptom);
      std::vector<std::string> hosts;
      if (fault && p_.fault != MixedFault::kStorage)
        for (const uint32_t host : p_.fault_hosts) hosts.push_back(p_.hosts[host]);
      if (p_.peer && hosts.size() == 1) hosts.push_back(p_.hosts[*p_.peer]);
      w.values("hosts", hosts);
      std::vector<uint32_t> ranks;
      if (fault && p_.rank) ranks.push_back(*p_.rank);
      w.values("ranks", ranks);
      w.field("onset_ns", p_.onset_ns());
      w.field("step", p_.first_step + p_.onset);
      std::vector<std::string> shown;
      for (const std::string_view input : shown_)
        if (has(input)) shown.emplace_back(input);
      w.values("shows", shown);
      w.values("without", o_.without);
    });
    return w.finish() + "\n";
  }

  const MixedJobOptions& o_;
  const std::string out_, job_, name_ = "train-7";
  Random random_;
  const MixedKind* kind_ = nullptr;
  MixedPlan p_;
  std::set<std::string_view> shown_;  // inputs that show something of the fault
};

}  // namespace

const std::vector<NamedChoice>& mixed_faults() {
  static const std::vector<NamedChoice> kFaults = [] {
    std::vector<NamedChoice> out;
    for (const MixedKind& kind : kMixedKinds) out.push_back({kind.name, kind.help});
    return out;
  }();
  return kFaults;
}

const std::vector<NamedChoice>& mixed_inputs() {
  static const std::vector<NamedChoice> kInputs = {
      {"logs", "logs of ranks and launchers"},
      {"kernel", "logs of the hosts' kernels"},
      {"comm", "traces of communication"},
      {"metrics", "numbers of the training"},
      {"counters", "what plugins found in counters of devices, ports and hosts"},
      {"flight", "dumps of the Flight Recorder, of a job that hangs"},
      {"ras", "answers of NCCL RAS, of a job that hangs"},
      {"stacks", "stacks of processes, of a job that hangs"},
  };
  return kInputs;
}

Status simulate_mixed(const MixedJobOptions& o, const std::string& out) {
  const auto known = [](const std::vector<NamedChoice>& list, std::string_view name) {
    return std::ranges::any_of(list, [&](const NamedChoice& one) { return one.name == name; });
  };
  if (!known(mixed_faults(), o.fault))
    return fail(ErrorCode::kInvalid, fmt::format("fault: {}: unknown; see --list", o.fault));
  for (const std::string& input : o.without)
    if (!known(mixed_inputs(), input))
      return fail(ErrorCode::kInvalid, fmt::format("without: {}: unknown; see --list", input));
  if (o.ranks_per_host == 0 || o.ranks % o.ranks_per_host != 0 || o.ranks < 2 * o.ranks_per_host)
    return fail(ErrorCode::kInvalid, "ranks: they are no multiple of two hosts' or more");
  if (Status status = check_empty(out); !status) return status;
  return MixedJob(o, out).write();
}

}  // namespace culprit::sim
