// A folder held by its descriptor: reads, writes and removals stay in this folder, even if its path leads
// elsewhere by now. Names are entries of the folder; no link is followed. Owns the descriptor. Blocking; any
// thread.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "io/descriptors.h"

namespace culprit::app {

class HeldFolder {
 public:
  HeldFolder() = default;  // none
  static Result<HeldFolder> open(const std::string& path);
  // Creates a folder for this user alone, or opens the existing one. `fresh`: kBusy if the folder exists.
  // kDenied: the folder belongs to another user, or others may write to it.
  Result<HeldFolder> make(const std::string& name, bool fresh = false) const;
  Result<HeldFolder> enter(const std::string& name) const;

  // The path at its opening: for messages, and for programs that only understand paths.
  const std::string& path() const { return path_; }
  int descriptor() const { return at_.get(); }
  bool is_open() const { return at_.is_open(); }
  // Whether the folder belongs to this user, who alone may write to it.
  bool is_own() const;
  // Whether the path still leads to this folder.
  bool is_there() const;

  bool has(const std::string& name) const;
  std::vector<std::string> names(size_t max) const;
  // Reads at most `bytes_max`; a longer file is cut.
  Result<std::string> read(const std::string& name, size_t bytes_max) const;
  // Writes a temporary file and renames it to its name. `synced`: after its text is on the disk.
  Status write(const std::string& name, std::string_view text, bool synced = false) const;
  // Opens with these flags of open(2); mode 0600.
  Result<io::Descriptor> open_file(const std::string& name, int flags) const;
  // errno or 0.
  int rename(const std::string& from, const std::string& to) const;
  // Removes a file, or a folder with its content.
  void remove(const std::string& name) const;
  // Removes `folder`, which was opened by this name, with its content; another entry that has the name now
  // remains.
  void remove_held(const std::string& name, const HeldFolder& folder) const;
  // Copies the regular files and subfolders of a folder that this user alone can change. Existing files
  // remain. Returns the bytes that could not be copied.
  uint64_t copy_from(const std::string& folder) const;

 private:
  HeldFolder(io::Descriptor at, std::string path) : at_(std::move(at)), path_(std::move(path)) {}
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  void clear(int depth) const;
  uint64_t copy_file(const HeldFolder& from, const std::string& name) const;
  uint64_t copy_below(const HeldFolder& from, int depth) const;

  io::Descriptor at_;
  std::string path_;
};

}  // namespace culprit::app
