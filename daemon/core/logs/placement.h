// Finds the host and rank of a file: from the user's patterns (docs/formats.md section 2, rule 1) or from its
// path below the argument (rule 3). Pure; build once, share between threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/topology.h"

namespace culprit::logs {

struct PathOwner {
  std::optional<std::string> host;
  std::optional<uint32_t> rank;
  std::optional<uint32_t> local;
  // `host` is letters with a number: a host if other names have the same form.
  bool guessed = false;
};

// A host's name without its numbers, such as "gpu#": the common part of a job's hosts.
std::string host_stem(std::string_view host);

struct PlacementOptions {
  std::string host_pattern;  // RE2 with group `host`, both (?P<x>) and (?<x>); empty: none
  std::string rank_pattern;  // RE2 with group `rank`
};

// Converts "(?<name>" to "(?P<name>", which all versions of RE2 support.
std::string with_named_groups(std::string_view pattern);

class Placement {
 public:
  static Result<Placement> create(const PlacementOptions& options);
  Placement(Placement&&) noexcept;
  Placement& operator=(Placement&&) noexcept;
  ~Placement();

  // `path` is below the argument, '/'-separated, without the suffixes .zst .gz .xz.
  PathOwner owner(std::string_view path) const;
  // Places all files of a job at once: the varying parts of names are hosts and ranks. A folder or file named
  // like one of the job's known `hosts` belongs to that host, whatever the form of its name.
  std::vector<PathOwner> owners(const std::vector<std::string>& paths,
                                const std::vector<std::string>& hosts = {}) const;
  // Whether the user gave a pattern: it then overrides the line's prefix.
  bool has_host_pattern() const;
  bool has_rank_pattern() const;

 private:
  struct Impl;
  explicit Placement(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace culprit::logs
