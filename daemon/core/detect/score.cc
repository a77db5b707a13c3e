// Evidence by template: cross-job, temporal, words, known shapes.
//
// Each term is a log likelihood ratio, the failure's templates against the harmless ones, and each is
// calibrated on what is known to be harmless: the pool and this job's own templates from before the end.
//   words      LOGS.md: of the indicating templates 54.8 % are errors, 23.1 % warnings, 22.1 % plain;
//              against the shares among the harmless templates that are as rare. In a job full of harmless
//              alarms an alarm says little.
//   cross-job  the share of the harmless templates, as alarming and as rare, that the pool lacks: among those
//              of this job from before its end, and by what each pool job has alone (Good and Turing)
//   temporal   a harmless template begins anywhere in the job, one of the failure near its end: K began in
//              the window since progress ended, where the job's own rate of births lets expect E. What began
//              before and goes on to the end may be the failure's too
// The prior: a failed job has some ten indicating templates, among several hundred as a rule.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/detect/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kExpected = 10, kTemplatesMin = 30, kTemplatesMax = 330;  // of the prior
constexpr std::array<double, 3> kIndicating = {0.221, 0.231, 0.548};       // LOGS.md, by words class
constexpr std::array<double, 3> kHarmless = {8.7, 1.0, 0.3};  // of ten templates of a healthy run (real-logs)
constexpr double kNovelSure = 0.95;           // 5 % of real faults repeat a line that healthy jobs have
constexpr double kKnown = -3.0;               // log of that 5 %
constexpr double kCustom = -2.0;              // beside it, where all successful jobs have the line
constexpr double kTermMax = 5.0;              // no single sight makes certain
constexpr double kSmooth = 0.5;               // of what was never seen, two more looks might show one
constexpr double kPoolWeight = 5;             // templates that the pool's own estimate of novelty counts for
constexpr double kSingleJob[] = {0.05, 0.3};  // by one pool job alone: plain ones (real siblings), alarms
constexpr double kClearEnd = 3;               // births beyond what chance brings that make an end clear
constexpr double kBeforeEnd = -2.0;           // then a seventh of the failure's templates began before it
constexpr double kBefore = -1.0;              // where the end is not clear, of those seen once or twice
constexpr double kLasting = 0.1;              // of the job: what goes on until so near its end lasts
constexpr double kStart = -3.0;               // a twentieth of the faults are logged first at the launch
constexpr int64_t kSettled = 10;              // iterations that show that the launch went well
constexpr double kEndShare = 0.2;             // of a file without times and progress: this share is its end
constexpr double kLateMin = -1.5;             // a fifth of the faults announce themselves early
constexpr double kUnseen = 0.05;              // added to a rate that counts two more looks already
constexpr int64_t kOutlived = 5;              // iterations: a fault that kills does so sooner
constexpr double kWithSlowdown = 0.8;         // of its templates, the share that begins where it begins
constexpr int64_t kSlowdownSteps = 5;         // around its beginning, or this share of the slower part
constexpr double kSlowdownShare = 0.1;
constexpr double kNever = -6.0;  // advice, progress, words of a planned end
constexpr double kShape = 2.0;   // a known kind of fault, beside what its words say
constexpr uint64_t kRare = 3;    // lines: what is seen once or twice is another kind than what is always seen
// Known, but more often on one host than on any of the pool: as a difference of 2 sqrt(n) (spread 1).
constexpr double kFrequentFrom = 4.0, kFrequentMax = 4.0;

double clamp(double x, double low, double high) { return std::min(high, std::max(low, x)); }

// What one host wrote most of it.
uint64_t most_of(const logs::TemplateStats& t, const std::vector<UnitCount>& hosts) {
  uint64_t most = hosts.empty() ? t.count : 0;
  for (const UnitCount& c : hosts) most = std::max(most, c.count);
  return most;
}

bool says_nothing(const logs::TemplateStats& t) {
  const bool plain = t.shape.kind == logs::ShapeKind::kPlain;
  return t.shape.advice || (t.shape.well && t.shape.words < 2) ||
         (t.is_progress() && plain && t.shape.words < 2);
}

double shape_term(const logs::TemplateStats& t) {
  if (t.known >= logs::Known::kEcho && t.shape.kind != logs::ShapeKind::kException) return kShape;
  switch (t.shape.kind) {
    case logs::ShapeKind::kRootCause:
      return kShape;
    case logs::ShapeKind::kException:
    case logs::ShapeKind::kTraceback:
      return kShape / 2;
    default:
      return 0;
  }
}

class Scorer {
 public:
  Scorer(const View& view, const Pool& pool, const Steps& steps, Analysis& a)
      : view_(view), log_(*view.log), pool_(pool), steps_(steps), a_(a) {}

  void run() {
    find_window();
    find_known();
    for (logs::ClusterId id : log_.clusters())
      if (!log_.templates()[id].places.empty()) begin(id);
    calibrate();
    for (TemplateScore& s : a_.templates) finish(s);
  }

 private:
  // The window in which the failure's own lines begin: from the last finished iteration on.
  void find_window() {
    from_ = a_.fate.last_progress_ns;
    untimed_ = from_ == kNoTime && a_.fate.last_iteration >= 0;
    if (from_ == kNoTime || log_.first_ns() == kNoTime) {
      from_ = kNoTime;
      return;
    }
    from_ = std::max(log_.first_ns(), from_ - a_.fate.step_ns);
    length_ = static_cast<double>(std::max<TimeNs>(1, log_.last_ns() - from_));
    before_ = static_cast<double>(std::max<TimeNs>(1, from_ - log_.first_ns()));
  }

  void find_known() {
    known_.resize(log_.templates().size());
    known_forms_.resize(log_.templates().size());
    for (const logs::JobLog::FormStats& form : log_.forms()) {
      known_forms_[form.cluster].job_forms += form.count > 0;
      const auto at = std::lower_bound(pool_.forms.begin(), pool_.forms.end(), form.hash,
                                       [](const PoolForm& f, uint64_t h) { return f.hash < h; });
      if (at == pool_.forms.end() || at->hash != form.hash) continue;
      const PoolForm*& best = known_[form.cluster];
      if (!best || at->jobs > best->jobs) best = &*at;
      known_forms_[form.cluster].most += at->host_max;
      known_forms_[form.cluster].forms += form.count > 0;
    }
    for (size_t id = 0; id < known_.size(); ++id) {
      const PoolForm* f = known_[id];
      if (!f) continue;
      const bool rare = known_forms_[id].most <= kRare;
      ++pool_all_[rare][f->words];
      pool_single_[rare][f->words] += f->jobs == 1;
    }
  }

  // The share of harmless templates of a class that the pool lacks, by the pool alone.
  double pool_novelty(bool rare, uint32_t words) const {
    if (pool_.jobs == 1) return kSingleJob[rare && words > 0];
    return (pool_single_[rare][words] / pool_.jobs + kSmooth / 10) / (pool_all_[rare][words] / 2 + kSmooth);
  }

  double novelty(bool rare, uint32_t words) const {
    const Class& c = classes_[rare][words];
    return std::min(1.0, (c.novel + kPoolWeight * pool_novelty(rare, words)) / (c.all + kPoolWeight));
  }

  void begin(logs::ClusterId id) {
    const logs::TemplateStats& t = log_.templates()[id];
    TemplateScore s;
    s.id = id;
    s.hosts = count_by(t, view_.host_of_writer);
    s.first_ns = t.untimed ? kNoTime : t.first_ns;
    const logs::LogPlace& place = t.places.front();
    s.iteration = log_.iterations().iteration_at(s.first_ns, place.source, place.line);
    s.known = steps_.cross_job ? known_[id] : nullptr;
    s.novel = pool_.jobs > 0 && !known_[id];
    s.widespread = is_widespread(t, s);
    s.with_slowdown = begins_with_slowdown(t, s);
    if (s.first_ns != kNoTime) timed_sources_.insert(place.source);
    s.late =
        untimed_ ? late_by_place(place) : s.first_ns != kNoTime && from_ != kNoTime && s.first_ns >= from_;
    a_.novel_seen += s.novel;
    a_.templates.push_back(std::move(s));
  }

  // Without times, the line number decides: after the last progress, or in the last fifth of a file without
  // progress.
  bool late_by_place(const logs::LogPlace& place) const {
    const int64_t last = last_in_file(place);
    if (last >= 0) return log_.iterations().iteration_at(kNoTime, place.source, place.line) == last;
    return position(place) > 1 - kEndShare;
  }

  // The furthest iteration in a file without times; -1: none.
  int64_t last_in_file(const logs::LogPlace& place) const {
    return log_.iterations().iteration_at(kNoTime, place.source, log_.lines_of(place.source) + 1);
  }

  // Whether no times are known and the template began in a file with progress lines.
  bool in_counting_file(const logs::TemplateStats& t) const {
    return untimed_ && last_in_file(t.places.front()) >= 0;
  }

  // How far into its file a line stands, 0 to 1.
  double position(const logs::LogPlace& place) const {
    return static_cast<double>(place.line) /
           static_cast<double>(std::max<uint64_t>(1, log_.lines_of(place.source)));
  }

  bool is_widespread(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (view_.hosts.size() >= 2) return s.hosts.size() * 2 > view_.hosts.size();
    if (view_.ranks.size() >= 2) return count_by(t, view_.rank_of_writer).size() * 2 > view_.ranks.size();
    return true;
  }

  // Shares of the words classes among this job's harmless templates, and how many began at the end.
  void calibrate() {
    Births half{};
    for (auto& shares : shares_) shares = kHarmless;
    for (const TemplateScore& s : a_.templates) {
      const logs::TemplateStats& t = log_.templates()[s.id];
      if (says_nothing(t)) continue;
      const bool fresh = !s.known;  // what the pool has is no surprise whenever it begins
      const bool rare = t.count <= kRare;
      if (s.known) excesses_.push_back(excess(s, most_of(t, s.hosts)));
      if (s.late)
        births_[s.widespread][rare] += fresh;
      else
        see_harmless(t, s);
      const bool in_half = untimed_
                               ? position(t.places.front()) >= 0.5
                               : s.first_ns != kNoTime && from_ != kNoTime && s.first_ns >= from_ - half_of();
      half[s.widespread][rare] += fresh && !s.late && in_half;
    }
    std::sort(excesses_.begin(), excesses_.end());
    if (from_ != kNoTime) {
      // By time or by lines, whichever lets expect fewer: while a job waits it writes little that is new.
      const double by_time = length_ / (before_ / 2);
      const double by_lines =
          lines_between(from_, log_.last_ns()) / std::max(1.0, lines_between(from_ - half_of(), from_));
      const double window = std::min({1.0, by_time, by_lines});
      for (int wide : {0, 1})
        for (int rare : {0, 1}) expected_births_[wide][rare] = (half[wide][rare] + kSmooth) * window;
      // New lines come with new work, and a job that stopped did no more than one further iteration.
      const double by_work = 2.0 / std::max(2.0, static_cast<double>(log_.iterations().span()));
      if (a_.fate.progress_stopped) by_work_ = std::min(1.0, by_work / window);
    }
    if (untimed_)
      for (int wide : {0, 1})
        for (int rare : {0, 1})
          expected_births_[wide][rare] = (half[wide][rare] + kSmooth) * kEndShare / (0.5 - kEndShare);
    const double now = sum(births_), expected = std::max(sum(expected_births_), 1e-3);
    a_.birth_surprise =
        now > expected ? now * std::log(now / expected) - (now - expected) : 0;  // Chernoff, Poisson
  }
  void see_harmless(const logs::TemplateStats& t, const TemplateScore& s) {
    // A job that never got to its first iteration has no harmless part, but for what the pool knows.
    const bool counts = from_ != kNoTime || in_counting_file(t);
    if (!counts && !s.known) return;
    ++shares_[t.count <= kRare][words_class(t)];
    if (!counts) return;
    sustained_ += t.count > kRare;
    begun_later_ += t.count > kRare && begins_later(s);
    Class& c = classes_[t.count <= kRare][words_class(t)];
    ++c.all;
    c.novel += s.novel;
    a_.novel_expected += s.novel;
  }
  double lines_between(TimeNs from, TimeNs to) const {
    double sum = 0;
    for (const logs::ActivityBins& bins : log_.activity()) sum += bins.between(from, to);
    return sum;
  }
  TimeNs half_of() const { return (from_ - log_.first_ns()) / 2; }

  double words_term(const logs::TemplateStats& t, uint32_t words) const {
    const auto& shares = shares_[t.count <= kRare];
    const double all = shares[0] + shares[1] + shares[2];
    return std::log(kIndicating[words] * all / shares[words]);
  }

  void cross_job(const logs::TemplateStats& t, TemplateScore& s, uint32_t words) const {
    const uint64_t most = most_of(t, s.hosts);
    if (!s.known) {
      s.cross_job = clamp(std::log(kNovelSure / novelty(t.count <= kRare, words)), 0, kTermMax);
      return;
    }
    const double by_pool = excess(s, most);
    const double share = static_cast<double>(s.known->jobs) / pool_.jobs;
    if (by_pool <= kFrequentFrom) {
      s.cross_job = kKnown + kCustom * share;
      return;
    }
    // How many others are as far above what the pool has: rates differ from job to job.
    const auto above =
        static_cast<double>(excesses_.end() - std::lower_bound(excesses_.begin(), excesses_.end(), by_pool));
    s.cross_job = std::min(kFrequentMax, std::log((excesses_.size() + 1.0) / (2 * above))) + kKnown / 2;
  }

  double excess(const TemplateScore& s, uint64_t most) const {
    const Known& known = known_forms_[s.id];
    // A template of many wordings, half of them new, has no rate that could be compared.
    if (known.forms * 2 < known.job_forms) return 0;
    return 2 * std::sqrt(static_cast<double>(most)) - 2 * std::sqrt(known.most);
  }

  double temporal(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (s.late) {
      const bool rare = t.count <= kRare;
      const double expected = expected_births_[s.widespread][rare];
      const double odds =
          (std::max(0.0, births_[s.widespread][rare] - expected) + kSmooth) / (expected + kSmooth);
      const double late = clamp(std::log(odds) + 1, 0, kTermMax);
      return untimed_ ? std::max(late, near_end(t, s)) : late;
    }
    const bool timed = from_ != kNoTime && s.first_ns != kNoTime;
    const bool placed = timed || in_counting_file(t);
    // A line before the first iteration after which the job trained belongs to its normal start.
    if (placed && s.iteration < 0 && log_.iterations().span() >= kSettled) return kStart;
    if (timed && t.count > kRare) return lasting(t, s);
    // Where no time or no iteration tells, being far from the end of a file says nothing against it.
    if (!placed) return near_end(t, s);
    const double before = clear_end() ? kBeforeEnd : kBefore;
    return clamp(std::log(0.3 / age(t, s)) + before, before - 1, 1);
  }

  double near_end(const logs::TemplateStats& t, const TemplateScore& s) const {
    return clamp(std::log(0.3 / age(t, s)), 0, kTermMax / 2);
  }

  bool clear_end() const { return sum(births_) - sum(expected_births_) >= kClearEnd; }
  using Births = std::array<std::array<double, 2>, 2>;  // [widespread][rare]
  static double sum(const Births& b) { return b[0][0] + b[0][1] + b[1][0] + b[1][1]; }

  // What began before the end and was written often: does it go on until the end?
  double lasting(const logs::TemplateStats& t, const TemplateScore& s) const {
    const double length = static_cast<double>(std::max<TimeNs>(1, from_ - log_.first_ns()));
    const double since = std::max(0.0, static_cast<double>(from_ - t.last_ns)) / length;
    const double before = clear_end() ? kBefore : 0;
    const double until = since < kLasting ? 0.5 : clamp(std::log(kLasting / since), kLateMin, 0);
    // What a job does again and again it does from its beginning on: as a rule, and this job tells how strict
    // a one.
    const double share = (begun_later_ + kSmooth) / (sustained_ + 2 * kSmooth);
    const double begun =
        begins_later(s) ? std::log(kNovelSure / share) : std::log((1 - kNovelSure) / (1 - share));
    return clamp(begun, kBefore, kTermMax / 2) + until + before;
  }

  // What the job's own course says beyond these terms: for the list of indicating templates. Hosts are not
  // accused by it.
  double course(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (says_nothing(t)) return 0;
    if (s.late) return std::max(0.0, late_by_work(t, s) - s.temporal);
    double said = 0;
    if (is_outlived(t, s)) {
      const uint32_t words = words_class(t);
      said = words_term(t, std::min<uint32_t>(words, 1)) - words_term(t, words) - s.shape;
    }
    if (s.with_slowdown) return said + with_slowdown() - s.temporal;
    const bool start = s.iteration < 0 && log_.iterations().span() >= kSettled;
    if (start && precedes_times(t)) return said + std::min(0.0, kStart - s.temporal);
    const bool early = a_.fate.slower && t.count > kRare && s.iteration >= 0 &&
                       a_.fate.last_iteration - s.iteration > kOutlived;
    if (early) return said + std::min(0.0, kBefore - s.temporal);
    return said;
  }

  double late_by_work(const logs::TemplateStats& t, const TemplateScore& s) const {
    const bool rare = t.count <= kRare;
    const double expected = expected_births_[s.widespread][rare] * by_work_;
    const double odds =
        (std::max(0.0, births_[s.widespread][rare] - expected) + kSmooth) / (expected + kUnseen);
    return clamp(std::log(odds) + 1, 0, kTermMax);
  }

  // The iterations around the beginning of the slower part that count for it.
  int64_t slowdown_width() const {
    const auto slower = static_cast<double>(a_.fate.last_iteration - a_.fate.slower->iteration);
    return std::max(kSlowdownSteps, static_cast<int64_t>(kSlowdownShare * slower));
  }

  // Whether it began where the job became slower, and goes on until near its end.
  bool begins_with_slowdown(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (!a_.fate.slower || t.count <= kRare || s.first_ns == kNoTime || s.iteration < 0) return false;
    if (std::abs(s.iteration - a_.fate.slower->iteration) > slowdown_width()) return false;
    const auto slower = static_cast<double>(from_ - a_.fate.slower->from_ns);
    return static_cast<double>(from_ - t.last_ns) < slower / 3;
  }

  // Against the share of the job in which a harmless one may have begun so.
  double with_slowdown() const {
    const double share = 2 * static_cast<double>(slowdown_width()) /
                         std::max(1.0, static_cast<double>(log_.iterations().span()));
    return clamp(std::log(kWithSlowdown / share), 0, kTermMax);
  }

  // Whether it has no time and stands in a file with times: before the first of them.
  bool precedes_times(const logs::TemplateStats& t) const {
    return t.untimed && from_ != kNoTime && timed_sources_.contains(t.places.front().source);
  }

  // Whether the job iterated on after the last of its lines.
  bool is_outlived(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (s.late || t.last_ns == kNoTime || from_ == kNoTime) return false;
    const logs::LogPlace& place = t.places.front();
    const int64_t at = log_.iterations().iteration_at(t.last_ns, place.source, place.line);
    return a_.fate.last_iteration - at > kOutlived;
  }

  // After the first fifth of the job's iterations.
  bool begins_later(const TemplateScore& s) const {
    const auto& track = log_.iterations().track();
    return !track.empty() && s.first_ns != kNoTime &&
           s.iteration >= track.front().iteration + log_.iterations().span() / 5;
  }

  // How far from the end it began, as a share of the job.
  double age(const logs::TemplateStats& t, const TemplateScore& s) const {
    const TimeNs end =
        from_;  // without iterations lines tell more than time: a launch is quick, then it waits
    if (end != kNoTime && s.first_ns != kNoTime && log_.first_ns() < end) {
      const double length = static_cast<double>(end - log_.first_ns());
      const double step = std::max(static_cast<double>(a_.fate.step_ns), length / 100);
      return (std::max(0.0, static_cast<double>(end - s.first_ns)) + step) / length;
    }
    const logs::LogPlace& place = t.places.front();
    const double lines = static_cast<double>(std::max<uint64_t>(1, log_.lines_of(place.source)));
    return (lines - static_cast<double>(place.line) + 1 + lines / 100) / lines;
  }

  // A template that stands on few hosts by its role (the first rank prints the loss): the pool knows it so,
  // or it did so from the beginning of the job.
  bool is_role(const TemplateScore& s) const {
    const double hosts = static_cast<double>(view_.hosts.size());
    if (s.known) return s.known->hosts_share * hosts < 1.5 + 0.1 * hosts && s.cross_job < 0;
    if (log_.iterations().span() > 0 && s.first_ns != kNoTime) return !begins_later(s);
    return pool_.jobs == 0;  // without iterations and without history nobody can tell a role from a fault
  }

  void finish(TemplateScore& s) const {
    const logs::TemplateStats& t = log_.templates()[s.id];
    const uint32_t words = words_class(t);
    s.words = words_term(t, words);
    if (pool_.jobs > 0 && steps_.cross_job) cross_job(t, s, words);
    if (steps_.temporal) s.temporal = temporal(t, s);
    if (steps_.shapes && !t.shape.advice) s.shape = shape_term(t);
    if (says_nothing(t)) s.words = kNever;
    s.role = is_role(s);
    if (steps_.temporal) s.course = course(t, s);
  }

  const View& view_;
  const logs::JobLog& log_;
  const Pool& pool_;
  const Steps& steps_;
  Analysis& a_;
  std::vector<const PoolForm*> known_;  // by cluster: the form with the most jobs
  struct Known {
    double most = 0;                    // lines of its forms together, at the most on one host of the pool
    uint32_t forms = 0, job_forms = 0;  // of this job: those that the pool has, all
  };
  struct Class {
    double all = 0, novel = 0;
  };
  std::vector<Known> known_forms_;                                   // by cluster
  std::vector<double> excesses_;                                     // of what the pool knows, ascending
  std::array<std::array<double, 3>, 2> pool_all_{}, pool_single_{};  // [rare][words]
  std::array<std::array<Class, 3>, 2> classes_{};                    // of this job, before its end
  std::array<std::array<double, 3>, 2> shares_{};                    // [rare][words]
  std::set<uint32_t> timed_sources_;
  double by_work_ = 1;  // the expected births of a job that stopped, as a share of those by its time
  TimeNs from_ = kNoTime;
  bool untimed_ = false;  // iterations are counted, and no time is known
  double length_ = 0, before_ = 0;
  double sustained_ = 0, begun_later_ = 0;  // harmless templates seen often; those that began in mid-job
  Births births_{}, expected_births_{};     // templates that began in the window; that were to be expected
};

}  // namespace

const TemplateScore* Analysis::of(logs::ClusterId id) const {
  return id < by_cluster.size() && by_cluster[id] != kNowhere ? &templates[by_cluster[id]] : nullptr;
}

void score_templates(const View& view, const Pool& pool, const Steps& steps, Analysis& a) {
  a.has_pool = pool.jobs > 0 && steps.cross_job;
  Scorer(view, pool, steps, a).run();
}

Analysis analyse(const View& view, const Pool& pool, const Steps& steps) {
  Analysis a;
  a.fate = find_fate(view);
  score_templates(view, pool, steps, a);
  if (steps.spatial) add_spatial(view, a);
  const double count = clamp(static_cast<double>(a.templates.size()), kTemplatesMin, kTemplatesMax);
  const double prior = std::log(kExpected / count);
  for (TemplateScore& s : a.templates) {
    const double logit = prior + s.cross_job + s.temporal + s.words + s.shape + s.spatial;
    s.score = 1 / (1 + std::exp(-logit));
    s.indicates = 1 / (1 + std::exp(-logit - s.course));
  }
  std::stable_sort(a.templates.begin(), a.templates.end(),
                   [](const TemplateScore& x, const TemplateScore& y) {
                     return x.score > y.score || (x.score == y.score && x.first_ns < y.first_ns);
                   });
  a.by_cluster.assign(view.log->templates().size(), kNowhere);
  for (uint32_t i = 0; i < a.templates.size(); ++i) a.by_cluster[a.templates[i].id] = i;
  find_accusing(view, a);
  if (steps.temporal) find_odd_iterations(view, a);
  if (steps.silence) find_silent(view, a);
  score_hosts(view, steps, a);
  if (steps.spatial) find_odd_ranks(view, a);
  return a;
}

}  // namespace culprit::detect
