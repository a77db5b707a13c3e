// Copies of other hosts' checkpoints on this host's disk. A copy is complete or absent: its manifest with the
// digests of all files is written last, by rename, after everything it names is synced.
//
//   STORE/HOST/ID.copy     manifest of a complete copy
//   STORE/HOST/ID.offer    manifest of a copy being received
//   STORE/HOST/ID.0, .1, … its files, by number: names from other hosts never become paths here
//
// ID: the first half of the SHA-256 of the offered manifest, so that an interrupted copy continues. The store
// removes what is not the newest copy of its series, what was never completed, and old copies while room is
// needed; nothing else.
//
// Blocking; one thread. The folder belongs to one process at a time and has mode 0700.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "io/files.h"
#include "model/copies.h"
#include "respond/checkpoint/digest.h"

namespace culprit::respond::checkpoint {

struct CopyStoreOptions {
  std::string folder;
  uint64_t max_bytes = 0;
  uint64_t min_free = 0;  // bytes of the disk that stay free
  size_t keep = 1;        // newest complete copies of a series
  TimeNs max_age_ns = 0;  // an older copy may make room for others; 0: none may
};

struct CopyStoreCounters {
  uint64_t stored = 0, stored_bytes = 0;  // copies completed; bytes received
  uint64_t refused_full = 0;
  uint64_t removed = 0;
  uint64_t damaged = 0;                         // copies that were found unreadable
  uint64_t mismatches = 0;                      // files whose bytes were not what the sender meant
  uint64_t copies = 0, bytes = 0, partial = 0;  // present: complete copies and their bytes; incomplete ones
};

class CopyStore;

// A copy being received. At most one for each id. Destroying it leaves the files, for a later attempt.
class IncomingCopy {
 public:
  ~IncomingCopy();
  IncomingCopy(const IncomingCopy&) = delete;
  IncomingCopy& operator=(const IncomingCopy&) = delete;

  const copies::Manifest& manifest() const { return manifest_; }
  const std::string& id() const { return id_; }
  std::vector<uint64_t> have() const;
  // Hashes what an earlier process stored of a file, one piece at a call. False: there is more. To be called
  // until true before append() and end_file(). An index beyond the offer is true: they say what is wrong.
  Result<bool> catch_up(size_t file);
  // Bytes follow in order: `offset` must be the stored size. kLimit: the disk is full, or is to stay free.
  Status append(const copies::Data& data);
  // Compares all stored bytes, and syncs. False: they do not match and were discarded.
  Result<bool> end_file(const copies::FileEnd& end);
  // After all files: makes the copy complete, and removes older ones of its series.
  Status commit(TimeNs now);
  // Removes what was received: the disk is full, or fails.
  void abandon();

 private:
  friend class CopyStore;
  struct Part {
    uint64_t size = 0;    // stored
    uint64_t hashed = 0;  // of these, in `hash`
    bool done = false;
    Sha256 hash;
  };
  IncomingCopy(CopyStore& store, std::string host, std::string id, copies::Manifest manifest);
  std::string path(size_t file) const;
  Status open(size_t file);
  Status discard(size_t file);

  CopyStore& store_;
  const std::string host_, id_;
  copies::Manifest manifest_;
  std::vector<Part> parts_;
  size_t open_file_ = 0;
  std::unique_ptr<io::FileHandle> handle_;  // of open_file_
  uint64_t unsynced_ = 0;                   // bytes
  uint64_t unchecked_ = 0;                  // bytes since the last look at the disk's space
};

class CopyStore {
 public:
  // Removes what a crash left half removed. Unreadable copies are counted, and stay unserved.
  static Result<std::unique_ptr<CopyStore>> open(io::Files& files, CopyStoreOptions options);

  struct Copy {
    copies::Entry entry;
    std::string series;
    std::optional<uint32_t> owner;  // uid of all its files
  };
  // Complete ones, the latest first.
  std::vector<const Copy*> copies() const;
  const Copy* find(const std::string& host, const std::string& id) const;
  Result<copies::Manifest> manifest(const Copy& copy) const;
  Result<std::unique_ptr<io::FileHandle>> open_file(const Copy& copy, size_t file) const;

  // Starts or continues to receive. Null: the copy is complete already. kLimit: no room, in a sentence.
  // kBusy: another connection sends it.
  Result<std::unique_ptr<IncomingCopy>> receive(const std::string& host, const copies::Manifest& manifest,
                                                TimeNs now);
  CopyStoreCounters counters() const;

 private:
  friend class IncomingCopy;
  struct Partial {
    std::string series;
    uint64_t bytes = 0;  // when complete
    uint64_t have = 0;   // stored now
    uint64_t order = 0;  // of arrival; those of earlier processes first
    bool active = false;
  };
  using Key = std::pair<std::string, std::string>;  // host, id

  CopyStore(io::Files& files, CopyStoreOptions options) : files_(files), options_(std::move(options)) {}
  std::string path(const Key& key, const std::string& ending) const;
  Status load_host(const std::string& host);
  void load_copy(const Key& key);
  void load_partial(const Key& key, const std::vector<std::string>& names);
  Result<std::string> read_file(const std::string& path) const;
  Status write_file(const std::string& path, const std::string& text);
  Status make_room(const Key& key, uint64_t total, TimeNs now);
  bool is_spare(const Copy& copy, TimeNs now) const;
  void remove_copy(const Key& key);
  void remove_partial(const Key& key);
  void remove_files(const Key& key);
  void trim_series(const std::string& host, const std::string& series);
  uint64_t reserved_bytes(const Key& key) const;

  io::Files& files_;
  const CopyStoreOptions options_;
  std::map<Key, Copy> copies_;
  std::map<Key, Partial> partials_;
  uint64_t next_order_ = 1;
  CopyStoreCounters counters_;
};

// The name of an offered manifest.
std::string id_of(const copies::Manifest& manifest);

}  // namespace culprit::respond::checkpoint
