#include "core/detect/hang/preparing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/detect/hang/line_text.h"
#include "core/detect/hang/sentence.h"

namespace culprit::hang {
namespace {

constexpr size_t kRead = 400;  // the work's name must be within these bytes of a line
constexpr size_t kName = 40;

std::string lower(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kRead)) out += c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return out;
}

// The progress bars of Hugging Face datasets: "Map:  88%|", "Filter (num_proc=8):  10%|". The default title
// is the method's name.
bool is_bar_of_datasets(std::string_view text) {
  if (text.find("%|") == text.npos) return false;
  return std::ranges::any_of(
      std::array<std::string_view, 3>{"map", "filter", "grouping texts"}, [&](std::string_view name) {
        const size_t at = text.find(name);
        if (at == text.npos || (at > 0 && text[at - 1] >= 'a' && text[at - 1] <= 'z')) return false;
        const char next = at + name.size() < text.size() ? text[at + name.size()] : '\0';
        return next == ':' || next == ' ';
      });
}

// "29:55", "1:02:03" at the head of a text; 0: none.
TimeNs clock_of(std::string_view text) {
  int64_t seconds = 0;
  for (int part = 0; part < 4; ++part) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value < 0 || value > 10'000) return 0;
    seconds = seconds * 60 + value;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (!text.starts_with(':')) return part == 0 ? 0 : seconds * kNsPerSecond;
    text.remove_prefix(1);
  }
  return 0;
}

}  // namespace

// No rule's holes: a line that a rule matches is kept, and these are progress lines, by the thousand. Only
// the last one of a file is known here, and the sample of its template.
bool names_preparation(std::string_view text) {
  static constexpr std::array<std::string_view, 14> kWords = {
      "tokeniz", "tokenis",   "preprocess", "num_proc", "packing",  "clustering", "indexing",
      "caching", "filtering", "converting", "encoding", "sharding", "extracting", "generating train split"};
  const std::string low = lower(text);
  return is_bar_of_datasets(low) ||
         std::ranges::any_of(kWords, [&](std::string_view word) { return low.find(word) != low.npos; });
}

std::string_view Preparing::doing() const {
  const std::string low = lower(text);
  return low.find("tokeni") != low.npos ? "tokenizing" : "preparing data";
}

Preparing read_preparing(std::string_view text, std::optional<uint32_t> rank) {
  Preparing out;
  out.text = text;
  out.rank = rank;
  const size_t bar = text.rfind("%|");
  if (bar == text.npos) return out;
  size_t from = bar;
  while (from > 0 && is_digit(text[from - 1]) && bar - from < 3) --from;
  int percent = -1;
  std::from_chars(text.data() + from, text.data() + bar, percent);
  if (percent < 0 || percent >= 100) return out;
  std::string_view name = text.substr(0, from);
  name = name.substr(name.find_last_of("]\r\n") + 1);
  name = name.substr(0, name.find(" (num_proc"));
  while (!name.empty() && (name.front() == ' ' || name.front() == ':')) name.remove_prefix(1);
  while (!name.empty() && (name.back() == ' ' || name.back() == ':')) name.remove_suffix(1);
  out.name = name.empty() ? "a bar at" : std::string(name.substr(0, kName));
  out.percent = percent;
  const std::string_view rest = text.substr(bar);
  if (const size_t open = rest.find('['); open != rest.npos) out.elapsed_ns = clock_of(rest.substr(open + 1));
  return out;
}

std::string preparing_title(const Preparing& preparing, const std::string& who, TimeNs limit_ns) {
  std::string at = fmt::format("{} {} %", preparing.name, preparing.percent);
  if (preparing.elapsed_ns > 0) at += ", " + shown_span(preparing.elapsed_ns);
  return fmt::format("{} was still {} ({}) {}", who, preparing.doing(), at,
                     limit_ns > 0 ? "when the time-out of the others ended after " + shown_span(limit_ns)
                                  : std::string("while the others waited for it"));
}

}  // namespace culprit::hang
