#include "app/jobs/batch_ahead.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/limits.h"

namespace culprit::app {
namespace {

// Minimum bytes of a queue: a tailer reads up to 1 MiB in a round if available.
constexpr uint64_t kQueueBytes = 512 << 10;
// Passing a shorter text to another thread and back costs more than it saves.
constexpr size_t kLongText = 16 << 10;

// The lines of the piece that the ingesting thread parses in one chunk, unless it has buffered bytes before
// them.
std::string_view whole_lines(const Piece& piece) {
  if (piece.bytes.size() < kLongText || piece.bytes.size() > limits::kChunkBytes) return {};
  return std::string_view(piece.bytes).substr(0, piece.bytes.rfind('\n') + 1);
}

// Walks the pieces in their order, over several batches.
struct Walk {
  const BatchAhead::Parts& parts;
  TimeNs now;
  std::unordered_map<StreamId, bool> cut = {};  // whether the stream's last piece ends within a line

  std::vector<ParseAhead::Text> texts(std::span<const Piece> pieces) {
    std::vector<ParseAhead::Text> out;
    for (const Piece& piece : pieces) {
      if (auto text = text_of(piece)) out.push_back(std::move(*text));
      if (!piece.bytes.empty()) cut[piece.stream] = piece.bytes.back() != '\n';
    }
    return out;
  }

  std::optional<ParseAhead::Text> text_of(const Piece& piece) const {
    const std::string_view lines = whole_lines(piece);
    if (lines.empty()) return std::nullopt;
    const auto before = cut.find(piece.stream);
    if (before != cut.end() && before->second) return std::nullopt;
    const LiveStream* stream = parts.stream_of(piece.stream);
    if (!stream || stream->info.kind != OriginKind::kFile) return std::nullopt;
    RoutedJob* job = parts.jobs.running(job_of(*stream));
    if (!job) return std::nullopt;
    const TimeNs at = piece.time_ns == kNoTime ? now : piece.time_ns;
    auto source = job->inputs().source_for(piece.stream, at, before == cut.end());
    if (!source) return std::nullopt;
    return ParseAhead::Text{lines, std::move(*source)};
  }
};

}  // namespace

BatchAhead::BatchAhead(const Parts& parts, const Coming& coming, TimeNs now) : parsing_(parts.parsing) {
  const std::shared_ptr<const PieceBatch> known = std::exchange(parsing_.ahead_of, nullptr);
  const bool begun = known.get() == &coming.batch;
  if (!begun) parsing_.ahead.keep_last(0);
  const uint64_t bytes = coming.batch.bytes() + (coming.next ? coming.next->bytes() : 0);
  if (parsing_.threads < 2 || bytes < kQueueBytes) return;
  Walk walk{parts, now};
  std::vector<ParseAhead::Text> texts =
      walk.texts(std::span<const Piece>(coming.batch.pieces).subspan(coming.first));
  // The ingesting thread is about to parse the first text itself.
  if (!texts.empty()) texts.erase(texts.begin());
  if (begun) texts.clear();
  if (coming.next) {
    std::vector<ParseAhead::Text> later = walk.texts(coming.next->pieces);
    texts_of_next_ = later.size();
    if (!later.empty()) parsing_.ahead_of = coming.next;
    std::move(later.begin(), later.end(), std::back_inserter(texts));
  }
  parsing_.ahead_ns = now;
  parsing_.ahead.add(std::move(texts), parsing_.make_parser);
}

}  // namespace culprit::app
