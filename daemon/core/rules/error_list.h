// The errors of one load: a bounded number for each file, since each costs a look through the file's text.
// The one after the last says so. One thread.
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
  // Both are borrowed.
  ErrorList(std::span<const RuleText> files, LoadWork& work);

  // Asked before an error of this place is put together; false: it is not to be added.
  bool wants(const std::string& file, uint32_t line);
  void add(RuleError error) { errors_.push_back(std::move(error)); }
  // Whether this file has more errors than are reported.
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
