#include "store/bucket/object_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/text.h"
#include "store/bucket/sha256.h"

namespace culprit::store::bucket {
namespace {

constexpr uint64_t kIndexMax = 64 << 20;
constexpr std::string_view kSuffix = ".part";

std::string cache_name(const std::string& key, uint64_t at) {
  return fmt::format("{}-{}{}", hex64(hash64(key)), at, kSuffix);
}

Error about(const Bucket& bucket, const StoredObject& object, std::string_view what) {
  return {ErrorCode::kInvalid,
          fmt::format("the object {} of bucket {} is damaged: {}", object.key, bucket.name(), what)};
}
Error about(const Bucket& bucket, const StoredObject& object, Error error) {
  if (error.code == ErrorCode::kNotFound)
    error.text = fmt::format("the object {} is missing in bucket {}", object.key, bucket.name());
  return error;
}

// The frames of an object as a file.
class ObjectFile final : public io::FileHandle {
 public:
  ObjectFile(const Bucket& bucket, ObjectCache& cache, StoredObject object, BlocksRecord blocks)
      : bucket_(bucket), cache_(cache), object_(std::move(object)), blocks_(std::move(blocks)) {}

  Result<size_t> read_at(char* out, size_t size, uint64_t offset) override {
    size =
        static_cast<size_t>(std::min<uint64_t>(size, object_.index_at - std::min(offset, object_.index_at)));
    for (size_t done = 0; done < size;) {
      const uint64_t at = offset + done, block = at / blocks_.block_bytes;
      const uint64_t last = (offset + size - 1) / blocks_.block_bytes;
      if (const Status there = load(block, last); !there) return tl::unexpected(there.error());
      const size_t from = at - block * blocks_.block_bytes;
      const size_t part = std::min(size - done, loaded_.size() - from);
      std::copy_n(loaded_.data() + from, part, out + done);
      done += part;
    }
    return size;
  }
  Result<io::FileStatus> status() override { return io::FileStatus{.size = object_.index_at}; }
  Status append(std::string_view) override { return refused(); }
  Status truncate(uint64_t) override { return refused(); }
  Status sync() override { return refused(); }

 private:
  Status refused() const { return fail(ErrorCode::kDenied, object_.key + ": an object is only read"); }
  std::string_view sum(uint64_t block) const {
    return std::string_view(blocks_.sums).substr(block * kSumBytes, kSumBytes);
  }
  // `last`: as far as the reader goes on, so that one request gets what is missing in a row.
  Status load(uint64_t block, uint64_t last) {
    if (block == loaded_block_) return {};
    if (auto cached = cache_.get(cache_name(object_.key, block), sum(block))) {
      loaded_ = std::move(*cached);
      loaded_block_ = block;
      return {};
    }
    const uint64_t from = block * blocks_.block_bytes;
    const uint64_t to = std::min(object_.index_at, (last + 1) * blocks_.block_bytes);
    auto bytes = bucket_.get(object_.key, from, to - from);
    if (!bytes) return tl::unexpected(about(bucket_, object_, bytes.error()));
    for (uint64_t n = block; n <= last; ++n) {
      const auto part =
          std::string_view(*bytes).substr((n - block) * blocks_.block_bytes, blocks_.block_bytes);
      if (sha256(part) != sum(n))
        return tl::unexpected(about(bucket_, object_, "a part has another SHA-256"));
      cache_.put(cache_name(object_.key, n), part);
    }
    bytes->resize(std::min<uint64_t>(bytes->size(), blocks_.block_bytes));
    loaded_ = std::move(*bytes);
    loaded_block_ = block;
    return {};
  }

  const Bucket& bucket_;
  ObjectCache& cache_;
  const StoredObject object_;
  const BlocksRecord blocks_;
  std::string loaded_;
  uint64_t loaded_block_ = UINT64_MAX;
};

}  // namespace

// ---- the cache

ObjectCache::ObjectCache(io::Files& files, std::string folder, uint64_t max_bytes)
    : files_(files), folder_(std::move(folder)), max_bytes_(max_bytes) {
  const auto names = files_.list(folder_);
  if (!names) return;
  for (const std::string& name : *names) {
    if (!name.ends_with(kSuffix)) continue;
    const auto file = files_.open(folder_ + "/" + name, io::OpenFor::kRead);
    const auto status = file ? (*file)->status() : tl::unexpected(file.error());
    if (!status) continue;
    entries_[name] = {status->size, uses_.insert(uses_.end(), name)};
    bytes_ += status->size;
  }
}

uint64_t ObjectCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void ObjectCache::forget(const std::string& name) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) return;
  (void)files_.remove(folder_ + "/" + name);
  bytes_ -= found->second.bytes;
  uses_.erase(found->second.use);
  entries_.erase(found);
}

std::optional<std::string> ObjectCache::get(const std::string& name, std::string_view sum) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  std::string bytes(found->second.bytes, '\0');
  const auto file = files_.open(folder_ + "/" + name, io::OpenFor::kRead);
  const auto size = file ? (*file)->read_at(bytes.data(), bytes.size(), 0) : tl::unexpected(file.error());
  if (!size || *size != bytes.size() || sha256(bytes) != sum) {
    forget(name);
    return std::nullopt;
  }
  uses_.splice(uses_.end(), uses_, found->second.use);
  return bytes;
}

// A cache that cannot be written costs further requests, and nothing else.
void ObjectCache::put(const std::string& name, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  forget(name);
  if (bytes.size() > max_bytes_ || !files_.make_folder(folder_)) return;
  while (bytes_ + bytes.size() > max_bytes_ && !uses_.empty()) forget(std::string(uses_.front()));
  const std::string path = folder_ + "/" + name;
  (void)files_.remove(path);
  auto file = files_.open(path, io::OpenFor::kCreate);
  if (!file) return;
  if (!(*file)->append(bytes)) return (void)files_.remove(path);
  entries_[name] = {bytes.size(), uses_.insert(uses_.end(), name)};
  bytes_ += bytes.size();
}

// ---- objects

Result<ObjectIndex> ObjectReader::index(const StoredObject& object) const {
  if (object.index_at >= object.bytes || object.bytes - object.index_at > kIndexMax)
    return tl::unexpected(about(bucket_, object, "its row has no place of its index"));
  const std::string name = cache_name(object.key, object.index_at);
  auto bytes = cache_->get(name, object.index_sha256);
  if (!bytes) {
    auto read = bucket_.get(object.key, object.index_at, object.bytes - object.index_at);
    if (!read) return tl::unexpected(about(bucket_, object, read.error()));
    if (sha256(*read) != object.index_sha256)
      return tl::unexpected(about(bucket_, object, "its index has another SHA-256"));
    cache_->put(name, *read);
    bytes = std::move(*read);
  }
  auto index = parse_index(*bytes);
  if (!index) return tl::unexpected(about(bucket_, object, index.error().text));
  const BlocksRecord& blocks = index->blocks;
  if (blocks.sums.size() / kSumBytes != (object.index_at + blocks.block_bytes - 1) / blocks.block_bytes)
    return tl::unexpected(about(bucket_, object, "its index is of another size"));
  return index;
}

Result<SegmentReader> ObjectReader::open(const StoredObject& object, const BlocksRecord& blocks) const {
  return SegmentReader::open(std::make_unique<ObjectFile>(bucket_, *cache_, object, blocks), object.number);
}

}  // namespace culprit::store::bucket
