// Lines of any bytes: the result of HeaderParser must lie within the line, and must not depend on earlier
// lines.
#include "core/logs/header.h"

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

void check(const Header& header, std::string_view line) {
  require(header.message <= line.size());
  if (header.host.empty()) return;
  require(header.host.data() >= line.data());
  require(header.host.data() + header.host.size() <= line.data() + line.size());
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
