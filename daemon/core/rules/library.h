// The rules of rules/**/*.lua as they were when the program was built.
#pragma once

#include <span>
#include <string_view>

namespace culprit::rules {

struct LibraryFile {
  std::string_view name;  // below rules/
  std::string_view text;
};

std::span<const LibraryFile> library();

}  // namespace culprit::rules
