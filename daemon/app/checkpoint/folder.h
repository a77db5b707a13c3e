// A folder of checkpoints on disk, read-only: its names, and the bytes of its files. Follows no links below
// the folder. Blocking; one thread.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "core/checkpoint/tree.h"

namespace culprit::app {

class CheckpointFolder : public checkpoint::ByteSource {
 public:
  // `path`: a folder, or one file. `direct`: reads from the disk, without the page cache.
  static Result<CheckpointFolder> open(const std::string& path, bool direct);
  CheckpointFolder(CheckpointFolder&&) noexcept;
  ~CheckpointFolder() override;

  const checkpoint::Tree& tree() const { return tree_; }
  // The folder with links resolved; for a file, its parent folder.
  const std::string& root() const { return root_; }
  std::string name() const;
  // False for one file: the tree lacks the files next to it.
  bool is_complete() const { return complete_; }

  Result<size_t> read_at(const std::string& path, char* out, size_t size, uint64_t offset) override;

 private:
  struct Handle;
  explicit CheckpointFolder(std::unique_ptr<Handle> handle);

  std::unique_ptr<Handle> handle_;
  std::string root_;
  bool complete_ = true;
  checkpoint::Tree tree_;
};

// Opens the folder of a path below `root`, without following links; -1 and errno if there is none.
int open_below(int root, const std::string& folder);

}  // namespace culprit::app
