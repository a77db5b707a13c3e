#include "spool_source.h"

#include <algorithm>
#include <utility>

namespace culprit::sim {
namespace {

using forward::ReadRequest;
using forward::SourceFrame;

SourceFrame source_frame(store::VerbatimFrame frame, bool selected) {
  SourceFrame out;
  out.kind = static_cast<peer::FrameKind>(frame.header.kind);  // the same numbers
  out.sequence = frame.header.sequence;
  out.packed_ns = frame.header.time_ns;
  if (selected) out.bytes = std::move(frame.bytes);
  return out;
}

Result<std::vector<SourceFrame>> read_frames(store::FrameReader& reader, const ReadRequest& request,
                                             uint64_t until) {
  std::vector<SourceFrame> out;
  uint64_t after = request.after, bytes = 0;
  if (request.with_checkpoint) {
    auto checkpoint = reader.checkpoint(after);
    if (!checkpoint) return tl::unexpected(checkpoint.error());
    for (store::VerbatimFrame& frame : checkpoint->frames)
      out.push_back(source_frame(std::move(frame), true));
    // Frames between the checkpoint and the position are needed too: they may declare streams.
    if (!checkpoint->frames.empty()) after = checkpoint->sequence;
  }
  while (out.size() < request.max_frames && bytes < request.max_bytes && after < until) {
    auto frames = reader.read({after, until, std::max<size_t>(1, request.max_bytes - bytes)});
    if (!frames) return out.empty() ? Result<std::vector<SourceFrame>>(tl::unexpected(frames.error())) : out;
    if (frames->empty()) break;
    for (store::VerbatimFrame& frame : *frames) {
      const auto& header = frame.header;
      if (request.selection.stops_at(header.time_ns, header.declares)) return out;
      const bool selected = request.selection.selects(header.time_ns, header.declares);
      if (out.size() >= request.max_frames) return out;
      if (selected && bytes > 0 && bytes + frame.bytes.size() > request.max_bytes) return out;
      if (selected) bytes += frame.bytes.size();
      after = header.sequence;
      out.push_back(source_frame(std::move(frame), selected));
    }
  }
  return out;
}

}  // namespace

SpoolSource::SpoolSource(io::Files& files, io::Worker& store, Logs logs)
    : store_(store), logs_(std::move(logs)) {
  for (size_t i = 0; i < logs_.size(); ++i)
    readers_[i] = std::make_shared<store::FrameReader>(files, logs_[i].folder, logs_[i].spool->epoch());
  bounds_ = look();
}

std::array<peer::LogBounds, peer::kLogs.size()> SpoolSource::look() const {
  std::array<peer::LogBounds, peer::kLogs.size()> found;
  for (const peer::Log log : peer::kLogs) {
    const store::Spool& spool = *logs_[static_cast<size_t>(log)].spool;
    const uint64_t next = spool.synced_sequence() + 1;
    found[static_cast<size_t>(log)] = {log, spool.epoch(), std::min(spool.first_sequence(), next), next};
  }
  return found;
}

void SpoolSource::read(ReadRequest request, Done done) {
  const size_t log = static_cast<size_t>(request.log);
  auto found = std::make_shared<Result<std::vector<SourceFrame>>>();
  store_.submit([reader = readers_[log], spool = logs_[log].spool, request,
                 found] { *found = read_frames(*reader, request, spool->synced_sequence()); },
                [found, done = std::move(done)] { done(std::move(*found)); });
}

void SpoolSource::acknowledged(peer::Log log, uint64_t sequence) {
  const SpoolLog& of = logs_[static_cast<size_t>(log)];
  if (on_acknowledged) on_acknowledged(log, bounds(log).epoch, sequence);
  store_.submit([spool = of.spool, sequence] { spool->retain_after(sequence); });
}

}  // namespace culprit::sim
