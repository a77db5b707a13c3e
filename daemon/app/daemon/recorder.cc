#include "app/daemon/recorder.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/text.h"

namespace culprit::app {
namespace {

// What may be lost of a socket by a kill; ten frames a second of a quiet host still pack well.
constexpr TimeNs kCommitAfterNs = 200 * kNsPerMs;
// Where the last commit was so long ago, a batch's comes with it: a calm log is read in rounds of 200 ms, and
// a commit of its own would wake both threads once more for each. Somewhat less, for rounds are not exact.
constexpr TimeNs kCommitWithNs = 150 * kNsPerMs;
// A disk that stays full is no news.
constexpr TimeNs kTellDroppedNs = 3600 * kNsPerSecond;
// What may be lost of files that are gone by the death of the machine.
constexpr TimeNs kSyncEveryNs = 5 * kNsPerSecond;
// A disk that is full is asked again this often.
constexpr TimeNs kRetryNs = kNsPerSecond;
// A file: the process ended by itself and had stored all. Its removal needs no room on the disk.
constexpr const char* kEndedWell = "/ended_well";
// An index that cannot be written is tried again this often: each try may wait for a lock for two seconds.
constexpr TimeNs kIndexRetryNs = 5 * kNsPerSecond;
// Rows that wait for it: some minutes of findings, a megabyte or two.
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
  auto opened = store::Spool::open(r->files_, spool, env.now(io::Clock::kWall));
  if (!opened) return tl::unexpected(opened.error());
  r->spool_ = std::move(*opened);
  auto index = store::Index::open(r->options_.state_dir + "/index.db");
  if (!index && index.error().code == ErrorCode::kIo) {  // a full disk; the evidence needs no index
    r->options_.complain(index.error().text + "; what is found is kept in memory until the next start");
    index = store::Index::open(":memory:");
  }
  if (!index) return tl::unexpected(index.error());
  r->index_ = std::move(*index);
  if (!r->index_->moved_aside().empty())
    r->options_.complain(fmt::format("{}: the index was damaged; it is kept there and a new one is begun",
                                     r->index_->moved_aside()));
  for (store::KeptStream& kept : r->spool_->streams()) r->known_.push_back(std::move(kept.state));
  r->known_sequence_ = r->spool_->last_sequence();
  auto jobs = r->index_->last_runs();
  if (!jobs) return tl::unexpected(jobs.error());
  r->known_jobs_ = std::move(*jobs);
  if (auto pool = r->index_->load_pool(""); pool && *pool) r->known_pool_ = std::move(**pool);
  if (const Status begun = r->begin_life(); !begun) r->options_.complain(begun.error().text);
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
  waiting_.push_back({std::move(batch), std::move(done)});
  append_next();
}

// What came of a batch, and of the commit that came with it.
struct Recorder::Outcome {
  Status appended;
  std::optional<Result<std::vector<store::CommittedOffset>>> committed;
  store::SpoolStats stats;
  Frames frames;
};

void Recorder::append_next() {
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
  options_.watch->given(SelfWatch::Part::kStore, mono, "a batch");
  worker_->submit(
      [this, batch = waiting_.front().batch, now, outcome, commits] {
        outcome->appended = spool_->append(*batch, now);
        // What was not taken would be tried again with each commit: one trouble, told once.
        if (commits && (outcome->appended || is_refused(outcome->appended))) commit_now(*outcome, now);
      },
      [this, outcome, commits] {
        appending_ = nullptr;
        if (finishing_) return;
        // Whoever counts what is not committed hears of the batch before the commit that has it.
        appended(outcome->appended, outcome->committed.has_value());
        if (outcome->committed)
          committed(*outcome);
        else if (commits)
          committing_ = false;
      });
}

void Recorder::appended(const Status& status, bool with_commit) {
  // What the spool can never take is no trouble of the disk.
  const bool never = is_refused(status), failed = !status && !never;
  if (failed) tell(write_trouble_, status, kHeldBack);
  options_.watch->done(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), standing());
  if (failed) return retry_timer_->start(kRetryNs);
  if (never) {
    ++refused_batches_;
    options_.complain("spool: a batch is left out: " + status.error().text);
  } else if (!with_commit) {
    dirty_ = true;
    if (!committing_) {
      committing_ = true;
      commit_timer_->start(kCommitAfterNs);
    }
  }
  auto done = std::move(waiting_.front().done);
  waiting_.pop_front();
  if (done) done();
  append_next();
}

void Recorder::commit() {
  if (!dirty_) {
    committing_ = false;
    return;
  }
  dirty_ = false;
  auto outcome = std::make_shared<Outcome>();
  const TimeNs now = env_.now(io::Clock::kWall), mono = env_.now(io::Clock::kMonotonic);
  committed_ns_ = mono;
  options_.watch->given(SelfWatch::Part::kStore, mono, "a commit");
  worker_->submit([this, outcome, now] { commit_now(*outcome, now); },
                  [this, outcome] {
                    committed(*outcome);
                    options_.watch->done(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic),
                                         standing());
                  });
}

// On the worker.
void Recorder::commit_now(Outcome& outcome, TimeNs now) {
  outcome.committed = spool_->commit(now);
  outcome.stats = spool_->stats();
  outcome.frames = frames_of(*spool_);
}

void Recorder::committed(const Outcome& outcome) {
  const auto& offsets = *outcome.committed;
  tell(write_trouble_, offsets ? Status{} : Status(tl::unexpected(offsets.error())), kHeldBack);
  tell_dropped(outcome.stats);
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
  commit_timer_->start(offsets ? kCommitAfterNs : kRetryNs);
}

// Within its own bound the oldest goes as a matter of course; for a full disk somebody has to do something.
void Recorder::tell_dropped(const store::SpoolStats& now) {
  const bool dropped = now.dropped_segments > stats_.dropped_segments;
  const TimeNs mono = env_.now(io::Clock::kMonotonic);
  if (!dropped || now.bytes >= options_.max_bytes / 8 * 7) return;
  if (told_dropped_ns_ != kNoTime && mono - told_dropped_ns_ < kTellDroppedNs) return;
  told_dropped_ns_ = mono;
  options_.complain(fmt::format(
      "spool: its disk is full: the oldest evidence goes ({} since the start), though "
      "it has only {} of the {} that it may have",
      format_bytes(now.dropped_bytes), format_bytes(now.bytes), format_bytes(options_.max_bytes)));
}

void Recorder::sync() {
  if (!unsynced_) return;
  unsynced_ = false;
  auto status = std::make_shared<Status>();
  options_.watch->given(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), "a sync");
  auto frames = std::make_shared<Frames>();
  worker_->submit(
      [this, status, frames] {
        *status = spool_->sync();
        *frames = frames_of(*spool_);
      },
      [this, status, frames] {
        note_frames(*frames);
        tell(sync_trouble_, *status, "a loss of power may take what is written meanwhile");
        options_.watch->done(SelfWatch::Part::kStore, env_.now(io::Clock::kMonotonic), standing());
        if (!*status) unsynced_ = true;
      });
}

void Recorder::note_frames(const Frames& now) {
  const bool more = now.synced > frames_.synced;
  frames_ = now;
  if (more && options_.synced) options_.synced();
}

// An empty batch is appended behind all that waits.
void Recorder::secure(std::function<void(Result<uint64_t>)> done) {
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

void Recorder::acknowledged(uint64_t sequence) {
  auto frames = std::make_shared<Frames>();
  auto stats = std::make_shared<store::SpoolStats>();
  worker_->submit(
      [this, sequence, frames, stats] {
        spool_->hold(sequence);
        *frames = frames_of(*spool_);
        *stats = spool_->stats();
      },
      [this, frames, stats] {
        note_frames(*frames);
        stats_ = *stats;
      });
}

// Each change of it once: a full disk is one sentence, not one a second.
void Recorder::tell(std::string& trouble, const Status& status, const char* meanwhile) {
  const std::string now = status ? "" : status.error().text;
  if (now == trouble) return;
  if (!now.empty() && trouble.empty()) options_.complain(fmt::format("{}; {}", now, meanwhile));
  if (now.empty()) options_.complain("spool: it can be written again");
  trouble = now;
}

// A batch that found room in memory, or a write that no sync followed, ends no trouble of the disk.
Status Recorder::standing() const {
  const std::string& trouble = write_trouble_.empty() ? sync_trouble_ : write_trouble_;
  return trouble.empty() ? Status{} : fail(ErrorCode::kIo, trouble);
}

void Recorder::ask(OnStore work, std::function<void()> done) {
  worker_->submit([this, work = std::move(work)] { work(*spool_, *index_); }, std::move(done));
}

void Recorder::record(std::function<Status(store::Index&)> work) {
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

// In order, up to the first that has to be tried again. On the worker; not before the next try where one
// failed: each waits for a lock for seconds, and evidence waits behind it.
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
  if (!trouble.empty() && trouble != index_trouble_) options_.complain(trouble);
  index_trouble_ = trouble;
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
        Status kept;
        const size_t first = under_way && (*under_way || is_refused(*under_way)) ? 1 : 0;
        for (size_t i = first; i < rest.size() && (kept || is_refused(kept)); ++i)
          kept = spool_->append(*rest[i], now);
        *outcome = spool_->commit(now);
        const Status synced = spool_->sync();
        if (!synced) *outcome = tl::unexpected(synced.error());
        // What a socket sent and is not kept is told at the next start.
        if (!kept) *outcome = tl::unexpected(kept.error());
        if (*outcome) (void)files_.open(options_.state_dir + kEndedWell, io::OpenFor::kCreate);
      },
      [this, outcome, done = std::move(done)] {
        if (*outcome)
          options_.committed(**outcome, spool_->last_sequence());
        else
          options_.complain(outcome->error().text);
        done();
      });
}

Recorder::Figures Recorder::figures() const {
  return {stats_, refused_batches_, waiting_.size(), index_retries_, index_lost_};
}

}  // namespace culprit::app
