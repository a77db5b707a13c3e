#include "store/bucket/sha256.h"

#include <openssl/evp.h>

#include "base/check.h"

namespace culprit::store::bucket {

std::string sha256(std::string_view bytes) {
  std::string out(32, '\0');
  unsigned size = 0;
  CULPRIT_CHECK(EVP_Digest(bytes.data(), bytes.size(), reinterpret_cast<unsigned char*>(out.data()), &size,
                           EVP_sha256(), nullptr) == 1 &&
                size == out.size());
  return out;
}

std::string hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : bytes) {
    out += kDigits[c >> 4];
    out += kDigits[c & 15];
  }
  return out;
}

}  // namespace culprit::store::bucket
