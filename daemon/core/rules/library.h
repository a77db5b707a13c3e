// The rules of rules/**/*.lua at build time.
#pragma once

#include <span>
#include <string_view>

namespace culprit::rules {

struct LibraryFile {
  std::string_view name;  // path below rules/
  std::string_view text;
};

std::span<const LibraryFile> library();

// See core/rules/library_tables.h.
std::string_view library_tables();

}  // namespace culprit::rules
