// Who wrote something: a user of this host, or a container. Root inside a container counts as the container,
// not as root. Most containers run as root, so their claims prove nothing about the host.
#pragma once

#include <compare>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

namespace culprit {

struct Principal {
  // A uid, or kPod and the first 12 hexadecimal digits of the container's id. Formats on disk and between
  // hosts use this number.
  uint64_t value = 0;
  static constexpr uint64_t kPod = uint64_t{1} << 48, kEnd = uint64_t{1} << 49;

  constexpr Principal() = default;
  constexpr Principal(uint32_t uid) : value(uid) {}  // NOLINT: a uid is a principal
  static constexpr Principal from(uint64_t value) {
    Principal out;
    out.value = value;
    return out;
  }
  // `id` must begin with 12 lower-case hexadecimal digits, ignoring hyphens; otherwise the unknown container
  // is returned.
  static Principal pod(std::string_view id);

  constexpr bool is_pod() const { return value >= kPod; }
  constexpr bool is_uid(uint32_t uid) const { return value == uid; }
  constexpr std::optional<uint32_t> uid() const {
    return is_pod() ? std::nullopt : std::optional(static_cast<uint32_t>(value));
  }
  std::string pod_id() const;  // "3f2a51e8c9d0"; "unknown"; empty for a user
  auto operator<=>(const Principal&) const = default;
};

std::string to_string(const Principal& who);  // "uid 1000", "pod:3f2a51e8c9d0"
std::ostream& operator<<(std::ostream& out, const Principal& who);

}  // namespace culprit
