#include "app/daemon/api/job_metrics.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "serve/metrics.h"

namespace culprit::app {
namespace {

// Time for which an ended job's last state is shown, long enough for any scraper.
constexpr TimeNs kEndedShown = 3600 * kNsPerSecond;

bool is_over(const JobCounters& job) {
  return job.state == FigureState::kEnded || job.state == FigureState::kFailed;
}

// 0 comes first.
int rank_of(const JobCounters& job) {
  if (!is_over(job) && job.verdict) return 0;
  if (job.state == FigureState::kHangs) return 1;
  if (job.state == FigureState::kFailed || job.verdict) return 2;
  if (job.state == FigureState::kRunning) return 3;
  return job.state == FigureState::kNoEngine ? 4 : 5;
}

// Returns the number of jobs left out. Names that are equal as UTF-8 would be one series twice.
size_t choose_jobs(std::vector<JobCounters>& jobs, const JobMetricsLimits& limits) {
  std::erase_if(jobs, [&](const JobCounters& job) {
    return is_over(job) && job.last_ns != kNoTime && limits.now - job.last_ns > kEndedShown;
  });
  std::stable_sort(jobs.begin(), jobs.end(), [](const JobCounters& a, const JobCounters& b) {
    const int left = rank_of(a), right = rank_of(b);
    return left != right ? left < right : a.first_ns > b.first_ns;
  });
  const size_t all = jobs.size();
  std::set<std::string> names;
  std::erase_if(jobs, [&](JobCounters& job) {
    job.id = to_utf8(job.id);
    return names.size() >= limits.jobs_max || !names.insert(job.id).second;
  });
  return all - jobs.size();
}

class JobMetricsWriter {
 public:
  explicit JobMetricsWriter(const std::vector<JobCounters>& jobs) : jobs_(jobs) {}

  std::string run(size_t left_out, TimeNs age_ns) {
    m_.gauge("culprit_jobs_left_out", "Jobs without metrics: more than http.metrics_jobs.")
        .value(static_cast<double>(left_out));
    m_.gauge("culprit_jobs_age_seconds", "Age of the metrics of jobs: above 0 while the engine is busy.")
        .value(seconds(age_ns));
    states();
    times();
    sizes();
    verdicts();
    return m_.finish();
  }

 private:
  static double seconds(TimeNs ns) { return static_cast<double>(ns) / 1e9; }

  // Writes a value for each job that has one.
  template <class Value>
  void gauge(std::string_view name, std::string_view help, const Value& value) {
    m_.gauge(name, help);
    for (const JobCounters& job : jobs_)
      if (const std::optional<double> x = value(job)) m_.value(*x, {{"job_id", job.id}});
  }
  void time(std::string_view name, std::string_view help, TimeNs JobCounters::*member) {
    gauge(name, help, [&](const JobCounters& job) {
      return job.*member == kNoTime ? std::nullopt : std::optional(seconds(job.*member));
    });
  }
  static std::optional<double> known(uint64_t count) {
    return count == 0 ? std::nullopt : std::optional(static_cast<double>(count));
  }

  void states() {
    m_.gauge("culprit_job_state",
             "1 for the job's state: running, hangs, ended, failed, no_engine (evidence only).");
    for (const JobCounters& job : jobs_) m_.value(1, {{"job_id", job.id}, {"state", to_string(job.state)}});
    gauge("culprit_job_run", "Number of the job's run, from 0.",
          [](const JobCounters& job) { return std::optional(static_cast<double>(job.run)); });
  }

  void times() {
    time("culprit_job_start_time_seconds", "When the first data of the run came.", &JobCounters::first_ns);
    time("culprit_job_last_data_time_seconds", "When the last data of the run came.", &JobCounters::last_ns);
    time("culprit_job_last_progress_time_seconds",
         "When the job last made progress: a step, or the end of a phase.", &JobCounters::progressed_ns);
    gauge("culprit_job_effective_time_ratio",
          "Effective training time ratio: the share of the run's time that its steps take at their median "
          "pace. Stops, the way to the first step and steps done again after a restart are lost time. Absent "
          "below 10 steps, and where steps have no times.",
          [](const JobCounters& job) { return job.effective_time; });
  }

  void sizes() {
    gauge("culprit_job_step", "The highest step or iteration that the job reached.",
          [](const JobCounters& job) {
            return job.step ? std::optional(static_cast<double>(*job.step)) : std::nullopt;
          });
    gauge("culprit_job_hosts", "Hosts of the job.", [](const JobCounters& job) { return known(job.hosts); });
    gauge("culprit_job_ranks", "Ranks of the job.", [](const JobCounters& job) { return known(job.ranks); });
  }

  void verdicts() {
    m_.gauge("culprit_job_verdict_info", "1 while a verdict on the job stands that no person refuted.");
    for (const JobCounters& job : jobs_)
      if (const auto& v = job.verdict)
        m_.value(1, {{"job_id", job.id},
                     {"category", to_string(v->category)},
                     {"component", to_string(v->component)},
                     {"symptom", to_string(v->symptom)},
                     {"action", to_string(v->action)}});
    gauge("culprit_job_verdict_confidence_ratio", "Confidence of the verdict, 0 to 1.",
          [](const JobCounters& job) {
            return job.verdict ? std::optional(job.verdict->confidence) : std::nullopt;
          });
    gauge("culprit_job_suspects", "Hosts that the verdict names; 0 without a verdict.",
          [](const JobCounters& job) -> std::optional<double> {
            if (job.state == FigureState::kNoEngine) return std::nullopt;
            return job.verdict ? static_cast<double>(job.verdict->suspects) : 0.0;
          });
  }

  const std::vector<JobCounters>& jobs_;
  serve::MetricsText m_;
};

}  // namespace

std::string job_metrics_text(std::vector<JobCounters> jobs, const JobMetricsLimits& limits) {
  const size_t left_out = choose_jobs(jobs, limits);
  return JobMetricsWriter(jobs).run(left_out, limits.age_ns);
}

}  // namespace culprit::app
