// Evidence per template: cross-job, temporal, words, known shapes.
//
// Each term is a log likelihood ratio of the failure's templates against harmless ones. Each is calibrated on
// harmless templates: those of the pool, and this job's own from before the end.
//   words      docs/detectors.md: 54.8 % of the indicating templates are errors, 23.1 % warnings, 22.1 %
//              plain. The term compares this with the shares among equally rare harmless templates. In a job
//              full of harmless alarms, an alarm is weak evidence.
//   cross-job  the share of equally alarming and rare harmless templates that the pool lacks: among this
//              job's templates from before its end, and by templates of only one pool job (Good-Turing)
//   temporal   a harmless template begins anywhere in the job, one of the failure near its end. K templates
//              began since progress ended, and the job's own rate of new templates predicts E. An earlier
//              template that lasts until the end may belong to the failure too
// The prior: a failed job has about ten indicating templates, usually among several hundred.
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "core/detect/logs/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kExpected = 10, kTemplatesMin = 30, kTemplatesMax = 330;  // of the prior
constexpr std::array<double, 3> kIndicatingByWords = {0.221, 0.231,
                                                      0.548};  // docs/detectors.md, by words class
// Of ten templates of a healthy run (tests with real logs).
constexpr std::array<double, 3> kHarmless = {8.7, 1.0, 0.3};
constexpr double kNovelSure = 0.95;  // 5 % of real faults repeat a line that healthy jobs also have
constexpr double kKnown = -3.0;      // log of that 5 %
constexpr double kCustom = -2.0;     // added if all successful jobs have the line
constexpr double kTermMax = 5.0;     // limit for one term, so that no single term is certain
constexpr double kSmooth = 0.5;      // smoothing: something never seen might appear in two more samples
constexpr double kPoolWeight = 5;    // weight of the pool's own novelty estimate, in templates
// Novelty if the pool has one job: plain templates (real siblings), alarms.
constexpr double kSingleJob[] = {0.05, 0.3};
constexpr double kClearEnd = 3;  // excess of new templates over the expected number that makes the end clear
constexpr double kBeforeEnd = -2.0;  // with a clear end: a seventh of the failure's templates began before it
constexpr double kBefore = -1.0;     // without a clear end, for templates seen once or twice
constexpr double kLasting = 0.1;     // share of the job: a template seen this near the end is lasting
constexpr double kStart = -3.0;      // a twentieth of the faults are first logged at launch
constexpr int64_t kSettled = 10;     // iterations that prove a good launch
constexpr double kEndShare = 0.2;    // share of a file without times and progress that counts as its end
constexpr double kLateMin = -1.5;    // a fifth of the faults show early signs
constexpr double kUnseen = 0.05;     // smoothing for a rate that is already smoothed
constexpr int64_t kOutlived = 5;     // iterations: a fatal fault ends the job sooner
constexpr double kWithSlowdown = 0.8;  // share of a slowdown's templates that begin with it
// Iterations around its start, or kSlowdownShare of the slower part if that is more.
constexpr int64_t kSlowdownSteps = 5;
constexpr double kSlowdownShare = 0.1;
constexpr double kNever = -6.0;  // advice, progress, words of a planned end
constexpr double kShape = 2.0;   // a known kind of fault, in addition to its words
constexpr uint64_t kRare = 3;    // lines: templates seen up to this often form their own class
// For known templates that are more frequent on one host than on any pool host: difference of 2 sqrt(n),
// whose spread is 1.
constexpr double kFrequentFrom = 4.0, kFrequentMax = 4.0;

double clamp(double x, double low, double high) { return std::min(high, std::max(low, x)); }

// The largest number of its lines on one host.
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
  if (t.known >= logs::Meaning::kEcho && t.shape.kind != logs::ShapeKind::kException) return kShape;
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
  // The window in which the failure's own lines begin: from the last finished iteration to the end.
  void find_window() {
    from_ = a_.outcome.last_progress_ns;
    untimed_ = from_ == kNoTime && a_.outcome.last_iteration >= 0;
    if (from_ == kNoTime || log_.first_ns() == kNoTime) {
      from_ = kNoTime;
      return;
    }
    from_ = std::max(log_.first_ns(), from_ - a_.outcome.step_ns);
    length_ = static_cast<double>(std::max<TimeNs>(1, log_.last_ns() - from_));
    before_ = static_cast<double>(std::max<TimeNs>(1, from_ - log_.first_ns()));
  }

  void find_known() {
    known_.resize(log_.templates().size());
    known_forms_.resize(log_.templates().size());
    alarms_.resize(log_.templates().size());
    for (const logs::JobLog::FormStats& form : log_.forms()) {
      known_forms_[form.cluster].job_forms += form.count > 0;
      if (form.alarm && pool_.learned) alarms_[form.cluster] = true;
      const auto at = std::lower_bound(pool_.forms.begin(), pool_.forms.end(), form.hash,
                                       [](const PoolForm& f, uint64_t h) { return f.hash < h; });
      if (at == pool_.forms.end() || at->hash != form.hash) continue;
      const PoolForm*& best = known_[form.cluster];
      if (!best || at->jobs > best->jobs) best = &*at;
      known_forms_[form.cluster].most += at->host_max;
      known_forms_[form.cluster].forms += form.count > 0;
    }
    for (size_t id = 0; id < known_.size(); ++id) {
      if (alarms_[id]) known_[id] = nullptr;
      const PoolForm* f = known_[id];
      if (!f) continue;
      const bool rare = known_forms_[id].most <= kRare;
      ++pool_all_[rare][f->words];
      pool_single_[rare][f->words] += f->jobs == 1;
    }
  }

  // Share of harmless templates of a class that the pool lacks, estimated from the pool alone.
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
    s.novel = pool_.jobs > 0 && !known_[id] && !alarms_[id];
    s.widespread = is_widespread(t, s);
    s.with_slowdown = begins_with_slowdown(t, s);
    if (s.first_ns != kNoTime) timed_sources_.insert(place.source);
    s.late =
        untimed_ ? late_by_place(place) : s.first_ns != kNoTime && from_ != kNoTime && s.first_ns >= from_;
    a_.novel_seen += s.novel;
    a_.templates.push_back(std::move(s));
  }

  // Without times the line number decides: after the last progress, or in the last fifth of a file without
  // progress.
  bool late_by_place(const logs::LogPlace& place) const {
    const int64_t last = last_in_file(place);
    if (last >= 0) return log_.iterations().iteration_at(kNoTime, place.source, place.line) == last;
    return position(place) > 1 - kEndShare;
  }

  // The last iteration in a file without times; -1: none.
  int64_t last_in_file(const logs::LogPlace& place) const {
    return log_.iterations().iteration_at(kNoTime, place.source, log_.lines_of(place.source) + 1);
  }

  // Whether no times are known and the template began in a file with progress lines.
  bool in_counting_file(const logs::TemplateStats& t) const {
    return untimed_ && last_in_file(t.places.front()) >= 0;
  }

  // Relative position of a line in its file, 0 to 1.
  double position(const logs::LogPlace& place) const {
    return static_cast<double>(place.line) /
           static_cast<double>(std::max<uint64_t>(1, log_.lines_of(place.source)));
  }

  bool is_widespread(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (view_.hosts.size() >= 2) return s.hosts.size() * 2 > view_.hosts.size();
    if (view_.ranks.size() >= 2) return count_by(t, view_.rank_of_writer).size() * 2 > view_.ranks.size();
    return true;
  }

  // Counts the words classes of this job's harmless templates, and the templates that began at the end.
  void calibrate() {
    Births half{};
    for (auto& shares : shares_) shares = kHarmless;
    for (const TemplateScore& s : a_.templates) {
      const logs::TemplateStats& t = log_.templates()[s.id];
      if (says_nothing(t)) continue;
      const bool fresh = !s.known;  // a template of the pool is expected at any time
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
      // By time or by lines, whichever predicts fewer: a waiting job writes little that is new.
      const double by_time = length_ / (before_ / 2);
      const double by_lines =
          lines_between(from_, log_.last_ns()) / std::max(1.0, lines_between(from_ - half_of(), from_));
      const double window = std::min({1.0, by_time, by_lines});
      for (int wide : {0, 1})
        for (int rare : {0, 1}) expected_births_[wide][rare] = (half[wide][rare] + kSmooth) * window;
      // New work brings new lines, and a stopped job did at most one more iteration.
      const double by_work = 2.0 / std::max(2.0, static_cast<double>(log_.iterations().span()));
      if (a_.outcome.progress_stopped) by_work_ = std::min(1.0, by_work / window);
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
    // A job that never reached its first iteration has no harmless part, except for the pool's templates.
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
    return std::log(kIndicatingByWords[words] * all / shares[words]);
  }

  void cross_job(const logs::TemplateStats& t, TemplateScore& s, uint32_t words) const {
    if (alarms_[s.id]) return;  // a learned pool never has alarms, so their absence proves nothing
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
    // Number of templates that exceed the pool by as much: rates differ between jobs.
    const auto above =
        static_cast<double>(excesses_.end() - std::lower_bound(excesses_.begin(), excesses_.end(), by_pool));
    s.cross_job = std::min(kFrequentMax, std::log((excesses_.size() + 1.0) / (2 * above))) + kKnown / 2;
  }

  double excess(const TemplateScore& s, uint64_t most) const {
    const PoolForms& known = known_forms_[s.id];
    // A template whose forms are mostly new has no comparable rate.
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
    // If the job trained after a line from before the first iteration, the line belongs to a normal start.
    if (placed && s.iteration < 0 && log_.iterations().span() >= kSettled) return kStart;
    if (timed && t.count > kRare) return lasting(t, s);
    // Without a time or an iteration, a place far from the end of a file is no evidence against the template.
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

  // For a frequent template that began before the end: whether it lasts until the end.
  double lasting(const logs::TemplateStats& t, const TemplateScore& s) const {
    const double length = static_cast<double>(std::max<TimeNs>(1, from_ - log_.first_ns()));
    const double since = std::max(0.0, static_cast<double>(from_ - t.last_ns)) / length;
    const double before = clear_end() ? kBefore : 0;
    const double until = since < kLasting ? 0.5 : clamp(std::log(kLasting / since), kLateMin, 0);
    // Recurring work usually begins with the job; this job's own templates show how strictly.
    const double share = (begun_later_ + kSmooth) / (sustained_ + 2 * kSmooth);
    const double begun =
        begins_later(s) ? std::log(kNovelSure / share) : std::log((1 - kNovelSure) / (1 - share));
    return clamp(begun, kBefore, kTermMax / 2) + until + before;
  }

  // Additional evidence from the job's own course. It orders the list of indicating templates and does not
  // accuse hosts.
  double course(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (says_nothing(t)) return 0;
    if (s.late) return std::max(0.0, late_by_work(t, s) - s.temporal);
    double reported = 0;
    if (is_outlived(t, s)) {
      const uint32_t words = words_class(t);
      reported = words_term(t, std::min<uint32_t>(words, 1)) - words_term(t, words) - s.shape;
    }
    if (s.with_slowdown) return reported + with_slowdown() - s.temporal;
    const bool start = s.iteration < 0 && log_.iterations().span() >= kSettled;
    if (start && precedes_times(t)) return reported + std::min(0.0, kStart - s.temporal);
    const bool early = a_.outcome.slower && t.count > kRare && s.iteration >= 0 &&
                       a_.outcome.last_iteration - s.iteration > kOutlived;
    if (early) return reported + std::min(0.0, kBefore - s.temporal);
    return reported;
  }

  double late_by_work(const logs::TemplateStats& t, const TemplateScore& s) const {
    const bool rare = t.count <= kRare;
    const double expected = expected_births_[s.widespread][rare] * by_work_;
    const double odds =
        (std::max(0.0, births_[s.widespread][rare] - expected) + kSmooth) / (expected + kUnseen);
    return clamp(std::log(odds) + 1, 0, kTermMax);
  }

  // Number of iterations around the start of the slower part that count as its start.
  int64_t slowdown_width() const {
    const auto slower = static_cast<double>(a_.outcome.last_iteration - a_.outcome.slower->iteration);
    return std::max(kSlowdownSteps, static_cast<int64_t>(kSlowdownShare * slower));
  }

  // Whether the template began with the slowdown and lasts until near its end.
  bool begins_with_slowdown(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (!a_.outcome.slower || t.count <= kRare || s.first_ns == kNoTime || s.iteration < 0) return false;
    if (std::abs(s.iteration - a_.outcome.slower->iteration) > slowdown_width()) return false;
    const auto slower = static_cast<double>(from_ - a_.outcome.slower->from_ns);
    return static_cast<double>(from_ - t.last_ns) < slower / 3;
  }

  // Relative to the share of the job in which a harmless template may begin by chance.
  double with_slowdown() const {
    const double share = 2 * static_cast<double>(slowdown_width()) /
                         std::max(1.0, static_cast<double>(log_.iterations().span()));
    return clamp(std::log(kWithSlowdown / share), 0, kTermMax);
  }

  // Whether the template has no time and comes before the first timed line of its file.
  bool precedes_times(const logs::TemplateStats& t) const {
    return t.untimed && from_ != kNoTime && timed_sources_.contains(t.places.front().source);
  }

  // Whether the job continued to iterate after the template's last line.
  bool is_outlived(const logs::TemplateStats& t, const TemplateScore& s) const {
    if (s.late || t.last_ns == kNoTime || from_ == kNoTime) return false;
    const logs::LogPlace& place = t.places.front();
    const int64_t at = log_.iterations().iteration_at(t.last_ns, place.source, place.line);
    return a_.outcome.last_iteration - at > kOutlived;
  }

  // Whether the template began after the first fifth of the job's iterations.
  bool begins_later(const TemplateScore& s) const {
    const auto& track = log_.iterations().track();
    return !track.empty() && s.first_ns != kNoTime &&
           s.iteration >= track.front().iteration + log_.iterations().span() / 5;
  }

  // Distance of its beginning from the end, as a share of the job.
  double age(const logs::TemplateStats& t, const TemplateScore& s) const {
    // Without iterations, lines are a better measure than time: a launch is quick, then it waits.
    const TimeNs end = from_;
    if (end != kNoTime && s.first_ns != kNoTime && log_.first_ns() < end) {
      const double length = static_cast<double>(end - log_.first_ns());
      const double step = std::max(static_cast<double>(a_.outcome.step_ns), length / 100);
      return (std::max(0.0, static_cast<double>(end - s.first_ns)) + step) / length;
    }
    const logs::LogPlace& place = t.places.front();
    const double lines = static_cast<double>(std::max<uint64_t>(1, log_.lines_of(place.source)));
    return (lines - static_cast<double>(place.line) + 1 + lines / 100) / lines;
  }

  // Whether the template is on few hosts because of a role (the first rank prints the loss): it is so in the
  // pool, or it began with the job.
  bool is_role(const TemplateScore& s) const {
    const double hosts = static_cast<double>(view_.hosts.size());
    if (s.known) return s.known->hosts_share * hosts < 1.5 + 0.1 * hosts && s.cross_job < 0;
    if (log_.iterations().span() > 0 && s.first_ns != kNoTime) return !begins_later(s);
    return pool_.jobs == 0;  // without iterations and a pool, a role looks like a fault
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
  struct PoolForms {
    double most = 0;                    // lines of all its forms: maximum over the pool's hosts
    uint32_t forms = 0, job_forms = 0;  // number of its forms in this job: also in the pool; all
  };
  struct Class {
    double all = 0, novel = 0;
  };
  std::vector<PoolForms> known_forms_;  // by cluster
  std::vector<bool> alarms_;            // by cluster: a learned pool never has them
  std::vector<double> excesses_;        // of templates that the pool knows, ascending
  std::array<std::array<double, 3>, 2> pool_all_{}, pool_single_{};  // [rare][words]
  std::array<std::array<Class, 3>, 2> classes_{};                    // of this job, before its end
  std::array<std::array<double, 3>, 2> shares_{};                    // [rare][words]
  std::set<uint32_t> timed_sources_;
  double by_work_ = 1;  // for a stopped job: expected new templates by work, relative to those by time
  TimeNs from_ = kNoTime;
  bool untimed_ = false;  // iterations are known and times are not
  double length_ = 0, before_ = 0;
  // Frequent harmless templates; those of them that began in mid-job.
  double sustained_ = 0, begun_later_ = 0;
  Births births_{}, expected_births_{};  // templates that began in the window; their expected number
};

}  // namespace

const TemplateScore* Analysis::of(logs::ClusterId id) const {
  return id < by_cluster.size() && by_cluster[id] != kNowhere ? &templates[by_cluster[id]] : nullptr;
}

void score_templates(const View& view, const Pool& pool, const Steps& steps, Analysis& a) {
  a.has_pool = pool.jobs > 0 && steps.cross_job;
  a.learned_pool = pool.learned;
  Scorer(view, pool, steps, a).run();
}

Analysis analyse(const View& view, const Pool& pool, const Steps& steps) {
  Analysis a;
  a.outcome = find_outcome(view);
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
