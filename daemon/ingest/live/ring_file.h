// The untrusted file of one ring: its header and its records. Blocking, one thread at a time; owns the
// descriptor. The caller keeps the read position.
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
// Used bytes of the header.
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

// Parses kRingHeaderUsed bytes; checks against the file's size. The error is a reason without subject.
Result<RingHeader> parse_ring_header(std::string_view bytes, uint64_t file_size);

// The readable records from `next` on: [first, first + count). Records from `next` to `first` are lost. If
// the count went backwards, the ring is not trusted and nothing is read.
struct RingRange {
  uint64_t first = 0, count = 0;
  bool backwards = false;
};
RingRange ring_range(const RingCounts& counts, uint64_t capacity, uint64_t next);

// "<pid>-<tid>-<start>.ring", with or without a suffix ".tmp".
struct RingName {
  uint64_t pid = 0, tid = 0, start = 0;
  bool making = false;
};
std::optional<RingName> parse_ring_name(std::string_view name);
// "<pid>-<start>.stacks": a process writes its stacks there on request (sdk/python).
std::optional<RingName> parse_stacks_name(std::string_view name);

// Whether the creator of the ring is alive, by the pid in the ring's name and the start time in
// /proc/<pid>/stat. A zombie is dead. `uid`: owner of the process.
struct RingProcess {
  bool alive = false;
  uint32_t uid = 0;
};
RingProcess find_ring_process(const std::string& proc, const RingName& name);

// The pid of the process that holds the producer's lock on the file; none without a lock. 0: a process in
// another pid namespace.
std::optional<uint32_t> producer_of(int descriptor);

class RingFile {
 public:
  // Requires a regular file with one name, a sound header, and the size of that header.
  static Result<RingFile> open(int folder, const std::string& name);
  RingFile(RingFile&& other) noexcept;
  RingFile& operator=(RingFile&& other) noexcept;
  ~RingFile();

  const RingHeader& header() const { return header_; }  // as of open()
  uint64_t device() const { return device_; }
  uint64_t inode() const { return inode_; }
  uint32_t uid() const { return uid_; }

  // The current counts; an error if the file is no longer the opened ring.
  Result<RingCounts> counts();
  // Appends records [first, first + count) to `out` unchecked: the caller reads the counts again to detect
  // overwritten records.
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
