// A pattern of paths in the configuration: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}` within a name, `**` for any
// folders. A name that begins with a dot matches only a pattern part that begins with one. A plain value; any
// thread. It reads no folder: the caller asks at each folder which names match. Matching a name costs at most
// its length times that of the pattern part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::ingest {

class WatchGlob {
 public:
  static Result<WatchGlob> parse(std::string_view pattern);

  // The folder above the first name with a wildcard: absolute, without a trailing slash except for "/".
  const std::string& root() const { return root_; }

  // The progress of the match in a folder. Empty: nothing below can match.
  using State = std::vector<uint32_t>;
  State at_root() const;
  State enter(const State& folder, std::string_view name) const;  // state in a subfolder
  bool takes(const State& folder, std::string_view name) const;   // whether a file of the folder matches
  // Whether a path below the root matches; '/'-separated.
  bool takes_path(std::string_view below) const;

 private:
  using Parts = std::vector<std::string>;
  void add(State& state, uint32_t alternative, uint32_t part) const;

  std::string root_;
  std::vector<Parts> alternatives_;  // below the root; without braces
};

// Matches one name against a pattern of `*`, `?` and `[..]`.
bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace culprit::ingest
