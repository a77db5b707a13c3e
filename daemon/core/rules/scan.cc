#include "core/rules/scan.h"

#include <algorithm>

namespace culprit::rules {

void scan_block(Scanner& scanner, std::string_view block, logs::HeaderParser& headers,
                const std::function<void(const ScannedLine&)>& take) {
  scanner.begin(block);
  for (size_t at = 0; at < block.size();) {
    ScannedLine line;
    line.begin = at;
    if (!scanner.wants(at)) {
      const size_t hit = scanner.next_literal(at);
      if (hit > block.size()) return;
      const size_t before = block.rfind('\n', hit - 1);
      line.begin = before == block.npos ? 0 : before + 1;
    }
    line.end = std::min(block.find('\n', line.begin), block.size());
    const std::string_view text = block.substr(line.begin, line.end - line.begin);
    line.header = headers.parse(text);
    line.message = text.substr(line.header.message);
    const TextSource source = line.header.kernel ? TextSource::kKernel : TextSource::kLog;
    line.matches = scanner.match(line.begin, line.end, line.message, source);
    if (line.matches.empty() && line.header.level == logs::Level::kFatal && source == TextSource::kLog) {
      scanner.back_to(line.begin);
      line.matches = scanner.match(line.begin, line.end, text, TextSource::kFatal);
    }
    take(line);
    at = line.end + 1;
  }
}

}  // namespace culprit::rules
