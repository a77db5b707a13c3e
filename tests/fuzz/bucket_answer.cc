// Any bytes as an answer of object storage, and as a file of credentials: nothing is longer than its limit.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "store/bucket/s3.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace culprit::store::bucket;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto error = parse_error(text);
  if (error.code.size() > 4096 || error.message.size() > 4096) std::abort();
  if (const auto listing = parse_listing(text); listing && listing->keys.size() > 1000) std::abort();
  (void)parse_credentials(text, "file");
  return 0;
}
