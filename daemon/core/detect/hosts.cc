// Hosts: where the indicating templates stand, who was first, whom the others name.
//
// A template that most hosts write is an echo and accuses nobody by standing somewhere; but an echo that
// names another host or rank accuses that one. Clocks of hosts differ by some ms, so only a lead of more than
// that counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/text.h"
#include "core/detect/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kIndicating = 0.5;
constexpr double kCertain = 0.9;
constexpr double kStrong = 3;           // log odds of twenty to one
constexpr double kOfPeers = 0.2;        // a line about another host says little about the one that writes it
constexpr TimeNs kEcho = kNsPerSecond;  // peers notice a broken connection within about that time
constexpr TimeNs kLead = 200 * kNsPerMs;  // clocks kept by NTP agree to a few tens of ms
constexpr double kOrderWeight = 1.0;
constexpr double kNamedWeight = 2.0;  // all others naming one host outweigh one line of its own
constexpr double kBehindWeight = 1.5;
constexpr double kAbsentWeight = 1.5;
constexpr double kHalf = 1.0;  // weight at which the score is one half

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// The hosts that a text names: known names, and "rank 13".
std::set<uint32_t> named_in(const View& view, std::string_view text) {
  std::set<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    if (!is_name(text[i])) {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && (is_name(text[end]) || text[end] == '.')) ++end;
    std::string_view token = text.substr(i, end - i);
    while (!token.empty() && token.back() == '.') token.remove_suffix(1);
    const uint32_t host = view.host_named(token);
    if (host != kNowhere) out.insert(host);
    i = end;
  }
  return out;
}

std::set<uint32_t> ranks_in(std::string_view text) {
  std::set<uint32_t> out;
  constexpr std::string_view kWords[] = {"rank ", "rank: ", "rank=", "rank[", "Rank ", "ranks "};
  for (std::string_view word : kWords) {
    for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
      size_t i = at + word.size();
      while (i < text.size() && (text[i] == ' ' || text[i] == ':' || text[i] == '=')) ++i;
      uint32_t rank = 0;
      size_t digits = 0;
      while (i < text.size() && text[i] >= '0' && text[i] <= '9' && digits < 7)
        rank = rank * 10 + static_cast<uint32_t>(text[i++] - '0'), ++digits;
      if (digits) out.insert(rank);
    }
  }
  return out;
}

struct Tally {
  double own = 0, order = 0, named = 0, silence = 0, behind = 0, absent = 0;
  TimeNs onset = kNoTime;
  double usually_alone = 0;  // harmless templates that it alone writes: a first rank prints for all
  double usually_named = 0;  // harmless templates that name it: a master's address stands in many
  std::set<uint32_t> accusers;
  std::set<uint32_t> ranks;
  std::vector<std::string> templates;
};

class HostScorer {
 public:
  HostScorer(const View& view, Analysis& a) : view_(view), a_(a), tally_(view.hosts.size()) {
    for (const Unit& r : view.ranks)
      if (!r.ranks.empty() && r.host != kNowhere) host_of_rank_[r.ranks[0]] = r.host;
  }

  void add_templates() {
    const TimeNs onset = find_onset();
    count_usual_names();
    for (const TemplateScore& s : a_.templates) {
      if (s.score < kIndicating) break;  // sorted
      const logs::TemplateStats& t = view_.log->templates()[s.id];
      add_names(t);
      add_absent(s);
      if (s.widespread || s.hosts.empty()) continue;
      const bool cascade = t.shape.of_others || (t.shape.kind == logs::ShapeKind::kFault &&
                                                 logs::fault_shapes()[t.shape.fault].cascade);
      const double share = strength(s.score) * (cascade ? kOfPeers : 1) / static_cast<double>(s.hosts.size());
      for (const UnitCount& c : s.hosts)
        add_own(s, t, c, share * earliness(c.first_ns, onset) * (names_others(t, c.unit) ? kOfPeers : 1));
    }
  }

  void add_order() {
    TimeNs first = kNoTime, second = kNoTime;
    for (const Tally& t : tally_) {
      if (t.onset == kNoTime) continue;
      if (first == kNoTime || t.onset < first)
        second = first, first = t.onset;
      else if (second == kNoTime || t.onset < second)
        second = t.onset;
    }
    if (first == kNoTime) return;
    for (Tally& t : tally_)
      if (t.onset != kNoTime && t.onset == first && (second == kNoTime || second - first > kLead))
        t.order = kOrderWeight * std::min(1.0, t.own);
  }

  void add_silence() {
    for (const SilentHost& s : a_.silent) tally_[s.host].silence = s.weight;
    int64_t most = -1;
    size_t telling = 0, behind = 0;
    for (const Unit& h : view_.hosts)
      if (h.last_iteration >= 0) ++telling, most = std::max(most, h.last_iteration);
    for (const Unit& h : view_.hosts) behind += h.last_iteration >= 0 && h.last_iteration < most;
    // At a cut or a kill some have just not printed their last one yet.
    const bool time_to_finish = a_.fate.last_ns - a_.fate.last_progress_ns > 2 * a_.fate.step_ns;
    if (telling < 3 || behind * 3 > telling || !time_to_finish) return;
    for (size_t h = 0; h < tally_.size(); ++h)
      if (view_.hosts[h].last_iteration >= 0 && view_.hosts[h].last_iteration < most)
        tally_[h].behind = kBehindWeight / static_cast<double>(behind);
  }

  std::vector<HostScore> take() {
    std::vector<HostScore> out;
    for (uint32_t h = 0; h < tally_.size(); ++h) {
      Tally& t = tally_[h];
      const double others = static_cast<double>(std::max<size_t>(1, tally_.size() - 1));
      t.named = kNamedWeight * std::min(1.0, static_cast<double>(t.accusers.size()) / std::min(others, 8.0)) /
                (1 + t.usually_named);
      t.own *= 1 - t.usually_alone / (harmless_ + 1);
      const double weight = std::min(3.0, t.own) + t.order + t.named + t.silence + t.behind + t.absent;
      if (weight < 0.05) continue;
      HostScore score{h, weight, weight / (weight + kHalf), t.onset, {}, reasons(h)};
      score.ranks.assign(t.ranks.begin(), t.ranks.end());
      out.push_back(std::move(score));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const HostScore& x, const HostScore& y) { return x.weight > y.weight; });
    return out;
  }

 private:
  // Where nearly all complain, the one that does not may be past complaining.
  void add_absent(const TemplateScore& s) {
    const size_t all = view_.hosts.size(), absent = all - s.hosts.size();
    if (!s.late || all < 4 || absent == 0 || absent * 4 > all) return;
    std::vector<bool> there(all, false);
    for (const UnitCount& c : s.hosts) there[c.unit] = true;
    for (uint32_t h = 0; h < all; ++h)
      if (!there[h])
        tally_[h].absent = std::max(tally_[h].absent, kAbsentWeight / static_cast<double>(absent));
  }

  void count_usual_names() {
    for (const TemplateScore& s : a_.templates) {
      if (s.score >= kIndicating) continue;
      ++harmless_;
      if (s.hosts.size() == 1) tally_[s.hosts[0].unit].usually_alone += 1;
      std::set<uint32_t> named;
      for (const logs::LogSample& sample : view_.log->templates()[s.id].samples)
        named.merge(all_named(sample.text));
      if (named.size() <= 2)
        for (uint32_t h : named) tally_[h].usually_named += 1;
    }
  }

  // When the failure began: the first line of a template of its own that is all but certain.
  TimeNs find_onset() const {
    TimeNs onset = kNoTime;
    for (const TemplateScore& s : a_.templates) {
      if (s.score < kCertain) break;
      if (s.widespread || s.first_ns == kNoTime) continue;
      if (onset == kNoTime || s.first_ns < onset) onset = s.first_ns;
    }
    return onset;
  }

  // Of a template that is just likely to indicate little is built on.
  static double strength(double score) {
    const double logit = std::log(score / std::max(1e-9, 1 - score));
    return std::clamp(logit / kStrong, 0.1, 1.0);
  }

  static double earliness(TimeNs time, TimeNs onset) {
    if (time == kNoTime || onset == kNoTime || time <= onset + kLead) return 1;
    return std::max(0.1, static_cast<double>(kEcho) / static_cast<double>(time - onset + kEcho));
  }

  // Whether what this host writes is about another one: its own part in it is small.
  bool names_others(const logs::TemplateStats& t, uint32_t host) const {
    for (const logs::LogSample& sample : t.samples) {
      if (view_.host_of_writer[sample.place.writer] != host) continue;
      const std::set<uint32_t> named = all_named(sample.text);
      if (!named.empty() && !named.count(host)) return true;
    }
    return false;
  }

  std::set<uint32_t> all_named(std::string_view text) const {
    std::set<uint32_t> named = named_in(view_, text);
    for (uint32_t rank : ranks_in(text))
      if (const auto at = host_of_rank_.find(rank); at != host_of_rank_.end()) named.insert(at->second);
    return named;
  }

  void add_own(const TemplateScore& s, const logs::TemplateStats& t, const UnitCount& c, double share) {
    Tally& tally = tally_[c.unit];
    tally.own += share;
    // What came once, long before the end, tells nothing of who was first.
    const bool counts = s.late || s.spatial > 1 || a_.fate.last_progress_ns == kNoTime;
    if (counts && c.first_ns != kNoTime && (tally.onset == kNoTime || c.first_ns < tally.onset))
      tally.onset = c.first_ns;
    for (const logs::GroupStats& g : t.groups)
      if (view_.host_of_writer[g.writer] == c.unit && view_.log->writers()[g.writer].rank)
        tally.ranks.insert(*view_.log->writers()[g.writer].rank);
    if (tally.templates.size() < 3) tally.templates.push_back(view_.log->miner().text(s.id));
  }

  void add_names(const logs::TemplateStats& t) {
    for (const logs::LogSample& sample : t.samples) {
      const uint32_t speaker = view_.host_of_writer[sample.place.writer];
      std::set<uint32_t> named = all_named(sample.text);
      named.erase(speaker);
      if (named.size() > 2) continue;  // a list of members accuses nobody
      for (uint32_t h : named) tally_[h].accusers.insert(speaker);
      const bool fault =
          t.shape.kind == logs::ShapeKind::kFault && !logs::fault_shapes()[t.shape.fault].cascade;
      if (fault && named.size() == 1) tally_[*named.begin()].own += 1;  // told of it, if by another
    }
  }

  std::vector<std::string> reasons(uint32_t h) const {
    const Tally& t = tally_[h];
    std::vector<std::string> out;
    for (const std::string& text : t.templates)
      out.push_back(fmt::format("few others write: {}", shorten(text, 160)));
    if (t.order > 0) out.emplace_back("its first sign of the failure comes before that of any other host");
    if (t.named > 0) out.push_back(fmt::format("{} named by others", counted(t.accusers.size(), "time")));
    for (const SilentHost& s : a_.silent)
      if (s.host == h)
        out.push_back(fmt::format("it fell silent {} before its peers", format_duration(s.silent_ns)));
    if (t.absent > 0) out.emplace_back("nearly all others complain at the end, and it does not");
    if (t.behind > 0) out.emplace_back("it did not finish the iteration that its peers finished");
    return out;
  }

  const View& view_;
  Analysis& a_;
  std::vector<Tally> tally_;
  double harmless_ = 0;  // templates that indicate nothing
  std::map<uint32_t, uint32_t> host_of_rank_;
};

}  // namespace

void score_hosts(const View& view, const Steps& steps, Analysis& a) {
  HostScorer scorer(view, a);
  if (view.hosts.size() < 2) return;
  scorer.add_templates();
  if (steps.order) scorer.add_order();
  if (steps.silence) scorer.add_silence();
  a.hosts = scorer.take();
}

}  // namespace culprit::detect
