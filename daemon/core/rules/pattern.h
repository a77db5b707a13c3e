// From a wording to what the matcher needs: a regex in RE2's syntax, its holes, and literals of which every
// matching line has at least one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace culprit::rules {

// `NVRM: Xid (PCI:<pci>): 79, <_>` -> `NVRM: Xid \(PCI:(?P<pci>.+?)\): 79, .+`.
Result<std::string> template_to_regex(std::string_view text);

// Shorter fixed texts stand in most lines and support nothing.
constexpr size_t kLiteralMin = 3;

// The regex's required literals by RE2's own analysis, reduced to a set as small and as long as possible of
// which every match has one; in lower case. Empty where nothing supports it, or where it is no regex.
std::vector<std::string> required_literals(const std::string& regex);

// Names of the regex's groups, in order; an error where one stands twice.
Result<std::vector<std::string>> hole_names(const std::string& regex);

}  // namespace culprit::rules
