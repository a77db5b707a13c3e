#include "app/daemon/api/recovery_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "app/daemon/api/daemon_api.h"
#include "app/daemon/recover/controller_options.h"
#include "base/text.h"
#include "core/recover/cost.h"
#include "model/recovery_json.h"

namespace culprit::app {
namespace {

// Rows of an answer, the newest ones.
constexpr size_t kShownMachines = 5000, kShownActions = 200, kShownNotes = 200, kShownAttempts = 1000;
constexpr size_t kShownEvidence = 5, kShownEvidenceBytes = 500;  // lines behind a decision

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

void write_cost(JsonWriter& w, const recover::Cost& cost) {
  w.field("jobs", cost.jobs);
  w.field("attempts", cost.attempts);
  w.field("failures", cost.failures);
  w.field("wall_s", cost.wall_s);
  w.field("productive_s", cost.productive_s);
  if (cost.wall_s > 0) w.field("ettr", cost.ettr());  // without data there is no share
  w.list("lost", cost.lost_s, [&](const auto& lost) {
    w.object([&] {
      w.text_or_null("cause", lost.first);
      w.field("seconds", lost.second);
    });
  });
}

std::string cost_json(const recover::Cost& cost, const std::vector<recover::CostBook::JobCost>& jobs) {
  JsonWriter w;
  w.object([&] {
    write_cost(w, cost);
    write_quantiles(w, "detect", cost.detect);
    write_quantiles(w, "decide", cost.decide);
    write_quantiles(w, "again", cost.again);
    w.list("items", jobs, [&](const recover::CostBook::JobCost& one) {
      w.object([&] {
        w.field("job", one.job.id);
        w.field("scheduler", one.job.scheduler);
        w.time("last_ns", one.last_ns);
        write_cost(w, one.cost);
      });
    });
  });
  return w.finish();
}

void write_order(JsonWriter& w, const ActionOrder& order) {
  w.object([&] {
    w.field("kind", word_of(order.kind));
    w.field("target", order.target);
    w.values("excluded", order.excluded);
    w.field("code", order.code);
    w.field("reason", order.reason);
  });
}

void write_note(JsonWriter& w, const store::RecoveryNote& note) {
  w.object([&] {
    w.time("time_ns", note.time_ns);
    w.field("kind", note.kind);
    w.text_or_null("job", note.job);
    w.text_or_null("decision", note.decision);
    w.field("text", note.text);
    note.order.empty() ? w.null("order") : w.raw("order", note.order);
  });
}

// What speaks for a decision: the verdict, where its report is, and its first lines.
void write_verdict(JsonWriter& w, const RunVerdict* of_run) {
  if (!of_run) return w.null("verdict");
  const Verdict& v = *of_run->verdict;
  std::vector<const Evidence*> lines;
  for (const Evidence& one : v.diagnosis.evidence)
    if (lines.size() < kShownEvidence) lines.push_back(&one);
  w.member("verdict", [&] {
    w.object([&] {
      w.field("job", v.job);
      w.field("run", v.run);
      w.field("id", v.id());
      w.field("title", v.diagnosis.title);
      w.field("headline", v.diagnosis.headline);
      w.field("confidence", v.diagnosis.confidence);
      w.values("why", v.diagnosis.why);
      w.list("evidence", lines, [&](const Evidence* one) {
        w.object([&] {
          w.text_or_null("host", one->host.value_or(""));
          w.field("file", one->file);
          w.field("line", one->line);
          w.field("text", shorten(one->text, kShownEvidenceBytes));
          w.time("time_ns", one->time_ns);
        });
      });
    });
  });
}

void write_questions(JsonWriter& w, const RecoveryService& service) {
  w.list("questions", service.questions().open(), [&](const auto& one) {
    const recover::Question& q = one.second.question;
    const auto view = service.controller().view(q.job);
    w.object([&] {
      w.field("decision", q.decision);
      w.text_or_null("job", view ? view->job.id : "");
      w.field("does", deeds_of(q));
      w.field("text", q.text);
      w.time("asked_ns", one.second.asked_ns);
      w.time("expires_ns", q.expires_ns);
      w.list("orders", q.orders, [&](const ActionOrder& order) { write_order(w, order); });
      write_verdict(w, view ? service.verdicts().of(view->job.id) : nullptr);
    });
  });
  w.list("answered", service.questions().ended(), [&](const EndedQuestion& one) {
    w.object([&] {
      w.field("decision", one.decision);
      w.field("does", one.text);
      w.field("end", question_end(one.end));
      w.text_or_null("by", one.by);
      w.time("time_ns", one.at_ns);
    });
  });
}

// Hosts that are out by the controller, and how often they were.
void write_out(JsonWriter& w, const recover::Controller& controller, TimeNs now) {
  constexpr TimeNs kWindow = 7LL * 24 * 3600 * kNsPerSecond;  // of the policy
  w.list("out", controller.guard().out(), [&](const std::string& host) {
    const MachineRecord* machine = controller.machines().find(host);
    const ActionRecord* action = machine ? controller.actions().find(machine->op) : nullptr;
    w.object([&] {
      w.field("host", host);
      w.text_or_null("op", machine ? machine->op : "");
      w.text_or_null("decision", action ? action->order.decision : "");
      w.text_or_null("root", action ? action->root : "");
      w.text_or_null("by", action ? action->by : "");
      w.time("since_ns", machine ? machine->isolated_ns : kNoTime);
      w.field("isolated", machine ? machine->isolated : 0);
      w.text_or_null("again", controller.machines().again(host, kWindow, now));
    });
  });
}

void write_stages(JsonWriter& w, const recover::GuardOptions& options) {
  const auto write = [&](const std::string& partition, const recover::Stages& stages) {
    w.object([&] {
      w.text_or_null("partition", partition);
      w.field("isolate", stages.isolate);
      w.field("restart", stages.restart);
      w.field("check", stages.check);
      w.field("return", stages.give_back);
    });
  };
  std::map<std::string, recover::Stages> all = options.partitions;
  if (all.empty()) all.emplace("", options.stages);
  w.list("stages", all, [&](const auto& one) { write(one.first, one.second); });
}

void write_trouble(JsonWriter& w, const std::optional<RecoveryTrouble>& trouble) {
  w.text_or_null("trouble", trouble ? trouble->text : "");
  w.time("trouble_since_ns", trouble ? trouble->since_ns : kNoTime);
  w.text_or_null("remedy", trouble ? trouble->remedy : "");
}

std::string with_remedy(const RecoveryTrouble& trouble) {
  return trouble.text + (trouble.remedy.empty() ? "" : fmt::format("; mend: `{}`", trouble.remedy));
}

// Rows of the ledger, read by its reader.
template <class Read>
void answer_from(RecoveryService& service, serve::RecoverySource::Answer answer, Read read) {
  const auto text = std::make_shared<Result<std::string>>(std::string());
  service.read([text, read = std::move(read)](store::RecoveryStore& store) { *text = read(store); },
               [text, answer = std::move(answer)] { answer(*text); });
}

Result<std::string> items_json(const Result<std::vector<std::string>>& rows) {
  if (!rows) return tl::unexpected(rows.error());
  JsonWriter w;
  w.object([&] { w.list("items", *rows, [&](const std::string& row) { w.write_raw(row); }); });
  return w.finish();
}

}  // namespace

void RecoveryApi::overview(Answer answer) {
  const recover::Controller& controller = service_.controller();
  const TimeNs now = env_.now(io::Clock::kWall);
  JsonWriter w;
  w.object([&] {
    w.field("mode", recover::to_string(controller.guard().options().mode));
    write_trouble(w, service_.trouble());
    w.time("view_ns", service_.view_ns());
    const auto breaker = controller.guard().breaker(now);
    w.text_or_null("breaker", breaker ? breaker->why : "");
    w.field("isolated", controller.guard().at_once());
    write_stages(w, controller.guard().options());
    write_questions(w, service_);
    write_out(w, controller, now);
    w.list("items", controller.jobs(), [&](const std::string& key) {
      w.object([&] {
        if (const auto view = controller.view(key)) write_job(w, *view);
      });
    });
  });
  answer(w.finish());
}

// The rows of the job are read by the reader; its actions are in memory, by decision.
void RecoveryApi::decision(const std::string& job, Answer answer) {
  const std::string key = service_.key_of_job(job);
  const auto view = service_.controller().view(key);
  const auto trouble = service_.trouble();
  if (!view)
    return answer(fail(ErrorCode::kNotFound,
                       fmt::format("the controller knows no job {}{}", job,
                                   trouble ? fmt::format("; since {}: {}", format_time(trouble->since_ns),
                                                         with_remedy(*trouble))
                                           : "")));
  struct Rows {
    Result<std::vector<store::RecoveryNote>> notes = std::vector<store::RecoveryNote>();
    Result<std::vector<AttemptRecord>> attempts = std::vector<AttemptRecord>();
  };
  const auto rows = std::make_shared<Rows>();
  service_.read(
      [rows, key, of = view->job](store::RecoveryStore& store) {
        rows->notes = store.notes({key, "", kShownNotes});
        rows->attempts = store.attempts_of(of, kShownAttempts);
      },
      [this, rows, view = *view, answer = std::move(answer)] {
        if (!rows->notes) return answer(tl::unexpected(rows->notes.error()));
        if (!rows->attempts) return answer(tl::unexpected(rows->attempts.error()));
        std::set<std::string> decisions{view.decision};
        for (const AttemptRecord& row : *rows->attempts) decisions.insert(row.decision);
        for (const store::RecoveryNote& row : *rows->notes) decisions.insert(row.decision);
        std::vector<const ActionRecord*> actions;
        for (const std::string& one : decisions)
          for (const ActionRecord* row : service_.controller().actions().of(one))
            if (recover::key_of(row->order.job) == view.key) actions.push_back(row);
        std::ranges::stable_sort(actions, {}, &ActionRecord::reserved_ns);
        JsonWriter w;
        w.object([&] {
          write_job(w, view);
          write_trouble(w, service_.trouble());
          w.values("waits", waits_of(service_, view));
          w.values("explanation", service_.controller().explain(view.key));
          write_verdict(w, service_.verdicts().of(view.job.id));
          w.list("actions", actions, [&](const ActionRecord* row) { write(w, *row); });
          w.list("attempts", *rows->attempts, [&](const AttemptRecord& row) { write(w, row); });
          w.list("notes", *rows->notes, [&](const store::RecoveryNote& note) { write_note(w, note); });
        });
        answer(w.finish());
      });
}

void RecoveryApi::machines(Answer answer) {
  answer_from(service_, std::move(answer),
              [](store::RecoveryStore& store) { return items_json(store.newest_machines(kShownMachines)); });
}

void RecoveryApi::actions(Answer answer) {
  answer_from(service_, std::move(answer),
              [](store::RecoveryStore& store) { return items_json(store.newest_actions(kShownActions)); });
}

void RecoveryApi::notes(const std::string& kind, Answer answer) {
  answer_from(service_, std::move(answer), [kind](store::RecoveryStore& store) -> Result<std::string> {
    const auto rows = store.notes({"", "", kShownNotes, kind});
    if (!rows) return tl::unexpected(rows.error());
    JsonWriter w;
    w.object([&] { w.list("items", *rows, [&](const store::RecoveryNote& note) { write_note(w, note); }); });
    return w.finish();
  });
}

// The sums are kept in memory; quantiles of all single times are the reader's work.
void RecoveryApi::cost(uint32_t jobs, Answer answer) {
  answer_from(service_, std::move(answer),
              [cost = service_.cost().total(), spans = service_.cost().spans(),
               newest = service_.cost().newest(jobs)](store::RecoveryStore&) -> Result<std::string> {
                recover::Cost out = cost;
                recover::add_quantiles(spans, out);
                return cost_json(out, newest);
              });
}

void RecoveryApi::order(const serve::RecoveryOrder& order, const serve::Actor& by, Answer answer) {
  using What = serve::RecoveryOrder::What;
  const std::string name = who(by);
  constexpr const char* kWords[] = {"decision approved", "decision declined", "isolation undone",
                                    "breaker reset", "check begun"};
  const char* word = kWords[static_cast<size_t>(order.what)];
  const bool answers = order.what == What::kApprove || order.what == What::kDecline;
  if (answers && !service_.controller().asks(order.id))
    return answer(fail(ErrorCode::kNotFound, fmt::format("no question is open for {}", order.id)));
  if (order.what == What::kUndo) {
    if (const Status done = service_.undo(order.id, name); !done) return answer(tl::unexpected(done.error()));
  } else if (order.what == What::kCheck) {
    if (const Status done = service_.check(order.id, name); !done)
      return answer(tl::unexpected(done.error()));
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

// ---- a controller that did not start

void StoppedRecoveryApi::overview(Answer answer) {
  const recover::GuardOptions options = controller_options(config_.act).guard;
  JsonWriter w;
  w.object([&] {
    w.field("mode", recover::to_string(options.mode));
    write_trouble(w, trouble_);
    w.null("view_ns");
    w.null("breaker");
    w.field("isolated", 0);
    write_stages(w, options);
    for (const char* empty : {"questions", "answered", "out", "items"})
      w.values(empty, std::vector<std::string>());
  });
  answer(w.finish());
}

void StoppedRecoveryApi::refuse(const Answer& answer) const {
  answer(fail(ErrorCode::kIo, with_remedy(trouble_)));
}

nlohmann::json recovery_status(const RecoveryService* service, const std::optional<RecoveryTrouble>& stopped,
                               ActMode mode) {
  if (!service && !stopped) return nullptr;
  constexpr const char* kModes[] = {"observe", "ask", "act"};
  const auto trouble = service ? service->trouble() : stopped;
  nlohmann::json out = {{"mode", kModes[static_cast<size_t>(mode)]},
                        {"trouble", nullptr},
                        {"trouble_since_ns", nullptr},
                        {"remedy", nullptr}};
  if (trouble) {
    out["trouble"] = trouble->text;
    out["trouble_since_ns"] = trouble->since_ns;
    if (!trouble->remedy.empty()) out["remedy"] = trouble->remedy;
  }
  out["jobs"] = service ? service->controller().jobs().size() : 0;
  out["questions"] = service ? service->questions().open().size() : 0;
  out["isolated"] = service ? service->controller().guard().at_once() : 0;
  return out;
}

}  // namespace culprit::app
