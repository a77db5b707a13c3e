// The rank of an exception, from the launcher's list of failures further down in the same file. Pure; one
// thread.
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

  // The first rank that a launcher reports as failed after this line; none if it reports several at once.
  std::optional<uint32_t> first_to_fail(const logs::RuleLine& line) const;

 private:
  using Place = std::pair<uint32_t, uint64_t>;  // source, line
  std::map<Place, std::optional<uint32_t>> ends_;
};

}  // namespace culprit::diagnose
