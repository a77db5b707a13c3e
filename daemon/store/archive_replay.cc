#include "store/archive_replay.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "store/archive_log.h"

namespace culprit::store {

namespace {

// Rebuilds the streams of the logs from their frames.
class Again {
 public:
  bool done() const { return done_; }
  uint64_t bytes() const { return bytes_; }  // of returned pieces

  // False if the content is malformed.
  bool replay_frame(const SegmentReader& reader, const ReplayPlan& plan, const ArchiveVisitor& visitor) {
    const FrameHeader& frame = reader.frame();
    const auto origin = plan.logs.find(frame.epoch);
    if (origin == plan.logs.end()) return true;
    ArchivedLog& log = logs_[frame.epoch];
    if (frame.kind == FrameKind::kData && frame.sequence <= log.sequence) return true;
    PieceBatch taken;
    LogTaker taker({log, stats_, &taken}, {}, frame.kind);
    if (frame.kind == FrameKind::kData) taker.note_lost(frame.sequence, frame.time_ns);
    const bool good = read_records(reader.content(), taker);
    if (frame.kind == FrameKind::kData) log.sequence = frame.sequence;
    // A replay commits nothing.
    log.touched_streams.clear();
    log.new_holes.clear();
    log.new_skips.clear();
    for (const StreamInfo& info : taken.opened)
      if (visitor.wanted(origin->second, info)) wanted_[frame.epoch].insert(info.id);
    const std::set<StreamId>& wanted = wanted_[frame.epoch];
    for (const Piece& piece : taken.pieces) {
      if (done_ || wanted.count(piece.stream) == 0) continue;
      bytes_ += piece.bytes.size();
      done_ = !visitor.piece(origin->second, piece);
    }
    return good;
  }

 private:
  std::map<uint64_t, ArchivedLog> logs_;
  std::map<uint64_t, std::set<StreamId>> wanted_;
  ArchiveStats stats_;
  uint64_t bytes_ = 0;
  bool done_ = false;
};

}  // namespace

struct ArchiveReplay::Impl {
  io::Files& files;
  std::string folder;
  Again again;
  std::optional<SegmentReader> reader;  // of `segment`, which may still grow
  uint64_t segment = 0;                 // earlier segments are done
  ReadDamage damage;                    // of earlier segments

  void note(std::string what) {
    if (damage.first.empty()) damage.first = std::move(what);
  }
  void leave() {
    if (!reader) return;
    damage.frames += reader->damaged_frames();
    damage.bytes += reader->damaged_bytes();
    if (reader->damaged_bytes() > 0)
      note(fmt::format("{}/{}: {} damaged bytes were skipped", folder, segment_name(segment),
                       reader->damaged_bytes()));
    reader.reset();
  }
  void fail(const Error& error) {
    damage.unreadable_segments += 1;
    note(error.text);
    reader.reset();
  }
  // Whether it has something to read.
  bool enter(const ReplayPlan::Part& part) {
    if (part.segment < segment) return false;
    if (part.segment > segment) {
      leave();
      segment = part.segment;
      auto opened = SegmentReader::open(files, folder, segment);
      if (!opened) {  // deleted since, or unreadable
        if (opened.error().code != ErrorCode::kNotFound) fail(opened.error());
        return false;
      }
      reader.emplace(std::move(*opened));
      reader->accept_any_origin();
    } else if (!reader) {
      return false;
    } else if (const Status fresh = reader->refresh(); !fresh) {
      fail(fresh.error());
      return false;
    }
    reader->limit(part.size);
    return true;
  }
};

ArchiveReplay::ArchiveReplay(io::Files& files, std::string folder)
    : impl_(new Impl{files, std::move(folder), {}, {}, 0, {}}) {}
ArchiveReplay::~ArchiveReplay() = default;

bool ArchiveReplay::advance(const ReplayPlan& plan, uint64_t bytes_most, const ArchiveVisitor& visitor) {
  Impl& r = *impl_;
  const uint64_t begin = r.again.bytes();
  for (const ReplayPlan::Part& part : plan.segments) {
    if (r.again.done()) break;
    if (!r.enter(part)) continue;
    while (!r.again.done()) {
      if (r.again.bytes() - begin >= bytes_most) return false;
      const auto more = r.reader->next({});
      if (!more) r.fail(more.error());
      if (!more || !*more) break;
      if (!r.again.replay_frame(*r.reader, plan, visitor)) r.damage.frames += 1;
    }
  }
  return true;
}

ReadDamage ArchiveReplay::damage() const {
  ReadDamage all = impl_->damage;
  if (impl_->reader) {
    all.frames += impl_->reader->damaged_frames();
    all.bytes += impl_->reader->damaged_bytes();
  }
  return all;
}

ReadDamage replay(io::Files& files, const std::string& folder, const ReplayPlan& plan,
                  const ArchiveVisitor& visitor) {
  ArchiveReplay all(files, folder);
  all.advance(plan, UINT64_MAX, visitor);
  all.impl_->leave();
  return all.impl_->damage;
}

}  // namespace culprit::store
