#include "app/daemon/api/recovery_metrics.h"

#include <set>
#include <vector>

#include "base/text.h"
#include "model/recovery_json.h"

namespace culprit::app {
namespace {

using recover::CostBook;

double amount(uint64_t n) { return static_cast<double>(n); }

void times_taken(serve::MetricsText& m, const char* name, const char* help,
                 const recover::CostHistogram& times) {
  m.histogram(name, help)
      .value(serve::MetricsText::Histogram{recover::kCostBounds, times.counts, times.sum_s});
}

void about_trouble(serve::MetricsText& m, bool is_in_trouble) {
  m.gauge("culprit_recovery_trouble", "1 while the controller can do nothing, else 0.")
      .value(is_in_trouble ? 1 : 0);
}

void about_state(serve::MetricsText& m, const RecoveryService& service, TimeNs now) {
  const recover::Controller& controller = service.controller();
  const recover::Guard& guard = controller.guard();
  m.gauge("culprit_recovery_mode", "1 for the controller's mode: observe, ask, act.")
      .value(1, {{"mode", recover::to_string(guard.options().mode)}});
  const auto trouble = service.trouble();
  about_trouble(m, trouble && trouble->is_fault());
  m.gauge("culprit_recovery_breaker_open", "1 while a limit on isolations is reached, else 0.")
      .value(guard.breaker(now) ? 1 : 0);
  m.gauge("culprit_recovery_hosts_isolated", "Hosts that the controller took out.").value(guard.at_once());
  if (const auto& spares = service.counts().spares)
    m.gauge("culprit_recovery_spares", "Hosts in the scheduler's pool of spares.").value(*spares);
  m.gauge("culprit_recovery_open_questions", "Questions that wait for a person.")
      .value(amount(service.questions().open().size()));
  std::map<std::string_view, uint64_t> states;
  for (const std::string& key : controller.jobs())
    if (const auto view = controller.view(key)) ++states[recover::to_string(view->state)];
  m.gauge("culprit_recovery_jobs", "Jobs of the scheduler, by their state under the controller.");
  for (const auto& [state, n] : states) m.value(amount(n), {{"state", state}});
}

void about_deeds(serve::MetricsText& m, const RecoveryCounts& counts) {
  m.counter("culprit_recovery_decisions_total",
            "Sentences of the audit, by what they are about: decided, would-do, refused, held, …");
  for (const auto& [kind, n] : counts.notes) m.value(amount(n), {{"result", kind}});
  m.counter("culprit_recovery_questions_total", "Questions that ended, by how.");
  for (const auto& [end, n] : counts.questions) m.value(amount(n), {{"end", question_end(end)}});
  m.counter("culprit_recovery_actions_total", "Actions that reached a state, by kind.");
  for (const auto& [what, n] : counts.actions)
    m.value(amount(n), {{"kind", word_of(what.first)}, {"state", word_of(what.second)}});
}

}  // namespace

void about_recovery(serve::MetricsText& m, const RecoveryService& service, TimeNs now) {
  about_state(m, service, now);
  about_deeds(m, service.counts());
  const CostBook& book = service.cost();
  const recover::Cost& cost = book.total();
  m.gauge("culprit_recovery_attempts", "Attempts of jobs in the ledger.").value(amount(cost.attempts));
  m.gauge("culprit_recovery_failures", "Those that failed.").value(amount(cost.failures));
  m.gauge("culprit_recovery_wall_seconds", "Time of all jobs in the ledger.").value(cost.wall_s);
  m.gauge("culprit_recovery_productive_seconds", "The part of it that trained, and was not done again.")
      .value(cost.productive_s);
  m.gauge("culprit_recovery_ettr_ratio", "Effective training time: productive by all time, 0 to 1.");
  if (cost.wall_s > 0) m.value(cost.ettr());  // without data there is no share
  m.gauge("culprit_recovery_lost_seconds", "Time lost to failures, by class of the cause.");
  for (const auto& [cause, seconds] : cost.lost_s)
    m.value(seconds, {{"cause", cause.empty() ? "none" : to_utf8(cause)}});
  times_taken(m, "culprit_recovery_detect_seconds", "Last progress to the verdict.", book.detect());
  times_taken(m, "culprit_recovery_decide_seconds", "Verdict to decision.", book.decide());
  times_taken(m, "culprit_recovery_again_seconds", "Decision to the next attempt's first step.",
              book.again());
}

void about_stopped_recovery(serve::MetricsText& m) { about_trouble(m, true); }

std::string recovery_job_metrics(const RecoveryService& service, size_t most,
                                 const std::function<bool(const std::string& job)>& keep) {
  struct Row {
    std::string id;
    CostBook::JobCost of;
  };
  std::vector<Row> rows;
  std::set<std::string> ids;
  for (CostBook::JobCost& one : service.cost().newest(most)) {
    const std::string id = to_utf8(service.verdicts().name_of(one.job.id));
    if (keep(id) && ids.insert(id).second) rows.push_back({id, std::move(one)});
  }
  serve::MetricsText m;
  const auto each = [&](const char* name, const char* help, auto value) {
    m.gauge(name, help);
    for (const Row& row : rows) m.value(value(row.of.cost), {{"job_id", row.id}});
  };
  m.gauge("culprit_recovery_job_ettr_ratio", "Effective training time of the job over its attempts, 0 to 1.");
  for (const Row& row : rows)
    if (row.of.cost.wall_s > 0) m.value(row.of.cost.ettr(), {{"job_id", row.id}});
  each("culprit_recovery_job_attempts", "Attempts of the job.",
       [](const recover::Cost& c) { return amount(c.attempts); });
  each("culprit_recovery_job_lost_seconds", "Time that the job lost to failures.",
       [](const recover::Cost& c) {
         double out = 0;
         for (const auto& [cause, seconds] : c.lost_s) out += seconds;
         return out;
       });
  return m.finish();
}

}  // namespace culprit::app
