// One ring's file, opened without trust: what its first page says, and its records. Blocking, one thread at a
// time; owns the descriptor. It keeps no place: whoever reads says from where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/time.h"

namespace culprit::ingest {

constexpr uint64_t kRingRecordBytes = 64;
constexpr uint64_t kRingHeaderBytes = 4096;
// As much of the header as says something.
constexpr size_t kRingHeaderUsed = 328;

struct RingCounts {
  uint64_t written = 0, read = 0, dropped = 0;
};

struct RingHeader {
  uint64_t capacity = 0;
  RingCounts counts;
  std::string job;  // valid UTF-8
  uint32_t rank = 0, device = 0;
};

// Of kRingHeaderUsed bytes and the file's size. The error is a reason without subject.
Result<RingHeader> parse_ring_header(std::string_view bytes, uint64_t file_size);

// Which records can be read when `next` is wanted: [first, first + count); those between next and first are
// lost. Where the count went backwards there is nothing to read and nothing to trust.
struct RingRange {
  uint64_t first = 0, count = 0;
  bool backwards = false;
};
RingRange ring_range(const RingCounts& counts, uint64_t capacity, uint64_t next);

// "<pid>-<tid>-<start>.ring", with or without ".tmp" behind it.
struct RingName {
  uint64_t pid = 0, tid = 0, start = 0;
  bool making = false;
};
std::optional<RingName> parse_ring_name(std::string_view name);
// "<pid>-<start>.stacks": where a process writes its stacks when it is asked for them (sdk/python).
std::optional<RingName> parse_stacks_name(std::string_view name);

// Whether the process that made the ring lives, by the pid in the ring's name: /proc/<pid>/stat tells when
// the process of that number started. A zombie is dead. `uid`: whose process it is.
struct RingProcess {
  bool alive = false;
  uint32_t uid = 0;
};
RingProcess find_ring_process(const std::string& proc, const RingName& name);

// Whether somebody holds the lock of a file's producer, and who: 0 where the process is of another pid
// namespace.
std::optional<uint32_t> producer_of(int descriptor);

class RingFile {
 public:
  // A regular file with one name, a sound header and the size that it tells.
  static Result<RingFile> open(int folder, const std::string& name);
  RingFile(RingFile&& other) noexcept;
  RingFile& operator=(RingFile&& other) noexcept;
  ~RingFile();

  const RingHeader& header() const { return header_; }  // as of open()
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  uint32_t uid() const { return uid_; }

  // The counts now; an error where the file is no longer the ring that was opened.
  Result<RingCounts> counts();
  // Appends records [first, first + count) to `out`, as they lie there: the caller asks for the counts again
  // to learn whether they were overwritten meanwhile.
  Status read(uint64_t first, uint64_t count, std::string* out);
  Status set_read(uint64_t count);

  std::optional<uint32_t> lock_holder() const { return producer_of(descriptor_); }

 private:
  RingFile() = default;

  int descriptor_ = -1;
  uint64_t device_ = 0, inode_ = 0;
  uint32_t uid_ = 0;
  char identity_[24] = {};  // magic, version, record size, capacity: they never change
  RingHeader header_;
};

}  // namespace culprit::ingest
