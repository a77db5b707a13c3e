// The objects of the bucket, and what of an archive each has (docs/formats.md, section 14). An archive is one
// member's folder. Each process that uploads it takes a new epoch of its row; a row of an object is inserted
// together with the archive's new position, and only in that epoch: so each byte of an archive is in one
// object, and what is left of the process before changes nothing.
//
// One thread at a time; each call ends within its time limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/postgres/session.h"

namespace culprit::store::postgres {

// How far an archive is in objects.
struct ArchiveMark {
  uint64_t epoch = 0;            // of this process
  uint64_t number = 0;           // of the last object; 0: none
  uint64_t segment = 0, at = 0;  // what comes next, as in ObjectMaker
  std::string last_key;          // empty: none
};

struct ObjectRow {
  std::string archive;  // hex
  uint64_t number = 0, epoch = 0;
  std::string member, key;
  uint64_t bytes = 0, index_at = 0;
  std::string sha256, index_sha256;  // hex
  uint64_t hosts = 0, jobs = 0;      // bit (hash mod 64) of each host and job in it
  uint64_t from_segment = 0, from_at = 0, to_segment = 0, to_at = 0;  // of the archive
};

class SegmentStore {
 public:
  static constexpr size_t kPrunedAtOnce = 10'000;

  explicit SegmentStore(std::string conninfo) : session_(std::move(conninfo)) {}
  virtual ~SegmentStore() = default;  // a simulation has rows of its own

  // Begins an epoch of this archive.
  virtual Result<ArchiveMark> take(const std::string& archive, const std::string& member);
  // False: another process has a later epoch. A repeated call for the same object is no error.
  virtual Result<bool> add(const ObjectRow& row);
  // Removes the oldest rows that are older than this, at most kPrunedAtOnce. Returns their number.
  virtual Result<size_t> prune(TimeNs older_ns);
  // Objects with one of these hosts and one of these jobs (bits), the newest first, at most `most`.
  Result<std::vector<ObjectRow>> find(uint64_t hosts, uint64_t jobs, size_t most);

 private:
  Result<Rows> run(const std::string& sql, const std::vector<std::string>& values);

  Session session_;
};

}  // namespace culprit::store::postgres
