// 64-bit hashes, stable across machines and versions: template names contain them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit {

// XXH3 of the bytes.
uint64_t hash64(std::string_view bytes, uint64_t seed = 0);

// 16 lower-case hex digits.
std::string hex64(uint64_t value);

// Mixes two words into one (the finaliser of SplitMix64 over their sum with a golden-ratio step).
inline uint64_t mix64(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15ull * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

}  // namespace culprit
