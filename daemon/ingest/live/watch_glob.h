// A pattern of paths as a configuration gives it: `*`, `?`, `[a-z]`, `[!a]`, `{a,b}` within a name, `**`
// for any
// folders. Names that begin with a dot are matched only by a pattern whose part begins with one. A plain
// value;
// any thread. It walks nothing itself: it tells at each folder which names are worth a look. Matching a name
// costs at most its length times that of the pattern's part, whatever the name is.
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

  // The folder above the first name with a pattern in it: absolute, without a slash at its end but for "/".
  const std::string& root() const { return root_; }

  // How far the pattern is matched in a folder. Empty: nothing below it can match.
  using State = std::vector<uint32_t>;
  State at_root() const;
  State enter(const State& folder, std::string_view name) const;  // of a folder's folder
  bool takes(const State& folder, std::string_view name) const;   // of a folder's file
  // Of a path below the root, '/'-separated.
  bool takes_path(std::string_view below) const;

 private:
  using Parts = std::vector<std::string>;
  void add(State& state, uint32_t alternative, uint32_t part) const;

  std::string root_;
  std::vector<Parts> alternatives_;  // below the root; without braces
};

// One name against a pattern of `*`, `?` and `[..]`.
bool name_matches(std::string_view pattern, std::string_view name);

}  // namespace culprit::ingest
