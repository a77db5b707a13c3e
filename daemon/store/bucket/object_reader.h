// Reads objects by range: blocks are verified by SHA-256 and kept in a folder of bounded size, from where the
// next reader has them. Any thread.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "io/files.h"
#include "store/bucket/bucket.h"
#include "store/bucket/object.h"

namespace culprit::store::bucket {

// A folder of verified bytes; what was used longest ago makes room. It may be deleted at any time.
class ObjectCache {
 public:
  ObjectCache(io::Files& files, std::string folder, uint64_t max_bytes);
  // Nothing: unknown, or its bytes have another SHA-256.
  std::optional<std::string> get(const std::string& name, std::string_view sha256);
  void put(const std::string& name, std::string_view bytes);
  uint64_t bytes() const;

 private:
  void forget(const std::string& name);
  struct Entry {
    uint64_t bytes = 0;
    std::list<std::string>::iterator use;
  };
  io::Files& files_;
  const std::string folder_;
  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::list<std::string> uses_;  // the last used at the end
  std::map<std::string, Entry> entries_;
  uint64_t bytes_ = 0;
};

// An object, as its row in the database has it.
struct StoredObject {
  std::string key;
  uint64_t number = 0, bytes = 0, index_at = 0;
  std::string index_sha256;  // 32 bytes
};

class ObjectReader {
 public:
  ObjectReader(Bucket bucket, std::shared_ptr<ObjectCache> cache)
      : bucket_(std::move(bucket)), cache_(std::move(cache)) {}
  // An error names the object.
  Result<ObjectIndex> index(const StoredObject& object) const;
  // Its frames. `blocks`: of its index. Borrows this object.
  Result<SegmentReader> open(const StoredObject& object, const BlocksRecord& blocks) const;

 private:
  Bucket bucket_;
  std::shared_ptr<ObjectCache> cache_;
};

}  // namespace culprit::store::bucket
