#include "app/daemon/engine/late_reading.h"

#include <algorithm>
#include <vector>

namespace culprit::app {
namespace {

// A part takes the engine's worker some tens of milliseconds.
constexpr uint64_t kPartBytes = 1 << 20, kPartFrames = 32;
// The first round reads data from before its start; each further round reads data that arrived during the
// previous round. After the last round, a job that writes faster than it is read is handed over partly
// unread.
constexpr int kRounds = 30;

}  // namespace

struct LateReading::Part {
  bool begun = false, whole = false, ended = false, failed = false;
  uint64_t until = 0;
};

LateReading::LateReading(Recorder& recorder, EngineWorker& engine)
    : recorder_(recorder), engine_(engine), committed_(recorder.known_sequence()) {}

void LateReading::beat() {
  if (busy_ || stopped_) return;
  if (replay_)
    next();
  else if (engine_.counts().waiting > 0)
    begin();
}

void LateReading::begin() {
  busy_ = true;
  auto part = std::make_shared<Part>();
  engine_.query([part](LiveJobs& live, TimeNs now) { part->begun = !live.begin_reading(now).empty(); },
                [this, part] {
                  busy_ = false;
                  if (!part->begun || stopped_) return;
                  replay_ = std::make_shared<store::Replay>(recorder_.files(), recorder_.spool_folder());
                  const uint64_t first = recorder_.frames().first;
                  read_ = first > 0 ? first - 1 : 0;
                  until_ = committed_;
                  rounds_ = 0;
                  next();
                });
}

void LateReading::next() {
  busy_ = true;
  auto part = std::make_shared<Part>();
  part->until = std::min(until_, read_ + kPartFrames);
  engine_.query(
      [replay = replay_, part, until = until_, at_most = rounds_ >= kRounds](LiveJobs& live, TimeNs) {
        store::ReplayVisitor visitor;
        visitor.wanted = [&](const StreamInfo& info) { return live.open_to_read(info); };
        visitor.piece = [&](const Piece& piece) {
          live.read(piece);
          return true;
        };
        const auto read = replay->advance(part->until, kPartBytes, visitor);
        part->failed = !read;
        part->whole = read && *read;
        const bool round = part->whole && part->until == until;
        if (round || part->failed) part->ended = live.end_reading(at_most || part->failed);
      },
      [this, part] {
        busy_ = false;
        if (!stopped_) part_read(*part);
      });
}

// Uncommitted data is read at a later beat.
void LateReading::part_read(const Part& part) {
  if (part.ended) return replay_.reset();
  if (part.whole) read_ = part.until;
  if (read_ < until_) return next();
  until_ = std::max(until_, committed_);
  ++rounds_;
}

}  // namespace culprit::app
