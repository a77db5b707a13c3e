// File operations for code that must survive any disk failure. Blocking. An interface, so that tests can fail
// each operation, once or permanently, or tear a write. real_files() is the system's. Any thread; a
// FileHandle belongs to one thread at a time. Errors name the path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::io {

struct FileStatus {
  uint64_t size = 0, device = 0, inode = 0;
  TimeNs modified_ns = kNoTime;
  TimeNs born_ns = kNoTime;  // creation time, if the file system has one
};

class FileHandle {
 public:
  virtual ~FileHandle() = default;  // closes
  // Writes all bytes, or returns an error; after an error the appended content is undefined.
  virtual Status append(std::string_view bytes) = 0;
  // Returns the bytes read; fewer than requested only at the end.
  virtual Result<size_t> read_at(char* out, size_t size, uint64_t offset) = 0;
  virtual Status truncate(uint64_t size) = 0;
  virtual Status sync() = 0;  // syncs data and size
  virtual Result<FileStatus> status() = 0;
};

// kAppend: append and read an existing file. kCreate: the same for a new file (mode 0600); an existing file
// is an error.
enum class OpenFor : uint8_t { kRead, kAppend, kCreate };

// Space of a folder's file system, in bytes.
struct DiskSpace {
  uint64_t free = 0;  // available to this process
  uint64_t used = 0;  // used by all users
};

class Files {
 public:
  virtual ~Files() = default;
  virtual Result<std::unique_ptr<FileHandle>> open(const std::string& path, OpenFor what) = 0;
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  virtual Status remove(const std::string& path) = 0;
  // Also creates parent folders; mode 0700. An existing folder is no error.
  virtual Status make_folder(const std::string& path) = 0;
  virtual Result<std::vector<std::string>> list(const std::string& folder) = 0;  // names, sorted
  virtual Status sync_folder(const std::string& folder) = 0;
  virtual Result<DiskSpace> space(const std::string& folder) = 0;
};

Files& real_files();

}  // namespace culprit::io
