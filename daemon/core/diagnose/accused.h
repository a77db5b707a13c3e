// The accused of a rule's line: the host, address or device that it names. A line that names another host
// does not accuse its writer. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/detect/logs/view.h"
#include "core/logs/job_log.h"
#include "core/rules/rule.h"
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

// The lines of one rule, and the hosts or devices that they accuse.
struct AccusedBy {
  const rules::Rule* rule = nullptr;
  const std::vector<const logs::RuleLine*>& lines;
  std::vector<uint32_t> hosts;  // units of view.hosts
  const std::set<std::string>& absent;
};
// Fills in named_hosts and named_devices. A fault on most hosts of the job names none of them.
void name_left_out(const detect::View& view, const AccusedBy& by, Finding& finding);

}  // namespace culprit::diagnose
