// Results of an earlier check of a folder: digests of files, and the number of complete checkpoints. Stored
// in a file of the user's state for each folder. Blocking; one thread.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "core/checkpoint/check.h"

namespace culprit::app {

class CheckpointMemory {
 public:
  // Empty if the file is missing or unreadable.
  static CheckpointMemory load(const std::string& state_folder, const std::string& root);

  const checkpoint::Digests& digests() const { return digests_; }
  size_t whole(const std::string& series) const;
  void keep(const std::string& path, const checkpoint::Digest& digest) { digests_[path] = digest; }
  void keep_whole(const std::string& series, size_t n) { whole_[series] = n; }
  // Drops files whose folder is no longer in the tree, and writes. Null: drops nothing.
  Status save(const checkpoint::Tree* tree);

 private:
  std::string folder_, path_, root_;
  checkpoint::Digests digests_;
  std::map<std::string, size_t> whole_;
};

}  // namespace culprit::app
