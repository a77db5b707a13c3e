// An open file, pipe or standard input. Owns its descriptor, except that of standard input. One thread at a
// time may call read(), any thread read_at().
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
  int error = 0;     // errno; 0: none
};

class File {
 public:
  File() = default;
  // Opens a regular file; anything else is an error. A pipe without a writer does not block.
  static Result<File> open(const std::string& path);
  // Opens a pipe, or standard input for "-". When `stop` (borrowed; null: never) becomes true, reading ends
  // as at the end of input, even while waiting for a writer.
  static Result<File> open_stream(const std::string& path, const std::atomic<bool>* stop);
  // Takes ownership of the descriptor of an open regular file, also on failure.
  static Result<File> adopt(int descriptor, const std::string& subject) {
    return opened(descriptor, subject);
  }
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  bool is_open() const { return descriptor_ >= 0; }
  ReadOutcome read(char* out, size_t size);
  ReadOutcome read_at(char* out, size_t size, uint64_t offset) const;
  // The first offset at or after `offset` that is not in a hole of the file; the end of the file if only
  // holes follow. Changes the position of read(), so use one of the two.
  uint64_t data_from(uint64_t offset) const;

  // Size and time as of open(). A stream has size 0, and a time only if it is a regular file.
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
