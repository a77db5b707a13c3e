#include "app/daemon/restore.h"

#include <utility>

namespace culprit::app {
namespace {

// Some tenths of a second of the engine: questions wait no longer, and the watchdog sees that it gets on.
constexpr uint64_t kPartBytes = 8 << 20;
// The first round takes what was there at the start, each further one what came during the one before: an
// engine that is twice as fast as what comes needs some ten for an hour.
constexpr int kRounds = 12;

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
  options_.diagnoser->ask([ends = options_.ends](LiveJobs& live, TimeNs) { live.restoring(ends); });
  next();
}

void Restore::committed(uint64_t sequence) {
  uncommitted_.erase(uncommitted_.begin(), uncommitted_.begin() + static_cast<std::ptrdiff_t>(appended_));
  appended_ = 0;
  committed_ = sequence;
}

void Restore::next() {
  auto part = std::make_shared<Part>();
  options_.diagnoser->ask(
      [replay = replay_, until = until_, part](LiveJobs& live, TimeNs) {
        store::ReplayVisitor visitor;
        visitor.wanted = [&](const StreamInfo& info) {
          PieceBatch batch;
          batch.opened.push_back(info);
          live.take(batch, info.opened_ns);
          return true;
        };
        visitor.piece = [&](const Piece& piece) {
          PieceBatch batch;
          batch.pieces.push_back(piece);
          live.take(batch, piece.time_ns);
          return true;
        };
        part->whole = replay->advance(until, kPartBytes, visitor);
      },
      [this, part] {
        if (!stopped_) read(*part);
      });
}

void Restore::read(const Part& part) {
  if (part.whole && !*part.whole) return next();
  Diagnoser& engine = *options_.diagnoser;
  if (rounds_++ == 0) engine.ask([](LiveJobs& live, TimeNs now) { live.replayed(now); });
  if (part.whole && committed_ > until_) {
    until_ = committed_;
    if (rounds_ == kRounds) options_.hold();
    return next();
  }
  engine.ask([](LiveJobs& live, TimeNs now) { live.caught_up(now); });
  const Result<store::ReadDamage> damage =
      part.whole ? Result<store::ReadDamage>(replay_->damage()) : tl::unexpected(part.whole.error());
  const auto done = std::move(options_.done);  // it may end this
  done({std::make_move_iterator(uncommitted_.begin()), std::make_move_iterator(uncommitted_.end())}, damage);
}

}  // namespace culprit::app
