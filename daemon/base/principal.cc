#include "base/principal.h"

#include <fmt/format.h>

#include <ostream>

namespace culprit {

Principal Principal::pod(std::string_view id) {
  constexpr int kDigits = 12;  // as `docker ps`, `crictl ps` and some other tools show
  uint64_t number = 0;
  int digits = 0;
  for (const char c : id) {
    if (c == '-') continue;
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && !(c >= 'a' && c <= 'f')) break;
    number = number << 4 | static_cast<uint64_t>(decimal ? c - '0' : c - 'a' + 10);
    if (++digits == kDigits) return from(kPod | number);
  }
  return from(kPod);
}

std::string Principal::pod_id() const {
  if (!is_pod()) return {};
  return value == kPod ? "unknown" : fmt::format("{:012x}", value & (kPod - 1));
}

std::string to_string(const Principal& who) {
  return who.is_pod() ? "pod:" + who.pod_id() : fmt::format("uid {}", who.value);
}

std::ostream& operator<<(std::ostream& out, const Principal& who) { return out << to_string(who); }

}  // namespace culprit
