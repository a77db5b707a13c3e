// Any text as a list of hosts, and the rest as results of a replay on them: what is taken folds to a list of
// the same hosts, and names hosts and groups of the plan only.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/replay/host_list.h"
#include "core/replay/results.h"

using namespace culprit::replay;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(bytes.find('\n'), bytes.size());
  auto hosts = expand_hosts(bytes.substr(0, line), 256);
  if (!hosts) return 0;
  auto again = expand_hosts(fold_hosts(*hosts), hosts->size());
  if (!again) std::abort();
  std::ranges::sort(*again);
  auto sorted = *hosts;
  std::ranges::sort(sorted);
  if (sorted != *again) std::abort();
  const auto plan = plan_of(std::move(*hosts), 0);
  if (!plan || line == bytes.size()) return 0;
  const auto runs = read_results(bytes.substr(line + 1), *plan);
  if (!runs) return 0;
  for (const GroupRun& run : *runs)
    if (run.hosts.empty() || run.hosts.back() >= plan->hosts.size() || !std::ranges::is_sorted(run.hosts))
      std::abort();
  return 0;
}
