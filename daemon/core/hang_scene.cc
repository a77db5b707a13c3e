#include "core/hang_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "base/limits.h"
#include "core/detect/scene/log_sights.h"
#include "core/detect/scene/scene.h"

namespace culprit::core {
namespace {

constexpr std::string_view kLines = "pytorch.watchdog.";         // rules that keep lines for the scene alone
constexpr std::string_view kCollective = "pytorch.collective.";  // what the same lines say to a reader

bool is_of_scene(const Finding& f) { return f.rule.starts_with(kCollective) || f.rule.starts_with(kLines); }

bool is_wanted(std::string_view rule) {
  return rule.starts_with(kCollective) || rule.starts_with(kLines) || rule == "nccl.bootstrap.peer_closed";
}

std::string name_of(const flight::PlaceOfRank& place, uint32_t rank) {
  const flight::RankPlace at = place(rank);
  if (!at.host) return fmt::format("Rank {}", rank);
  return at.device ? fmt::format("Rank {} ({}, GPU {})", rank, *at.host, *at.device)
                   : fmt::format("Rank {} ({})", rank, *at.host);
}

uint32_t world_of(const JobFile& job) {
  const uint64_t ranks = uint64_t{job.ranks_per_host.value_or(0)} * job.hosts.size();
  return ranks <= limits::kCommRanks ? static_cast<uint32_t>(ranks) : 0;
}

// A fault that another rule or detector proves, no later than the first wait began to be reported.
bool came_first(const Finding& f, TimeNs reported) {
  if (f.kind != FindingKind::kFault || f.role != FindingRole::kRoot || is_of_scene(f)) return false;
  if (f.symptom == Symptom::kSlowdown || f.symptom == Symptom::kNumeric) return false;
  return f.first_ns == kNoTime || reported == kNoTime || f.first_ns <= reported;
}

scene::Departure departure_of(const Finding& f) {
  scene::Departure gone;
  gone.kind = scene::DepartureKind::kException;
  for (const FindingSubject& subject : f.subjects) {
    if (!gone.rank) gone.rank = subject.rank;
    if (!gone.host) gone.host = subject.host;
  }
  if (!f.evidence.empty()) gone.evidence = f.evidence[0];
  if (!gone.rank) gone.rank = gone.evidence.rank;
  gone.reason = f.title;
  gone.at_ns = f.first_ns;
  return gone;
}

class Asking {
 public:
  Asking(const HangContext& context, detect::Analysis& analysis, Report& report)
      : context_(context), analysis_(analysis), report_(report) {}

  std::vector<std::string> run() {
    const auto rules = context_.rules.rules();
    std::vector<bool> wanted(rules.size());
    for (size_t i = 0; i < rules.size(); ++i) wanted[i] = is_wanted(rules[i].id);
    const auto is = [&](uint32_t rule) { return rule < wanted.size() && wanted[rule]; };
    input_ = scene::sights_of(*context_.view.log, is, analysis_.fate.last_progress_ns);
    if ((input_.sights.empty() && input_.statements.empty()) || !failed()) return {};
    input_.world = world_of(context_.view.log->job());
    read_course();
    const Finding* other = add_departures();
    scene::SceneAnswer said =
        scene::answer(input_, [&](uint32_t rank) { return name_of(context_.place, rank); });
    if (other && said.hang.answer == HangAnswer::kLeft && other->category == Category::kHardware)
      said.hang.answer = HangAnswer::kUnfinished;
    if (auto finding = finding_of(said)) {
      give_way(*finding);
      analysis_.findings.push_back(std::move(*finding));
    }
    std::vector<std::string> missing = std::move(said.missing);
    put(std::move(said.hang));
    return missing;
  }

 private:
  // A job that recovered keeps no fault of its watchdogs.
  bool failed() const {
    return std::ranges::any_of(analysis_.findings, [](const Finding& f) {
      return f.kind == FindingKind::kFault && f.symptom != Symptom::kSlowdown;
    });
  }

  // Progress that only counts preparation is none.
  void read_course() {
    const auto& last = context_.view.log->last_progress();
    const bool prepares = last.empty() || scene::names_preparation(last.back().text);
    input_.iterated = analysis_.fate.last_iteration >= 0 && !prepares;
    if (input_.iterated) input_.preparing.clear();
    if (prepares && !last.empty()) input_.preparing = last.back().text;
  }

  // The finding of the first of them; null: none.
  const Finding* add_departures() {
    TimeNs reported = kNoTime;
    for (const scene::Sight& sight : input_.sights)
      if (sight.at_ns != kNoTime && (reported == kNoTime || sight.at_ns < reported)) reported = sight.at_ns;
    const Finding* first = nullptr;
    for (const Finding& f : analysis_.findings) {
      if (!came_first(f, reported)) continue;
      scene::Departure gone = departure_of(f);
      // A catch-all of a rank that waits is the end of its waiting.
      if (f.general && (!gone.rank || waits(*gone.rank))) continue;
      if (!first) first = &f;
      input_.departures.push_back(std::move(gone));
    }
    return first;
  }
  bool waits(uint32_t rank) const {
    return std::ranges::any_of(input_.sights,
                               [&](const scene::Sight& sight) { return sight.rank == rank && sight.call; });
  }

  std::optional<Finding> finding_of(const scene::SceneAnswer& said) const {
    Finding f;
    f.detector = DetectorKind::kComm;
    f.kind = FindingKind::kFault;
    f.symptom = Symptom::kHang;
    f.fatal = true;
    f.by_no_device = true;
    f.title = said.title;
    f.why = said.why;
    f.confidence = said.confidence;
    f.evidence = said.evidence;
    f.lines = f.evidence.size();
    for (const Evidence& e : f.evidence) {
      if (e.time_ns == kNoTime) continue;
      f.first_ns = f.first_ns == kNoTime ? e.time_ns : std::min(f.first_ns, e.time_ns);
      f.last_ns = std::max(f.last_ns, e.time_ns);
    }
    switch (said.hang.answer) {
      case HangAnswer::kMismatch:
        f.category = Category::kUser;
        f.component = Component::kUserCode;
        f.action = ActionKind::kFix;
        f.remedy =
            "Make all ranks of a group call the same collectives in the same order with the same sizes: look "
            "for conditions on the rank, on data or on time round the calls named.";
        return f;
      case HangAnswer::kUnfinished:
        if (!input_.departures.empty()) return std::nullopt;
        f.category = Category::kHardware;
        f.component = Component::kNetwork;
        f.general = true;
        f.action = ActionKind::kCheck;
        f.remedy =
            "Read the kernel's logs of the hosts for errors of devices and adapters; test the links between "
            "them. Stacks tell whether a rank waits in another group.";
        return f;
      case HangAnswer::kMissing:
        missing(said, f);
        return f;
      case HangAnswer::kLeft:
      case HangAnswer::kNoSingle:
      case HangAnswer::kUnknown:
        break;
    }
    return std::nullopt;
  }

  void missing(const scene::SceneAnswer& said, Finding& f) const {
    f.general = !said.certain && !said.by_host_code;
    f.action = ActionKind::kCheck;
    f.remedy =
        "Take the stack of this rank (py-spy dump), and read its log: a data loader, a lock, a file system, "
        "or "
        "work that only this rank does.";
    if (said.by_host_code) {
      f.category = Category::kUser;
      f.component = said.certain ? Component::kUnknown : Component::kUserConfig;
      if (!said.certain)
        f.remedy =
            "Raise the timeout of the process group above the time of the preparation, or prepare before the "
            "group exists, on every host once.";
      return;
    }
    f.by_no_device = false;
    for (const uint32_t rank : said.hang.waited_for) {
      const flight::RankPlace at = context_.place(rank);
      f.subjects.push_back({at.host, rank, at.device, {}, 0});
    }
  }

  // The rules that match the same lines would repeat the answer, and a silent rank is named once.
  void give_way(const Finding& answer) {
    const auto repeats = [&](const Finding& f) {
      if (f.rule == "pytorch.collective.lagging" || f.rule == "pytorch.collective.mismatch") return true;
      return f.rule.empty() && f.detector == DetectorKind::kSilence && f.kind == FindingKind::kFault &&
             f.general && !answer.subjects.empty() && f.subjects.size() == 1 &&
             f.subjects[0].rank == answer.subjects[0].rank;
    };
    std::erase_if(analysis_.findings, repeats);
  }

  // Dumps and records know more than lines: they only lack what they do not say.
  void put(Hang hang) {
    if (!report_.hang) {
      report_.hang = std::move(hang);
      return;
    }
    if (report_.hang->answer != HangAnswer::kUnknown || hang.answer == HangAnswer::kUnknown) return;
    hang.clusters = std::move(report_.hang->clusters);
    hang.suspects = std::move(report_.hang->suspects);
    if (report_.hang->since_ns != kNoTime) hang.since_ns = report_.hang->since_ns;
    report_.hang = std::move(hang);
  }

  const HangContext& context_;
  detect::Analysis& analysis_;
  Report& report_;
  scene::SceneInput input_;
};

}  // namespace

void blame_loopback(const HangContext& context, detect::Analysis& analysis) {
  const auto refused = std::ranges::find(analysis.findings, "nccl.bootstrap.refused", &Finding::rule);
  if (refused == analysis.findings.end() || context.view.known_hosts < 2) return;
  const auto rules = context.rules.rules();
  const logs::JobLog& log = *context.view.log;
  const auto line = std::ranges::find_if(log.rule_lines(), [&](const logs::RuleLine& l) {
    return l.rule < rules.size() && rules[l.rule].id == "nccl.bootstrap.loopback";
  });
  if (line == log.rule_lines().end()) return;
  const rules::Rule& rule = rules[line->rule];
  refused->rule = rule.id;
  refused->title = rule.title;
  refused->category = rule.category;
  refused->component = rule.component;
  refused->remedy = rule.remedy;
  refused->action = rule.action;
  refused->by_no_device = true;
  refused->subjects.clear();
  refused->why.emplace_back("peers refuse the connection to an address that only their own host has");
  refused->evidence.insert(refused->evidence.begin(), detect::evidence_of(log, *line));
  ++refused->lines;
}

std::vector<std::string> add_hang_scene(const HangContext& context, detect::Analysis& analysis,
                                        Report& report) {
  return Asking(context, analysis, report).run();
}

}  // namespace culprit::core
