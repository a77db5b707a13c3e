// Writes a tar archive, compressed according to its name: .tar.zst or .tar.gz. The file has a temporary name
// until finish(); an abandoned archive leaves no file. Belongs to one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

#include "base/status.h"
#include "base/time.h"

namespace culprit::cli {

class Archive {
 public:
  static Result<Archive> create(const std::string& path, TimeNs now);
  Archive(Archive&&) noexcept;
  ~Archive();
  Status add(const std::string& name, const std::string& text);
  // Adds the file's content from its beginning.
  Status add(const std::string& name, std::FILE* file, uint64_t size);
  Status finish();

 private:
  struct Impl;
  explicit Archive(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::cli
