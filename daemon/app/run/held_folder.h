// A folder by its descriptor: what is written, read and removed stays in this folder, wherever its path leads
// by now. Names are those of entries of it; no link is followed. Owns the descriptor. Blocking; any thread.
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
  // Makes a folder for this user alone, or takes the one that is there. `fresh`: it must not be there, else
  // kBusy. kDenied: it belongs to another user, or others may write to it.
  Result<HeldFolder> make(const std::string& name, bool fresh = false) const;
  Result<HeldFolder> enter(const std::string& name) const;

  // Where it was opened: for messages, and for programs that only understand paths.
  const std::string& path() const { return path_; }
  int descriptor() const { return at_.get(); }
  bool is_open() const { return at_.is_open(); }
  // Whether it belongs to this user, who alone may write to it.
  bool is_own() const;
  // Whether the path still leads here.
  bool is_there() const;

  bool has(const std::string& name) const;
  std::vector<std::string> names(size_t max) const;
  // Of at most `bytes_max`; a longer one is cut.
  Result<std::string> read(const std::string& name, size_t bytes_max) const;
  // Writes a file and renames it into its place.
  Status write(const std::string& name, std::string_view text) const;
  // With these flags of open(2); mode 0600.
  Result<io::Descriptor> open_file(const std::string& name, int flags) const;
  // errno or 0.
  int rename(const std::string& from, const std::string& to) const;
  // A file, or a folder with what is in it.
  void remove(const std::string& name) const;
  // Removes `folder`, which was opened by this name, with what is in it; what has the name by now stays.
  void remove_held(const std::string& name, const HeldFolder& folder) const;
  // Copies the regular files of a folder that this user alone can change, with its folders. What is there
  // already stays. Returns the bytes that could not be copied.
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
