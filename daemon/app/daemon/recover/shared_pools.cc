#include "app/daemon/recover/shared_pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "app/jobs/normal_pools.h"
#include "base/clock.h"
#include "store/postgres/pool_store.h"

namespace culprit::app {
namespace {

using records::TaughtRow;
using store::postgres::PoolStore;

constexpr TimeNs kPoolsPrunedEvery = 3600 * kNsPerSecond;

}  // namespace

struct SharedPools::Database {
  PoolStore store;
  TimeNs pruned_ns = kNoTime;
};

// A row of another member, with its pool unless it was taken back.
struct SharedPools::Word {
  TaughtRow row;
  detect::Pool pool = {};
  std::vector<NormalPools::Run> removed = {};  // older runs that the engine dropped for it
};

// One trip to the database.
struct SharedPools::Round {
  std::vector<TaughtRow> own;    // to be stored
  std::vector<TaughtRow> local;  // not for others: of jobs that other members own, or too large
  std::vector<Word> others;
  uint64_t refused = 0;
  bool complete = true, is_put = false;
  std::string error;

  Status work(Database& database, TimeNs now) {
    if (const Status put = database.store.put(own); !put) return put;
    is_put = true;
    auto news = database.store.news(now);
    if (!news) return tl::unexpected(news.error());
    refused = news->refused;
    complete = news->complete;
    for (TaughtRow& row : news->rows) {
      Word word{std::move(row)};
      if (word.row.forgotten.empty()) {
        auto pool = detect::Pool::load(word.row.text, "the normal pool: job " + word.row.job);
        if (!pool) {
          ++refused;
          continue;
        }
        word.pool = std::move(*pool);
      }
      others.push_back(std::move(word));
    }
    if (database.pruned_ns != kNoTime && steady_now() - database.pruned_ns < kPoolsPrunedEvery) return {};
    database.pruned_ns = steady_now();
    return database.store.prune();
  }
};

SharedPools::SharedPools(io::Env& env, SharedPoolsParts parts)
    : env_(env),
      parts_(std::move(parts)),
      database_(std::make_shared<Database>(
          Database{PoolStore(parts_.config->cluster.database, parts_.gate->name()), kNoTime})) {}

SharedPools::~SharedPools() {
  if (worker_ && worker_->queued() > 0) worker_->abandon();
}

Result<std::unique_ptr<SharedPools>> SharedPools::start(io::Env& env, SharedPoolsParts parts) {
  std::unique_ptr<SharedPools> out(new SharedPools(env, std::move(parts)));
  auto worker = env.worker("pools");
  if (!worker) return tl::unexpected(worker.error());
  out->worker_ = std::move(*worker);
  return out;
}

// The tables are there once the lease's round was answered.
void SharedPools::beat() {
  if (stopped_ || busy_) return;
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  if (read_ns_ != kNoTime && now - read_ns_ < kEachNs) return;
  read_ns_ = now;
  busy_ = true;
  const auto round = std::make_shared<Round>();
  parts_.recorder->query(
      [round](store::Spool&, records::Records& index) {
        if (auto own = index.pools().unshared({})) round->own = std::move(*own);
      },
      [this, round] {
        counts_.waiting = round->own.size();
        if (parts_.gate->is_open()) return ask(round);
        round->error = "the cluster's database does not answer";
        finish(round);
      });
}

void SharedPools::ask(const std::shared_ptr<Round>& round) {
  if (stopped_) return;
  const auto local = std::ranges::partition(round->own, [this](const TaughtRow& row) {
    return !row.forgotten.empty() || (!parts_.is_others(row.job) && row.text.size() <= PoolStore::kTextBytes);
  });
  std::ranges::move(local, std::back_inserter(round->local));
  round->own.erase(local.begin(), local.end());
  worker_->submit(
      [database = database_, round, now = env_.now(io::Clock::kWall)] {
        if (const Status done = round->work(*database, now); !done) round->error = done.error().text;
      },
      [this, round] { finish(round); });
}

void SharedPools::finish(const std::shared_ptr<Round>& round) {
  busy_ = false;
  if (stopped_) return;
  if (error_.empty() != round->error.empty())
    error_since_ns_ = round->error.empty() ? kNoTime : env_.now(io::Clock::kWall);
  error_ = round->error;
  counts_.failed += !round->error.empty();
  counts_.refused += round->refused;
  if (round->is_put) {
    counts_.published += round->own.size();
    counts_.waiting = 0;
    if (!round->own.empty() || !round->local.empty()) read_ns_ = kNoTime;  // further ones may wait
    parts_.recorder->query([round](store::Spool&, records::Records& index) {
      (void)index.pools().unshared(round->own);
      (void)index.pools().unshared(round->local);
    });
  }
  if (!round->complete) read_ns_ = kNoTime;
  take(round);
}

// What the index knows already, or knows better, is left out.
void SharedPools::take(const std::shared_ptr<Round>& round) {
  if (round->others.empty()) return;
  const auto news = std::make_shared<std::vector<Word>>();
  parts_.recorder->query(
      [round, news](store::Spool&, records::Records& index) {
        for (Word& one : round->others) {
          const auto is_news = index.pools().is_news(one.row);
          if (is_news && *is_news) news->push_back(std::move(one));
        }
      },
      [this, news] {
        if (!stopped_ && !news->empty()) teach(news);
      });
}

// The index has it after the engine: what a crash in between leaves out is read again at the next start.
void SharedPools::teach(const std::shared_ptr<std::vector<Word>>& news) {
  parts_.engine->change(
      [news](std::span<LiveJobs* const> all, TimeNs) {
        for (Word& one : *news) {
          const TaughtRow& row = one.row;
          for (LiveJobs* live : all) {
            if (!row.forgotten.empty()) {
              (void)live->forget_taught(row.job, row.run);
              continue;
            }
            auto removed = live->pools().add({row.job, row.run, row.owner, row.why, row.time_ns, one.pool});
            std::ranges::move(removed, std::back_inserter(one.removed));
          }
        }
      },
      [this, news] {
        counts_.applied += news->size();
        for (const Word& one : *news) {
          const TaughtRow& row = one.row;
          parts_.log(LogLevel::kInfo,
                     row.forgotten.empty()
                         ? fmt::format("pool: job {}, run {}, of {} taught {} forms at {}: {}", row.job,
                                       row.run, row.owner, row.forms, row.member, row.why)
                         : fmt::format("pool: job {}, run {}, of {} was taken back by {}", row.job, row.run,
                                       row.owner, row.forgotten));
        }
        parts_.recorder->record([news](records::Records& index) -> Status {
          records::PoolRecords& pools = index.pools();
          for (const Word& one : *news) {
            std::vector<records::JobRunId> removed;
            for (const NormalPools::Run& run : one.removed) removed.emplace_back(run.job, run.run);
            const Status done =
                one.row.forgotten.empty() ? pools.teach(one.row, removed) : pools.take_back(one.row);
            if (!done) return done;
          }
          return {};
        });
      });
}

}  // namespace culprit::app
