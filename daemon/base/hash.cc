#include "base/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace culprit {
uint64_t hash64(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
std::string hex64(uint64_t value) { return fmt::format("{:016x}", value); }
}  // namespace culprit
