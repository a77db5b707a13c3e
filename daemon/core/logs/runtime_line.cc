#include "core/logs/runtime_line.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/ascii.h"

namespace culprit::logs {
namespace {

// Of "2023-10-06T00:17:09Z", and with nine digits of a second and "+00:00".
constexpr size_t kTimeLeast = 20, kTimeMost = 35;
constexpr std::string_view kStreams[] = {" stdout ", " stderr "};

bool is_time(std::string_view text) {
  constexpr std::string_view kForm = "0000-00-00T00:00:00";
  if (text.size() < kTimeLeast || text.size() > kTimeMost) return false;
  for (size_t i = 0; i < kForm.size(); ++i)
    if (kForm[i] == '0' ? !digit(text[i]) : text[i] != kForm[i]) return false;
  return text.back() == 'Z' || text[text.size() - 6] == '+' || text[text.size() - 6] == '-';
}

// Calls `see` with each line and its offset until it returns false.
template <class See>
void each_line(std::string_view lines, See see) {
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    if (!see(at, lines.substr(at, end - at))) return;
    at = end + 1;
  }
}

}  // namespace

std::optional<RuntimeLine> runtime_line(std::string_view line) {
  if (line.size() <= kTimeLeast || !digit(line[0])) return std::nullopt;
  const size_t time = line.substr(0, kTimeMost + 1).find(' ');
  if (time == line.npos || !is_time(line.substr(0, time))) return std::nullopt;
  for (size_t stream = 0; stream < std::size(kStreams); ++stream) {
    const size_t tag = time + kStreams[stream].size();
    if (line.substr(time, kStreams[stream].size()) != kStreams[stream] || tag >= line.size()) continue;
    if (line[tag] != 'F' && line[tag] != 'P') return std::nullopt;
    if (line.size() > tag + 1 && line[tag + 1] != ' ') return std::nullopt;
    return RuntimeLine{stream, line[tag] == 'P', line.substr(std::min(tag + 2, line.size()))};
  }
  return std::nullopt;
}

// memmem() does not stop at each blank as find() does.
bool may_have_parts(std::string_view text) {
  return std::ranges::any_of(kStreams, [&](std::string_view stream) {
    const std::string tag = std::string(stream) + "P";
    return ::memmem(text.data(), text.size(), tag.data(), tag.size()) != nullptr;
  });
}

JoinedLine join_parts(std::string_view lines) {
  JoinedLine out;
  size_t stream = 0;
  each_line(lines, [&](size_t at, std::string_view line) {
    const auto part = runtime_line(line);
    if (!part || (at > 0 && part->stream != stream)) return true;
    stream = part->stream;
    out.text += at == 0 ? line : part->text;
    out.end = std::min(at + line.size() + 1, lines.size());
    return part->partial;
  });
  return out;
}

size_t unfinished_parts(std::string_view lines) {
  std::array<bool, std::size(kStreams)> open{};
  size_t end = 0;
  each_line(lines, [&](size_t at, std::string_view line) {
    if (const auto part = runtime_line(line))
      open[part->stream] = part->partial && part->text.find('\r') == part->text.npos;
    if (!open[0] && !open[1]) end = std::min(at + line.size() + 1, lines.size());
    return true;
  });
  return end;
}

}  // namespace culprit::logs
