#include "core/detect/hang/meeting_lines.h"

#include <algorithm>
#include <charconv>

#include "core/detect/hang/line_text.h"

namespace culprit::hang {
namespace {

using H = ObservedHole;

constexpr size_t kNameBytes = 80;   // of a barrier's or tensor's name
constexpr size_t kNames = 1 << 16;  // more in one line mean a damaged line
constexpr uint32_t kRanks = 1 << 20;
constexpr std::string_view kNextLine = "\\n";  // a line end that is written out
constexpr std::string_view kMore = "...";

// The number at the start of a text, after blanks and a colon.
std::optional<uint32_t> count_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" :"), text.size()));
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value >= kRanks) return std::nullopt;
  return value;
}

// "2, 3": the numbers; empty if there is any other text.
std::vector<uint32_t> listed(std::string_view list) {
  std::vector<uint32_t> out;
  for (size_t at = 0; at < list.size() && out.size() < kNames;) {
    const size_t end = std::min(list.find(',', at), list.size());
    const auto one = count_at(list.substr(at, end - at));
    if (!one) return {};
    out.push_back(*one);
    at = end + 1;
  }
  return out;
}

// The numbers in which names end: 1 and 3 of "/job:w/task:1\n/job:w/task:3".
std::vector<uint32_t> numbers_at_ends(std::string_view names) {
  std::vector<uint32_t> out;
  while (!names.empty() && out.size() < kNames) {
    const size_t end = std::min({names.find_first_of(" \t\n,"), names.find(kNextLine), names.size()});
    const std::string_view name = names.substr(0, end);
    const size_t last = name.find_last_not_of("0123456789");
    const std::string_view digits = name.substr(last == name.npos ? 0 : last + 1);
    if (const auto one = count_at(digits); one && !digits.empty()) out.push_back(*one);
    names.remove_prefix(std::min(end, names.size()));
    if (names.starts_with(kNextLine))
      names.remove_prefix(kNextLine.size());
    else if (!names.empty())
      names.remove_prefix(1);
  }
  return out;
}

std::string name_of(std::string_view text, std::string_view ends = {}) {
  return std::string(text.substr(0, std::min(text.find_first_of(ends), kNameBytes)));
}

// "NAME [missing ranks: 1, 2], NAME [missing ranks: 3]": the last word before each bracket, and the numbers
// behind the colon. A hole is one text, so the pairs of a list are cut here, by brackets and commas alone.
void add_tensors(std::string_view text, bool joined, MeetingLine& line) {
  while (line.tensors.size() < kNames) {
    const size_t open = text.find('[');
    const size_t close = open == text.npos ? text.npos : text.find(']', open);
    if (close == text.npos) return;
    std::string_view name = text.substr(0, open);
    while (name.ends_with(' ')) name.remove_suffix(1);
    name = name.substr(name.find_last_of(" ,\n") + 1);
    const std::string_view ranks = text.substr(open + 1, close - open - 1);
    MeetingLine::Tensor tensor{name_of(name), {}, {}};
    (joined ? tensor.there : tensor.missing) = listed(after(ranks, ":"));
    if (!tensor.missing.empty() || !tensor.there.empty()) line.tensors.push_back(std::move(tensor));
    text.remove_prefix(close + 1);
  }
}

// "NAME, NAME ...": what one rank lacks.
void add_row(const LineValues& values, MeetingLine& line) {
  const std::string_view names = values.text(H::kTensors);
  if (names.empty()) return;
  const auto rank = values.rank(H::kLacks);
  line.labelled = !rank;
  line.cut = has(names, kMore);
  for (size_t at = 0; at < names.size() && line.tensors.size() < kNames;) {
    const size_t end = std::min(names.find(", ", at), names.size());
    line.tensors.push_back({name_of(names.substr(at, end - at), " "), {}, {}});
    if (rank) line.tensors.back().missing = {*rank};
    at = end + 2;
  }
}

// The meeting as a phrase behind "came to"; empty: the line begins no message.
std::string meeting_of(const LineValues& values) {
  if (values.has(H::kLost)) return "the coordinator";
  if (values.has(H::kMeeting)) return name_of(values.text(H::kMeeting));
  if (values.has(H::kRendezvous)) return "the rendezvous";
  if (values.has(H::kGroupStart)) return "the start of the process group";
  if (values.has(H::kBarrier)) return "barrier " + name_of(values.text(H::kBarrier));
  if (values.has(H::kMeets)) return "a barrier";
  return values.has(H::kTensorWait) ? std::string(kTensor) : std::string();
}

// Returns whether the counts agree.
bool read_counts(const LineValues& values, MeetingLine& line) {
  line.came = values.rank(H::kCame);
  line.all = values.rank(H::kAll);
  return !line.came || !line.all || *line.came <= *line.all;
}

}  // namespace

std::optional<MeetingLine> read_meeting_line(const LineValues& values) {
  if (!values.any()) return std::nullopt;
  MeetingLine line;
  line.started = values.rank(H::kStarted);
  if (line.started) return line;
  if (!read_counts(values, line)) return std::nullopt;
  line.what = meeting_of(values);
  line.opens = !line.what.empty();
  line.starts = values.has(H::kStarts) || values.has(H::kRendezvous) || values.has(H::kGroupStart);
  line.lost = values.has(H::kLost);
  if (values.has(H::kTasks)) line.unit = MeetingUnit::kTask;
  line.rank = values.rank(H::kOwnRank);
  line.missing = values.ranks(H::kAbsent);
  const auto tasks = numbers_at_ends(values.text(H::kAbsentTasks));
  line.missing.insert(line.missing.end(), tasks.begin(), tasks.end());
  if (const auto seconds = values.number(H::kWaitedS); seconds && *seconds > 0 && *seconds < kRanks)
    line.waited_ns = *seconds * kNsPerSecond;
  add_tensors(values.text(H::kTensorsAbsent), false, line);
  add_tensors(values.text(H::kTensorsJoined), true, line);
  if (!line.opens && line.tensors.empty()) add_row(values, line);
  const bool any = line.opens || line.all || !line.missing.empty() || !line.tensors.empty();
  return any ? std::optional(std::move(line)) : std::nullopt;
}

}  // namespace culprit::hang
