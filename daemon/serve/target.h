// Parses the target of a request line, which is untrusted. A percent-encoded slash stays within its segment,
// and ".." is an ordinary name: a target is never a path of the file system. Pure; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::serve {

struct Target {
  std::vector<std::string> path;             // decoded segments: "/v1/jobs/a%2Fb" is v1, jobs, a/b
  std::map<std::string, std::string> query;  // decoded; each key once
};

// Errors: no path, a bad or incomplete escape, a NUL, a repeated key, too many parts.
Result<Target> parse_target(std::string_view raw);

// Whether a Host header is an address, localhost, or one of `names`. A page of a foreign domain that
// resolves to our address (DNS rebinding) sends its own domain.
bool host_allowed(std::string_view host, const std::vector<std::string>& names);

// Whether `authorization` is "Bearer TOKEN", compared in constant time. False for an empty token.
bool bearer_matches(std::string_view authorization, std::string_view token);

}  // namespace culprit::serve
