// From a wording to what the matcher needs: a regex in RE2's syntax, its holes, and literals of which every
// matching line has at least one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "core/rules/work.h"

namespace culprit::rules {

// `NVRM: Xid (PCI:<pci>): 79, <_>` -> `NVRM: Xid \(PCI:(?P<pci>.+?)\): 79, .+`.
Result<std::string> template_to_regex(std::string_view text);

// Shorter fixed texts stand in most lines and support nothing.
constexpr size_t kLiteralMin = 3;
// What holds a text holds its pieces, and 64 bytes tell lines apart well enough.
constexpr size_t kLiteralMax = 64;

// What is known of a regex before any line is seen.
struct Wording {
  std::vector<std::string> holes;  // names of its groups, in order
  // Fixed texts, in lower case, of which every match has one: RE2's own analysis, reduced to a set as small
  // and as long as possible. Empty: nothing supports it.
  std::vector<std::string> literals;
};
// An error (RE2's sentence) for what is no regex, or has a name twice. The cost goes to `work`; once that has
// ended, the literals are not to be used.
Result<Wording> analyse(const std::string& regex, LoadWork& work);
Result<Wording> analyse(const std::string& regex);

}  // namespace culprit::rules
