// Lists of hosts in Slurm's form: "n[1-3,07],login". Pure; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::replay {

// The names in the order of the list. Fails for a name with characters that no host name has, a name that
// comes twice, a range that runs backwards, and more than `most` names.
Result<std::vector<std::string>> expand_hosts(std::string_view list, size_t most);

// The shortest list of the names, in natural order: "n[1-3],x". expand_hosts() gives them back.
std::string fold_hosts(std::vector<std::string> names);

}  // namespace culprit::replay
