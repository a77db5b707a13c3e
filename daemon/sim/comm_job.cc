#include "sim/comm_job.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include <fmt/format.h>

#include "sim/comm_event.h"
#include "sim/comm_fault.h"
#include "sim/comm_file.h"
#include "sim/comm_play.h"
#include "sim/files.h"

namespace culprit::sim {
namespace {

std::string list_of(size_t n, auto item) {
  std::string out = "[";
  for (size_t i = 0; i < n; ++i) out += (i == 0 ? "" : ", ") + item(i);
  return out + "]";
}

std::string numbers(const std::vector<double>& list) {
  return list_of(list.size(), [&](size_t i) { return fmt::format("{:.3f}", list[i]); });
}

// Whether a pause is healthy: shorter than a garbage collection, and either unique or in a job whose
// collections take at least half as long. Any process may pause like this.
bool looks_healthy(const CommSite& site, const CommFault& fault) {
  constexpr uint64_t kCollectionNs = 300'000'000;
  if (!is_pause(fault) || fault.pause_ns >= kCollectionNs) return false;
  return fault.name == "pause-once" || (site.gc_every != 0 && 2 * site.gc_ns >= fault.pause_ns);
}

// Fluctuations are small; a spike must be visible in the length of its step.
void choose_severity_of(const CommSite& site, CommFault& fault, Random random) {
  if (fault.name.starts_with("fluctuation"))
    choose_severity(site, fault, random, 1.15, 1.3);
  else if (is_event(fault))
    choose_severity(site, fault, random, 1.15);
  else
    choose_severity(site, fault, random);
}

std::string fault_json(const CommSite& site, const CommFault& fault, const CommPlay& run, size_t index) {
  std::vector<uint32_t> steps;
  std::vector<double> cost;
  std::vector<double> shares{0};  // of the step's usual time
  for (uint32_t i = 0; i < run.with_ms.size(); ++i) {
    if (!is_of_job(fault) && fault.active[i] == 0) continue;
    steps.push_back(site.first_step + i);
    cost.push_back(is_of_job(fault) ? 0 : run.with_ms[i] - run.without_each[index][i]);
    if (run.without_each[index][i] > 0) shares.push_back(cost.back() / run.without_each[index][i]);
  }
  const auto host = [&](uint32_t h) { return fmt::format("\"{}\"", site.host_names[h]); };
  const bool device = fault.ranks.size() == 1;
  // Optional: faults that cost less than 5 % of each step, or without a detectable place. A fault of
  // several listed steps must show in two of them; a pause must lengthen its step by a tenth.
  std::ranges::sort(shares, std::greater<>());
  const double share = shares[fault.listed && steps.size() > 1 ? 1 : 0];
  const bool shows = is_hang(fault) ||
                     (share >= (is_pause(fault) ? 0.1 : 0.05) && !fault.twin && !looks_healthy(site, fault));
  const std::string_view named = !fault.somebody ? "no"
                                 : !shows        ? "optional"
                                 : fault.listed  ? "listed"
                                                 : "yes";
  const std::string link = fault.kind == "link"
                               ? fmt::format("[[{}, {}]]", host(fault.link.first), host(fault.link.second))
                               : "[]";
  return fmt::format(
      "{{\"fault\": \"{}\", \"kind\": \"{}\", \"named\": \"{}\", \"severity\": {:.4f}, \"ranks\": {}, "
      "\"hosts\": {}, \"devices\": {}, \"links\": {}, \"steps\": {}, \"cost_ms\": {}}}",
      fault.name, fault.kind, named, fault.severity,
      list_of(fault.ranks.size(), [&](size_t i) { return fmt::format("{}", fault.ranks[i]); }),
      list_of(fault.hosts.size(), [&](size_t i) { return host(fault.hosts[i]); }),
      device ? fmt::format("[{}]", fault.ranks[0] % site.ranks_per_host) : "[]", link,
      list_of(steps.size(), [&](size_t i) { return fmt::format("{}", steps[i]); }), numbers(cost));
}

std::string truth(const CommJobOptions& o, const CommSite& s, const std::vector<CommFault>& faults,
                  const CommPlay& run) {
  std::string out = fmt::format(
      "{{\n  \"seed\": {}, \"world\": {}, \"hosts\": {}, \"ranks_per_host\": {},\n"
      "  \"parallel\": {{\"tp\": {}, \"cp\": {}, \"dp\": {}, \"pp\": {}, \"ep\": {}}},\n"
      "  \"schedule\": {{\"virtual_stages\": {}, \"layers\": {}, \"micro_batches\": {}}},\n",
      o.seed, s.world, s.hosts, s.ranks_per_host, s.tp, s.cp, s.dp, s.pp, s.ep, s.virtual_stages, s.blocks,
      s.micro_batches);
  out +=
      fmt::format("  \"steps\": {},\n  \"step_ms\": {},\n  \"without_ms\": {},\n  \"hangs\": {},\n",
                  list_of(run.with_ms.size(), [&](size_t i) { return fmt::format("{}", s.first_step + i); }),
                  numbers(run.with_ms), numbers(run.without_ms), run.stuck);
  const std::string rows =
      list_of(faults.size(), [&](size_t i) { return "\n    " + fault_json(s, faults[i], run, i); });
  return out + "  \"faults\": " + rows + "\n}\n";
}

}  // namespace

Status simulate_comm(const CommJobOptions& options, const std::string& out) {
  if (Status status = check_empty(out); !status) return status;
  Result<CommSite> site = make_comm_site(options);
  if (!site) return tl::unexpected(site.error());
  std::vector<CommFault> faults;
  const Random random(mix64(options.seed, 0x746c7566));
  for (const std::string& name : options.faults) {
    if (name == "none") continue;
    Result<CommFault> fault = make_comm_fault(name, options, *site, random.fork(faults.size()));
    if (!fault) return tl::unexpected(fault.error());
    faults.push_back(std::move(*fault));
  }
  for (size_t i = 0; i < faults.size() && options.severity == 0; ++i)
    if (!is_of_job(faults[i]) && !is_hang(faults[i]) && !is_pause(faults[i]))
      choose_severity_of(*site, faults[i], random.fork(100 + i));
  std::vector<uint32_t> retained;
  for (const CommFault& fault : faults)
    retained.insert(retained.end(), fault.hosts.begin(), fault.hosts.end());
  CommFiles files(options, *site, retained, out + "/job");
  if (Status status = files.begin(); !status) return status;
  Result<CommPlay> done = play_comm(*site, faults, &files);
  if (!done) return tl::unexpected(done.error());
  return write_text(out + "/truth.json", truth(options, *site, faults, *done));
}

}  // namespace culprit::sim
