#include "core/replay/host_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::replay {
namespace {

constexpr size_t kDigits = 9;    // of a number in a name
constexpr size_t kBrackets = 3;  // in a name

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_byte(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';
}

Error invalid(std::string_view list, const std::string& why) {
  return {ErrorCode::kInvalid, fmt::format("{}: {}", to_terminal(shorten(list, 80)), why)};
}

std::optional<uint32_t> number_of(std::string_view text) {
  uint32_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || text.size() > kDigits || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return out;
}

std::string digits_of(uint32_t number, size_t width) { return fmt::format("{:0{}}", number, width); }

// The numbers of "1-3,07".
Result<std::vector<std::string>> numbers_of(std::string_view ranges, size_t most) {
  std::vector<std::string> out;
  for (const std::string_view range : split(ranges, ',')) {
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, dash);
    const auto low = number_of(first);
    const auto high = dash == range.npos ? low : number_of(range.substr(dash + 1));
    if (!low || !high) return tl::unexpected(invalid(range, "is no range of numbers"));
    if (*high < *low) return tl::unexpected(invalid(range, "runs backwards"));
    if (*high - *low >= most || out.size() + (*high - *low) >= most)
      return fail(ErrorCode::kLimit, fmt::format("the list has more than {} hosts", most));
    const size_t width = first.size() > 1 && first.front() == '0' ? first.size() : 1;
    for (uint32_t n = *low; n <= *high; ++n) out.push_back(digits_of(n, width));
  }
  return out;
}

// Parts of the list between the commas outside of brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> out;
  size_t begin = 0;
  bool inside = false;
  for (size_t at = 0; at <= list.size(); ++at) {
    if (at < list.size() && list[at] == '[') inside = true;
    if (at < list.size() && list[at] == ']') inside = false;
    if (at < list.size() && (list[at] != ',' || inside)) continue;
    out.push_back(trim(list.substr(begin, at - begin)));
    begin = at + 1;
  }
  return out;
}

Result<std::vector<std::string>> names_of(std::string_view part, size_t most) {
  std::vector<std::string> out{""};
  size_t brackets = 0;
  while (!part.empty()) {
    const size_t open = part.find('[');
    const std::string_view plain = part.substr(0, open);
    if (!std::ranges::all_of(plain, is_name_byte))
      return tl::unexpected(invalid(plain, "is no name of a host"));
    for (std::string& name : out) name += plain;
    if (open == part.npos) break;
    const size_t close = part.find(']', open);
    if (close == part.npos) return tl::unexpected(invalid(part, "has a '[' without its ']'"));
    if (++brackets > kBrackets) return tl::unexpected(invalid(part, "has too many brackets"));
    const auto numbers = numbers_of(part.substr(open + 1, close - open - 1), most);
    if (!numbers) return tl::unexpected(numbers.error());
    if (out.size() * numbers->size() > most)
      return fail(ErrorCode::kLimit, fmt::format("the list has more than {} hosts", most));
    std::vector<std::string> next;
    for (const std::string& name : out)
      for (const std::string& number : *numbers) next.push_back(name + number);
    out = std::move(next);
    part.remove_prefix(close + 1);
  }
  return out;
}

// "n" "007" "" of "n007": the last number of a name.
struct Numbered {
  std::string before, digits, after;
};

Numbered numbered(const std::string& name) {
  size_t end = name.size();
  while (end > 0 && !is_digit(name[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_digit(name[begin - 1]) && end - begin < kDigits) --begin;
  return {name.substr(0, begin), name.substr(begin, end - begin), name.substr(end)};
}

bool follows(const std::string& digits, const std::string& next) {
  const auto number = number_of(digits);
  if (!number || next.empty()) return false;
  return digits_of(*number + 1, digits.front() == '0' ? digits.size() : 1) == next;
}

}  // namespace

Result<std::vector<std::string>> expand_hosts(std::string_view list, size_t most) {
  std::vector<std::string> out;
  std::set<std::string, std::less<>> seen;
  for (const std::string_view part : parts_of(list)) {
    if (part.empty()) return tl::unexpected(invalid(list, "has an empty name"));
    auto names = names_of(part, most);
    if (!names) return tl::unexpected(names.error());
    for (std::string& name : *names) {
      if (name.size() > limits::kNameBytes) return tl::unexpected(invalid(name, "is too long for a host"));
      if (!seen.insert(name).second) return tl::unexpected(invalid(name, "is in the list twice"));
      out.push_back(std::move(name));
    }
    if (out.size() > most)
      return fail(ErrorCode::kLimit, fmt::format("the list has more than {} hosts", most));
  }
  return out;
}

std::string fold_hosts(std::vector<std::string> names) {
  std::ranges::sort(names, natural_less);
  std::vector<Numbered> all;
  for (const std::string& name : names) all.push_back(numbered(name));
  std::string out;
  for (size_t i = 0; i < all.size();) {
    const auto same = [&](size_t k) {
      return k < all.size() && !all[k].digits.empty() && all[k].before == all[i].before &&
             all[k].after == all[i].after;
    };
    std::string ranges;
    size_t k = i, count = 0;
    do {
      size_t last = k;
      while (same(last + 1) && follows(all[last].digits, all[last + 1].digits)) ++last;
      ranges += (count > 0 ? "," : "") + all[k].digits + (last > k ? "-" + all[last].digits : "");
      count += last - k + 1;
      k = last + 1;
    } while (same(k));
    out += (i > 0 ? "," : "") +
           (count > 1 ? fmt::format("{}[{}]{}", all[i].before, ranges, all[i].after) : names[i]);
    i = k;
  }
  return out;
}

}  // namespace culprit::replay
