#include "app/daemon/recover/shared_reports.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "core/cluster/partition.h"
#include "store/postgres/report_store.h"

namespace culprit::app {
namespace {

using store::postgres::ReportRow;
using store::postgres::ReportStore;

constexpr size_t kPutAtOnce = 8, kReadAtOnce = 16;  // reports: each up to a MiB
constexpr size_t kReadBytes = 16 << 20;             // of one read; the rest comes with the next
constexpr size_t kListedBytes = 64 << 10;           // of an item of GET /v1/jobs
constexpr size_t kChangedMost = 10'000;  // jobs; of further ones a change of the list's item is noticed
constexpr TimeNs kReadLimit = 3 * kNsPerSecond;  // of one read; the statement at work ends by its own limit
constexpr TimeNs kSoonNs = 2 * kNsPerSecond;     // between two looks at the own jobs
constexpr TimeNs kPruneNs = 3600 * kNsPerSecond;
// What ended before is published only if its verdict changes.
constexpr TimeNs kEndedNs = 24 * 3600 * kNsPerSecond;

}  // namespace

struct SharedReports::Database {
  ReportStore store;
  std::map<std::string, int64_t> known;  // as_of_us by key: what was read
  TimeNs pruned_ns = kNoTime;
};

// Reports that are put together; they wait for the daemon's own answers.
struct SharedReports::Ready {
  struct One {
    OwnRun run;
    ReportRow row;
    PartHold with;
    uint64_t hash = 0;
  };
  std::vector<One> all;
  size_t waiting = 1;  // answers, and the loop that asks for them
};

struct SharedReports::Put {
  std::shared_ptr<Ready> of;
  std::vector<bool> written;  // of the first ones; false: fenced
  std::string error;          // of the next one
};

struct SharedReports::Read {
  std::vector<ReportStore::Key> keys;
  std::vector<PublishedReport> reports;
  bool complete = true;
  std::string error;
};

SharedReports::SharedReports(io::Env& env, SharedReportsOptions options)
    : env_(env),
      options_(std::move(options)),
      database_(std::make_shared<Database>(
          Database{ReportStore(options_.config->cluster.database, options_.gate->name()), {}, kNoTime})) {}

SharedReports::~SharedReports() {
  if (worker_ && worker_->queued() > 0) worker_->abandon();
}

Result<std::unique_ptr<SharedReports>> SharedReports::start(io::Env& env, SharedReportsOptions options) {
  std::unique_ptr<SharedReports> out(new SharedReports(env, std::move(options)));
  auto worker = env.worker("reports");
  if (!worker) return tl::unexpected(worker.error());
  out->worker_ = std::move(*worker);
  return out;
}

void SharedReports::begin(OwnReports own) { own_ = std::move(own); }

// The tables are there once the lease's round was answered.
void SharedReports::beat(bool restored) {
  if (stopped_ || !own_ || (!was_read_ && !options_.gate->is_open())) return;
  const TimeNs now = mono();
  if (!reading_ && (read_ns_ == kNoTime || now - read_ns_ >= kReadNs)) read();
  const TimeNs every = soon_ ? kSoonNs : kEachNs;
  if (restored && was_read_ && !looking_ && (looked_ns_ == kNoTime || now - looked_ns_ >= every)) look();
}

void SharedReports::changed(const std::string& job) {
  if (changed_.size() < kChangedMost) changed_.insert(job);
  soon_ = true;
}

// ---- reading

void SharedReports::read() {
  reading_ = true;
  read_ns_ = mono();
  const auto out = std::make_shared<Read>();
  const auto work = [database = database_, out]() -> Status {
    const TimeNs until = steady_now() + kReadLimit;
    auto keys = database->store.keys();
    if (!keys) return tl::unexpected(keys.error());
    out->keys = std::move(*keys);
    std::map<std::string, int64_t> known;
    std::vector<std::string> changed;  // the newest first
    for (const ReportStore::Key& key : out->keys) {
      const auto at = database->known.find(key.job);
      if (at != database->known.end()) known.emplace(*at);
      if (at == database->known.end() || at->second != key.as_of_us) changed.push_back(key.job);
    }
    database->known = std::move(known);
    size_t bytes = 0;
    for (size_t i = 0; i < changed.size(); i += kReadAtOnce) {
      out->complete = bytes < kReadBytes && steady_now() < until;
      if (!out->complete) return {};
      const auto end = changed.begin() + static_cast<ptrdiff_t>(std::min(changed.size(), i + kReadAtOnce));
      auto rows = database->store.rows({changed.begin() + static_cast<ptrdiff_t>(i), end});
      if (!rows) return tl::unexpected(rows.error());
      for (ReportRow& row : *rows) {
        database->known[row.job] = row.as_of_ns / (kNsPerMs / 1000);
        auto report = published_report(std::move(row));
        if (!report) continue;
        bytes += report->bytes();
        out->reports.push_back(std::move(*report));
      }
    }
    if (database->pruned_ns != kNoTime && steady_now() - database->pruned_ns < kPruneNs) return {};
    database->pruned_ns = steady_now();
    return database->store.prune();
  };
  worker_->submit(
      [work, out] {
        if (const Status done = work(); !done) out->error = done.error().text;
      },
      [this, out] { finish_read(*out); });
}

void SharedReports::finish_read(Read& read) {
  reading_ = false;
  for (PublishedReport& one : read.reports) published_.put(std::move(one)), ++counts_.read;
  if (!read.error.empty()) {
    ++counts_.reads_failed;
    if (away_since_ns_ == kNoTime) away_since_ns_ = wall();
  } else {
    published_.keep_only(read.keys);
    away_since_ns_ = kNoTime;
    if (!read.complete) read_ns_ = kNoTime;
    was_read_ = true;
  }
  report_trouble(read_error_, read.error, "the reports of other members are not read");
}

void SharedReports::report_trouble(std::string& before, const std::string& now, const char* what) {
  if (before.empty() != now.empty())
    options_.log(now.empty() ? LogLevel::kInfo : LogLevel::kWarning,
                 now.empty() ? fmt::format("cluster: no longer: {}", what)
                             : fmt::format("cluster: {}: {}", what, now));
  before = now;
}

// ---- publishing

std::optional<PartHold> SharedReports::hold_of(const std::string& job) const {
  const auto id = options_.id_of(job);
  const auto epoch = id ? options_.gate->epoch(*id) : std::nullopt;
  if (!epoch) return std::nullopt;
  return PartHold{cluster::partition_of(*id), *epoch};
}

std::string SharedReports::owner_of(const std::string& job) const {
  const auto id = options_.id_of(job);
  return id ? options_.gate->owner_name(*id) : "";
}

// A member that published a job last and lost it goes on, until the new owner publishes.
Asking SharedReports::asking(const std::string& job, const PublishedReport& published) const {
  const auto since = behind_.find(job);
  return {owns(job) || published.row.member == member(),
          since != behind_.end() && mono() - since->second >= kCatchUpNs};
}

void SharedReports::look() {
  looking_ = true;
  soon_ = false;
  looked_ns_ = mono();
  own_->runs([this](std::vector<OwnRun> runs) {
    if (!stopped_) choose(std::move(runs));
  });
}

bool SharedReports::is_due(const OwnRun& run) const {
  const auto given = given_.find(run.job);
  const bool changed = changed_.contains(run.job);
  if (given == given_.end()) return changed || run.facts.running || wall() - run.facts.last_ns < kEndedNs;
  if (given->second.listed == hash64(run.listed) && !changed) return false;
  return !run.facts.running || mono() - given->second.at_ns >= kEachNs;
}

// Whether another member's report, or one of the process before, is not to be replaced.
bool SharedReports::leaves(const OwnRun& run) {
  const PublishedReport* before = published_.find(run.job);
  if (before == nullptr || is_from_here(*before, run.job)) return false;
  const Coverage found = coverage(run.facts, before->facts, asking(run.job, *before));
  if (found != Coverage::kAsGood) {
    if (found == Coverage::kBehind) behind_.try_emplace(run.job, mono());
    return true;
  }
  const bool same = before->row.member == member() && before->row.run == run.run &&
                    before->row.listed == run.listed && !changed_.contains(run.job);
  if (same) given_[run.job] = {hash64(run.listed), 0, mono()};
  return same;
}

// While the database is away, the jobs of partitions that this member holds cannot be published.
void SharedReports::choose(std::vector<OwnRun> runs) {
  const bool is_open = options_.gate->is_open();
  std::set<uint32_t> held;
  if (!is_open)
    for (const PartHold& one : options_.gate->state().held) held.insert(one.part);
  std::set<std::string> there;
  waiting_.clear();
  for (OwnRun& run : runs) {
    there.insert(run.job);
    if (!is_open) {
      const auto id = options_.id_of(run.job);
      if (id && held.contains(cluster::partition_of(*id)) && is_due(run)) mark_unpublished(run.job);
      continue;
    }
    if (!owns(run.job) || leaves(run)) {
      unpublished_.erase(run.job);
      continue;
    }
    behind_.erase(run.job);
    if (is_due(run)) waiting_.push_back(std::move(run));
  }
  const auto is_unlisted = [&](const auto& one) { return !there.contains(one.first); };
  std::erase_if(given_, is_unlisted);
  std::erase_if(behind_, is_unlisted);
  std::erase_if(unpublished_, is_unlisted);
  std::erase_if(changed_, [&](const std::string& job) { return !there.contains(job); });
  std::ranges::stable_partition(
      waiting_, [](const OwnRun& run) { return run.facts.has_verdict || !run.facts.running; });
  publish_some();
}

void SharedReports::publish_some() {
  if (waiting_.empty()) {
    looking_ = false;
    return;
  }
  const auto ready = std::make_shared<Ready>();
  for (size_t i = 0; i < kPutAtOnce && !waiting_.empty(); ++i) {
    ++ready->waiting;
    add(ready, waiting_.front());
    waiting_.pop_front();
  }
  put_if_complete(ready);
}

void SharedReports::add(const std::shared_ptr<Ready>& ready, const OwnRun& run) {
  own_->report(run, [this, ready, run](Result<OwnReport> report) {
    if (stopped_) return;
    const auto hold = hold_of(run.job);
    const uint64_t hash = report ? hash64(report->json) : 0;
    const auto given = given_.find(run.job);
    const bool same =
        given != given_.end() && given->second.report == hash && given->second.listed == hash64(run.listed);
    if (!report || !hold) {  // it is asked for again
      counts_.failed += !report;
      return put_if_complete(ready);
    }
    if (same || run.listed.size() > kListedBytes) {
      counts_.unlisted += run.listed.size() > kListedBytes;
      given_[run.job] = {hash64(run.listed), hash, mono()};
      changed_.erase(run.job);
      return put_if_complete(ready);
    }
    note_size(run.job, *report);
    ReportRow row;
    row.job = store::postgres::report_key(run.job);
    row.run = run.run;
    row.listed = run.listed;
    if (!report->json.empty()) row.packed = store::postgres::pack_report(report->json);
    own_->user(run.job, [this, ready, run, hash, with = *hold, row](std::optional<uint32_t> uid) mutable {
      if (stopped_) return;
      row.uid = uid;
      ready->all.push_back({run, std::move(row), with, hash});
      put_if_complete(ready);
    });
  });
}

void SharedReports::note_size(const std::string& job, const OwnReport& report) {
  if (report.cut) ++counts_.cut;
  if (!report.json.empty()) return;
  if (counts_.too_large++ == 0)
    options_.log(LogLevel::kWarning,
                 fmt::format("cluster: the report of job {} is larger than {}: other members get its line "
                             "in the list of jobs alone; further ones are counted",
                             to_terminal(job), format_bytes(store::postgres::kReportBytes)));
}

void SharedReports::put_if_complete(const std::shared_ptr<Ready>& ready) {
  if (--ready->waiting > 0) return;
  if (ready->all.empty()) return publish_some();
  const auto put = std::make_shared<Put>();
  put->of = ready;
  worker_->submit(
      [database = database_, put] {
        for (const Ready::One& one : put->of->all) {
          const auto done = database->store.put(one.row, one.with);
          if (!done) return void(put->error = done.error().text);
          put->written.push_back(*done);
        }
      },
      [this, put] { finish_put(*put); });
}

void SharedReports::finish_put(const Put& put) {
  const auto& all = put.of->all;
  for (size_t i = 0; i < put.written.size(); ++i) {
    const OwnRun& run = all[i].run;
    unpublished_.erase(run.job);
    if (!put.written[i]) {
      if (counts_.fenced++ == 0)
        options_.log(LogLevel::kInfo, fmt::format("cluster: the report of job {} is not published: another "
                                                  "member owns it; further ones are counted",
                                                  to_terminal(run.job)));
      continue;
    }
    ++counts_.published;
    changed_.erase(run.job);
    given_[run.job] = {hash64(run.listed), all[i].hash, mono()};
  }
  report_trouble(put_error_, put.error, "reports of own jobs are not published");
  if (!put.error.empty()) {
    counts_.failed += all.size() - put.written.size();
    for (size_t i = put.written.size(); i < all.size(); ++i) mark_unpublished(all[i].run.job);
    for (const OwnRun& run : waiting_) mark_unpublished(run.job);
    waiting_.clear();
  }
  publish_some();
}

void SharedReports::mark_unpublished(const std::string& job) {
  unpublished_.try_emplace(job, away_since_ns_ == kNoTime ? wall() : away_since_ns_);
}

// ---- answers

// What this process published is never newer than what it knows.
bool SharedReports::is_from_here(const PublishedReport& report, const std::string& job) const {
  return report.row.member == member() && given_.contains(job);
}

const PublishedReport* SharedReports::instead_of(const std::string& job, const RunFacts* own,
                                                 std::optional<uint32_t> uid) const {
  const PublishedReport* found = published_.find(job, uid);
  if (found == nullptr || own == nullptr) return found;
  if (is_from_here(*found, job)) return nullptr;
  return coverage(*own, found->facts, asking(job, *found)) == Coverage::kAsGood ? nullptr : found;
}

TimeNs SharedReports::unpublished_since(const std::string& job) const {
  const auto at = unpublished_.find(job);
  return at == unpublished_.end() ? kNoTime : at->second;
}

TimeNs SharedReports::unpublished_since() const {
  TimeNs out = kNoTime;
  for (const auto& [job, since] : unpublished_) out = out == kNoTime ? since : std::min(out, since);
  return out;
}

}  // namespace culprit::app
