// The errors of one load, bounded per file: each costs a search through the file's text. An extra last entry
// reports that more were found. One thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/rules/rule.h"
#include "core/rules/work.h"

namespace culprit::rules {

constexpr size_t kErrorsPerFile = 100;

class ErrorList {
 public:
  // `files` and `work` are borrowed.
  ErrorList(std::span<const RuleText> files, LoadWork& work);

  // Call before formatting an error of this place; false: the error must not be added.
  bool wants(const std::string& file, uint32_t line);
  void add(RuleError error) { errors_.push_back(std::move(error)); }
  // Whether this file has more errors than the limit.
  bool full(const std::string& file) const;

  size_t size() const { return errors_.size(); }
  // In order of their places.
  std::vector<RuleError> take();

 private:
  struct InFile {
    size_t bytes = 0, errors = 0;
  };
  LoadWork& work_;
  std::map<std::string, InFile, std::less<>> files_;
  std::vector<RuleError> errors_;
};

}  // namespace culprit::rules
