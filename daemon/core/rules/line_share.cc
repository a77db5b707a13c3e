#include "core/rules/line_share.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ascii.h"

namespace culprit::rules {
namespace {

constexpr size_t kGram = 4;

struct CommonGrams {
  uint32_t one_of = 1;     // the gram occurs in one of this many lines
  std::string_view grams;  // concatenated, kGram characters each
};

constexpr CommonGrams kCommonGrams[] = {
#include "core/rules/common_grams.inc"
};

uint32_t gram_at(std::string_view text, size_t at) {
  uint32_t out = 0;
  for (const char c : text.substr(at, kGram)) {
    const char one = digit(c) ? '0' : lower(c);
    out = out << 8 | static_cast<unsigned char>(one);
  }
  return out;
}

// The counts treat all digits as one. One occurrence in ten has the digit of the text.
double of_these_digits(double share, std::string_view gram) {
  for (const char c : gram)
    if (digit(c)) share /= 10;
  return share;
}

using Shares = std::vector<std::pair<uint32_t, double>>;  // ascending

Shares read_shares() {
  Shares out;
  for (const CommonGrams& group : kCommonGrams)
    for (size_t at = 0; at + kGram <= group.grams.size(); at += kGram)
      out.emplace_back(gram_at(group.grams, at), 1.0 / group.one_of);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

double line_share(std::string_view text) {
  static const Shares shares = read_shares();
  double common = 1, rare = 2 * kRareShare;
  for (size_t at = 0; at + kGram <= text.size(); ++at) {
    const uint32_t gram = gram_at(text, at);
    const auto found = std::lower_bound(shares.begin(), shares.end(), std::pair(gram, 0.0));
    if (found != shares.end() && found->first == gram)
      common = std::min(common, of_these_digits(found->second, text.substr(at, kGram)));
    else
      rare /= 2;
  }
  return rare <= kRareShare ? rare : common;
}

}  // namespace culprit::rules
