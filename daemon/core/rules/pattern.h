// Compiles a wording for the matcher: a regex in RE2's syntax, its holes, and a set of literals. Every
// matching line contains at least one of the literals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/rules/work.h"

namespace culprit::rules {

// `NVRM: Xid (PCI:<pci>): 79, <_>` -> `NVRM: Xid \(PCI:(?P<pci>.+?)\): 79, .+`.
Result<std::string> template_to_regex(std::string_view text);

// Shorter literals occur in most lines and filter nothing.
constexpr size_t kLiteralMin = 3;
// What holds a text holds its pieces, and 64 bytes tell lines apart well enough.
constexpr size_t kLiteralMax = 64;

// Properties of a regex.
struct Wording {
  std::vector<std::string> holes;  // names of its groups, in order
  // Fixed texts in lower case; every match contains at least one. From RE2's own analysis, reduced to few and
  // long ones. Empty: every line must be checked.
  std::vector<std::string> literals;
};
// An error (RE2's sentence) for what is no regex, or has a name twice. The cost goes to `work`; once that has
// ended, the literals are not to be used.
Result<Wording> analyse(const std::string& regex, LoadWork& work);
Result<Wording> analyse(const std::string& regex);

}  // namespace culprit::rules
