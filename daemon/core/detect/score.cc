// Evidence by template: cross-job, temporal, words, known shapes.
//
// Each term is a log likelihood ratio, the failure's templates against the healthy ones:
//   words      LOGS.md: of the indicating templates 54.8 % are errors, 23.1 % warnings, 13.6 % info, 8.5 % debug; of
//              the templates of successful real runs about 3 %, 10 %, 80 %, 7 %
//   cross-job  of k templates that the pool lacks, m are expected of a healthy job (templates that only one pool job
//              has, by job: the leave-one-out estimate of Good and Turing)
//   temporal   a harmless template begins anywhere in the job, one of the failure near its end: the density of the
//              beginnings is the job's length over the age of the template
// The prior: a failed job has some ten indicating templates among several hundred.
#include <algorithm>
#include <cmath>

#include "core/detect/analysis.h"

namespace culprit::detect {
namespace {

constexpr double kPrior = -3.5;          // log(10 / 330)
constexpr double kWords[] = {-1.8, 0.8, 2.9};       // none (info), trouble (warning), failure (error)
constexpr double kKnown = -4.0;          // the pool has it in all of its jobs; 2 % of real faults repeat a known line
constexpr double kLateMax = 5.0;         // a job of more than 150 steps tells no more
constexpr double kLateMin = -2.5;        // a tenth of the faults announce themselves early
constexpr double kAdvice = -6.0;
constexpr double kShape = 4.0;           // a known kind of fault
constexpr double kFrequent = 2.0;        // known, but much more often than in any pool job
constexpr double kFrequentRatio = 5.0;

double clamp(double x, double low, double high) { return std::min(high, std::max(low, x)); }

struct PoolView {
  std::vector<const PoolForm*> best;  // by cluster: the form with the most jobs
  std::vector<bool> in_one;           // by cluster: only one pool job has it
};

PoolView by_cluster(const logs::JobLog& log, const Pool& pool) {
  PoolView out;
  out.best.resize(log.templates().size());
  for (const logs::JobLog::FormStats& form : log.forms()) {
    const auto at = std::lower_bound(pool.forms.begin(), pool.forms.end(), form.hash,
                                     [](const PoolForm& f, uint64_t h) { return f.hash < h; });
    if (at == pool.forms.end() || at->hash != form.hash) continue;
    const PoolForm*& best = out.best[form.cluster];
    if (!best || at->jobs > best->jobs) best = &*at;
  }
  return out;
}

// New templates that a healthy job would bring, by the pool's own jobs.
double expected_novel(const PoolView& pool_view, const Pool& pool) {
  if (pool.jobs == 0) return 0;
  double single = 0, all = 0;
  for (const PoolForm* f : pool_view.best) {
    if (!f) continue;
    ++all;
    single += f->jobs == 1;
  }
  // One job alone cannot tell: real siblings differ in some 5 % of their templates.
  return pool.jobs == 1 ? 0.05 * all : single / pool.jobs;
}

// How far a place is from the end of the job's progress, as a share of the job: 0 .. 1.
double age_of(const logs::JobLog& log, const Fate& fate, const logs::TemplateStats& t) {
  const TimeNs end = fate.last_progress_ns != kNoTime ? fate.last_progress_ns : log.last_ns();
  const logs::LogPlace& place = t.places.front();
  if (end != kNoTime && t.first_ns != kNoTime && log.first_ns() < end) {
    const double length = static_cast<double>(end - log.first_ns());
    const double step = std::max(static_cast<double>(fate.step_ns), length / 1000);
    return (std::max(0.0, static_cast<double>(end - t.first_ns)) + step) / length;
  }
  const double lines = static_cast<double>(std::max<uint64_t>(1, log.lines_of(place.source)));
  return (lines - static_cast<double>(place.line) + 1 + lines / 100) / lines;
}

double words_term(const logs::TemplateStats& t) {
  double term = kWords[t.shape.words];
  if (t.level >= logs::Level::kError) term = std::max(term, kWords[2]);
  else if (t.level == logs::Level::kWarning) term = clamp(term, kWords[1], kWords[2]);
  // A level that is told outranks the words of the message: "errors: 0" at level info is no error.
  else if (t.level == logs::Level::kInfo && t.shape.kind == logs::ShapeKind::kPlain)
    term = std::min(term, t.shape.words == 2 ? 0.5 : kWords[0]);
  else if (t.level == logs::Level::kDebug) term = std::min(term, 0.2);
  return term;
}

double shape_term(const logs::TemplateStats& t) {
  switch (t.shape.kind) {
    case logs::ShapeKind::kFault: return kShape;
    case logs::ShapeKind::kException:
    case logs::ShapeKind::kTraceback:
    case logs::ShapeKind::kRootCause: return kShape / 2;
    default: return 0;
  }
}

void cross_job_term(const logs::TemplateStats& t, const PoolForm* known, const Pool& pool, const Analysis& a,
                    TemplateScore& s) {
  if (pool.jobs == 0) return;
  if (!known) {
    const double k = a.novel_seen;
    s.cross_job = clamp(std::log((std::max(0.0, k - a.novel_expected) + 0.5) / (a.novel_expected + 0.5)) + 1, 0, 4);
    return;
  }
  s.cross_job = kKnown * static_cast<double>(known->jobs) / pool.jobs - 1;
  uint64_t most = s.hosts.empty() ? t.count : 0;
  for (const UnitCount& c : s.hosts) most = std::max(most, c.count);
  if (static_cast<double>(most) > kFrequentRatio * static_cast<double>(known->host_max) && most > 10)
    s.cross_job += -kKnown + kFrequent;
}

bool is_widespread(const View& view, const logs::TemplateStats& t, const TemplateScore& s) {
  if (view.hosts.size() >= 2) return s.hosts.size() * 2 > view.hosts.size();
  if (view.ranks.size() >= 2) return count_by(t, view.rank_of_writer).size() * 2 > view.ranks.size();
  return true;
}

// How surprising the number of templates is that begin in the last steps, by the births in the half before.
double birth_surprise(const logs::JobLog& log, const Fate& fate) {
  const TimeNs end = fate.last_progress_ns, step = fate.step_ns;
  if (end == kNoTime || step <= 0 || log.first_ns() == kNoTime) return 0;
  const TimeNs window = end - 2 * step, half = end - (end - log.first_ns()) / 2;
  if (half >= window) return 0;
  double before = 0, now = 0;
  for (logs::ClusterId id : log.clusters()) {
    const TimeNs first = log.templates()[id].first_ns;
    if (first == kNoTime) continue;
    now += first >= window;
    before += first >= half && first < window;
  }
  const double expected = (before + 0.5) * 2 * static_cast<double>(step) / static_cast<double>(window - half);
  return now > expected ? now * std::log(now / expected) - (now - expected) : 0;  // Chernoff's bound, Poisson
}

}  // namespace

const TemplateScore* Analysis::of(logs::ClusterId id) const {
  for (const TemplateScore& t : templates)
    if (t.id == id) return &t;
  return nullptr;
}

void score_templates(const View& view, const Pool& pool, const Steps& steps, Analysis& a) {
  const logs::JobLog& log = *view.log;
  const PoolView known = by_cluster(log, pool);
  a.has_pool = pool.jobs > 0 && steps.cross_job;
  a.novel_expected = expected_novel(known, pool);
  for (logs::ClusterId id : log.clusters()) a.novel_seen += pool.jobs > 0 && !known.best[id];
  a.birth_surprise = birth_surprise(log, a.fate);
  for (logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.places.empty()) continue;
    TemplateScore s;
    s.id = id;
    s.hosts = count_by(t, view.host_of_writer);
    s.first_ns = t.first_ns;
    const logs::LogPlace& place = t.places.front();
    s.iteration = log.iterations().iteration_at(t.first_ns, place.source, place.line);
    s.novel = pool.jobs > 0 && !known.best[id];
    s.widespread = is_widespread(view, t, s);
    if (steps.cross_job) cross_job_term(t, known.best[id], pool, a, s);
    const double age = age_of(log, a.fate, t);
    s.late = a.fate.last_progress_ns != kNoTime && t.first_ns >= a.fate.last_progress_ns - a.fate.step_ns;
    if (steps.temporal) s.temporal = clamp(std::log(0.3 / age), kLateMin, kLateMax);
    s.words = words_term(t);
    if (t.shape.advice) s.words = kAdvice;
    if (steps.shapes && !t.shape.advice) s.shape = shape_term(t);
    if (t.progress || (t.shape.well && t.shape.words < 2)) s.words = kAdvice;
    a.templates.push_back(std::move(s));
  }
}

Analysis analyse(const View& view, const Pool& pool, const Steps& steps) {
  Analysis a;
  a.fate = find_fate(view);
  score_templates(view, pool, steps, a);
  if (steps.spatial) add_spatial(view, pool, a);
  if (steps.temporal) find_odd_iterations(view, a);
  for (TemplateScore& s : a.templates) {
    const double logit = kPrior + s.cross_job + s.temporal + s.words + s.shape + s.spatial;
    s.score = 1 / (1 + std::exp(-logit));
  }
  std::stable_sort(a.templates.begin(), a.templates.end(), [](const TemplateScore& x, const TemplateScore& y) {
    return x.score > y.score || (x.score == y.score && x.first_ns < y.first_ns);
  });
  if (steps.silence) find_silent(view, a);
  score_hosts(view, steps, a);
  return a;
}

}  // namespace culprit::detect
