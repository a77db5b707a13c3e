#include "store/archive_replay.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "store/archive_log.h"

namespace culprit::store {

namespace {

// The logs as they were taken, taken again.
class Again {
 public:
  Again(const ReplayPlan& plan, const ArchiveVisitor& visitor) : plan_(plan), visitor_(visitor) {}
  bool done() const { return done_; }

  // False where the content is none.
  bool take(const SegmentReader& reader) {
    const FrameHeader& frame = reader.frame();
    const auto origin = plan_.logs.find(frame.epoch);
    if (origin == plan_.logs.end()) return true;
    ArchivedLog& log = logs_[frame.epoch];
    if (frame.kind == FrameKind::kData && frame.sequence <= log.sequence) return true;
    PieceBatch taken;
    LogTaker taker({log, stats_, &taken}, {}, frame.kind);
    if (frame.kind == FrameKind::kData) taker.note_lost(frame.sequence, frame.time_ns);
    const bool good = read_records(reader.content(), taker);
    if (frame.kind == FrameKind::kData) log.sequence = frame.sequence;
    // Nothing is committed here.
    log.touched_streams.clear();
    log.new_holes.clear();
    log.new_skips.clear();
    for (const StreamInfo& info : taken.opened)
      if (visitor_.wanted(origin->second, info)) wanted_[frame.epoch].insert(info.id);
    const std::set<StreamId>& wanted = wanted_[frame.epoch];
    for (const Piece& piece : taken.pieces)
      if (!done_ && wanted.count(piece.stream) > 0) done_ = !visitor_.piece(origin->second, piece);
    return good;
  }

 private:
  const ReplayPlan& plan_;
  const ArchiveVisitor& visitor_;
  std::map<uint64_t, ArchivedLog> logs_;
  std::map<uint64_t, std::set<StreamId>> wanted_;
  ArchiveStats stats_;
  bool done_ = false;
};

}  // namespace

ReadDamage replay(io::Files& files, const std::string& folder, const ReplayPlan& plan,
                  const ArchiveVisitor& visitor) {
  ReadDamage damage;
  const auto note = [&](std::string what) {
    if (damage.first.empty()) damage.first = std::move(what);
  };
  Again again(plan, visitor);
  for (const ReplayPlan::Part& part : plan.segments) {
    auto reader = SegmentReader::open(files, folder, part.segment);
    if (!reader) {
      if (reader.error().code == ErrorCode::kNotFound) continue;  // dropped since
      damage.unreadable_segments += 1;
      note(reader.error().text);
      continue;
    }
    reader->take_any_origin();
    reader->limit(part.size);
    for (;;) {
      const auto more = again.done() ? Result<bool>(false) : reader->next({});
      if (!more) {
        damage.unreadable_segments += 1;
        note(more.error().text);
      }
      if (!more || !*more) break;
      if (!again.take(*reader)) damage.frames += 1;
    }
    damage.frames += reader->damaged_frames();
    damage.bytes += reader->damaged_bytes();
    if (reader->damaged_bytes() > 0)
      note(fmt::format("{}/{}: {} damaged bytes were skipped", folder, segment_name(part.segment),
                       reader->damaged_bytes()));
  }
  return damage;
}

}  // namespace culprit::store
