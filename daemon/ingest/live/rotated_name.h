// The names under which rotated logs are put aside, as logrotate, logging libraries and their users choose
// them: app.log.1, app.log-20261121, app.log.2026-11-21_02, app.1.log, app-2026-11-21.log, app.log.old, each
// also compressed (.gz, .zst, .xz). Names tell what to look at, never that two files are the same log.
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
  // Names of one style follow one another in order of `mark`.
  enum class Style : uint8_t { kNumber, kDate, kWord, kInnerNumber, kInnerDate };
  Style style = Style::kNumber;
  std::string mark;  // "1", "20261121", "old"
};

// By its ending alone.
Compression compression_of_name(std::string_view name);

// What `name` may be a rotated form of: app.1.log.2 of app.1.log and of app.log.2; none for most names. A
// compressed name also of itself without the ending (app.log.gz of app.log), with an empty mark.
std::vector<RotatedName> rotated_forms(std::string_view name);

// Whether a stands before b in time by their marks: a larger number is older, as logrotate counts.
bool older_mark(const RotatedName& a, const RotatedName& b);

}  // namespace culprit::ingest
