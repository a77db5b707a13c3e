// The files of a checkpoint on this host, which users own and may replace at any time. Only regular files are
// opened, below the watched folder, on its device, and through no link. Blocking; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/copies.h"

namespace culprit::respond::checkpoint {

class SourceFile {
 public:
  // `path` is relative to `root`.
  static Result<SourceFile> open(const std::string& root, const std::string& path);
  SourceFile(SourceFile&& other) noexcept;
  SourceFile& operator=(SourceFile&& other) noexcept;
  ~SourceFile();

  // The present state, as a manifest has it; without a digest.
  Result<copies::File> facts() const;
  // Also changes that leave size and time as they were.
  Result<uint64_t> changed_mark() const;
  // Bytes that were not in the page cache leave it again: the job's own pages stay. Fewer bytes than asked
  // only at the end.
  Result<size_t> read(char* out, size_t size, uint64_t offset);

 private:
  SourceFile(int descriptor, std::string root, std::string path)
      : descriptor_(descriptor), root_(std::move(root)), path_(std::move(path)) {}
  std::string name() const { return root_ + "/" + path_; }

  int descriptor_ = -1;
  std::string root_, path_;
};

// The manifest's files as they are now. kNotFound: one disappeared.
Result<std::vector<copies::File>> describe(const std::string& root, const std::vector<std::string>& paths);

}  // namespace culprit::respond::checkpoint
