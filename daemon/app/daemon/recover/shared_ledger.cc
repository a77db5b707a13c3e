#include "app/daemon/recover/shared_ledger.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/recovery_json.h"

namespace culprit::app {
namespace {

using store::postgres::LedgerLine;

constexpr TimeNs kNewsEvery = 5 * kNsPerSecond;
constexpr TimeNs kRowsPrunedEvery = 24LL * 3600 * kNsPerSecond;
constexpr TimeNs kJobsForgottenAfter = 3600 * kNsPerSecond;  // jobs that the scheduler shows no more
constexpr TimeNs kTroubleAfter = 10 * kNsPerSecond;
constexpr size_t kGivenMost = 200'000;
constexpr const char* kOtherMember = "OTHER-MEMBER";  // the end of an attempt that went to another member

std::string name_of(const ScheduledJob& job) { return job.scheduler + "/" + job.id; }

// All attempts and actions of a job, with the identity of the newest attempt.
SharedLedger::Read read_of(const std::vector<LedgerLine>& lines, const std::string& name,
                           const std::string& self, std::string& trouble) {
  SharedLedger::Read out;
  std::string newest_by;
  const std::string key = store::postgres::ledger_key(name);
  for (const LedgerLine& line : lines) {
    if (line.job != key) continue;
    if (line.kind == store::postgres::kLedgerAttempt) {
      auto row = attempt_of(line.line);
      if (!row) {
        trouble = row.error().text;
        continue;
      }
      if (out.job.attempts.empty() || row->attempt >= out.job.attempts.back().attempt)
        newest_by = line.member;
      out.job.attempts.push_back(std::move(*row));
      std::ranges::stable_sort(out.job.attempts, {}, &AttemptRecord::attempt);
    } else if (auto row = action_of(line.line)) {
      out.job.actions.push_back(std::move(*row));
    } else {
      trouble = row.error().text;
    }
  }
  if (out.job.attempts.empty()) return {};
  const ScheduledJob newest = out.job.attempts.back().job;
  const auto is_other = [&](const ScheduledJob& job) {
    return recover::key_of(job) != recover::key_of(newest);
  };
  std::erase_if(out.job.attempts, [&](const AttemptRecord& row) { return is_other(row.job); });
  out.job.job = newest;
  out.by_other = newest_by != self;
  return out;
}

}  // namespace

// One trip to the database.
struct SharedLedger::Round {
  std::vector<LedgerLine> lines;
  std::vector<std::pair<std::string, uint64_t>> jobs;  // with the epoch for which they are read
  bool news = false, prune = false;
  Status status;
  std::vector<LedgerLine> of_jobs, newer;

  void work(store::postgres::LedgerStore& store) {
    status = store.put(lines);
    std::vector<std::string> names;
    for (const auto& [name, epoch] : jobs) names.push_back(name);
    const auto read = [&](auto result, std::vector<LedgerLine>& into) {
      if (result)
        into = std::move(*result);
      else
        status = tl::unexpected(result.error());
    };
    if (status && !names.empty()) read(store.of_jobs(names), of_jobs);
    if (status && news) read(store.news(), newer);
    if (status && prune) (void)store.prune();  // what was read before it counts all the same
  }
};

SharedLedger::SharedLedger(io::Env& env, Parts parts) : env_(env), parts_(std::move(parts)) {}

SharedLedger::~SharedLedger() {
  if (worker_) worker_->abandon();
}

Result<std::unique_ptr<SharedLedger>> SharedLedger::start(io::Env& env, Parts parts) {
  std::unique_ptr<SharedLedger> out(new SharedLedger(env, std::move(parts)));
  auto worker = env.worker("shared ledger");
  if (!worker) return tl::unexpected(worker.error());
  out->worker_ = std::move(*worker);
  return out;
}

void SharedLedger::put_line(LedgerLine line) {
  const std::pair key(line.kind, line.key);
  if (waiting_.size() >= kWaitingMost && !waiting_.contains(key)) {
    if (dropped_++ == 0) warn_once("cluster: rows of the ledger are not shared: too many wait");
    return;
  }
  waiting_[key] = std::move(line);
}

void SharedLedger::put(const store::RecoveryRows& rows, const EpochOf& epoch_of, bool again) {
  using namespace store::postgres;
  const auto put_line = [&](LedgerLine line) {
    line.again = again;
    this->put_line(std::move(line));
  };
  for (const ActionRecord& row : rows.actions) {
    const std::string_view kind = row.order.kind == OrderKind::kIsolate ? kLedgerIsolation : kLedgerAction;
    put_line({std::string(kind), row.order.op, row.order.job.id.empty() ? "" : name_of(row.order.job),
              std::max(row.reserved_ns, row.settled_ns), to_json(row)});
  }
  for (const AttemptRecord& row : rows.attempts) {
    const auto epoch = epoch_of(row.job.id);
    if (!epoch || row.exit == kOtherMember) continue;
    put_line({std::string(kLedgerAttempt), fmt::format("{} {}", recover::key_of(row.job), row.attempt),
              name_of(row.job), static_cast<int64_t>(*epoch), to_json(row)});
  }
  for (const MachineRecord& row : rows.machines)
    put_line({std::string(kLedgerMachine), row.host + "/" + row.device, "", row.last_ns, to_json(row)});
  if (rows.reset_ns > kNsPerSecond)
    put_line({std::string(kLedgerReset), "breaker", "", rows.reset_ns, rows.reset_by});
}

bool SharedLedger::has_read(const ScheduledJob& job, uint64_t epoch) {
  Asked& asked = jobs_[name_of(job)];
  if (asked.epoch != epoch) asked = {epoch};
  asked.used_ns = env_.now(io::Clock::kWall);
  return asked.read;
}

std::vector<std::pair<std::string, SharedLedger::Read>> SharedLedger::drain_read() {
  return std::exchange(read_, {});
}
std::vector<recover::Input> SharedLedger::drain_news() { return std::exchange(news_, {}); }

void SharedLedger::beat() {
  if (worker_->queued() > 0) return;
  const TimeNs now = env_.now(io::Clock::kWall);
  const auto round = std::make_shared<Round>();
  size_t bytes = 0;
  while (!waiting_.empty() && round->lines.size() < store::postgres::LedgerStore::kBatchLines &&
         bytes < store::postgres::LedgerStore::kBatchBytes) {
    bytes += waiting_.begin()->second.line.size();
    round->lines.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  for (const auto& [name, asked] : jobs_)
    if (!asked.read && round->jobs.size() < store::postgres::LedgerStore::kBatchLines)
      round->jobs.emplace_back(name, asked.epoch);
  const auto due = [&](TimeNs last, TimeNs every) {
    return last == kNoTime || now - last >= every || now < last;
  };
  round->news = due(news_ns_, kNewsEvery);
  round->prune = due(pruned_ns_, kRowsPrunedEvery);
  if (round->lines.empty() && round->jobs.empty() && !round->news && !round->prune) return;
  if (round->news) news_ns_ = now;
  if (round->prune) pruned_ns_ = now;
  std::erase_if(jobs_, [&](const auto& one) { return now - one.second.used_ns > kJobsForgottenAfter; });
  worker_->submit([store = parts_.store, round] { round->work(*store); }, [this, round] { finish(*round); });
}

void SharedLedger::finish(Round& round) {
  if (!round.status) {
    for (LedgerLine& line : round.lines)  // a newer one of the same row may wait
      waiting_.try_emplace({line.kind, line.key}, std::move(line));
    if (error_.empty()) error_since_ns_ = env_.now(io::Clock::kWall);
    error_ = round.status.error().text;
    return;
  }
  error_.clear();
  for (const auto& [name, epoch] : round.jobs) {
    const auto asked = jobs_.find(name);
    if (asked == jobs_.end() || asked->second.epoch != epoch) continue;
    asked->second.read = true;
    std::string trouble;
    Read read = read_of(round.of_jobs, name, parts_.store->member(), trouble);
    if (!trouble.empty()) warn_once(fmt::format("cluster: a row of {} is left out: {}", name, trouble));
    read_.emplace_back(name.substr(name.find('/') + 1), std::move(read));
  }
  take_news(round.newer);
}

// Half a minute is read again each time: what was given is known by its stamp.
void SharedLedger::take_news(const std::vector<LedgerLine>& lines) {
  if (given_.size() >= kGivenMost) given_.clear();
  recover::LedgerSeen seen;
  const auto add = [&](auto row, auto& into, const std::string& member) {
    if (row)
      into.push_back(std::move(*row));
    else
      warn_once(fmt::format("cluster: a row of {} is left out: {}", member, row.error().text));
  };
  for (const LedgerLine& line : lines) {
    const auto [given, is_new] = given_.emplace(std::pair(line.kind, line.key), line.stamp);
    if (!is_new && std::exchange(given->second, line.stamp) == line.stamp) continue;
    if (line.kind == store::postgres::kLedgerIsolation)
      add(action_of(line.line), seen.isolations, line.member);
    else if (line.kind == store::postgres::kLedgerMachine)
      add(machine_of(line.line), seen.machines, line.member);
    else
      news_.emplace_back(recover::BreakerReset{line.line, line.stamp});
  }
  if (!seen.isolations.empty() || !seen.machines.empty()) news_.emplace_back(std::move(seen));
}

void SharedLedger::warn_once(const std::string& text) {
  if (std::exchange(warned_, text) != text) parts_.log(LogLevel::kWarning, text);
}

std::optional<RecoveryTrouble> SharedLedger::trouble() const {
  // One connection that broke is no trouble: the next round opens another.
  if (error_.empty() || env_.now(io::Clock::kWall) - error_since_ns_ < kTroubleAfter) return std::nullopt;
  return RecoveryTrouble{"the cluster's ledger does not answer, so jobs that are new here wait: " + error_,
                         error_since_ns_, "culprit cluster status"};
}

}  // namespace culprit::app
