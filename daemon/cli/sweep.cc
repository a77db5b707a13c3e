#include "cli/sweep.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <map>
#include <utility>

#include "app/check/host_check.h"
#include "app/run/attempt_event.h"
#include "app/sweep/coordinator.h"
#include "app/sweep/launch.h"
#include "app/sweep/member.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/environment.h"
#include "cli/rules.h"
#include "cli/sweep_page.h"
#include "cli/sweep_text.h"
#include "model/peer.h"

namespace culprit::cli {
namespace {

namespace sweeping = app::sweeping;

constexpr const char* kSweepExamples = R"(
Examples:
  srun --ntasks-per-node=1 culprit sweep --findings logs/sweep.ndjson || exit 1   # before the job
  mpirun --map-by ppr:1:node culprit sweep --json > sweep.json
  culprit sweep --rank 0 --size 2 --master n1:29400 --secret-file s   # the same on n2 with --rank 1

One process a host. Each pair exchanges known bytes; rank 0 compares and prints: which host, which link, why. Hosts
that do not answer are unknown. docs/checks.md says what is trusted and how the bars were chosen.

Exit status of rank 0: 0 nothing found, 1 a host or link is named, 2 it could not be done. Others: 0 or 2.)";

struct SweepVerbOptions {
  std::optional<uint32_t> rank, size;
  std::string host, master, meet, interface, secret_file, findings, format = "text";
  uint64_t bytes = 64 << 20;
  uint32_t join_s = 60, within_s = 600;
  bool json = false, quiet = false, next_to_jobs = false;
};

int sweep_error(const std::string& text) { return report_error("sweep: " + text), kUnable; }

// ---- who this is, and where the coordinator is

struct SweepPlace {
  sweeping::Place place;
  std::optional<sweeping::Meeting> master;  // nothing: by the meeting file
  std::string meet;
};

Result<SweepPlace> sweep_place(const SweepVerbOptions& o) {
  SweepPlace out;
  out.place = sweeping::place_of([](std::string_view name) { return variable(name); });
  if (o.rank) out.place.rank = *o.rank;
  if (o.size) out.place.size = *o.size;
  if (!o.host.empty()) out.place.host = o.host;
  if (!peer::is_host_name(out.place.host))
    return fail(ErrorCode::kInvalid,
                fmt::format("'{}' is no name of a host: --host NAME", to_terminal(out.place.host)));
  if (out.place.size < 2)
    return fail(ErrorCode::kInvalid, out.place.size == 1
                                         ? "one member has no pair: srun --ntasks-per-node=1 -N 2 or more"
                                         : "neither Slurm nor MPI says who takes part: srun "
                                           "--ntasks-per-node=1 culprit sweep, or --rank, --size, --master");
  if (out.place.rank >= out.place.size)
    return fail(ErrorCode::kInvalid, "--rank counts from 0 to --size - 1");
  out.meet = o.meet;
  if (!o.master.empty()) {
    auto master = sweeping::meeting_at(o.master);
    if (!master) return tl::unexpected(master.error());
    auto secret = sweeping::given_secret(o.secret_file, [](std::string_view name) { return variable(name); });
    if (!secret) return tl::unexpected(secret.error());
    master->secret = std::move(*secret);
    out.master = std::move(*master);
  } else if (out.meet.empty()) {
    if (out.place.job.empty())
      return fail(ErrorCode::kInvalid,
                  "the launcher names no job: --meet FILE in a folder that all hosts share");
    out.meet = ".culprit-sweep-" + out.place.job;
  }
  return out;
}

// Each time the next of the known addresses.
sweeping::FindMeeting finder_of(const SweepPlace& at) {
  auto next = std::make_shared<size_t>(0);
  return [at, next]() -> std::optional<sweeping::Meeting> {
    if (at.master) return at.master;
    const auto meeting = sweeping::read_meeting(at.meet);
    if (!meeting) return std::nullopt;
    const std::string address = meeting->addresses[(*next)++ % meeting->addresses.size()];
    return sweeping::Meeting{address, meeting->port, meeting->secret};
  };
}

// ---- the member

// Why nothing may be measured here.
std::string busy_here(const SweepVerbOptions& o) {
  if (o.next_to_jobs) return {};
  const app::ProcessView view = app::look_at_processes({"/proc", wall_now(), steady_now});
  return app::job_in_the_way(view, ::geteuid()).value_or("");
}

// The daemon of this host hears of what was found of it, in the words of this user.
void tell_daemon(const sweeping::End& end, const std::string& host) {
  const auto daemon = app::host_daemon([](std::string_view name) { return variable(name); });
  if (!end.named || !daemon) return;
  PluginFinding finding = finding_of(end, host, wall_now());
  finding.job = daemon->job;
  (void)fit_line(finding);
  (void)app::send_to_trace(daemon->socket, finding_line(finding) + "\n");
}

Result<sweeping::End> be_member(const SweepVerbOptions& o, const SweepPlace& at,
                                const sweeping::FindMeeting& find) {
  sweeping::MemberOptions options{at.place.rank, at.place.host, "", busy_here(o)};
  if (!o.interface.empty()) {
    auto address = sweeping::address_of_interface(o.interface);
    if (!address) return tl::unexpected(address.error());
    options.address = std::move(*address);
  }
  auto end = sweeping::run_member(options, find, steady_now() + TimeNs{o.join_s} * kNsPerSecond);
  if (end) tell_daemon(*end, at.place.host);
  return end;
}

int run_other(const SweepVerbOptions& o, const SweepPlace& at) {
  const auto end = be_member(o, at, finder_of(at));
  if (end) return kDone;
  std::string where;
  if (at.master) {
    where = fmt::format("{}:{}", at.master->address, at.master->port);
  } else {
    const auto meeting = sweeping::read_meeting(at.meet);
    where = meeting ? at.meet : meeting.error().text + "; do all hosts share this folder?";
  }
  return sweep_error(
      fmt::format("rank {} on {}: {} ({})", at.place.rank, at.place.host, end.error().text, where));
}

// ---- rank 0

Status check_names(const sweeping::SweepResult& result) {
  std::map<std::string, uint32_t> ranks;
  for (const sweeping::SweepMember& member : result.members)
    if (!member.host.empty())
      if (const auto [at, fresh] = ranks.try_emplace(member.host, member.rank); !fresh)
        return fail(
            ErrorCode::kInvalid,
            fmt::format("ranks {} and {} are both on {}: one process a host (srun --ntasks-per-node=1), "
                        "or --host NAME",
                        at->second, member.rank, member.host));
  return {};
}

int show_sweep(const SweepVerbOptions& o, const sweeping::SweepResult& result) {
  if (const Status names = check_names(result); !names) return sweep_error(names.error().text);
  const std::string format = o.json ? "json" : o.format;
  if (!print(format == "json"   ? sweep_json(result)
             : format == "html" ? sweep_page(result)
                                : sweep_text(result, wants_color())))
    return kUnable;
  if (!o.findings.empty()) {
    std::string lines;
    for (PluginFinding& one : sweep_findings(result, wall_now())) {
      (void)fit_line(one);
      lines += finding_line(one) + "\n";
    }
    if (const Status written = write_file(o.findings, lines); !written)
      return sweep_error(written.error().text);
  }
  return result.verdict.findings.empty() ? kDone : kFound;
}

struct RemovedFile {
  std::string path;
  ~RemovedFile() {
    if (!path.empty()) (void)::unlink(path.c_str());
  }
};

int run_first(const SweepVerbOptions& o, const SweepPlace& at) {
  if (!o.interface.empty())
    if (const auto own = sweeping::address_of_interface(o.interface); !own)
      return sweep_error(own.error().text);
  auto listener = sweeping::Listener::open("", at.master ? at.master->port : 0);
  if (!listener) return sweep_error(listener.error().text);
  RemovedFile meeting_file;
  const std::optional<std::string> secret =
      at.master ? std::optional(at.master->secret) : sweeping::random_secret();
  if (!secret) return sweep_error("no random numbers");
  if (!at.master) {
    if (const Status written =
            sweeping::write_meeting(at.meet, {sweeping::own_addresses(), listener->port(), *secret});
        !written)
      return sweep_error(written.error().text + "; --meet FILE names another");
    meeting_file.path = at.meet;
  }
  sweeping::SweepOptions options;
  options.size = at.place.size;
  options.secret = *secret;
  options.join_within_ns = TimeNs{o.join_s} * kNsPerSecond;
  options.total_ns = TimeNs{o.within_s} * kNsPerSecond;
  options.bytes = o.bytes;
  const bool shown = !o.quiet && ::isatty(2) == 1;
  if (shown) options.progress = [](const std::string& text) { fmt::print(stderr, "\r\x1b[K{}", text); };
  // Its own member comes over the loopback.
  const uint16_t port = listener->port();
  auto own = std::async(std::launch::async, [&o, &at, port, &secret] {
    return be_member(o, at, [port, &secret]() -> std::optional<sweeping::Meeting> {
      return sweeping::Meeting{"127.0.0.1", port, *secret};
    });
  });
  const auto result = sweeping::coordinate(*listener, options);
  listener = tl::unexpected(Error{});  // its own member ends as well if it has not joined
  if (shown) fmt::print(stderr, "\r\x1b[K");
  if (const auto end = own.get(); !end && result)
    report_error("sweep: the member of rank 0: " + end.error().text);
  return result ? show_sweep(o, *result) : sweep_error(result.error().text);
}

int sweep_verb(const SweepVerbOptions& o) {
  const auto at = sweep_place(o);
  if (!at) return sweep_error(at.error().text);
  return at->place.rank == 0 ? run_first(o, *at) : run_other(o, *at);
}

}  // namespace

void add_sweep(Command& app, Run& run) {
  auto o = std::make_shared<SweepVerbOptions>();
  Command* verb =
      app.add_subcommand("sweep", "Find slow, wrong and dead links between hosts before a job starts");
  verb->footer(kSweepExamples);
  verb->add_option("--rank", o->rank, "This process, from 0; default: as the launcher says");
  verb->add_option("--size", o->size, "Processes in all")->between(2u, sweep::kMembersMost);
  verb->add_option("--host", o->host, "Name of this host; default: Slurm's, or the system's");
  verb->add_option("--master", o->master, "HOST:PORT of rank 0, with CULPRIT_SWEEP_SECRET or --secret-file");
  verb->add_option("--secret-file", o->secret_file, "File with the secret that all processes share");
  verb->add_option("--meet", o->meet,
                   "File in a folder that all hosts share; default: .culprit-sweep-JOB in the current one");
  verb->add_option("--interface", o->interface,
                   "Network interface to measure; default: where the names lead");
  verb->add_option("--bytes", o->bytes, "Of each pair in each direction")
      ->as_size()
      ->between(uint64_t{1} << 20, uint64_t{1} << 34)
      ->show_default();
  verb->add_option("--join-within", o->join_s, "Seconds to wait for all processes")
      ->between(1u, 600u)
      ->show_default();
  verb->add_option("--within", o->within_s, "Seconds after which no round begins")
      ->between(1u, 800u)
      ->show_default();
  verb->add_option("--findings", o->findings, "Also write findings for `culprit diagnose` to this file");
  verb->add_flag("--next-to-jobs", o->next_to_jobs, "Measure also where a job of another user runs");
  verb->add_option("--format,-f", o->format, "text, json or html")
      ->one_of({"text", "json", "html"})
      ->show_default();
  verb->add_flag("--json", o->json, "As --format json");
  verb->add_flag("--quiet,-q", o->quiet, "No progress");
  verb->callback([o, &run] { run = [o] { return sweep_verb(*o); }; });
}

}  // namespace culprit::cli
