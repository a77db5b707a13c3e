#include "cli/sweep_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/text.h"
#include "cli/layout.h"
#include "cli/sweep_matrix.h"
#include "core/replay/host_list.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

using app::sweeping::SweepMember;
using app::sweeping::SweepResult;
using sweep::SweepFinding;
using sweep::Trouble;
using Of = SweepFinding::Of;

constexpr size_t kUnknownShown = 8;

struct Words {
  const char* json;
  const char* id;
  const char* title;
  const char* symptom;
};
constexpr Words kWords[] = {
    {"unreachable", "sweep.unreachable", "Host is not reachable from its peers", "hang"},
    {"wrong-bytes", "sweep.wrong_bytes", "Network transfers change bytes", "numeric"},
    {"slow", "sweep.slow", "Host's network is slower than its peers'", "slowdown"},
    {"latency", "sweep.latency", "Host's network latency is higher than its peers'", "slowdown"}};
const Words& words_of(Trouble trouble) { return kWords[static_cast<size_t>(trouble)]; }

std::string rate_text(double rate) { return format_bytes(static_cast<uint64_t>(rate)) + "/s"; }
std::string latency_text(double ns) {
  return ns < kNsPerMs ? fmt::format("{:.0f} us", ns / kNsPerUs) : format_duration(static_cast<TimeNs>(ns));
}

std::string percent(double part, double whole) {
  return whole <= 0 ? "?" : fmt::format("{:.3g} %", 100 * part / whole);
}

// Without the hosts' names.
std::string observed(Trouble trouble, double figure, double usual) {
  switch (trouble) {
    case Trouble::kUnreachable:
      return "unreachable";
    case Trouble::kWrongBytes:
      return fmt::format("{} of {} arrived changed", counted(static_cast<uint64_t>(figure), "byte"),
                         format_bytes(static_cast<uint64_t>(usual)));
    case Trouble::kSlow:
      return fmt::format("{} is {} of the usual {}", rate_text(figure), percent(figure, usual),
                         rate_text(usual));
    case Trouble::kLatency:
      return fmt::format("{} for a round trip, usual is {}", latency_text(figure), latency_text(usual));
  }
  return {};
}

std::string host_sentence(const std::string& host, Trouble trouble, uint32_t bad, uint32_t tried,
                          const std::string& what) {
  constexpr const char* kStates[] = {"unreachable from", "wrong bytes with", "slow with",
                                     "high latency with"};
  return fmt::format("{}: {} {} of {} peers, which are fine with each other{}", host,
                     kStates[static_cast<size_t>(trouble)], bad, tried,
                     trouble == Trouble::kUnreachable ? "" : ": " + what);
}

const std::string& name_of(const SweepResult& r, uint32_t member) { return r.members[r.ranks[member]].host; }

std::vector<std::string> names_of(const SweepResult& r, const std::vector<uint32_t>& members) {
  std::vector<std::string> out;
  for (const uint32_t member : members) out.push_back(to_terminal(name_of(r, member)));
  return out;
}

std::string sentence(const SweepResult& r, const SweepFinding& f) {
  const auto names = names_of(r, f.members);
  const std::string what = observed(f.trouble, f.figure, f.usual);
  if (f.of == Of::kHost) return host_sentence(names[0], f.trouble, f.bad, f.tried, what);
  if (f.of == Of::kLink)
    return fmt::format("between {} and {}: {}; both are fine with other peers", names[0], names[1], what);
  return fmt::format("{}: {}; a part of the network that they share, or several faults: no host is named",
                     replay::fold_hosts(names), what);
}

}  // namespace

std::string sweep_sentence(const SweepResult& r, const SweepFinding& f) { return sentence(r, f); }

const char* sweep_advice(const SweepFinding& f) {
  if (f.of == Of::kGroup) return "look at the switches and uplinks of these hosts; leave them out together";
  if (f.of == Of::kLink) return "keep one of the two out of the job, and look at the path between them";
  switch (f.trouble) {
    case Trouble::kUnreachable:
      return "leave it out; check its link, address and firewall (ip -s link, ping)";
    case Trouble::kWrongBytes:
      return "leave it out; check NIC, memory and offloads (ethtool -S, culprit node-check --full)";
    default:
      return "leave it out; check speed, errors and cable of its NIC (ethtool, ethtool -S)";
  }
}

namespace {

// ---- the matrix

std::string matrix_text(const SweepResult& r, bool color) {
  const SweepMatrix matrix(r);
  if (matrix.rows().empty()) return {};
  const size_t n = r.ranks.size(), cell = matrix.has_numbers() ? 5 : 1;
  size_t width = 0;
  for (const uint32_t i : matrix.rows()) width = std::max(width, columns_of(to_terminal(name_of(r, i))));
  std::string out = fmt::format("\n{}\n", matrix.legend());
  if (matrix.has_numbers()) {
    out += std::string(width, ' ');
    for (uint32_t i = 0; i < n; ++i) out += fmt::format("{:>{}}", fmt::format("#{}", r.ranks[i]), cell);
    out += "\n";
  }
  for (const uint32_t i : matrix.rows()) {
    out += padded(to_terminal(name_of(r, i)), width) + (matrix.has_numbers() ? "" : " ");
    for (uint32_t j = 0; j < n; ++j) {
      const SweepCell one = matrix.cell(i, j);
      out += inked(fmt::format("{:>{}}", one.text, cell), one.ink, color);
    }
    out += "\n";
  }
  return out;
}

std::string unknown_text(const SweepResult& r) {
  std::string out;
  size_t shown = 0, more = 0;
  for (const SweepMember& member : r.members) {
    if (member.why.empty()) continue;
    if (shown++ >= kUnknownShown) {
      ++more;
      continue;
    }
    const std::string name =
        member.host.empty() ? fmt::format("rank {}", member.rank) : to_terminal(member.host);
    out += fmt::format("unknown: {}: {}\n", name, to_terminal(member.why));
  }
  if (more > 0) out += fmt::format("unknown: {} more\n", more);
  return out;
}

std::string summary_text(const SweepResult& r) {
  const sweep::SweepVerdict& v = r.verdict;
  std::string out = fmt::format("{} of {} hosts measured {} in {}", r.ranks.size(), r.members.size(),
                                counted(v.measured, "pair"), format_duration(r.took_ns));
  if (v.usual.rate) out += fmt::format("; usual {} each way", rate_text(*v.usual.rate));
  if (v.usual.latency_ns) out += fmt::format(", {} a round trip", latency_text(*v.usual.latency_ns));
  out += "\n";
  if (r.ranks.size() < 3)
    out += "note: two hosts have no peers to compare with: only wrong bytes would show\n";
  if (v.rates_open) out += "note: processors were busy during most transfers: a slow link may be missed\n";
  if (r.cut) out += "note: the time was over before all rounds (--within)\n";
  return out;
}

}  // namespace

std::vector<std::string> sweep_notes(const SweepResult& r) {
  std::vector<std::string> out;
  const std::string text = summary_text(r) + unknown_text(r);
  for (const std::string_view line : split(text, '\n'))
    if (!line.empty()) out.emplace_back(line);
  return out;
}

std::string sweep_excluded(const SweepResult& r) {
  std::vector<std::string> out;
  std::set<std::string> seen;
  for (const SweepFinding& f : r.verdict.findings)
    if (f.of == Of::kHost && seen.insert(name_of(r, f.members[0])).second)
      out.push_back(name_of(r, f.members[0]));
  return fmt::format("{}", fmt::join(out, ","));
}

std::string sweep_text(const SweepResult& r, bool color) {
  std::string out;
  for (const SweepFinding& f : r.verdict.findings) {
    out += inked(sentence(r, f), f.of == Of::kHost ? Ink::kAlarm : Ink::kCaution, color) + "\n";
    out += fmt::format("  {}\n", sweep_advice(f));
  }
  if (const std::string hosts = sweep_excluded(r); !hosts.empty())
    out += fmt::format("  sbatch --exclude={}\n", to_terminal(hosts));
  if (r.verdict.findings.empty()) out += "nothing found\n";
  return out + unknown_text(r) + summary_text(r) + matrix_text(r, color);
}

std::string sweep_json(const SweepResult& r) {
  const auto at = [&](uint32_t member) { return name_of(r, member); };
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.sweep/1");
    w.field("size", r.members.size());
    w.field("measured", r.ranks.size());
    w.list("findings", r.verdict.findings, [&](const SweepFinding& f) {
      w.object([&] {
        w.field("trouble", words_of(f.trouble).json);
        w.field("of", f.of == Of::kHost ? "host" : f.of == Of::kLink ? "link" : "group");
        w.list("hosts", f.members, [&](uint32_t member) { w.write(at(member)); });
        w.field("bad", f.bad);
        w.field("tried", f.tried);
        w.field("figure", f.figure);
        w.field("usual", f.usual);
        w.field("text", sentence(r, f));
      });
    });
    w.field("exclude", sweep_excluded(r));
    std::vector<SweepMember> unknown;
    std::ranges::copy_if(r.members, std::back_inserter(unknown),
                         [](const SweepMember& member) { return !member.why.empty(); });
    w.list("unknown", unknown, [&](const SweepMember& member) {
      w.object([&] {
        w.field("rank", member.rank);
        w.text_or_null("host", member.host);
        w.field("why", member.why);
      });
    });
    w.field("usual_bytes_s", r.verdict.usual.rate);
    w.field("usual_latency_ns", r.verdict.usual.latency_ns);
    w.field("disturbed", r.verdict.rates_open);
    w.field("cut", r.cut);
    w.field("took_s", static_cast<double>(r.took_ns) / kNsPerSecond);
    w.list("runs", r.runs, [&](const sweep::PairRun& run) {
      constexpr const char* kAnswers[] = {"measured", "not reached", "no report"};
      const auto rate = [](const sweep::Flow& flow) {
        return flow.measured ? std::optional(flow.rate) : std::nullopt;
      };
      w.object([&] {
        w.field("a", at(run.a));
        w.field("b", at(run.b));
        w.field("round", run.round);
        w.field("again", run.follow_up);
        w.field("answer", kAnswers[static_cast<size_t>(run.answer)]);
        w.field("to_b_bytes_s", rate(run.to_b));
        w.field("to_a_bytes_s", rate(run.to_a));
        w.field("bytes", run.to_a.bytes + run.to_b.bytes);
        w.field("wrong_bytes", run.to_a.wrong + run.to_b.wrong);
        w.field("disturbed", run.to_a.disturbed || run.to_b.disturbed);
        w.field("latency_ns", run.latency_ns == kNoTime ? std::nullopt : std::optional(run.latency_ns));
      });
    });
  });
  return w.finish() + "\n";
}

PluginFinding finding_of(const app::sweeping::End& end, const std::string& host, TimeNs time_ns) {
  const Words& words = words_of(end.trouble);
  PluginFinding out;
  out.plugin = "culprit-sweep";
  out.id = words.id;
  out.title = words.title;
  out.text =
      host_sentence(host, end.trouble, end.bad, end.tried, observed(end.trouble, end.figure, end.usual));
  out.category = "hardware";
  out.component = "network";
  out.symptom = words.symptom;
  // A slow host is looked at first: its cable may be loose.
  const bool may_go_on = end.trouble == Trouble::kSlow || end.trouble == Trouble::kLatency;
  out.action = may_go_on ? "check" : "isolate";
  out.restart = "elsewhere";
  out.remedy = "Leave the host out, and check its NIC, cable and port.";
  out.host = host;
  out.time_ns = time_ns;
  out.confidence = 0.9;
  out.severity = PluginSeverity::kError;
  out.values = {{"bad_links", end.bad}, {"links", end.tried}};
  return out;
}

std::vector<PluginFinding> sweep_findings(const SweepResult& r, TimeNs time_ns) {
  std::vector<PluginFinding> out;
  for (const SweepFinding& f : r.verdict.findings) {
    if (f.of == Of::kGroup) continue;
    PluginFinding one =
        finding_of({true, f.trouble, f.bad, f.tried, f.figure, f.usual}, name_of(r, f.members[0]), time_ns);
    if (f.of == Of::kLink) {
      one.id += "_link";
      one.title = "Path between two hosts is bad";
      one.peer = name_of(r, f.members[1]);
      one.text = sentence(r, f);
      one.action = "check";
      one.remedy = "Check the path between the two hosts; keep one of them out of the job.";
      one.confidence = 0.7;
      one.values.clear();
    }
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace culprit::cli
