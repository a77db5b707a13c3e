#include "app/daemon/keep/recorder.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace culprit::app {
namespace {

// Maximum loss of socket data after a kill. With five commits a second, a quiet host's data still compresses
// well.
constexpr TimeNs kCommitAfterNs = 200 * kNsPerMs;
// If the last commit is this old, a batch is committed at once: a separate commit would wake both threads
// again. Shorter than a round of a log, since rounds vary.
constexpr TimeNs kCommitWithNs = 150 * kNsPerMs;
// Size of a batch of a quiet host that is committed at once. Its credit may return with the loop's next turn,
// at the latest with the daemon's beat.
constexpr uint64_t kCalmBytes = 256 << 10;
// Interval of reports on a disk that stays full.
constexpr TimeNs kTellDroppedNs = 3600 * kNsPerSecond;
// Time before and after a diagnosis whose evidence is preferably retained.
constexpr TimeNs kPinnedNs = 5 * 60 * kNsPerSecond;
// Number of diagnoses before the start that are pinned again: more than fit into the pinned share.
constexpr size_t kPinnedAgain = 256;
// Maximum loss of deleted files after a power loss.
constexpr TimeNs kSyncEveryNs = 5 * kNsPerSecond;
// Interval of retries on a full disk.
constexpr TimeNs kWriteRetryNs = kNsPerSecond;
// This file exists if the process stopped by itself after storing everything. Deleting it needs no disk
// space.
constexpr const char* kEndedWell = "/ended_well";
// Interval of retries of the index: each retry may wait two seconds for a lock.
constexpr TimeNs kIndexRetryNs = 5 * kNsPerSecond;
// Limit of waiting writes: some minutes of findings, a megabyte or two.
constexpr size_t kUnwritten = 4096;
constexpr const char* kHeldBack = "sources are held back until it can be written";

bool is_refused(const Status& status) { return !status && status.error().code == ErrorCode::kInvalid; }

}  // namespace

Recorder::Frames frames_of(const store::Spool& spool) {
  return {spool.epoch(), spool.first_sequence(), spool.synced_sequence(), spool.last_sequence(),
          spool.acknowledged()};
}

Recorder::Recorder(io::Env& env, RecorderOptions options)
    : env_(env),
      options_(std::move(options)),
      files_(io::real_files()),
      spool_folder_(options_.state_dir + "/spool") {}

Recorder::~Recorder() = default;

Result<std::unique_ptr<Recorder>> Recorder::open(io::Env& env, RecorderOptions options) {
  std::unique_ptr<Recorder> r(new Recorder(env, std::move(options)));
  if (auto made = r->files_.make_folder(r->options_.state_dir); !made) return tl::unexpected(made.error());
  store::SpoolOptions spool{.folder = r->spool_folder_};
  if (r->options_.max_bytes > 0) spool.max_bytes = r->options_.max_bytes;
  spool.hold = r->options_.hold;
  spool.fair = true;
  auto opened = store::Spool::open(r->files_, spool, env.now(io::Clock::kWall));
  if (!opened) return tl::unexpected(opened.error());
  r->spool_ = std::move(*opened);
  auto index = store::Index::open(r->options_.state_dir + "/index.db");
  if (!index && index.error().code == ErrorCode::kIo) {  // a full disk; evidence does not need the index
    r->options_.report_error(index.error().text + "; what is found is kept in memory until the next start");
    r->index_in_memory_ = tl::unexpected(index.error());
    r->options_.watch->index(r->index_in_memory_);
    index = store::Index::open(":memory:");
  }
  if (!index) return tl::unexpected(index.error());
  r->index_ = std::move(*index);
  if (!r->index_->moved_aside().empty())
    r->options_.report_error(fmt::format("{}: the index was damaged; it is kept there and a new one is begun",
                                         r->index_->moved_aside()));
  if (auto diagnoses = r->index_->verdicts({.job = "", .run = {}, .limit = kPinnedAgain}))
    for (auto one = diagnoses->rbegin(); one != diagnoses->rend(); ++one)
      r->spool_->pin(one->job, one->since_ns - kPinnedNs, one->since_ns + kPinnedNs);
  for (store::StoredStream& stored : r->spool_->streams()) r->known_.push_back(std::move(stored.state));
  r->known_sequence_ = r->spool_->last_sequence();
  r->stored_until_ns_ = r->spool_->stored_until_ns();
  auto jobs = r->index_->last_runs();
  if (!jobs) return tl::unexpected(jobs.error());
  r->known_jobs_ = std::move(*jobs);
  if (auto taught = r->index_->pools().taught()) r->known_taught_ = std::move(*taught);
  if (const Status begun = r->begin_life(); !begun) r->options_.report_error(begun.error().text);
  r->stats_ = r->spool_->stats();
  r->frames_ = frames_of(*r->spool_);
  Recorder* self = r.get();
  r->commit_timer_ = env.timer([self] { self->commit(); });
  r->sync_timer_ = env.timer([self] { self->sync(); });
  r->retry_timer_ = env.timer([self] { self->append_next(); });
  r->sync_timer_->start(kSyncEveryNs, kSyncEveryNs);
  r->index_timer_ = env.timer([self] {
    self->index_retrying_ = false;
    auto status = std::make_shared<Status>();
    self->worker_->submit(
        [self, status] {
          self->index_failure_ = {};
          *status = self->write_index();
        },
        [self, status] { self->index_written(*status); });
  });
  auto worker = env.worker("store");
  if (!worker) return tl::unexpected(worker.error());
  r->worker_ = std::move(*worker);
  return r;
}

Status Recorder::begin_life() {
  const Status removed = files_.remove(options_.state_dir + kEndedWell);
  ended_well_ = removed.has_value();
  if (!removed) return removed.error().code == ErrorCode::kNotFound ? Status{} : removed;
  return files_.sync_folder(options_.state_dir);
}

void Recorder::append(SharedBatch batch, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  waiting_.push_back({std::move(batch), std::move(done)});
  append_next();
}

// Outcome of a batch and of the commit with it.
struct Recorder::Outcome {
  Status appended;
  std::optional<Result<std::vector<store::CommittedOffset>>> committed;
  store::SpoolStats stats;
  Frames frames;
};

void Recorder::append_next() {
  CULPRIT_CHECK(owner_.here());
  if (appending_ || waiting_.empty() || finishing_) return;
  auto outcome = std::make_shared<Outcome>();
  appending_ = std::shared_ptr<const Status>(outcome, &outcome->appended);
  const TimeNs now = env_.now(io::Clock::kWall), mono = env_.now(io::Clock::kMonotonic);
  const bool alone = waiting_.size() == 1 && !committing_;
  const bool commits = alone && (committed_ns_ == kNoTime || mono - committed_ns_ >= kCommitWithNs);
  if (commits) {
    committing_ = true;
    committed_ns_ = mono;
  }
  options_.watch->started(SelfWatch::Part::kStore, mono, "a batch");
  const bool calm = commits && waiting_.front().batch->bytes() <= kCalmBytes;
  auto work = [this, batch = waiting_.front().batch, now, outcome, commits] {
    outcome->appended = spool_->append(*batch, now);
    // No commit after a failed append: the commit would fail too, and the problem is reported once.
    if (commits && (outcome->appended || is_refused(outcome->appended))) commit_now(*outcome, now);
  };
  auto done = [this, outcome, commits] {
    appending_ = nullptr;
    if (finishing_) return;
    // The batch is reported before its commit: callers count uncommitted batches.
    appended(outcome->appended, outcome->committed.has_value());
    if (outcome->committed)
      committed(*outcome);
    else if (commits)
      committing_ = false;
  };
  if (calm) return worker_->submit_calmly(std::move(work), std::move(done));
  worker_->submit(std::move(work), std::move(done));
}

void Recorder::appended(const Status& status, bool with_commit) {
  CULPRIT_CHECK(owner_.here());
  // A batch that the spool rejected for good is no disk failure.
  const bool never = is_refused(status), failed = !status && !never;
  if (failed) report_trouble(write_trouble_, status, kHeldBack);
  options_.watch->done(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), health());
  if (failed) return retry_timer_->start(kWriteRetryNs);
  if (never) {
    ++refused_batches_;
    options_.report_error("spool: a batch is left out: " + status.error().text);
  } else if (!with_commit) {
    dirty_ = true;
    if (!committing_) {
      committing_ = true;
      commit_timer_->start(kCommitAfterNs);
    }
  }
  CULPRIT_CHECK(!waiting_.empty());
  auto done = std::move(waiting_.front().done);
  waiting_.pop_front();
  if (done) done();
  append_next();
}

void Recorder::commit() {
  CULPRIT_CHECK(owner_.here());
  if (!dirty_) {
    committing_ = false;
    return;
  }
  dirty_ = false;
  auto outcome = std::make_shared<Outcome>();
  const TimeNs now = env_.now(io::Clock::kWall), mono = env_.now(io::Clock::kMonotonic);
  committed_ns_ = mono;
  options_.watch->started(SelfWatch::Part::kStore, mono, "a commit");
  worker_->submit([this, outcome, now] { commit_now(*outcome, now); },
                  [this, outcome] {
                    committed(*outcome);
                    options_.watch->done(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), health());
                  });
}

// Runs on the worker.
void Recorder::commit_now(Outcome& outcome, TimeNs now) {
  outcome.committed = spool_->commit(now);
  outcome.stats = spool_->stats();
  outcome.frames = frames_of(*spool_);
}

void Recorder::committed(const Outcome& outcome) {
  CULPRIT_CHECK(owner_.here());
  const auto& offsets = *outcome.committed;
  report_trouble(write_trouble_, offsets ? Status{} : Status(tl::unexpected(offsets.error())), kHeldBack);
  report_dropped(outcome.stats);
  report_evicted(outcome.stats);
  report_given_up(outcome.stats);
  stats_ = outcome.stats;
  note_frames(outcome.frames);
  unsynced_ = true;
  committing_ = false;
  if (offsets)
    options_.committed(*offsets, outcome.frames.written);
  else
    dirty_ = true;
  if (!dirty_) return;
  committing_ = true;
  commit_timer_->start(offsets ? kCommitAfterNs : kWriteRetryNs);
}

// Dropping the oldest segments at the configured size is normal; dropping for a full disk needs a report.
void Recorder::report_dropped(const store::SpoolStats& now) {
  const TimeNs mono = env_.now(io::Clock::kMonotonic);
  if (now.dropped_for_disk == stats_.dropped_for_disk) return;
  if (reported_dropped_ns_ != kNoTime && mono - reported_dropped_ns_ < kTellDroppedNs) return;
  reported_dropped_ns_ = mono;
  options_.report_error(fmt::format(
      "spool: its disk is full: the oldest evidence goes ({} since the start), though "
      "it has only {} of the {} that it may have",
      format_bytes(now.dropped_for_disk), format_bytes(now.bytes), format_bytes(options_.max_bytes)));
}

void Recorder::report_evicted(const store::SpoolStats& now) {
  const TimeNs mono = env_.now(io::Clock::kMonotonic);
  if (now.evicted_bytes == stats_.evicted_bytes) return;
  if (reported_evicted_ns_ != kNoTime && mono - reported_evicted_ns_ < kTellDroppedNs) return;
  reported_evicted_ns_ = mono;
  options_.report_error(fmt::format(
      "spool: spool.max_size ({}) is reached and {} has most of it: its oldest evidence is removed; "
      "evidence of others stays",
      format_bytes(options_.max_bytes), now.evicted_from));
}

void Recorder::report_given_up(const store::SpoolStats& now) {
  const TimeNs mono = env_.now(io::Clock::kMonotonic);
  if (now.given_up_bytes == stats_.given_up_bytes) return;
  if (reported_given_up_ns_ != kNoTime && mono - reported_given_up_ns_ < kTellDroppedNs) return;
  reported_given_up_ns_ = mono;
  options_.report_error(fmt::format(
      "spool: no room: {} since the start are deleted that the collector received and has not put into its "
      "bucket; they are lost if that collector is lost with its disk",
      format_bytes(now.given_up_bytes)));
}

void Recorder::sync() {
  CULPRIT_CHECK(owner_.here());
  if (!unsynced_) return;
  unsynced_ = false;
  auto status = std::make_shared<Status>();
  options_.watch->started(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), "a sync");
  auto frames = std::make_shared<Frames>();
  worker_->submit(
      [this, status, frames] {
        *status = spool_->sync();
        *frames = frames_of(*spool_);
      },
      [this, status, frames] {
        note_frames(*frames);
        report_trouble(sync_trouble_, *status, "a loss of power may take what is written meanwhile");
        options_.watch->done(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), health());
        if (!*status) unsynced_ = true;
      });
}

void Recorder::note_frames(const Frames& now) {
  CULPRIT_CHECK(now.synced >= frames_.synced && now.written >= frames_.written && now.synced <= now.written);
  const bool more = now.synced > frames_.synced;
  frames_ = now;
  if (more && options_.synced) options_.synced();
}

// Appends an empty batch behind all waiting ones.
void Recorder::secure(std::function<void(Result<uint64_t>)> done) {
  CULPRIT_CHECK(owner_.here());
  append(std::make_shared<const PieceBatch>(), [this, done = std::move(done)] {
    auto outcome = std::make_shared<Outcome>();
    auto synced = std::make_shared<Status>();
    const TimeNs now = env_.now(io::Clock::kWall);
    worker_->submit(
        [this, outcome, synced, now] {
          commit_now(*outcome, now);
          *synced = spool_->sync();
          outcome->frames = frames_of(*spool_);
        },
        [this, outcome, synced, done] {
          committed(*outcome);
          if (!*outcome->committed) return done(tl::unexpected(outcome->committed->error()));
          if (!*synced) return done(tl::unexpected(synced->error()));
          done(outcome->frames.written);
        });
  });
}

void Recorder::acknowledged(uint64_t received, uint64_t freed) {
  auto frames = std::make_shared<Frames>();
  auto stats = std::make_shared<store::SpoolStats>();
  worker_->submit(
      [this, received, freed, frames, stats] {
        spool_->retain_after(freed, received);
        *frames = frames_of(*spool_);
        *stats = spool_->stats();
      },
      [this, frames, stats] {
        note_frames(*frames);
        stats_ = *stats;
      });
}

// Reports each change once: a full disk gives one sentence, not one per second.
void Recorder::report_trouble(std::string& trouble, const Status& status, const char* meanwhile) {
  const std::string now = status ? "" : status.error().text;
  if (now == trouble) return;
  if (!now.empty() && trouble.empty()) options_.report_error(fmt::format("{}; {}", now, meanwhile));
  if (now.empty()) options_.report_error("spool: it can be written again");
  trouble = now;
}

// An append in memory or a write without a sync does not prove that the disk works again.
Status Recorder::health() const {
  const std::string& trouble = write_trouble_.empty() ? sync_trouble_ : write_trouble_;
  return trouble.empty() ? Status{} : fail(ErrorCode::kIo, trouble);
}

void Recorder::pin(const std::string& job, TimeNs time_ns) {
  CULPRIT_CHECK(owner_.here());
  worker_->submit([this, job, time_ns] { spool_->pin(job, time_ns - kPinnedNs, time_ns + kPinnedNs); }, {});
}

void Recorder::query(OnStore work, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  worker_->submit([this, work = std::move(work)] { work(*spool_, *index_); }, std::move(done));
}

void Recorder::record(std::function<Status(records::Records&)> work) {
  CULPRIT_CHECK(owner_.here());
  auto status = std::make_shared<Status>();
  worker_->submit(
      [this, work = std::move(work), status] {
        if (unwritten_.size() >= kUnwritten) {
          unwritten_.pop_front();
          ++index_lost_;
        }
        unwritten_.push_back(work);
        *status = write_index();
      },
      [this, status] { index_written(*status); });
}

// Runs on the worker. Executes writes in order, stops at the first failure, and then does nothing until the
// next retry. Each retry may wait seconds for a lock and delays evidence.
Status Recorder::write_index() {
  Status first;
  while (index_failure_.has_value() && !unwritten_.empty()) {
    const Status written = unwritten_.front()(*index_);
    if (!written && written.error().code == ErrorCode::kIo && !index_->damaged()) {
      index_failure_ = written;
      ++index_retries_;
    }
    if (!index_failure_.has_value()) break;
    if (!written && first) first = written;
    if (!written) ++index_lost_;
    unwritten_.pop_front();
  }
  return index_failure_.has_value() ? first : index_failure_;
}

void Recorder::index_written(const Status& status) {
  if (!status && status.error().code == ErrorCode::kIo && !std::exchange(index_retrying_, true))
    index_timer_->start(kIndexRetryNs);
  const std::string trouble = status ? "" : status.error().text;
  if (!trouble.empty() && trouble != index_trouble_) options_.report_error(trouble);
  index_trouble_ = trouble;
  options_.watch->index(status ? index_in_memory_ : status);
}

void Recorder::positions(std::function<void(std::vector<StreamState>)> done) {
  std::vector<SharedBatch> rest;
  for (const Waiting& w : waiting_) rest.push_back(w.batch);
  auto out = std::make_shared<std::vector<StreamState>>();
  worker_->submit(
      [this, rest = std::move(rest), under_way = appending_, out] {
        std::map<StreamId, StreamState> states;
        for (StreamState& state : spool_->appended()) states[state.info.id] = std::move(state);
        const size_t first = under_way && (*under_way || is_refused(*under_way)) ? 1 : 0;
        for (size_t i = first; i < rest.size(); ++i) {
          for (const StreamInfo& info : rest[i]->opened) states[info.id].info = info;
          for (const Piece& piece : rest[i]->pieces)
            if (const auto at = states.find(piece.stream); at != states.end()) advance(at->second, piece);
        }
        for (auto& [id, state] : states) out->push_back(std::move(state));
      },
      [out, done = std::move(done)] { done(std::move(*out)); });
}

void Recorder::finish(std::function<void()> done) {
  finishing_ = true;
  const TimeNs now = env_.now(io::Clock::kWall);
  std::vector<SharedBatch> rest;
  for (Waiting& w : waiting_) rest.push_back(w.batch);
  auto outcome = std::make_shared<Result<std::vector<store::CommittedOffset>>>();
  worker_->submit(
      [this, rest = std::move(rest), under_way = appending_, outcome, now] {
        Status stored;
        const size_t first = under_way && (*under_way || is_refused(*under_way)) ? 1 : 0;
        for (size_t i = first; i < rest.size() && (stored || is_refused(stored)); ++i)
          stored = spool_->append(*rest[i], now);
        *outcome = spool_->commit(now);
        const Status synced = spool_->sync();
        if (!synced) *outcome = tl::unexpected(synced.error());
        // If socket data was not stored, the run did not end well; the next start reports the loss.
        if (!stored) *outcome = tl::unexpected(stored.error());
        if (*outcome) (void)files_.open(options_.state_dir + kEndedWell, io::OpenFor::kCreate);
      },
      [this, outcome, done = std::move(done)] {
        if (*outcome)
          options_.committed(**outcome, spool_->last_sequence());
        else
          options_.report_error(outcome->error().text);
        done();
      });
}

Recorder::Counters Recorder::counters() const {
  return {stats_, refused_batches_, waiting_.size(), index_retries_, index_lost_, index_->unreadable()};
}

}  // namespace culprit::app
