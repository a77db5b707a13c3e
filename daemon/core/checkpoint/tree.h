// The input of a checkpoint check: the names in a folder, and the bytes of its files. Paths are relative to
// the folder, separated by "/"; "" is the folder itself. Pure; one thread. All content is untrusted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::checkpoint {

enum class EntryKind : uint8_t { kFile, kFolder, kLink, kOther };

struct Entry {
  std::string path;
  uint64_t size = 0;
  TimeNs modified_ns = kNoTime;
  EntryKind kind = EntryKind::kFile;
  std::string target = {};  // of a link, which is never followed
};

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Returns the bytes read: fewer than requested only at the end of the file.
  virtual Result<size_t> read_at(const std::string& path, char* out, size_t size, uint64_t offset) = 0;
};

// Everything below a folder.
class Tree {
 public:
  Tree() = default;
  explicit Tree(std::vector<Entry> entries);

  const Entry* find(std::string_view path) const;
  bool has_file(std::string_view path) const;
  // All entries below the folder, at any depth, sorted by path.
  std::span<const Entry> below(std::string_view folder) const;
  // The entries directly in the folder.
  std::vector<const Entry*> in(std::string_view folder) const;
  // The latest modification of the path itself or of anything below it; kNoTime: the path does not exist.
  TimeNs changed_ns(std::string_view path) const;

 private:
  std::vector<Entry> entries_;  // sorted by path, where "/" comes before all other bytes
};

// The last part of a path, and the part before it ("" if none).
std::string_view name_of(std::string_view path);
std::string_view folder_of(std::string_view path);
std::string join(std::string_view folder, std::string_view name);

}  // namespace culprit::checkpoint
