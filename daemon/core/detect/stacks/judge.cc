#include "core/detect/stacks/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/detect/stacks/tree.h"

namespace culprit::stacks {
namespace {

// With more accused than this share of the processes, none is named.
constexpr double kMostAccused = 0.25;
constexpr const char* kSomeCall = "a collective";  // no frame gives its name
constexpr size_t kFewAccused = 2;
// Share of all processes in the file system, the loader or a checkpoint from which their cause is common.
constexpr double kMostLate = 0.5;
// Confidence by the strength of the stack as evidence. No labelled real set measures these; they only rank
// the answers.
constexpr double kProven = 0.8, kHostCode = 0.65, kDriver = 0.6, kByGroup = 0.45, kByNone = 0.35;
// For a single moment, and for a place in program code with a possible hidden device wait.
constexpr double kUnproven = 0.45;
constexpr double kRepeated = 0.1, kMoved = -0.2, kFewWait = -0.15;

class Judge {
 public:
  Judge(const Members& all_members, const GroupLayout& layout, const Circumstances& known)
      : members_(all_members), layout_(layout), known_(known), n_(all_members.members.size()) {}

  Judgement run() {
    Judgement out = decide();
    out.is_stalled = known_.hangs || all_stalled(out);
    if (!out.is_stalled) out.confidence = std::min(out.confidence, kUnproven);
    return out;
  }

 private:
  Judgement decide() {
    if (n_ < 2) return std::move(out_);
    sort_out();
    if (moving_ * 2 > n_) {
      out_.answer = Answer::kMoving;
      return std::move(out_);
    }
    if (late_ > n_ * kMostLate && late_ > 2) return all_late();
    const bool held_most = (waiting_.size() + open_.size()) * 2 >= n_;
    if (held_most && !elsewhere_.empty()) return waiting_.size() * 2 >= n_ ? accuse_elsewhere(0) : few_wait();
    if (held_most && open_.size() < waiting_.size()) return all_wait();
    return std::move(out_);
  }

  // Whether the accused and the waiting processes were at the same places some seconds before.
  bool all_stalled(const Judgement& out) const {
    const auto still = [&](uint32_t m) { return is_stalled(members_.members[m]); };
    const auto moves = [&](uint32_t m) { return members_.members[m].moves; };
    std::vector<uint32_t> held = waiting_;
    held.insert(held.end(), open_.begin(), open_.end());
    if (out.answer == Answer::kAllLate) held.insert(held.end(), elsewhere_.begin(), elsewhere_.end());
    const auto n = static_cast<size_t>(std::count_if(held.begin(), held.end(), still));
    return n * 2 > held.size() && std::none_of(held.begin(), held.end(), moves) &&
           std::all_of(out.accused.begin(), out.accused.end(), still);
  }

  // Sorts the members into those that wait for others, those without evidence, and the rest.
  void sort_out() {
    std::map<std::string, size_t> ops;
    for (uint32_t m = 0; m < n_; ++m) {
      const Member& member = members_.members[m];
      moving_ += member.moves ? 1 : 0;
      const Where where = member.found.where;
      if (member.found.stopped) {
        elsewhere_.push_back(m);
      } else if (waits(where)) {
        waiting_.push_back(m);
        ops[op_of(member)] += is_named(member) ? members_.members.size() : 1;
      } else if (is_open(where) || member.found.blind) {
        open_.push_back(m);
      } else {
        late_ += where == Where::kFile || where == Where::kLoader || where == Where::kSave ? 1 : 0;
        elsewhere_.push_back(m);
      }
    }
    const auto most = std::max_element(ops.begin(), ops.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most != ops.end()) out_.waits_in = most->first;
    out_.waiting = waiting_.size();
    // Many processes at one place of the program: no evidence, because they do not differ from the others.
    std::vector<uint32_t> rest, common;
    for (const uint32_t m : elsewhere_) (is_common(m) ? common : rest).push_back(m);
    if (!rest.empty() || common.size() * 2 > n_) {
      open_.insert(open_.end(), common.begin(), common.end());
      elsewhere_ = std::move(rest);
    }
    keep_sure();
  }

  // If some are certainly elsewhere, processes that may wait for their devices are no suspects.
  void keep_sure() {
    const auto unsure = std::stable_partition(elsewhere_.begin(), elsewhere_.end(),
                                              [&](uint32_t m) { return is_sure(members_.members[m].found); });
    if (unsure == elsewhere_.begin()) return;
    open_.insert(open_.end(), unsure, elsewhere_.end());
    elsewhere_.erase(unsure, elsewhere_.end());
  }

  bool is_common(uint32_t m) const { return is_common_place(members_, members_.members[m]); }

  // Whether the frame names the operation; a wait for the returned work object does not.
  static bool is_named(const Member& member) {
    const std::string& op = member.found.op;
    return !op.empty() && op != "wait" && op != "group call";
  }
  static std::string op_of(const Member& member) {
    if (is_named(member)) return member.found.op;
    if (member.found.where == Where::kCollective) return kSomeCall;
    return member.found.where == Where::kStore ? "a rendezvous" : "communication";
  }

  size_t most_accused() const {
    return std::max(kFewAccused, static_cast<size_t>(kMostAccused * static_cast<double>(n_)));
  }

  double certainty(uint32_t m) const {
    const Member& member = members_.members[m];
    if (member.found.stopped) return kProven;
    double out = member.found.where == Where::kDeviceCall ? kDriver
                 : member.found.proven                    ? kProven
                                                          : kHostCode;
    if (member.moves)
      out += kMoved;
    else if (is_stalled(member))
      out += kRepeated;
    return is_sure(member.found) ? out : std::min(out, kUnproven);
  }

  void describe_accused() {
    std::map<Where, size_t> count;
    for (const uint32_t m : out_.accused) ++count[members_.members[m].found.where];
    out_.where = std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
    if (out_.accused.size() > 1) out_.group = layout_.shared(ranks_of(out_.accused));
  }

  std::vector<uint32_t> ranks_of(const std::vector<uint32_t>& members) const {
    std::vector<uint32_t> out;
    for (const uint32_t m : members)
      if (members_.members[m].process->rank) out.push_back(*members_.members[m].process->rank);
    std::sort(out.begin(), out.end());
    return out;
  }

  Judgement accuse_elsewhere(double change) {
    if (elsewhere_.size() > most_accused()) {
      out_.why_none =
          fmt::format("which rank the others wait for: {} of {} stacks are outside of any collective",
                      elsewhere_.size(), n_);
      return std::move(out_);
    }
    out_.answer = Answer::kElsewhere;
    out_.accused = elsewhere_;
    for (const uint32_t m : elsewhere_) out_.confidence = std::max(out_.confidence, certainty(m) + change);
    // Several accused: some are victims of another one, or the cause is common.
    if (elsewhere_.size() > kFewAccused) out_.confidence = std::min(out_.confidence, kDriver);
    describe_accused();
    return std::move(out_);
  }

  // Most processes wait for their device, or are at widely shared places of the program. To accuse a process
  // then, its place must be certain, or most others must certainly wait.
  Judgement few_wait() {
    std::vector<uint32_t> known;
    size_t device = 0;
    for (const uint32_t m : open_) device += is_open(members_.members[m].found.where) ? 1 : 0;
    for (const uint32_t m : elsewhere_)
      if (members_.members[m].found.proven || members_.members[m].found.stopped) known.push_back(m);
    const bool most_held = (device + waiting_.size()) * 5 >= n_ * 3;
    const bool one_place = n_ >= 4 && members_.groups[0].members.size() * 5 >= n_ * 3;
    if (!known.empty())
      elsewhere_ = std::move(known);
    else if (!most_held && !one_place)
      return std::move(out_);
    return accuse_elsewhere(known_.hangs || !waiting_.empty() ? kFewWait : 2 * kFewWait);
  }

  Judgement all_late() {
    std::map<Where, size_t> count;
    for (const uint32_t m : elsewhere_) ++count[members_.members[m].found.where];
    out_.where = std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) {
                   return a.second < b.second;
                 })->first;
    out_.answer = Answer::kAllLate;
    const bool repeated = std::all_of(elsewhere_.begin(), elsewhere_.end(),
                                      [&](uint32_t m) { return is_stalled(members_.members[m]); });
    out_.confidence = repeated || !waiting_.empty() ? kDriver : kByGroup;
    return std::move(out_);
  }

  // All wait for others; some may be in another operation than their peers.
  Judgement all_wait() {
    std::vector<uint32_t> odd;
    for (const uint32_t m : waiting_)
      if (is_odd(members_.members[m])) odd.push_back(m);
    if (odd.empty() && silence()) return std::move(out_);
    if (odd.empty() || odd.size() > most_accused()) {
      out_.answer = odd.empty() ? Answer::kNoneLate : Answer::kSplit;
      out_.confidence = kByNone;
      if (!odd.empty()) split(odd);
      return std::move(out_);
    }
    out_.accused = odd;
    out_.waiting -= odd.size();
    const std::vector<uint32_t> ranks = ranks_of(odd);
    describe_accused();
    // The ranks of a tensor or pipeline group wait for each other, independently of other ranks.
    const bool among_themselves = odd.size() > 1 && (layout_.world() == 0 || layout_.whole_groups(ranks));
    if (among_themselves) {
      out_.answer = Answer::kSharedGroup;
      out_.confidence = kByGroup;
      if (!out_.group) out_.group = SharedGroup{"group", ranks};
      return std::move(out_);
    }
    out_.answer = Answer::kOtherCall;
    out_.confidence = odd.size() == 1 ? kHostCode : kByGroup;
    return std::move(out_);
  }

  // Tools name an operation at different depths, so names of different tools are not compared.
  bool is_odd(const Member& member) const {
    return member.found.where == Where::kCollective && is_named(member) &&
           member.sample->tool == members_.tool && out_.waits_in != kSomeCall &&
           member.found.op != out_.waits_in;
  }

  void split(const std::vector<uint32_t>& odd) {
    std::map<std::string, size_t> count;
    for (const uint32_t m : odd) ++count[members_.members[m].found.op];
    for (const auto& [op, n] : count)
      out_.other += fmt::format("{}{} in {}", out_.other.empty() ? "" : ", ", n, op);
    out_.waiting -= odd.size();
    out_.confidence = kByGroup;
  }

  bool silence() {
    for (const auto& [rank, reason] : known_.silent) out_.absent.push_back(rank);
    if (out_.absent.empty() || out_.absent.size() > most_accused()) return false;
    out_.answer = Answer::kSilent;
    out_.confidence = kByGroup;
    return true;
  }

  const Members& members_;
  const GroupLayout& layout_;
  const Circumstances& known_;
  const size_t n_;
  std::vector<uint32_t> waiting_, open_, elsewhere_;
  size_t moving_ = 0, late_ = 0;
  Judgement out_;
};

}  // namespace

Judgement judge(const Members& all_members, const GroupLayout& layout, const Circumstances& known) {
  return Judge(all_members, layout, known).run();
}

}  // namespace culprit::stacks
