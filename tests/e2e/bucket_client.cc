// A bucket by daemon/store/bucket, for tests/e2e/cases_bucket.py: bucket_client URL NAME STYLE COMMAND [KEY
// [FROM SIZE]]. Credentials are in the environment. Prints what came, or the error with status 1; on standard
// error the number of tries.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <string>

#include "store/bucket/bucket.h"
#include "store/bucket/sha256.h"

using namespace culprit;
using namespace culprit::store::bucket;

namespace {

int finish(const Status& status, const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (!status) fmt::print("{}", status.error().text);
  return status ? 0 : 1;
}
template <class Value>
Status status_of(const Result<Value>& result) {
  return result ? Status() : tl::unexpected(result.error());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  int tries = 0;
  BucketOptions options;
  options.place = {argv[1], argv[2], "us-east-1", argv[3] == std::string("host")};
  options.retry_ns = 20 * kNsPerMs;
  options.within_ns = 3 * kNsPerSecond;
  options.on_try = [&tries] { ++tries; };
  const Bucket bucket(options);
  const std::string command = argv[4], key = argc > 5 ? argv[5] : "";
  int rc = 2;
  if (command == "put" || command == "put_other") {
    const std::string bytes{std::istreambuf_iterator<char>(std::cin), {}};
    rc = finish(bucket.put(key, bytes, sha256(command == "put" ? bytes : bytes + "x")), "");
  } else if (command == "get" && argc > 7) {
    const auto got =
        bucket.get(key, std::strtoull(argv[6], nullptr, 10), std::strtoull(argv[7], nullptr, 10));
    rc = finish(status_of(got), got.value_or(""));
  } else if (command == "list") {
    const auto listing = bucket.list(key, argc > 6 ? argv[6] : "");
    std::string text;
    for (const std::string& one : listing ? listing->keys : std::vector<std::string>()) text += one + "\n";
    rc = finish(status_of(listing), text);
  } else if (command == "remove") {
    rc = finish(bucket.remove(key), "");
  }
  fmt::print(stderr, "{}", tries);
  return rc;
}
