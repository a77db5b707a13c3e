// Names of rotated logs, as logrotate, logging libraries and their users form them: app.log.1,
// app.log-20261121, app.log.2026-11-21_02, app.1.log, app-2026-11-21.log, app.log.old, each also compressed
// (.gz, .zst, .xz). A name only suggests a file to check; it never proves that two files are the same log.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/source_list.h"

namespace culprit::ingest {

struct RotatedName {
  std::string base;  // app.log
  // Names of one style are ordered by `mark`.
  enum class Style : uint8_t { kNumber, kDate, kWord, kInnerNumber, kInnerDate };
  Style style = Style::kNumber;
  std::string mark;  // "1", "20261121", "old"
};

// By the suffix of the name only.
Compression compression_of_name(std::string_view name);

// The names that `name` may be a rotated form of: for app.1.log.2 both app.1.log and app.log.2; none for most
// names. For a compressed name also the name without the suffix (app.log for app.log.gz), with an empty mark.
std::vector<RotatedName> rotated_forms(std::string_view name);

// Whether the mark of `a` is older than that of `b`. A larger number is older, as in logrotate.
bool older_mark(const RotatedName& a, const RotatedName& b);

}  // namespace culprit::ingest
