// A text file that only grows, in parts: PATH is the newest, PATH.1 the one before it. The oldest part is
// deleted when a new one begins. Parts are for the daemon's user alone. Blocks; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::store {

class PartsFile {
 public:
  // `parts`: kept, the newest included; at least 1.
  PartsFile(std::string path, uint32_t parts) : path_(std::move(path)), parts_(parts) {}

  // Appends text. An error may leave a part of it written. Nothing is synced: a lost end is a torn line.
  Status append(std::string_view text);
  // The next append() begins a part.
  Status begin_part();
  // "PATH", "PATH.1", …
  std::string part(uint32_t number) const;

 private:
  std::string path_;
  uint32_t parts_;
};

}  // namespace culprit::store
