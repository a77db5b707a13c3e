// An open file, pipe or standard input. Owns its descriptor (standard input's stays open). read() belongs to
// one thread at a time, read_at() to any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/time.h"
#include "io/system_error.h"

namespace culprit::ingest {

using io::system_error;

struct ReadOutcome {
  size_t bytes = 0;  // fewer than requested only at the end or on an error
  int error = 0;     // errno, 0 where all went well
};

class File {
 public:
  File() = default;
  // A regular file: anything else is an error, and a pipe without a writer does not block.
  static Result<File> open(const std::string& path);
  // A pipe, or standard input for "-". Once `stop` (borrowed; null: never) is true its reading ends as if
  // nothing followed, also while it waits for a writer.
  static Result<File> open_stream(const std::string& path, const std::atomic<bool>* stop);
  // A regular file that is open already: takes the descriptor over, also where it fails.
  static Result<File> adopt(int descriptor, const std::string& subject) {
    return opened(descriptor, subject);
  }
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  bool is_open() const { return descriptor_ >= 0; }
  ReadOutcome read(char* out, size_t size);
  ReadOutcome read_at(char* out, size_t size, uint64_t offset) const;
  // The first offset at or after `offset` that is not in a hole of the file; the file's end where only holes
  // follow. It moves the place of read(): use one or the other.
  uint64_t data_from(uint64_t offset) const;

  // As of open(). A stream has size 0, and a time only when it is a regular file.
  uint64_t size() const { return size_; }
  TimeNs modified_ns() const { return modified_ns_; }

 private:
  static Result<File> opened(int descriptor, const std::string& subject);

  int descriptor_ = -1;
  bool stream_ = false;
  const std::atomic<bool>* stop_ = nullptr;
  uint64_t size_ = 0;
  TimeNs modified_ns_ = kNoTime;
};

}  // namespace culprit::ingest
