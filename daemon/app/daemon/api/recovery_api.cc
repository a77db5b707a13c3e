#include "app/daemon/api/recovery_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "app/daemon/api/daemon_api.h"
#include "core/recover/cost.h"
#include "model/recovery_json.h"

namespace culprit::app {
namespace {

void write_job(JsonWriter& w, const recover::JobView& view) {
  w.field("job", view.job.id);
  w.field("key", view.key);
  w.field("scheduler", view.job.scheduler);
  w.field("attempt", view.attempt);
  w.field("state", recover::to_string(view.state));
  w.time("since_ns", view.since_ns);
  w.time("limit_ns", view.limit_ns);
  w.text_or_null("decision", view.decision);
  w.field("asks", view.asks);
  w.text_or_null("root", view.root);
  w.text_or_null("why", view.why);
  w.field("cause", recover::to_string(view.fault));
  w.field("machine", recover::to_string(view.machine));
  w.field("restart", to_string(view.advice.kind));
  w.values("hosts", view.hosts);
  w.values("excluded", view.excluded);
}

void write_quantiles(JsonWriter& w, const char* name, const recover::Quantiles& q) {
  w.member(name, [&] {
    w.object([&] {
      w.field("count", q.count);
      w.field("median_s", q.median_s);
      w.field("p90_s", q.p90_s);
      w.field("most_s", q.most_s);
    });
  });
}

std::string cost_json(const recover::Cost& cost) {
  JsonWriter w;
  w.object([&] {
    w.field("jobs", cost.jobs);
    w.field("attempts", cost.attempts);
    w.field("failures", cost.failures);
    w.field("wall_s", cost.wall_s);
    w.field("productive_s", cost.productive_s);
    w.field("ettr", cost.ettr());
    w.list("lost", cost.lost_s, [&](const auto& lost) {
      w.object([&] {
        w.text_or_null("cause", lost.first);
        w.field("seconds", lost.second);
      });
    });
    write_quantiles(w, "detect", cost.detect);
    write_quantiles(w, "decide", cost.decide);
    write_quantiles(w, "again", cost.again);
  });
  return w.finish();
}

// The rows of a table, read on the ledger's worker.
template <class Read>
void answer_from(RecoveryService& service, serve::RecoverySource::Answer answer, Read read) {
  const auto text = std::make_shared<Result<std::string>>(std::string());
  service.query([text, read = std::move(read)](store::RecoveryStore& store) { *text = read(store); },
                [text, answer = std::move(answer)] { answer(*text); });
}

}  // namespace

void RecoveryApi::overview(Answer answer) {
  const recover::Controller& controller = service_.controller();
  const TimeNs now = env_.now(io::Clock::kWall);
  JsonWriter w;
  w.object([&] {
    w.field("mode", recover::to_string(controller.guard().options().mode));
    w.text_or_null("trouble", service_.trouble().value_or(""));
    const auto breaker = controller.guard().breaker(now);
    w.text_or_null("breaker", breaker ? breaker->why : "");
    w.field("isolated", controller.guard().at_once());
    w.list("items", controller.jobs(), [&](const std::string& key) {
      w.object([&] {
        if (const auto view = controller.view(key)) write_job(w, *view);
      });
    });
  });
  answer(w.finish());
}

void RecoveryApi::decision(const std::string& job, Answer answer) {
  const std::string key = service_.key_of_job(job);
  const auto view = service_.controller().view(key);
  if (!view) return answer(fail(ErrorCode::kNotFound, fmt::format("the controller knows no job {}", job)));
  const auto attempts_and_notes = [key, view = *view, why = service_.controller().explain(key),
                                   actions = service_.controller().actions().of(view->decision).size()](
                                      store::RecoveryStore& store) -> Result<std::string> {
    auto notes = store.notes({key, "", 200});
    auto rows = store.load();
    if (!notes) return tl::unexpected(notes.error());
    if (!rows) return tl::unexpected(rows.error());
    std::erase_if(rows->actions,
                  [&](const ActionRecord& row) { return recover::key_of(row.order.job) != key; });
    std::erase_if(rows->attempts, [&](const AttemptRecord& row) { return recover::key_of(row.job) != key; });
    JsonWriter w;
    w.object([&] {
      write_job(w, view);
      w.values("explanation", why);
      w.list("actions", rows->actions, [&](const ActionRecord& row) { write(w, row); });
      w.list("attempts", rows->attempts, [&](const AttemptRecord& row) { write(w, row); });
      w.list("notes", *notes, [&](const store::RecoveryNote& note) {
        w.object([&] {
          w.time("time_ns", note.time_ns);
          w.field("kind", note.kind);
          w.text_or_null("decision", note.decision);
          w.field("text", note.text);
        });
      });
    });
    return w.finish();
  };
  answer_from(service_, std::move(answer), attempts_and_notes);
}

void RecoveryApi::machines(Answer answer) {
  answer_from(service_, std::move(answer), [](store::RecoveryStore& store) -> Result<std::string> {
    const auto rows = store.load();
    if (!rows) return tl::unexpected(rows.error());
    JsonWriter w;
    w.object([&] { w.list("items", rows->machines, [&](const MachineRecord& row) { write(w, row); }); });
    return w.finish();
  });
}

void RecoveryApi::cost(Answer answer) {
  answer_from(service_, std::move(answer), [](store::RecoveryStore& store) -> Result<std::string> {
    const auto rows = store.load();
    if (!rows) return tl::unexpected(rows.error());
    return cost_json(recover::cost_of(rows->attempts));
  });
}

void RecoveryApi::order(const serve::RecoveryOrder& order, const serve::Actor& by, Answer answer) {
  using What = serve::RecoveryOrder::What;
  const std::string name = who(by);
  constexpr const char* kWords[] = {"decision approved", "decision declined", "isolation undone",
                                    "breaker reset"};
  const char* word = kWords[static_cast<size_t>(order.what)];
  const recover::Controller& controller = service_.controller();
  const bool answers = order.what == What::kApprove || order.what == What::kDecline;
  const auto asks = [&](const std::string& key) {
    const auto view = controller.view(key);
    return view && view->asks && view->decision == order.id;
  };
  if (answers && std::ranges::none_of(controller.jobs(), asks))
    return answer(fail(ErrorCode::kNotFound, fmt::format("no question is open for {}", order.id)));
  if (order.what == What::kUndo) {
    if (const Status done = service_.undo(order.id, name); !done) return answer(tl::unexpected(done.error()));
  } else if (order.what == What::kReset) {
    service_.reset_breaker(name);
  } else {
    service_.answer(order.id, order.what == What::kApprove, name);
  }
  const records::AuditRow row{env_.now(io::Clock::kWall), name, word, order.id, "{}"};
  recorder_.record([row](records::Records& index) { return index.add_audit(row); });
  JsonWriter w;
  w.object([&] {
    w.field("done", word);
    w.field("id", order.id);
  });
  answer(w.finish());
}

}  // namespace culprit::app
