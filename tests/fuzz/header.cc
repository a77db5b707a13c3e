// Lines of any bytes: the results of HeaderParser, json_line() and unwrap() must lie within the line, and
// those of the parser must not depend on earlier lines.
#include "core/logs/header.h"

#include "core/logs/json_line.h"
#include "core/logs/unwrap.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using culprit::logs::Header;
using culprit::logs::HeaderParser;

void require(bool condition) {
  if (!condition) std::abort();
}

void must_lie_in(std::string_view part, std::string_view line) {
  if (part.empty()) return;
  require(part.data() >= line.data());
  require(part.data() + part.size() <= line.data() + line.size());
}

void check(const Header& header, std::string_view line) {
  require(header.message <= line.size());
  must_lie_in(header.host, line);
  must_lie_in(culprit::logs::joined_exception(line), line);
  std::string made;
  made.reserve(line.size());
  const auto inner = culprit::logs::unwrap(line, made);
  require(made.size() <= line.size());
  if (inner) must_lie_in(inner->text, inner->made ? std::string_view(made) : line);
  const auto json = culprit::logs::json_line(line);
  if (!json) return;
  for (const std::string_view part : {json->message, json->exception, json->host, json->lines, json->time})
    must_lie_in(part, line);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const culprit::logs::HeaderOptions options{3600, 1'763'700'000'000'000'000};
  HeaderParser parser(options);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string line(rest.substr(0, end));  // memory of its own, so that a read beyond it is detected
    const Header header = parser.parse(line);
    check(header, line);
    const Header again = HeaderParser(options).parse(line);
    require(again.time_ns == header.time_ns && again.message == header.message && again.host == header.host &&
            again.rank == header.rank && again.local == header.local && again.level == header.level);
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return 0;
}
