// The rules of a command: the built-in library, the site's folder, and files named by the user. Reading
// blocks; any thread.
//
// Files with the same text count as one file under the name that the user gave. So a copy of a library file,
// or a folder named twice, is no duplicate. An id that two different files declare is a duplicate.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "core/rules/ruleset.h"
#include "core/rules/run.h"

namespace culprit::app {

// A site's own rules.
constexpr const char* kSiteRules = "/etc/culprit/rules.d";

struct RuleOptions {
  std::vector<std::string> paths;  // files, and folders searched for **/*.lua files
  bool library = true;
  bool site = true;  // read kSiteRules if it exists
  // For a daemon: rejects files that users other than root and this user could change or replace.
  std::optional<uid_t> trusted_uid = std::nullopt;
};

// Rule files, read but not parsed.
struct RuleFiles {
  std::vector<rules::RuleText> texts;  // texts in this order: the library, the site, `paths`
  size_t library = 0;                  // number of texts from the library
  size_t given = 0;                    // index of the first text from `paths`
  std::vector<Error> errors;           // unreadable files
};

// Skips names in folders that start with a dot. Follows links to files, but not to folders. Skips annotations
// for editors (texts that start with ---@meta).
RuleFiles read_rule_files(const RuleOptions& options);

// A set of rules, or the errors of reading or parsing.
struct LoadedRules {
  RuleFiles files;
  std::shared_ptr<rules::Ruleset> set;  // null if there are errors in this struct or in files.errors
  std::vector<rules::RuleError> errors;
};
// `stop`: polled during the load; true ends it with the error "stopped".
LoadedRules load_rules(const RuleOptions& options, std::function<bool()> stop = {});

// For commands that must not fail: if the chosen rules have errors, only the library is loaded, and `errors`
// gets the reasons.
std::shared_ptr<rules::Ruleset> rules_or_library(const RuleOptions& options, std::function<bool()> stop,
                                                 std::vector<Error>& errors);

// A rule that does not run because some of its texts are unfinished.
struct OpenRule {
  std::string file, what;  // what: a sentence without the file
};
std::vector<OpenRule> open_rules(const rules::Ruleset& set);

// One line of a plain or compressed text file, without its end. `place` is FILE:LINE.
struct LineOfFile {
  std::string file, text;
  uint64_t line = 0;
};
Result<LineOfFile> read_line(const std::string& place);

// Why `loaded` has no rules: the first error, and the number of the others.
std::string first_error(const LoadedRules& loaded);

}  // namespace culprit::app
