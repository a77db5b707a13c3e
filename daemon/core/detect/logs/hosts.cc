// Host scores: which hosts write the indicating templates, which host was first, and which hosts others name.
//
// A template on most hosts is an echo and does not accuse the hosts that write it. An echo that names another
// host or rank accuses that host. Host clocks differ by some ms, so only a larger lead counts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/text.h"
#include "core/detect/logs/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kCertain = 0.9;
constexpr double kStrong = 3;             // log odds of twenty to one
constexpr double kOfPeers = 0.2;          // a line about another host is weak evidence against its writer
constexpr double kEchoesMax = 0.4;        // limit over all echoes of a host: a launcher writes them all
constexpr TimeNs kEcho = kNsPerSecond;    // peers notice a broken connection within about a second
constexpr TimeNs kLead = 200 * kNsPerMs;  // clocks kept by NTP agree to a few tens of ms
constexpr double kOwnMax = 3.0;           // limit for all lines of a host's own
constexpr double kOrderWeight = 1.0;
constexpr double kNamedWeight = 2.0;  // if all others name one host, this outweighs one line of its own
constexpr double kBehindWeight = 1.5;
constexpr double kAbsentWeight = 1.5;

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
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

// A name with its digits masked: hosts of a job have names of one form ("node-##").
std::string form_of(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (const bool digit = c >= '0' && c <= '9'; !digit || !out.ends_with('#')) out += digit ? '#' : c;
  return out;
}

struct Tally {
  double own = 0, echoes = 0, order = 0, behind = 0, absent = 0;
  // First indicating line; first line that indicates with certainty.
  TimeNs onset = kNoTime, certain = kNoTime;
  double usually_alone = 0;  // harmless templates of this host alone: rank 0 prints for all
  double usually_named = 0;  // harmless templates that name it: many lines contain a master's address
  std::set<uint32_t> accusers;
  std::set<uint32_t> ranks;
  std::vector<logs::ClusterId> templates;  // the best of its own templates
};

class HostScorer {
 public:
  HostScorer(const View& view, Analysis& a) : view_(view), a_(a), tally_(view.hosts.size()) {
    for (const Unit& r : view.ranks)
      if (!r.ranks.empty() && r.host != kNowhere) host_of_rank_[r.ranks[0]] = r.host;
    if (view_.by_rank) return;
    for (const Unit& h : view_.hosts)
      if (std::string form = form_of(h.name); form.find('#') != form.npos) forms_.insert(std::move(form));
  }

  void add_templates() {
    const TimeNs onset = find_onsets();
    count_usual_names();
    add_absent();
    for (const TemplateScore& s : a_.templates) {
      if (s.score < kIndicating) break;  // sorted
      const logs::TemplateStats& t = view_.log->templates()[s.id];
      add_names(t);
      if (s.widespread || s.hosts.empty() || !s.accuses) continue;
      const bool cascade = t.shape.of_others || t.known == logs::Meaning::kEcho;
      const double share = strength(s.score) / static_cast<double>(s.hosts.size());
      add_ranks(t);
      for (const UnitCount& c : s.hosts)
        add_own(s, c, share * earliness(earlier(c.first_ns, tally_[c.unit].certain), onset),
                cascade || names_others(t, c.unit));
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
        t.order = kOrderWeight * std::min(1.0, t.own + std::min(kEchoesMax, t.echoes));
  }

  void add_behind() {
    int64_t most = -1;
    size_t telling = 0, behind = 0;
    for (const Unit& h : view_.hosts)
      if (h.last_iteration >= 0) ++telling, most = std::max(most, h.last_iteration);
    for (const Unit& h : view_.hosts) behind += h.last_iteration >= 0 && h.last_iteration < most;
    // When a log is cut or a job killed, some hosts have not yet printed their last iteration.
    const bool timed = a_.outcome.last_ns != kNoTime && a_.outcome.last_progress_ns != kNoTime;
    const bool time_to_finish =
        timed && a_.outcome.last_ns - a_.outcome.last_progress_ns > 2 * a_.outcome.step_ns;
    if (telling < 3 || behind * 3 > telling || !time_to_finish) return;
    for (size_t h = 0; h < tally_.size(); ++h)
      if (view_.hosts[h].last_iteration >= 0 && view_.hosts[h].last_iteration < most)
        tally_[h].behind = kBehindWeight / static_cast<double>(behind);
  }

  void report() {
    // Silence about the failure matters less if another host has strong evidence of its own.
    double most = 0;
    for (const Tally& t : tally_) most = std::max(most, t.own);
    for (Tally& t : tally_) t.absent *= std::max(0.0, 1 - (most - t.own));
    for (uint32_t h = 0; h < tally_.size(); ++h) {
      const Tally& t = tally_[h];
      report_own(h);
      if (t.order > 0)
        report(h, DetectorKind::kTemporal, t.order,
               "its first sign of the failure is earlier than that of any other host");
      if (!t.accusers.empty())
        report(h, DetectorKind::kSpatial, named(t),
               fmt::format("{} named by others", counted(t.accusers.size(), "time")));
      if (t.absent > 0)
        report(h, DetectorKind::kSpatial, t.absent,
               "nearly all others log errors at the end, and it does not");
      if (t.behind > 0)
        report(h, DetectorKind::kTemporal, t.behind,
               "it did not finish the iteration that its peers finished");
    }
  }

 private:
  // If nearly all hosts report errors, a silent host may be unable to. This does not apply if the host also
  // writes other common error reports.
  void add_absent() {
    const size_t all = view_.hosts.size();
    if (all < 3) return;
    std::vector<size_t> times(all, 0);
    std::vector<double> strength(all, 0);
    size_t errors_reported = 0;
    for (const TemplateScore& s : a_.templates) {
      if (s.score < kIndicating) break;
      const size_t absent = all - s.hosts.size();
      if (!s.late || absent > std::max<size_t>(1, all / 4)) continue;
      ++errors_reported;
      if (absent == 0) continue;
      std::vector<bool> there(all, false);
      for (const UnitCount& c : s.hosts) there[c.unit] = true;
      for (uint32_t h = 0; h < all; ++h)
        if (!there[h])
          ++times[h], strength[h] = std::max(strength[h], kAbsentWeight / static_cast<double>(absent));
    }
    for (uint32_t h = 0; h < all; ++h) {
      const double share =
          static_cast<double>(times[h]) / static_cast<double>(std::max<size_t>(1, errors_reported));
      tally_[h].absent = strength[h] * share * share;
    }
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

  // Start of the failure: the first line of a nearly certain template. Later lines of the same host are not
  // echoes of itself.
  TimeNs find_onsets() {
    TimeNs onset = kNoTime;
    for (const TemplateScore& s : a_.templates) {
      if (s.score < kCertain) break;
      if (s.widespread || s.first_ns == kNoTime || !s.accuses) continue;
      onset = earlier(onset, s.first_ns);
      for (const UnitCount& c : s.hosts) tally_[c.unit].certain = earlier(tally_[c.unit].certain, c.first_ns);
    }
    return onset;
  }

  static TimeNs earlier(TimeNs a, TimeNs b) { return a == kNoTime || (b != kNoTime && b < a) ? b : a; }

  // Weight of a template by its score: a barely indicating template gets little.
  static double strength(double score) {
    const double logit = std::log(score / std::max(1e-9, 1 - score));
    return std::clamp(logit / kStrong, 0.1, 1.0);
  }

  static double earliness(TimeNs time, TimeNs onset) {
    if (time == kNoTime || onset == kNoTime || time <= onset + kLead) return 1;
    return std::max(0.1, static_cast<double>(kEcho) / static_cast<double>(time - onset + kEcho));
  }

  // Whether this host's lines are about another host: then they are weak evidence against the writer.
  bool names_others(const logs::TemplateStats& t, uint32_t host) const {
    for (const logs::LogSample& sample : t.samples) {
      if (view_.host_of_writer[sample.place.writer] != host) continue;
      const std::set<uint32_t> named = all_named(sample.text);
      if (!named.count(host) && (!named.empty() || names_absent(sample.text))) return true;
    }
    return false;
  }

  // View::host_named, cached because a job's lines repeat their words. Compared by text: with a forged hash,
  // an innocent host would be named.
  uint32_t host_named(std::string_view word) const {
    if (const auto known = host_of_word_.find(word); known != host_of_word_.end()) return known->second;
    return host_of_word_.emplace(word, view_.host_named(word)).first->second;
  }

  template <class Take>
  static void each_word(std::string_view text, Take take) {
    for (size_t i = 0; i < text.size();) {
      if (!is_name(text[i])) {
        ++i;
        continue;
      }
      size_t end = i;
      while (end < text.size() && (is_name(text[end]) || text[end] == '.')) ++end;
      std::string_view token = text.substr(i, end - i);
      while (!token.empty() && token.back() == '.') token.remove_suffix(1);
      take(token);
      i = end;
    }
  }

  // The hosts that a text names by a known name.
  std::set<uint32_t> named_in(std::string_view text) const {
    std::set<uint32_t> out;
    each_word(text, [&](std::string_view word) {
      if (const uint32_t host = host_named(word); host != kNowhere) out.insert(host);
    });
    return out;
  }

  // Whether a text names a host without logs: a name in the form of the job's host names.
  bool names_absent(std::string_view text) const {
    bool found = false;
    each_word(text, [&](std::string_view word) {
      found = found || (host_named(word) == kNowhere && forms_.contains(form_of(word)));
    });
    return found;
  }

  std::set<uint32_t> all_named(std::string_view text) const {
    std::set<uint32_t> named = named_in(text);
    for (uint32_t rank : ranks_in(text))
      if (const auto at = host_of_rank_.find(rank); at != host_of_rank_.end()) named.insert(at->second);
    return named;
  }

  void add_ranks(const logs::TemplateStats& t) {
    for (const logs::GroupStats& g : t.groups) {
      const uint32_t host = view_.host_of_writer[g.writer];
      const std::optional<uint32_t> rank = view_.log->writers()[g.writer].rank;
      if (host != kNowhere && rank) tally_[host].ranks.insert(*rank);
    }
  }

  void add_own(const TemplateScore& s, const UnitCount& c, double share, bool of_others) {
    Tally& tally = tally_[c.unit];
    (of_others ? tally.echoes : tally.own) += of_others ? kOfPeers * share : share;
    // A line that occurred once, long before the end, does not show which host was first.
    const bool counts = s.late || s.spatial > 1 || a_.outcome.last_progress_ns == kNoTime;
    if (counts && c.first_ns != kNoTime && (tally.onset == kNoTime || c.first_ns < tally.onset))
      tally.onset = c.first_ns;
    if (tally.templates.size() < kTemplatesReported) tally.templates.push_back(s.id);
  }

  void add_names(const logs::TemplateStats& t) {
    for (const logs::LogSample& sample : t.samples) {
      const uint32_t speaker = view_.host_of_writer[sample.place.writer];
      std::set<uint32_t> named = all_named(sample.text);
      named.erase(speaker);
      if (named.size() > 2) continue;  // a list of members accuses no host
      for (uint32_t h : named) tally_[h].accusers.insert(speaker);
      const bool fault = t.known == logs::Meaning::kFault;
      // The line reports the named host's fault, though another host wrote it.
      if (fault && named.size() == 1) tally_[*named.begin()].own += 1;
    }
  }

  double named(const Tally& t) const {
    const double others = static_cast<double>(std::max<size_t>(1, tally_.size() - 1));
    return kNamedWeight * std::min(1.0, static_cast<double>(t.accusers.size()) / std::min(others, 8.0)) /
           (1 + t.usually_named);
  }

  void report(uint32_t h, DetectorKind detector, double strength, std::string why) {
    a_.findings.push_back(finding_about(view_, h, detector, strength));
    Finding& f = a_.findings.back();
    f.first_ns = tally_[h].onset;
    f.why.push_back(std::move(why));
  }

  // Reports templates that few other hosts write, with this host's lines.
  void report_own(uint32_t h) {
    const Tally& t = tally_[h];
    const double own =
        std::min(kOwnMax, (t.own + std::min(kEchoesMax, t.echoes)) * (1 - t.usually_alone / (harmless_ + 1)));
    if (own <= 0) return;
    Finding f = finding_about(view_, h, DetectorKind::kSpatial, own);
    f.first_ns = t.onset;
    for (const logs::ClusterId id : t.templates) {
      f.why.push_back(
          fmt::format("{} logged: {}", who_logged(id), shorten(view_.log->miner().text(id), 160)));
      for (const logs::LogSample& s : view_.log->templates()[id].samples)
        if (view_.host_of_writer[s.place.writer] == h) add_line(s, f);
    }
    const auto earlier = [](const Evidence& a, const Evidence& b) { return a.time_ns < b.time_ns; };
    std::stable_sort(f.evidence.begin(), f.evidence.end(), earlier);
    const FindingSubject host{f.subjects[0].host, {}, {}, {}, 0};
    for (uint32_t rank : t.ranks) {
      if (view_.by_rank) break;
      f.subjects.push_back(host);
      f.subjects.back().rank = rank;
    }
    a_.findings.push_back(std::move(f));
  }

  // "only this host", "3 of 64 hosts".
  std::string who_logged(logs::ClusterId id) const {
    const std::string_view unit = view_.by_rank ? "rank" : "host";
    const TemplateScore* s = a_.of(id);
    if (!s || s->hosts.size() == 1) return fmt::format("only this {}", unit);
    return fmt::format("{} of {}", s->hosts.size(), counted(view_.hosts.size(), unit));
  }

  // Without a time, the position in the file gives the iteration of the earliest line.
  void add_line(const logs::LogSample& s, Finding& f) const {
    f.evidence.push_back(evidence_at(*view_.log, s.place, s.text));
    const TimeNs time = f.first_ns == kNoTime ? s.place.time_ns : f.first_ns;
    const int64_t iteration = view_.log->iterations().iteration_at(time, s.place.source, s.place.line);
    if (iteration >= 0 && (!f.iteration || iteration < *f.iteration)) f.iteration = iteration;
  }

  const View& view_;
  Analysis& a_;
  std::vector<Tally> tally_;
  double harmless_ = 0;  // templates that indicate no failure
  std::map<uint32_t, uint32_t> host_of_rank_;
  std::set<std::string> forms_;  // of the names of hosts
  mutable std::map<std::string, uint32_t, std::less<>> host_of_word_;
};

}  // namespace

void score_hosts(const View& view, const Steps& steps, Analysis& a) {
  HostScorer scorer(view, a);
  if (view.hosts.size() < 2) return;
  scorer.add_templates();
  if (steps.order) scorer.add_order();
  if (steps.silence) scorer.add_behind();
  scorer.report();
}

}  // namespace culprit::detect
