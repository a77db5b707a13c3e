#include "core/rules/error_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/rules/source_text.h"

namespace culprit::rules {

ErrorList::ErrorList(std::span<const RuleText> files, LoadWork& work) : work_(work) {
  for (const RuleText& file : files) files_[file.file].bytes += file.text.size();
}

bool ErrorList::wants(const std::string& file, uint32_t line) {
  InFile& in = files_[file];
  if (in.errors > kErrorsPerFile || !work_.spend(in.bytes * kFindingAByte)) return false;
  if (++in.errors <= kErrorsPerFile) return true;
  add({file, line, line ? 1u : 0u, 0, "limit",
       fmt::format("more than {} errors in this file", kErrorsPerFile), ""});
  return false;
}

bool ErrorList::full(const std::string& file) const {
  const auto in = files_.find(file);
  return in != files_.end() && in->second.errors > kErrorsPerFile;
}

std::vector<RuleError> ErrorList::take() {
  std::stable_sort(errors_.begin(), errors_.end(), [](const RuleError& a, const RuleError& b) {
    return std::tie(a.file, a.line, a.column) < std::tie(b.file, b.line, b.column);
  });
  return std::move(errors_);
}

}  // namespace culprit::rules
