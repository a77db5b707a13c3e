// Alerts and maintenance windows over the API.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"
#include "base/text.h"
#include "respond/notice.h"

namespace culprit::app {
namespace {

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json window_json(const alert::Window& w, TimeNs now) {
  const char* state = w.ended ? "ended" : w.over(now) ? "over" : w.open(now) ? "open" : "to come";
  return {{"id", w.id},
          {"state", state},
          {"hosts", text_or_null(w.hosts)},
          {"jobs", text_or_null(w.jobs)},
          {"from_ns", time_or_null(w.from_ns)},
          {"until_ns", time_or_null(w.until_ns)},
          {"reason", w.reason},
          {"by", w.by},
          {"held", w.held}};
}

using Waiting = std::set<std::pair<std::string, std::string>>;  // receivers and issues

Waiting waiting_of(const respond::Outbox& outbox) {
  Waiting out;
  for (const auto& [receiver, line] : outbox.lines())
    for (const alert::Message& m : line.waiting) out.emplace(receiver, m.issue);
  return out;
}

const char* word_of(const alert::Delivery& d, bool waits) {
  if (d.state == alert::Delivery::State::kHeld) return "held";
  if (d.state == alert::Delivery::State::kSilent) return "silent";
  return waits ? "waiting" : d.dropped ? "dropped" : "sent";
}

json issue_json(const alert::Issue& i, const Waiting& waiting) {
  json deliveries = json::object();
  for (const auto& [receiver, d] : i.deliveries)
    deliveries[receiver] = word_of(d, waiting.contains({receiver, i.key}));
  return {{"key", i.key},
          {"state", i.firing() ? "firing" : "resolved"},
          {"job", i.fault.job.empty() ? json(nullptr) : json(i.fault.job)},
          {"run", i.fault.run},
          {"decision", text_or_null(i.fault.decision)},
          {"answer_by_ns", time_or_null(i.fault.answer_by_ns)},
          {"diagnosis", i.fault.diagnosis.empty() ? json(nullptr) : json(i.fault.diagnosis)},
          {"title", i.fault.title},
          {"severity", alert::to_string(i.severity)},
          {"where", text_or_null(alert::where_of(i.fault))},
          {"owner", text_or_null(i.fault.user)},
          {"again", text_or_null(i.fault.again)},
          {"failed_attempts", i.fault.failed_attempts},
          {"acknowledged_by", text_or_null(i.handling.acknowledged_by)},
          {"acknowledged_ns", time_or_null(i.handling.acknowledged_ns)},
          {"silenced_by", text_or_null(i.handling.silenced_by)},
          {"silent_until_ns", time_or_null(i.handling.silent_until_ns)},
          {"confidence", i.fault.confidence},
          {"revision", i.revision},
          {"since_ns", time_or_null(i.fired_ns)},
          {"changed_ns", time_or_null(i.changed_ns)},
          {"resolved_ns", time_or_null(i.resolved_ns)},
          {"end", i.firing() ? json(nullptr) : json(alert::end_of(i))},
          {"receivers", std::move(deliveries)}};
}

json receivers_json(const AlertService& alerts) {
  json out = json::array();
  const auto add = [&](const std::string& name, const char* type) {
    const auto at = alerts.outbox().lines().find(name);
    const respond::Outbox::Line none;
    const respond::Outbox::Line& line = at == alerts.outbox().lines().end() ? none : at->second;
    out.push_back({{"name", name},
                   {"type", type},
                   {"waiting", line.waiting.size()},
                   {"sent", line.counts.sent},
                   {"failed", line.counts.failed},
                   {"dropped", line.counts.dropped},
                   {"sent_ns", time_or_null(line.sent_ns)},
                   {"failing_since_ns", time_or_null(line.failing_ns)},
                   {"next_ns", time_or_null(line.next_ns)},
                   {"trouble", line.trouble.empty() ? json(nullptr) : json(line.trouble)}});
  };
  constexpr const char* kTypes[] = {"webhook", "alertmanager", "mail"};
  for (const AlertConfig& a : alerts.config().alert) add(a.name, kTypes[static_cast<size_t>(a.type)]);
  if (!alerts.config().otlp.endpoint.empty()) add(kOtlpReceiver, "otlp");
  return out;
}

}  // namespace

json alert_status(const AlertService& alerts) {
  uint64_t held = 0, silent = 0;
  for (const alert::Issue* issue : alerts.book().firing())
    for (const auto& [receiver, d] : issue->deliveries) {
      held += d.state == alert::Delivery::State::kHeld;
      silent += d.state == alert::Delivery::State::kSilent;
    }
  return {{"firing", alerts.book().firing().size()},
          {"held_by_storms", held},
          {"held_silent", silent},
          {"waiting", alerts.outbox().pending()},
          {"receivers", receivers_json(alerts)},
          {"troubles", alerts.troubles()}};
}

void DaemonApi::alerts(const serve::AlertQuery& query, Answer answer) {
  if (!parts_.alerts) return ApiSource::alerts(query, std::move(answer));
  std::vector<const alert::Issue*> issues;
  for (const auto& [key, issue] : parts_.alerts->book().issues())
    if ((!query.key || key == *query.key) && (!query.job || issue.fault.job == *query.job) &&
        (!query.run || issue.fault.run == *query.run))
      issues.push_back(&issue);
  std::ranges::sort(issues, [](const alert::Issue* a, const alert::Issue* b) {
    return std::pair(b->firing(), b->changed_ns) < std::pair(a->firing(), a->changed_ns);
  });
  const Waiting waiting = waiting_of(parts_.alerts->outbox());
  json items = json::array();
  constexpr size_t kShown = 1000;
  for (const alert::Issue* issue : issues)
    if (items.size() < kShown) items.push_back(issue_json(*issue, waiting));
  answer(dump({{"items", std::move(items)}, {"receivers", receivers_json(*parts_.alerts)}}));
}

void DaemonApi::mark_alerts(json& items) const {
  if (!parts_.alerts) return;
  std::map<std::pair<std::string, uint32_t>, const alert::Issue*> firing;
  for (const alert::Issue* issue : parts_.alerts->book().firing())
    if (issue->storm.empty() && issue->fault.decision.empty())
      firing[{issue->fault.job, issue->fault.run}] = issue;
  for (json& item : items) {
    const auto at = firing.find({item.value("id", ""), item.value("run", 0u)});
    if (at == firing.end()) continue;
    const alert::Handling& h = at->second->handling;
    item["alert"] = {{"key", at->second->key},
                     {"acknowledged_by", text_or_null(h.acknowledged_by)},
                     {"silent_until_ns", time_or_null(h.silent_until_ns)}};
  }
}

// A person who repaired the fault repaired its hosts: earlier findings about them no longer count.
void DaemonApi::handle_alert(const serve::AlertOrder& order, const serve::Actor& by, Answer answer) {
  if (!parts_.alerts) return ApiSource::handle_alert(order, by, std::move(answer));
  using What = serve::AlertOrder::What;
  const std::string name = who(by);
  AlertService& alerts = *parts_.alerts;
  const auto done = order.what == What::kAcknowledge ? alerts.acknowledge(order.key, name)
                    : order.what == What::kSilence   ? alerts.silence(order.key, order.for_ns, name)
                                                     : alerts.repaired(order.key, name);
  if (!done) return answer(tl::unexpected(done.error()));
  const char* what = order.what == What::kAcknowledge ? "alert acknowledged"
                     : order.what == What::kSilence   ? "alert silenced"
                                                      : "alert repaired";
  const std::string shown = dump(issue_json(*done, waiting_of(alerts.outbox())));
  const records::AuditRow row{env_.now(io::Clock::kWall), name, what, order.key, shown};
  parts_.recorder->record([row](records::Records& index) { return index.add_audit(row); });
  if (parts_.inform)
    parts_.inform(fmt::format("{}: {} by {}, job {}", what, order.key, to_terminal(name),
                              to_terminal(done->fault.job)));
  const bool of_hosts = done->fault.category == "hardware" || done->fault.category == "platform";
  if (order.what == What::kRepaired && of_hosts)
    for (const std::string& host : done->fault.hosts)
      hold_nothing(parts_, env_.now(io::Clock::kWall), host, by, [](const Result<std::string>&) {});
  answer(shown);
}

void DaemonApi::maintenance(Answer answer) {
  if (!parts_.alerts) return ApiSource::maintenance(std::move(answer));
  json items = json::array();
  const TimeNs now = env_.now(io::Clock::kWall);
  const auto& windows = parts_.alerts->book().windows();
  for (auto at = windows.rbegin(); at != windows.rend(); ++at) items.push_back(window_json(at->second, now));
  answer(dump({{"items", std::move(items)}}));
}

void DaemonApi::audit(const char* what, const alert::Window& w) {
  const records::AuditRow row{env_.now(io::Clock::kWall), w.by, what, std::to_string(w.id), to_json(w)};
  parts_.recorder->record([row](records::Records& index) { return index.add_audit(row); });
}

void DaemonApi::add_maintenance(const std::string& body, const serve::Actor& by, Answer answer) {
  if (!parts_.alerts) return ApiSource::add_maintenance(body, by, std::move(answer));
  auto window = alert::window_from_json(body);
  if (!window) return answer(fail(ErrorCode::kInvalid, "the body: " + window.error().text));
  const TimeNs now = env_.now(io::Clock::kWall);
  if (window->from_ns == kNoTime) window->from_ns = now;
  window->by = who(by);
  const auto added = parts_.alerts->add_window(std::move(*window));
  if (!added) return answer(tl::unexpected(added.error()));
  audit("maintenance", *added);
  if (parts_.inform)
    parts_.inform(fmt::format("maintenance window {} by {}: hosts {}, jobs {}, until {}: {}", added->id,
                              added->by, added->hosts.empty() ? "any" : to_terminal(added->hosts),
                              added->jobs.empty() ? "any" : to_terminal(added->jobs),
                              format_time(added->until_ns), to_terminal(added->reason)));
  answer(dump(window_json(*added, now)));
}

void DaemonApi::end_maintenance(int64_t id, const serve::Actor& by, Answer answer) {
  if (!parts_.alerts) return ApiSource::end_maintenance(id, by, std::move(answer));
  const auto ended = parts_.alerts->end_window(id);
  if (!ended) return answer(tl::unexpected(ended.error()));
  alert::Window seen = *ended;
  seen.by = who(by);
  audit("maintenance end", seen);
  if (parts_.inform) parts_.inform(fmt::format("maintenance window {} is ended by {}", id, who(by)));
  answer(dump(window_json(*ended, env_.now(io::Clock::kWall))));
}

void DaemonApi::test_alert(const std::string& receiver, const serve::Actor& by, Answer answer) {
  if (!parts_.alerts) return ApiSource::test_alert(receiver, by, std::move(answer));
  if (parts_.inform) parts_.inform("a test of alerts is asked for by " + who(by));
  parts_.alerts->test(
      receiver, [answer = std::move(answer)](Result<std::vector<AlertService::Tested>> results) {
        if (!results) return answer(tl::unexpected(results.error()));
        json items = json::array();
        for (const AlertService::Tested& one : *results)
          items.push_back({{"receiver", one.receiver}, {"sent", one.sent}, {"answer", one.sentence}});
        answer(dump({{"items", std::move(items)}}));
      });
}

}  // namespace culprit::app
