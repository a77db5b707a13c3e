// Whose a line is, where another line of its file says so. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/logs/job_log.h"
#include "core/rules/ruleset.h"

namespace culprit::diagnose {

class Whose {
 public:
  Whose(const logs::JobLog& log, const rules::Ruleset& rules);

  // The rank that a launcher tells of first after this line; nothing where it tells of several at once.
  std::optional<uint32_t> first_to_fail(const logs::RuleLine& line) const;

 private:
  using Place = std::pair<uint32_t, uint64_t>;  // source, line
  std::map<Place, std::optional<uint32_t>> ends_;
};

}  // namespace culprit::diagnose
