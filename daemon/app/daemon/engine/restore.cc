#include "app/daemon/engine/restore.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace culprit::app {
namespace {

// A part takes the engine some tenths of a second, which limits the wait of queries and feeds the watchdog.
constexpr uint64_t kRestoredPart = 8 << 20;
// The first round replays the data from before the start; each further round replays what arrived during the
// previous one. An engine twice as fast as the input needs some ten rounds for an hour.
constexpr int kRestoreRounds = 12;
// Runs whose diagnoses are read at once, which limits the wait of evidence.
constexpr size_t kRunsAtOnce = 64;

}  // namespace

std::vector<RunEnd> ends_of_runs(const Recorder& recorder) {
  std::vector<RunEnd> out;
  for (const records::JobRow& row : recorder.known_jobs()) {
    if (row.state != records::JobState::kRunning)
      out.push_back({row.id, row.run, row.ended_ns});
    else if (row.run > 0)  // the earlier run ended before this run began
      out.push_back({row.id, row.run - 1, row.first_ns - 1});
  }
  return out;
}

std::set<std::string> ended_jobs(const Recorder& recorder) {
  std::set<std::string> out;
  for (const records::JobRow& row : recorder.known_jobs())
    if (row.state != records::JobState::kRunning) out.insert(row.id);
  return out;
}

struct Restore::Part {
  Result<bool> whole;
};

Restore::Restore(RestoreOptions options)
    : options_(std::move(options)),
      replay_(std::make_shared<store::Replay>(options_.recorder->files(), options_.recorder->spool_folder())),
      committed_(options_.recorder->known_sequence()),
      until_(committed_) {}

void Restore::begin() {
  options_.engine->query(
      [ends = ends_of_runs(*options_.recorder)](LiveJobs& live, TimeNs) { live.restoring(ends); });
  for (const records::JobRow& row : options_.recorder->known_jobs())
    if (row.state == records::JobState::kRunning) unloaded_.emplace_back(row.id, row.run);
  load_records();
}

// People's judgements count for the reports of running jobs. What the previous process stored is withdrawn if
// the reports lack it: that process may have been killed before it could.
void Restore::load_records() {
  if (unloaded_.empty()) return next();
  const size_t n = std::min(unloaded_.size(), kRunsAtOnce);
  const std::vector<records::JobRunId> runs(unloaded_.end() - static_cast<std::ptrdiff_t>(n),
                                            unloaded_.end());
  unloaded_.resize(unloaded_.size() - n);
  const auto verdicts = std::make_shared<std::vector<Verdict>>();
  options_.recorder->query(
      [runs, verdicts](store::Spool&, records::Records& index) {
        for (const auto& [job, run] : runs)
          if (auto of_run = index.verdicts({.job = job, .run = run}))
            std::ranges::move(*of_run, std::back_inserter(*verdicts));
      },
      [this, verdicts] {
        options_.engine->query([verdicts](LiveJobs& live, TimeNs now) {
          for (const Verdict& v : *verdicts)
            if (!v.judged_by.empty())
              live.judge({v.job, v.id(), v.run, v.state == VerdictState::kConfirmed}, now);
          std::erase_if(*verdicts,
                        [](const Verdict& v) { return v.state != VerdictState::kOpen && !v.leads; });
          live.restoring({}, std::move(*verdicts));
        });
        if (!stopped_) load_records();
      });
}

void Restore::committed(uint64_t sequence) {
  uncommitted_.erase(uncommitted_.begin(), uncommitted_.begin() + static_cast<std::ptrdiff_t>(appended_));
  appended_ = 0;
  committed_ = sequence;
}

void Restore::next() {
  auto part = std::make_shared<Part>();
  options_.engine->change(
      [replay = replay_, until = until_, part](std::span<LiveJobs* const> all, TimeNs) {
        store::ReplayVisitor visitor;
        visitor.wanted = [&](const StreamInfo& info) {
          PieceBatch batch;
          batch.opened.push_back(info);
          for (LiveJobs* live : all) live->ingest(batch, info.opened_ns);
          return true;
        };
        visitor.piece = [&](const Piece& piece) {
          if (piece.gap && (piece.gap->reason == store::kDropped || piece.gap->reason == store::kDamaged))
            for (LiveJobs* live : all) live->lacks_evidence(piece.stream);
          PieceBatch batch;
          batch.pieces.push_back(piece);
          for (LiveJobs* live : all) live->ingest(batch, piece.time_ns);
          return true;
        };
        part->whole = replay->advance(until, kRestoredPart, visitor);
      },
      [this, part] {
        if (!stopped_) read(*part);
      });
}

void Restore::read(const Part& part) {
  if (part.whole && !*part.whole) return next();
  EngineWorker& engine = *options_.engine;
  if (rounds_++ == 0) engine.query([](LiveJobs& live, TimeNs now) { live.replayed(now); });
  if (part.whole && committed_ > until_) {
    until_ = committed_;
    if (rounds_ == kRestoreRounds) options_.hold();
    return next();
  }
  engine.query([](LiveJobs& live, TimeNs now) { live.caught_up(now); });
  const Result<store::ReadDamage> damage =
      part.whole ? Result<store::ReadDamage>(replay_->damage()) : tl::unexpected(part.whole.error());
  const auto done = std::move(options_.done);  // the callback may destroy this object
  done({std::make_move_iterator(uncommitted_.begin()), std::make_move_iterator(uncommitted_.end())}, damage);
}

}  // namespace culprit::app
