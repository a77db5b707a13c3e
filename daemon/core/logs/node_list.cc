#include "core/logs/node_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/text.h"

namespace culprit::logs {
namespace {

constexpr size_t kHosts = 100'000;
constexpr size_t kDigits = 9;

std::optional<uint32_t> number_of(std::string_view digits) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (digits.empty() || digits.size() > kDigits || error != std::errc() || end != digits.end())
    return std::nullopt;
  return n;
}

bool is_of_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' ||
         c == '_';
}

// Appends each name of `before` with each number of the range "01-03"; false: invalid range, or too many
// names.
bool add_range(std::string_view range, const std::vector<std::string>& before,
               std::vector<std::string>& out) {
  const size_t dash = range.find('-');
  const std::string_view low = range.substr(0, dash),
                         high = dash == range.npos ? low : range.substr(dash + 1);
  const auto first = number_of(low), last = number_of(high);
  if (!first || !last || *first > *last || (*last - *first + 1) * before.size() + out.size() > kHosts)
    return false;
  for (const std::string& name : before)
    for (uint32_t n = *first; n <= *last; ++n) out.push_back(fmt::format("{}{:0{}}", name, n, low.size()));
  return true;
}

// One name with any number of brackets.
bool add_names(std::string_view name, std::vector<std::string>& out) {
  std::vector<std::string> names{""};
  while (!name.empty()) {
    const size_t open = name.find('['), close = name.find(']', open);
    for (std::string& n : names) n += name.substr(0, open);
    if (open == name.npos) break;
    if (close == name.npos) return false;
    std::vector<std::string> next;
    for (const std::string_view range : split(name.substr(open + 1, close - open - 1), ','))
      if (!add_range(range, names, next)) return false;
    names = std::move(next);
    name.remove_prefix(close + 1);
  }
  for (std::string& n : names) {
    if (n.empty() || !std::ranges::all_of(n, is_of_name) || out.size() >= kHosts) return false;
    out.push_back(std::move(n));
  }
  return true;
}

}  // namespace

std::vector<std::string> expand_node_list(std::string_view list) {
  std::vector<std::string> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (!add_names(list.substr(begin, i - begin), out)) return {};
    begin = i + 1;
  }
  return out;
}

std::vector<std::string> nodes_listed_in(std::string_view line) {
  constexpr std::string_view kNames[] = {"SLURM_JOB_NODELIST", "SLURM_NODELIST"};
  for (const std::string_view name : kNames) {
    size_t at = line.find(name);
    if (at == line.npos) continue;
    at += name.size();
    if (at >= line.size() || (line[at] != '=' && line[at] != ':')) continue;
    at = line.find_first_not_of(" '\"", at + 1);
    if (at == line.npos) continue;
    return expand_node_list(line.substr(at, line.find_first_of(" \t'\";", at) - at));
  }
  return {};
}

}  // namespace culprit::logs
