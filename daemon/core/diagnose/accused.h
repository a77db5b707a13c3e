// The accused of a rule's line: the host, address or device that it names. A line that names another host
// does not accuse its writer. Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/detect/logs/view.h"
#include "core/logs/job_log.h"
#include "core/rules/rule.h"
#include "core/rules/ruleset.h"
#include "model/finding.h"

namespace culprit::diagnose {

// The holes that name the accused, or the other end of a connection: "host", "node", "peer", "server".
struct NamedHost {
  std::string_view name;  // without its port; empty: the line contains no name
  bool accuses = false;   // the line accuses another party, with a single name or not ("n[3-7]")
  bool is_host = false;   // a host of the cluster, which can be excluded; else a server or an address
};
NamedHost host_in(const rules::Rule& rule, const logs::RuleLine& line);

// Index into view.hosts, with or without its domain; kNowhere if no host of the job has this name.
uint32_t unit_called(const detect::View& view, std::string_view name);

// The subject of a line: its writer, or the host or rank that it names.
struct About {
  uint32_t host = detect::kNowhere;  // a unit of view.hosts
  std::optional<uint32_t> rank;      // named by the line, if the line names no unit
  std::string absent = {};           // a host that the line names and that wrote nothing
};
About accused_by(const detect::View& view, const rules::Rule& rule, const logs::RuleLine& line);

// The hosts of shells whose prompts are in the logs, by lines of rules with a hole `shell_host`. Borrows the
// log.
class ShellHosts {
 public:
  ShellHosts(const logs::JobLog& log, const rules::Ruleset& rules);
  // The host of the nearest prompt above this line of a file; empty: none.
  std::string_view at(const logs::LogPlace& place) const;

 private:
  std::map<std::pair<SourceId, uint64_t>, std::string_view> hosts_;  // by source and line
};

// The lines of one rule, and the hosts or devices that they accuse.
struct AccusedBy {
  const rules::Rule* rule = nullptr;
  const std::vector<const logs::RuleLine*>& lines;
  std::vector<uint32_t> hosts;  // units of view.hosts
  const std::set<std::string>& absent;
  const std::set<std::string>& typed_on;  // hosts of the shells whose commands wrote the lines
};
// Fills in named_hosts, lost_hosts and named_devices. A fault on most hosts of the job names none of them.
void name_left_out(const detect::View& view, const AccusedBy& by, Finding& finding);

}  // namespace culprit::diagnose
