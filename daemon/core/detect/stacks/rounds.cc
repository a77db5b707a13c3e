#include "core/detect/stacks/rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/detect/stacks/judge.h"

namespace culprit::stacks {
namespace {

constexpr TimeNs kRoundsWindow = 600 * kNsPerSecond;
constexpr size_t kFewRounds = 3;
constexpr double kFewRoundsMost = 0.45;
// Below this confidence, no process is named.
constexpr double kLeastSure = 0.4;
constexpr size_t kSuspectsNamed = 2;
constexpr size_t kRoundSentences = 4;

// The round of each sample.
class RoundsOf {
 public:
  explicit RoundsOf(const Samples& samples) {
    for (const Process* p : samples.processes())
      for (const Sample& s : p->samples) newest_ = std::max(newest_, s.time_ns);
    for (const Process* p : samples.processes()) add(*p);
    // A capture older than the last eight is too old.
    while (captures_.size() > limits::kStackSamples) captures_.erase(captures_.begin());
  }

  // If there are numbered captures, only their samples count.
  std::vector<int64_t> all() const {
    const std::set<int64_t>& of = captures_.empty() ? counted_ : captures_;
    return {of.begin(), of.end()};
  }
  int64_t of(const Sample& sample) const {
    const auto at = round_.find(&sample);
    return at == round_.end() ? 0 : at->second;
  }

 private:
  void add(const Process& process) {
    std::map<StackTool, std::vector<const Sample*>> by_tool;
    bool numbered = true;
    for (const Sample& s : process.samples) {
      if (s.time_ns != kNoTime && s.time_ns < newest_ - kRoundsWindow) continue;
      by_tool[s.tool].push_back(&s);
      numbered = numbered && s.capture > 0;
    }
    for (const auto& [tool, of_tool] : by_tool) {
      std::set<uint32_t> numbers;
      for (const Sample* s : of_tool) numbers.insert(s->capture);
      const bool own = numbered && numbers.size() == of_tool.size();
      for (size_t i = 0; i < of_tool.size(); ++i) {
        // Negative: counted back from the newest round, which all processes have.
        const int64_t round = own ? of_tool[i]->capture : static_cast<int64_t>(i) - std::ssize(of_tool);
        round_[of_tool[i]] = round;
        (own ? captures_ : counted_).insert(round);
      }
    }
  }

  TimeNs newest_ = kNoTime;
  std::unordered_map<const Sample*, int64_t> round_;
  std::set<int64_t> captures_, counted_;
};

struct Votes {
  size_t rounds = 0;
  const Process* process = nullptr;
  std::map<const Process*, size_t> members;
  Found found;
};

class RoundJudge {
 public:
  RoundJudge(const Samples& samples, const GroupLayout& layout, const PlaceOfRank& place)
      : samples_(samples), layout_(layout), place_(place) {}

  Rounds run() {
    const RoundsOf rounds(samples_);
    for (const int64_t round : rounds.all()) {
      Members all_members = members_of(samples_, [&](const Sample& s) { return rounds.of(s) == round; });
      if (all_members.members.size() < 2) continue;
      judge_round(all_members);
      out_.newest = std::move(all_members);
      out_.capture = round > 0 ? static_cast<uint32_t>(round) : 0;
    }
    name();
    return std::move(out_);
  }

 private:
  std::string host_of(const Process& process) const {
    if (process.rank && place_)
      if (const RankPlace at = place_(*process.rank); at.host) return *at.host;
    return process.host.value_or("");
  }

  void judge_round(const Members& all_members) {
    static const std::map<uint32_t, std::string> kNobody;
    ++out_.count;
    processes_ = std::max(processes_, all_members.members.size());
    for (const Member& m : all_members.members) {
      const TimeNs at = m.sample->time_ns;
      if (at != kNoTime && (out_.first_ns == kNoTime || at < out_.first_ns)) out_.first_ns = at;
      out_.last_ns = std::max(out_.last_ns, at);
      ++ranks_of_[host_of(*m.process)][m.process];
    }
    const Judgement judgement = judge(all_members, layout_, {kNobody, true});
    // The others must certainly wait in a collective: at one moment, a device wait is weak evidence.
    if (judgement.answer != Answer::kElsewhere ||
        judgement.waiting * 2 < all_members.members.size() - judgement.accused.size())
      return;
    if (judgement.waiting == 0) return;
    ++out_.telling;
    accused_ +=
        static_cast<double>(judgement.accused.size()) / static_cast<double>(all_members.members.size());
    std::set<std::string> hosts;
    for (const uint32_t m : judgement.accused) {
      const Member& member = all_members.members[m];
      Votes& votes = by_process_[member.process];
      ++votes.rounds;
      votes.process = member.process;
      votes.found = member.found;
      const std::string host = host_of(*member.process);
      if (host.empty()) continue;
      Votes& of_host = by_host_[host];
      of_host.rounds += hosts.insert(host).second ? 1 : 0;
      ++of_host.members[member.process];
      of_host.found = member.found;
    }
  }

  // Accused in most rounds, and unlikely by chance.
  bool is_outlier(const Votes& votes, double share, double subjects, double& confidence) const {
    confidence = confidence_of_votes(votes.rounds, out_.count, share, subjects);
    return votes.rounds * 2 > out_.count && confidence >= kLeastSure;
  }

  void name() {
    if (out_.count == 0 || out_.telling == 0) return;
    const double share = accused_ / static_cast<double>(out_.count);
    for (const auto& [process, votes] : by_process_) {
      RoundSuspect suspect{process, "", {process}, votes.rounds, 0, votes.found};
      if (is_outlier(votes, share, static_cast<double>(processes_), suspect.confidence))
        out_.suspects.push_back(std::move(suspect));
    }
    if (out_.suspects.empty()) name_host(share);
    std::stable_sort(out_.suspects.begin(), out_.suspects.end(),
                     [](const RoundSuspect& a, const RoundSuspect& b) { return a.votes > b.votes; });
    // Many at once share a cause, or have another role than the rest.
    if (out_.suspects.size() > kSuspectsNamed) out_.suspects.clear();
  }

  // Different ranks of one host, round by round: the host is the common factor.
  void name_host(double share) {
    if (by_host_.empty() || ranks_of_.size() < 2) return;
    const auto best = std::max_element(by_host_.begin(), by_host_.end(), [](const auto& a, const auto& b) {
      return a.second.rounds < b.second.rounds;
    });
    const Votes& votes = best->second;
    const auto ranks = static_cast<double>(ranks_of_.at(best->first).size());
    if (votes.members.size() < 2) return;
    RoundSuspect suspect;
    suspect.host = best->first;
    suspect.votes = votes.rounds;
    suspect.found = votes.found;
    for (const auto& [process, n] : votes.members) {
      suspect.members.push_back(process);
      if (!suspect.process || n > votes.members.at(suspect.process)) suspect.process = process;
    }
    if (is_outlier(votes, std::min(1.0, share * ranks), static_cast<double>(processes_) / ranks,
                   suspect.confidence))
      out_.suspects.push_back(std::move(suspect));
  }

  const Samples& samples_;
  const GroupLayout& layout_;
  const PlaceOfRank& place_;
  Rounds out_;
  size_t processes_ = 0;
  double accused_ = 0;  // sum of the accused shares over the rounds
  std::map<const Process*, Votes> by_process_;
  std::map<std::string, Votes> by_host_;
  std::map<std::string, std::map<const Process*, size_t>> ranks_of_;
};

}  // namespace

double confidence_of_votes(size_t votes, size_t rounds, double share, double subjects) {
  if (votes == 0 || rounds == 0 || votes > rounds) return 0;
  const double p = std::clamp(share, 1e-6, 1.0);
  double tail = 0, ways = 1;  // ways: rounds over k
  for (size_t k = 0; k <= rounds; ++k) {
    if (k >= votes)
      tail += ways * std::pow(p, static_cast<double>(k)) * std::pow(1 - p, static_cast<double>(rounds - k));
    ways *= static_cast<double>(rounds - k) / static_cast<double>(k + 1);
  }
  const double by_chance = std::min(1.0, tail * std::max(1.0, subjects));
  const double out = kRoundsSure * (1 - by_chance);
  return rounds < kFewRounds ? std::min(out, kFewRoundsMost) : out;
}

Rounds judge_rounds(const Samples& samples, const GroupLayout& layout, const PlaceOfRank& place) {
  return RoundJudge(samples, layout, place).run();
}

std::vector<std::string> round_sentences(const Rounds& rounds, const Samples& samples) {
  std::vector<std::string> out;
  if (rounds.count < 2) return out;
  const TimeNs span_ns = rounds.first_ns == kNoTime ? 0 : rounds.last_ns - rounds.first_ns;
  const std::string span = span_ns > 0 ? " over " + format_duration(span_ns) : "";
  for (const RoundSuspect& s : rounds.suspects) {
    if (out.size() == kRoundSentences) break;
    std::string where(s.found.stopped ? "stopped" : phrase(s.found.where));
    if (!s.found.frames.empty()) {
      const CodePlace& at = s.found.frames[std::min(s.found.tells, s.found.frames.size() - 1)];
      where += fmt::format(" ({})", shown(samples.frame(at.frame), at.line));
    }
    const std::string name = s.host.empty() ? name_of(*s.process) : fmt::format("a rank of {}", s.host);
    out.push_back(
        fmt::format("{} was outside of the collective in which others waited in {} of {} rounds{}: last {}",
                    name, s.votes, rounds.count, span, where));
  }
  if (out.empty())
    out.push_back(fmt::format("no process was waited for in most of {} rounds{}", rounds.count, span));
  return out;
}

}  // namespace culprit::stacks
