// Any bytes as the log of a container runtime, in pieces of several sizes: what waits for its last part has a
// bound, and each text of a part lies within its line.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "core/logs/line_feed.h"
#include "core/logs/line_parser.h"
#include "core/logs/runtime_line.h"

namespace {

using namespace culprit;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_lines(std::string_view rest) {
  require(logs::unfinished_parts(rest) <= rest.size());
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    const auto part = logs::runtime_line(line);
    if (part) {
      require(part->stream < 2);
      require(part->text.empty() || (part->text.data() > line.data() &&
                                     part->text.data() + part->text.size() == line.data() + line.size()));
      require(!part->partial || logs::may_have_parts(line));
    }
    if (part && part->partial) {
      const logs::JoinedLine joined = logs::join_parts(rest);
      require(joined.end > 0 && joined.end <= rest.size() && joined.text.size() <= joined.end);
    }
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_lines(bytes.substr(0, 16 << 10));
  for (const size_t piece : {size_t{1} << 22, size_t{61}}) {
    logs::LineFeed feed;
    logs::LineParser parser({});
    logs::LogBatch batch;
    const logs::LineFeed::Take take = [&](const TextChunk& chunk) {
      parser.parse(chunk, {}, batch);
      for (const logs::LineRecord& line : batch.lines) require(batch.message(line).size() <= size + 64);
    };
    for (size_t at = 0; at < size; at += piece) {
      feed.feed(bytes.substr(at, piece), take);
      require(feed.waiting() <= 4 * limits::kLineBytes);
    }
    feed.end(take);
    require(feed.waiting() == 0);
  }
  return 0;
}
