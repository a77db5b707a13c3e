// Metrics of alerts, with one label: the receiver.
#include "app/daemon/alerts/alert_metrics.h"

namespace culprit::app {
namespace {

double figure(uint64_t n) { return static_cast<double>(n); }

}  // namespace

void about_alerts(serve::MetricsText& m, const AlertService& alerts) {
  const alert::AlertBook::Counts& c = alerts.book().counts();
  m.gauge("culprit_alerts_firing", "Issues that fire, storms among them.")
      .value(figure(alerts.book().firing().size()));
  m.counter("culprit_alerts_issues_total", "Issues that began to fire.").value(figure(c.issues));
  m.counter("culprit_alerts_held_total", "Alerts that were not sent at once, by receiver and issue.")
      .value(figure(c.silenced), {{"for", "maintenance"}})
      .value(figure(c.held), {{"for", "storm"}});
  m.counter("culprit_alerts_refused_total", "Issues beyond the limit that are not followed.")
      .value(figure(c.refused));
  m.counter("culprit_alerts_resent_total", "Standing alerts that an Alertmanager got again.")
      .value(figure(alerts.counters().resent));
  m.counter("culprit_alerts_store_failures_total", "Writes of alerts to the disk that failed.")
      .value(figure(alerts.counters().store_failed));
  m.counter("culprit_alerts_without_receiver_total", "Messages dropped because their receiver was removed.")
      .value(figure(alerts.outbox().dropped_without_receiver()));
  const auto& lines = alerts.outbox().lines();
  if (lines.empty()) return;
  using Line = respond::Outbox::Line;
  const auto each = [&](serve::MetricsText& family, auto value) {
    for (const auto& [receiver, line] : lines) family.value(value(line), {{"receiver", receiver}});
  };
  each(m.counter("culprit_alerts_sent_total", "Messages that the receiver took."),
       [](const Line& l) { return figure(l.counts.sent); });
  each(m.counter("culprit_alerts_failed_total", "Attempts that failed."),
       [](const Line& l) { return figure(l.counts.failed); });
  each(m.counter("culprit_alerts_dropped_total", "Messages that were given up."),
       [](const Line& l) { return figure(l.counts.dropped); });
  each(m.gauge("culprit_alerts_pending", "Messages that wait for the receiver."),
       [](const Line& l) { return figure(l.waiting.size()); });
  each(m.gauge("culprit_alerts_failing_since_seconds",
               "Since when the receiver takes nothing; 0: it takes them."),
       [](const Line& l) { return l.failing_ns == kNoTime ? 0 : static_cast<double>(l.failing_ns) / 1e9; });
}

}  // namespace culprit::app
