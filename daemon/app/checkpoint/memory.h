// What an earlier look at a folder found: digests of files, and how many checkpoints were whole. A file of
// the user's state, one for each folder. Blocking; one thread.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "core/checkpoint/check.h"

namespace culprit::app {

class CheckpointMemory {
 public:
  // Empty where there is no file, or one that cannot be read.
  static CheckpointMemory load(const std::string& state_folder, const std::string& root);

  const checkpoint::Digests& digests() const { return digests_; }
  size_t whole(const std::string& series) const;
  void keep(const std::string& path, const checkpoint::Digest& digest) { digests_[path] = digest; }
  void keep_whole(const std::string& series, size_t n) { whole_[series] = n; }
  // Forgets files whose folder is not in the tree any more, and writes. Null: forgets nothing.
  Status save(const checkpoint::Tree* tree);

 private:
  std::string folder_, path_, root_;
  checkpoint::Digests digests_;
  std::map<std::string, size_t> whole_;
};

}  // namespace culprit::app
