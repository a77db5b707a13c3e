// Compiles a wording for the matcher: a regex in RE2's syntax, its holes, and sets of literals. Every
// matching line contains at least one literal of each set.
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
// Long literals are cut to this length: a line that contains a text contains its pieces, and 64 bytes are
// selective enough.
constexpr size_t kLiteralMax = 64;

// Properties of a regex.
struct Wording {
  std::vector<std::string> holes;  // names of its groups, in order
  // Fixed texts in lower case; every match contains at least one. Chosen among the sets of RE2's analysis:
  // the set that occurs in the fewest lines of real logs (line_share). Empty: every line must be checked.
  std::vector<std::string> literals;
  // More sets of texts in lower case; every match contains at least one of each. The rarest first.
  std::vector<std::vector<std::string>> also;
};
// Returns RE2's error for an invalid regex or a duplicate name. The cost goes to `work`; once `work` has
// ended, the literals are invalid.
Result<Wording> analyse(const std::string& regex, LoadWork& work);
Result<Wording> analyse(const std::string& regex);

}  // namespace culprit::rules
