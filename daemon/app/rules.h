// The rules that a command works with: the shipped library, the site's folder, and what the user names.
// Reading blocks; any thread.
//
// Files of the same text are one file: a copy of a shipped file, or a folder named twice, is no duplicate,
// and goes by the name that the user gave. An id that two different files declare is one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/pipeline.h"
#include "base/status.h"
#include "core/rules/ruleset.h"
#include "core/rules/run.h"

namespace culprit::app {

// Where a site keeps rules of its own.
constexpr const char* kSiteRules = "/etc/culprit/rules.d";

struct RuleOptions {
  std::vector<std::string> paths;  // files, and folders whose **/*.lua are read
  bool library = true;
  bool site = true;  // kSiteRules, where it is there
};

// Rule files, read and not looked into.
struct RuleFiles {
  std::vector<rules::RuleText> texts;  // the library's first, then the site's, then those of the paths
  size_t library = 0;                  // texts of the library
  size_t given = 0;                    // the first text of the paths
  std::vector<Error> errors;           // what could not be read
};

// On a walk, names that begin with a dot are passed over, links are followed to files and not to folders, and
// so are annotations for editors (a text that begins with ---@meta).
RuleFiles read_rule_files(const RuleOptions& options);

// A set of rules, or why there is none: errors of the files' reading or of their content.
struct LoadedRules {
  RuleFiles files;
  std::shared_ptr<rules::Ruleset> set;  // null where `errors` or files.errors has something
  std::vector<rules::RuleError> errors;
};
// `stop` is asked along the way; true ends the load with the error "stopped".
LoadedRules load_rules(const RuleOptions& options, std::function<bool()> stop = {});

// For commands that must go on: where the rules that were chosen have errors, the library alone; `errors`
// gets the reasons.
std::shared_ptr<rules::Ruleset> rules_or_library(const RuleOptions& options, const ReadProgress& progress,
                                                 std::vector<Error>& errors);

// One line of a text file, plain or compressed, without its end. `place` is FILE:LINE.
struct LineOfFile {
  std::string file, text;
  uint64_t line = 0;
};
Result<LineOfFile> read_line(const std::string& place);

}  // namespace culprit::app
