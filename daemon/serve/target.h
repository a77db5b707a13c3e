// The address in a request's first line, taken apart: what a stranger typed, so nothing is believed. A slash
// that is percent-encoded stays within its segment, and ".." is a name like any other: nothing here is ever
// a path of the file system. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::serve {

struct Target {
  std::vector<std::string> path;             // segments, decoded: "/v1/jobs/a%2Fb" is v1, jobs, a/b
  std::map<std::string, std::string> query;  // decoded; a key stands once
};

// Errors: no path, a bad or incomplete escape, a NUL, a key that is given twice, too many parts.
Result<Target> parse_target(std::string_view raw);

// Whether a Host header names this host by an address, as localhost, or by one of `names`: a page of a
// stranger's domain that resolves to our address (DNS rebinding) names its own.
bool host_allowed(std::string_view host, const std::vector<std::string>& names);

// The token of "Bearer TOKEN", compared in constant time. False for an empty token.
bool bearer_matches(std::string_view authorization, std::string_view token);

}  // namespace culprit::serve
