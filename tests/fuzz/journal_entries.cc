// Any bytes from journalctl, one read per NUL. The evidence is whole lines; each is an entry, by the same
// writer as before, and its lines for the engine are whole. What an earlier run stored is not stored again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/live/journal.h"

namespace {

using namespace culprit;
using namespace culprit::ingest;

void require(bool condition) {
  if (!condition) std::abort();
}

std::string run(const std::vector<std::string_view>& reads, StreamState* state) {
  std::vector<StreamState> known;
  if (state->info.id != kNoStream) known.push_back(*state);
  JournalLog log({[] { return StreamId{1}; }, "journal/system", {}, true}, known);
  log.restarted();
  std::string evidence;
  for (const std::string_view read : reads) {
    const std::string own(read);  // memory of its own, so that a read beyond it is detected
    const PieceBatch batch = log.add(own, 10);
    for (const StreamInfo& info : batch.opened) state->info = info;
    for (const Piece& piece : batch.pieces) {
      require(piece.stream == state->info.id && piece.offset == state->size && piece.place);
      state->size += piece.bytes.size();
      state->place = piece.place;
      evidence += piece.bytes;
    }
  }
  return evidence;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string_view> reads = split(bytes, '\0');
  StreamState state;
  const std::string evidence = run(reads, &state);
  require(evidence.empty() || evidence.back() == '\n');
  JournalParser parser;
  for (std::string_view rest = evidence; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    const auto entry = parser.parse(line);
    require(entry.has_value() && entry->message.size() <= 3 * limits::kJournalMessageBytes);
    require(parse_cursor(cursor_of(entry->place)) == entry->place);
    const std::string text = journal_text(*entry);
    require(entry->writer != JournalWriter::kOther || text.empty());
    require(text.empty() || text.back() == '\n');
  }
  run(reads, &state);  // and after a restart
  return 0;
}
