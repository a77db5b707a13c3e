#include "io/request_line.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/clock.h"

namespace culprit::io {

std::string read_request_line(int descriptor, size_t most, TimeNs within_ns) {
  std::string out;
  std::array<char, 65536> buffer;
  const TimeNs until = steady_now() + within_ns;
  while (out.find('\n') == out.npos && out.size() < most) {
    pollfd wait{descriptor, POLLIN, 0};
    const TimeNs left = until - steady_now();
    if (left <= 0) break;
    const int ready = ::poll(&wait, 1, static_cast<int>(left / kNsPerMs) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) break;
    const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    out.append(buffer.data(), static_cast<size_t>(n));
  }
  out.resize(std::min({out.size(), out.find('\n'), most}));
  return out;
}

}  // namespace culprit::io
