#include "app/jobs/job_router.h"

#include <utility>

#include "app/jobs/job_dumps.h"
#include "app/jobs/job_recognition.h"
#include "app/jobs/job_shares.h"
#include "base/limits.h"

namespace culprit::app {

void JobStreams::note(const StreamInfo& info, const Piece& piece) {
  if (info.kind == OriginKind::kDump) return;
  const auto at = ended_.try_emplace(info.id, false).first;
  ended_count_ -= at->second;
  at->second = piece.ends;
  ended_count_ += at->second;
  if (info.kind != OriginKind::kSocket || !piece.ends) return;
  --ended_count_;
  ended_.erase(at);
}

std::vector<StreamId> JobStreams::ids() const {
  std::vector<StreamId> out;
  for (const auto& [id, ended] : ended_) out.push_back(id);
  return out;
}

bool shows_life(const StreamInfo& info, const Piece& piece) {
  return info.kind != OriginKind::kSocket || !piece.ends || !piece.bytes.empty();
}

void HostBacklog::keep(StreamId stream, std::vector<HostLine> lines) {
  for (HostLine& line : lines) {
    if (line.passing) continue;
    if (!line.forgets.empty())
      std::erase_if(active_, [of = line.forgets + ' '](const Line& retained) {
        return retained.line.state.starts_with(of);
      });
    if (!line.state.empty()) {
      std::erase_if(active_, [&](const Line& retained) { return retained.line.state == line.state; });
      if (!line.clears) active_.push_back({stream, line});
      if (active_.size() > limits::kActiveStates) active_.pop_front();
    }
    bytes_ += line.text.size() + sizeof(Line);
    lines_.push_back({stream, std::move(line)});
  }
  while (bytes_ > limits::kHostBacklogBytes) {
    bytes_ -= lines_.front().line.text.size() + sizeof(Line);
    lines_.pop_front();
  }
}

RoutedJob* JobRouter::route(LiveStream& stream, const Piece& piece, TimeNs now) {
  const OriginKind kind = stream.info.kind;
  if (kind == OriginKind::kDump && begins_file(piece)) stream.dump_job = jobs_.only_running();
  const std::string& id = job_of(stream);
  RoutedJob* const known = jobs_.running(id);
  const bool runs = known != nullptr;
  // The end of a file does not start a run of a finished job.
  if (piece.bytes.empty() && !runs) return nullptr;
  if (keeps_out(known, stream, piece)) return nullptr;
  TraceBatch trace;
  if (kind == OriginKind::kSocket && !read(stream, piece, runs, trace)) return nullptr;
  RoutedJob* job = jobs_.open(id, stream.info, now);
  if (!job) {
    jobs_.refuse(stream, piece);
    return nullptr;
  }
  job->owner.ingested(stream.info, user_behind(stream.info, uid_));
  if (on_piece_) on_piece_(id, stream.info, piece);
  if (kind == OriginKind::kSocket)
    job->ingest_trace(stream, trace, piece, now);
  else
    job->ingest(stream, piece, now);
  return job;
}

// Whether the piece is a user's line, ring or file for a job of another user.
bool JobRouter::keeps_out(RoutedJob* job, LiveStream& stream, const Piece& piece) {
  const OriginKind kind = stream.info.kind;
  const auto user = user_behind(stream.info, uid_);
  // All data without a job name is one job, which has no owner.
  if (!user || job_of(stream) == kDefaultJob) return false;
  static const JobOwner kNone;
  const ShownUsers shown = users_of_ ? users_of_(job_of(stream)) : ShownUsers();
  if (job) job->owner.saw(shown);
  if ((job ? job->owner : kNone).admits(*user, kind, shown)) return false;
  if (kind == OriginKind::kFile) stream.lines_before += units_of(piece, kind);
  refused_ += units_of(piece, kind);
  if (job) job->keep_out(*user, stream, piece);
  return true;
}

// Returns false if no line parses and the job is not running; unparsed lines never start a job.
bool JobRouter::read(LiveStream& stream, const Piece& piece, bool runs, TraceBatch& out) {
  const bool trusted = uid_ && stream.info.uid == uid_;
  if (piece.gap) stream.rest.clear();
  out = read_trace(stream, piece.bytes, piece.offset, trusted);
  broken_trace_lines_ += out.broken.count;
  if (!runs && out.understood == 0) {
    stream.broken_before.add(out.broken);
    return false;
  }
  out.broken.add(std::exchange(stream.broken_before, {}));
  return true;
}

}  // namespace culprit::app
