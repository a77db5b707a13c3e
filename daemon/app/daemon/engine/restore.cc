#include "app/daemon/engine/restore.h"

#include <utility>

namespace culprit::app {
namespace {

// A part takes the engine some tenths of a second, which limits the wait of queries and feeds the watchdog.
constexpr uint64_t kRestoredPart = 8 << 20;
// The first round replays the data from before the start; each further round replays what arrived during the
// previous one. An engine twice as fast as the input needs some ten rounds for an hour.
constexpr int kRestoreRounds = 12;

}  // namespace

struct Restore::Part {
  Result<bool> whole;
};

Restore::Restore(RestoreOptions options)
    : options_(std::move(options)),
      replay_(std::make_shared<store::Replay>(options_.recorder->files(), options_.recorder->spool_folder())),
      committed_(options_.recorder->known_sequence()),
      until_(committed_) {}

void Restore::begin() {
  options_.engine->query([ends = options_.ends](LiveJobs& live, TimeNs) { live.restoring(ends); });
  next();
}

void Restore::committed(uint64_t sequence) {
  uncommitted_.erase(uncommitted_.begin(), uncommitted_.begin() + static_cast<std::ptrdiff_t>(appended_));
  appended_ = 0;
  committed_ = sequence;
}

void Restore::next() {
  auto part = std::make_shared<Part>();
  options_.engine->query(
      [replay = replay_, until = until_, part](LiveJobs& live, TimeNs) {
        store::ReplayVisitor visitor;
        visitor.wanted = [&](const StreamInfo& info) {
          PieceBatch batch;
          batch.opened.push_back(info);
          live.ingest(batch, info.opened_ns);
          return true;
        };
        visitor.piece = [&](const Piece& piece) {
          PieceBatch batch;
          batch.pieces.push_back(piece);
          live.ingest(batch, piece.time_ns);
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
