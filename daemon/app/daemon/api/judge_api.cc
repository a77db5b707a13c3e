// API for what a person says of a diagnosis. In a cluster also of one that another member published.
#include <optional>
#include <utility>

#include "app/daemon/api/api_json.h"
#include "app/daemon/api/daemon_api.h"
#include "model/report_json_read.h"
#include "store/postgres/report_store.h"

namespace culprit::app {
namespace {

// The kind of the diagnosis in a published report; nothing: it has none of this id.
std::optional<std::string> published_kind(const std::string& packed, const std::string& id) {
  const auto text = store::postgres::unpack_report(packed);
  if (!text) return std::nullopt;
  const auto report = report_from_json(*text);
  if (!report) return std::nullopt;
  for (const Diagnosis& d : report->diagnoses)
    if (d.id == id) return kind_of(d);
  return std::nullopt;
}

}  // namespace

// What this member answers of another's job is what that one published, so the id is of its run.
void DaemonApi::judge(const serve::Judgement& judgement, const serve::Actor& by, Answer answer) {
  const auto outcome = std::make_shared<Result<records::JudgedRun>>(records::JudgedRun());
  records::Judgement j{judgement.of.job,           judgement.id,  judgement.of.run, judgement.right, who(by),
                       env_.now(io::Clock::kWall), judgement.rule};
  SharedJudgements* shared = parts_.judgements;
  j.share = shared != nullptr;
  auto published = shared ? shared->published(j.job, j.run) : std::nullopt;
  parts_.recorder->query(
      [outcome, j, published = std::move(published)](store::Spool&, records::Records& index) mutable {
        if (published) {
          if (auto kind = published_kind(published->packed, j.id)) {
            j.seen = std::move(published->seen);
            j.seen->kind = std::move(*kind);
          }
        }
        *outcome = index.judge(j);
      },
      [this, shared, outcome, j, answer = std::move(answer)] {
        if (!*outcome) return answer(tl::unexpected(outcome->error()));
        const records::JudgedRun& run = **outcome;
        if (parts_.engine && run.run)
          parts_.engine->change([word = LiveJobs::Judgement{j.job, run.id, *run.run, j.right}](
                                    std::span<LiveJobs* const> all, TimeNs now) {
            for (LiveJobs* live : all) live->judge(word, now);
          });
        if (parts_.verdicts && run.run) parts_.verdicts->look_at(j.job, *run.run);
        json out = {{"job", j.job}, {"id", j.id}, {j.right ? "confirmed" : "refuted", {{"by", j.by}}}};
        if (shared) {
          shared->judged();
          out["shared"] = shared->trouble().empty();
        }
        answer(dump(out));
      });
}

}  // namespace culprit::app
