// A bucket of object storage that speaks S3: put, read of a range, list, delete. Each request is signed and
// bounded in time and size; what a later try may mend is tried again, a few times. Nothing depends on
// conditional writes: some servers ignore the condition. An error names the bucket, the key and the server's
// code.
//
// Any thread; blocking. A put object is never changed: its key has an epoch and a number.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "store/bucket/s3.h"

namespace culprit::store::bucket {

struct BucketOptions {
  Place place;
  std::string credentials_file;  // empty: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
  std::string ca_file;           // empty: the system's
  int tries = 3;
  TimeNs retry_ns = 250 * kNsPerMs;       // before the second try; twice as long before each further one
  TimeNs within_ns = 60 * kNsPerSecond;   // of one try
  std::function<bool()> keep_going = {};  // false: no further try, and the present one ends within a second
  std::function<void()> on_try = {};      // for counts
};

class Bucket {
 public:
  explicit Bucket(BucketOptions options) : options_(std::move(options)) {}
  virtual ~Bucket() = default;  // a simulation has a bucket of its own

  // `sha256`: of the bytes, 32 bytes; the server compares it.
  virtual Status put(const std::string& key, std::string_view bytes, std::string_view sha256) const;
  // Exactly `size` bytes; kNotFound: there is no such object. kInvalid: it is shorter.
  Result<std::string> get(const std::string& key, uint64_t from, uint64_t size) const;
  // Keys with this prefix after `after`, in order: the first 1,000.
  virtual Result<Listing> list(const std::string& prefix, const std::string& after) const;
  // No error if there is none.
  virtual Status remove(const std::string& key) const;

  const std::string& name() const { return options_.place.name; }

 private:
  Result<std::string> ask(const Asked& asked, std::string_view body, size_t answer_max) const;

  const BucketOptions options_;
};

}  // namespace culprit::store::bucket
