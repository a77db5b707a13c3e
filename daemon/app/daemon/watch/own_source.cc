#include "app/daemon/watch/own_source.h"

#include <utility>

#include "app/daemon/watch/capture_findings.h"
#include "app/daemon/watch/check_finding.h"

namespace culprit::app {

OwnSource::OwnSource(Recorder& recorder, std::string_view path) : recorder_(recorder), path_(path) {
  for (const StreamState& state : recorder.known())
    if (state.info.kind == OriginKind::kPlugin && state.info.path == path_ && !state.ended) {
      stream_ = state.info.id;
      offset_ = state.size;
    }
}

bool is_own_source(std::string_view path) { return path == kCaptureSource || path == kCheckSource; }

PieceBatch OwnSource::batch(std::string lines, TimeNs now) {
  PieceBatch out;
  if (stream_ == kNoStream) {
    stream_ = recorder_.allocate();
    StreamInfo info;
    info.id = stream_;
    info.kind = OriginKind::kPlugin;
    info.path = path_;
    info.opened_ns = now;
    out.opened.push_back(std::move(info));
  }
  Piece& piece = out.pieces.emplace_back();
  piece.stream = stream_;
  piece.offset = offset_;
  piece.bytes = std::move(lines);
  piece.time_ns = now;
  offset_ += piece.bytes.size();
  return out;
}

}  // namespace culprit::app
