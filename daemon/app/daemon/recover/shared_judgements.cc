#include "app/daemon/recover/shared_judgements.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/clock.h"
#include "store/postgres/judgement_store.h"

namespace culprit::app {
namespace {

using store::postgres::JudgementStore;

constexpr size_t kAppliedAtOnce = 100;   // limit that lets other disk work continue in between
constexpr size_t kNotHereMost = 10'000;  // judgements
constexpr TimeNs kJudgementsPrunedEvery = 24LL * 3600 * kNsPerSecond;

}  // namespace

struct SharedJudgements::Database {
  JudgementStore store;
  TimeNs pruned_ns = kNoTime;
};

// One trip to the database.
struct SharedJudgements::Round {
  Judgements own, others;
  uint64_t refused = 0;
  bool complete = true, is_put = false;
  std::string error;

  Status work(Database& database, TimeNs now) {
    if (const Status put = database.store.put(own); !put) return put;
    is_put = true;
    auto news = database.store.news(now);
    if (!news) return tl::unexpected(news.error());
    others = std::move(news->judgements);
    refused = news->refused;
    complete = news->complete;
    if (database.pruned_ns != kNoTime && steady_now() - database.pruned_ns < kJudgementsPrunedEvery)
      return {};
    database.pruned_ns = steady_now();
    return database.store.prune();
  }
};

SharedJudgements::SharedJudgements(io::Env& env, SharedJudgementsParts parts)
    : env_(env),
      parts_(std::move(parts)),
      database_(std::make_shared<Database>(
          Database{JudgementStore(parts_.config->cluster.database, parts_.gate->name()), kNoTime})) {}

SharedJudgements::~SharedJudgements() {
  if (worker_ && worker_->queued() > 0) worker_->abandon();
}

Result<std::unique_ptr<SharedJudgements>> SharedJudgements::start(io::Env& env, SharedJudgementsParts parts) {
  std::unique_ptr<SharedJudgements> out(new SharedJudgements(env, std::move(parts)));
  auto worker = env.worker("judgements");
  if (!worker) return tl::unexpected(worker.error());
  out->worker_ = std::move(*worker);
  out->parts_.verdicts->subscribe(
      [self = out.get()](std::span<const RunVerdict> verdicts) { self->retry(verdicts); });
  return out;
}

// The tables are there once the lease's round was answered.
void SharedJudgements::beat() {
  if (stopped_ || busy_) return;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (read_ns_ != kNoTime && now - read_ns_ < kEachNs) return;
  const bool is_open = parts_.gate->is_open();
  read_ns_ = now;
  busy_ = true;
  const auto round = std::make_shared<Round>();
  parts_.recorder->query(
      [round](store::Spool&, records::Records& index) {
        if (auto own = index.unshared({})) round->own = std::move(*own);
      },
      [this, round, is_open] {
        counts_.waiting = round->own.size();
        if (is_open) return ask(round);
        round->error = "the cluster's database does not answer";
        finish(round);
      });
}

void SharedJudgements::ask(const std::shared_ptr<Round>& round) {
  if (stopped_) return;
  worker_->submit(
      [database = database_, round, now = env_.now(io::Clock::kWall)] {
        if (const Status done = round->work(*database, now); !done) round->error = done.error().text;
      },
      [this, round] { finish(round); });
}

void SharedJudgements::finish(const std::shared_ptr<Round>& round) {
  busy_ = false;
  if (stopped_) return;
  if (error_.empty() != round->error.empty()) {
    error_since_ns_ = round->error.empty() ? kNoTime : env_.now(io::Clock::kWall);
    if (counts_.waiting > 0)
      parts_.log(round->error.empty() ? LogLevel::kInfo : LogLevel::kWarning,
                 round->error.empty() ? std::string("cluster: judgements are shared again")
                                      : "cluster: judgements wait for the database: " + round->error);
  }
  error_ = round->error;
  counts_.failed += !round->error.empty();
  counts_.refused += round->refused;
  counts_.read += round->others.size();
  if (round->is_put && !round->own.empty()) {
    counts_.published += round->own.size();
    counts_.waiting = 0;
    read_ns_ = kNoTime;  // further ones may wait
    parts_.recorder->query(
        [round](store::Spool&, records::Records& index) { (void)index.unshared(round->own); });
  }
  if (!round->complete) read_ns_ = kNoTime;
  take(std::make_shared<Judgements>(std::move(round->others)));
}

// The run went on after it was judged: what was published of it last says how long.
void SharedJudgements::extend(records::Judgement& judgement) const {
  const PublishedReport* report = parts_.reports->published().find(judgement.job);
  if (report == nullptr || !judgement.seen) return;
  records::SeenRun& seen = *judgement.seen;
  const RunFacts& facts = report->facts;
  const bool is_same = facts.first_ns <= seen.last_ns && (facts.running || facts.last_ns >= seen.first_ns);
  if (is_same)
    seen.last_ns = std::max(seen.last_ns, facts.running ? env_.now(io::Clock::kWall) : facts.last_ns);
}

void SharedJudgements::take(std::shared_ptr<Judgements> judgements) {
  if (stopped_ || judgements->empty()) return;
  const auto some = std::make_shared<Judgements>();
  const size_t n = std::min(kAppliedAtOnce, judgements->size());
  std::move(judgements->begin(), judgements->begin() + static_cast<ptrdiff_t>(n), std::back_inserter(*some));
  judgements->erase(judgements->begin(), judgements->begin() + static_cast<ptrdiff_t>(n));
  for (records::Judgement& one : *some) extend(one);
  const auto runs = std::make_shared<std::vector<Result<records::JudgedRun>>>();
  parts_.recorder->query(
      [some, runs](store::Spool&, records::Records& index) {
        for (const records::Judgement& one : *some) runs->push_back(index.judge(one));
      },
      [this, some, runs, judgements] {
        if (stopped_) return;
        for (size_t i = 0; i < runs->size(); ++i) {
          const auto& run = (*runs)[i];
          if (run && run->changed) ++counts_.applied, apply((*some)[i], *run);
          if (!run || !run->run) remember((*some)[i]);
        }
        take(judgements);
      });
}

void SharedJudgements::apply(const records::Judgement& judgement, const records::JudgedRun& run) {
  if (!run.run) return;
  parts_.engine->change([word = LiveJobs::Judgement{judgement.job, run.id, *run.run, judgement.right}](
                            std::span<LiveJobs* const> all, TimeNs now) {
    for (LiveJobs* live : all) live->judge(word, now);
  });
  parts_.verdicts->look_at(judgement.job, *run.run);
}

void SharedJudgements::remember(const records::Judgement& judgement) {
  Judgements& of_job = not_here_[judgement.job];
  std::erase_if(of_job, [&](const records::Judgement& one) {
    return one.id == judgement.id && one.seen->member == judgement.seen->member;
  });
  of_job.push_back(judgement);
  counts_.not_here = 0;
  for (const auto& [job, all] : not_here_) counts_.not_here += all.size();
  if (counts_.not_here <= kNotHereMost) return;
  const auto oldest =
      std::ranges::min_element(not_here_, {}, [](const auto& one) { return one.second.back().time_ns; });
  counts_.not_here -= oldest->second.size();
  not_here_.erase(oldest);
}

// A diagnosis that was judged elsewhere has come.
void SharedJudgements::retry(std::span<const RunVerdict> verdicts) {
  const auto again = std::make_shared<Judgements>();
  for (const RunVerdict& one : verdicts) {
    const auto at = not_here_.find(one.job);
    if (at == not_here_.end()) continue;
    counts_.not_here -= at->second.size();
    std::ranges::move(at->second, std::back_inserter(*again));
    not_here_.erase(at);
  }
  take(again);
}

std::optional<SharedJudgements::Published> SharedJudgements::published(const std::string& job,
                                                                       std::optional<uint32_t> run) const {
  const PublishedReport* report = parts_.reports->published().find(job);
  if (report == nullptr || report->row.member == parts_.gate->name()) return std::nullopt;
  if (run.value_or(report->row.run) != report->row.run) return std::nullopt;
  const RunFacts& facts = report->facts;
  return Published{{report->row.member, report->row.run, std::max<TimeNs>(facts.first_ns, 0),
                    std::max<TimeNs>({facts.last_ns, facts.first_ns, 0}), ""},
                   report->row.packed};
}

}  // namespace culprit::app
