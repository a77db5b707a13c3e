// A file that the command line writes completely or not at all. It has a temporary name in the target's
// folder until finish(), and is removed without finish(). Other users may write to that folder: the temporary
// name is random, an existing file is never opened, and no link is followed. Belongs to one thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::cli {

class NewFile {
 public:
  // `mode` as for open(2): the umask applies. finish() replaces an existing file of this path.
  static Result<NewFile> create(const std::string& path, mode_t mode);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int descriptor() const { return descriptor_; }
  Status write(std::string_view text);
  Status finish();

 private:
  NewFile(std::string path, int folder);
  Status create_temporary(mode_t mode);
  Status failed(int error) const;

  std::string path_, name_, temporary_;  // the names of files in `folder_`
  int folder_ = -1, descriptor_ = -1;
};

}  // namespace culprit::cli
