#include "app/sweep/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "base/text.h"

namespace culprit::app::sweeping {
namespace {

constexpr std::string_view kAnswers[] = {"measured", "unreached", "refused"};
constexpr size_t kNameMost = 253;  // of DNS
constexpr uint64_t kBytesMost = 1ull << 40;
constexpr uint32_t kWithinMost = 600'000;
constexpr TimeNs kTimeMost = 3600 * kNsPerSecond;

bool is_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
         c == '_' || c == ':' || c == '%';
}

// Words of a line, taken one after the other. The first that is not of its kind makes all of it wrong.
class Words {
 public:
  explicit Words(std::string_view line) : words_(split(line, ' ')) {}

  std::string_view word() {
    if (at_ >= words_.size()) wrong_ = true;
    return wrong_ ? std::string_view() : words_[at_++];
  }
  template <class Number>
  Number number(Number low, Number high) {
    const std::string_view text = word();
    Number out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size() || !(out >= low && out <= high))
      return wrong_ = true, low;
    return out;
  }
  bool flag() { return number<uint32_t>(0, 1) == 1; }
  // "-": none.
  std::string name(bool needed) {
    const std::string_view text = word();
    if (text == "-" && !needed) return {};
    if (text.empty() || text.size() > kNameMost || !std::ranges::all_of(text, is_name_byte) || text == "-")
      return wrong_ = true, std::string();
    return std::string(text);
  }
  // The rest of the line, for people; "-": none.
  std::string sentence() {
    std::string out;
    for (bool first = true; at_ < words_.size(); first = false) {
      if (!first) out += ' ';
      out += words_[at_++];
    }
    if (out.empty()) wrong_ = true;
    return out == "-" ? std::string() : shorten(to_terminal(out), kNameMost);
  }
  bool is_right() const { return !wrong_ && at_ == words_.size(); }

 private:
  std::vector<std::string_view> words_;
  size_t at_ = 0;
  bool wrong_ = false;
};

std::string or_none(const std::string& text) { return text.empty() ? "-" : text; }

std::string line_of(const Hello& m) {
  return fmt::format("hello {} {} {} {} {}", m.rank, m.port, m.host, or_none(m.address), or_none(m.busy));
}
std::string line_of(const Task& m) {
  return fmt::format("pair {} {} {} {} {} {}", m.id, m.connects ? 1 : 0, or_none(m.address), m.port, m.bytes,
                     m.within_ms);
}
std::string line_of(const Done& m) {
  return fmt::format("done {} {} {} {} {} {} {} {} {}", m.id, kAnswers[static_cast<size_t>(m.answer)],
                     m.measured ? 1 : 0, m.bytes, m.wrong, m.took_ns, m.waited_in_ns, m.waited_out_ns,
                     m.latency_ns == kNoTime ? -1 : m.latency_ns);
}
std::string line_of(const End& m) {
  return fmt::format("end {} {} {} {} {} {}", m.named ? 1 : 0, static_cast<int>(m.trouble), m.bad, m.tried,
                     m.figure, m.usual);
}

Hello hello_of(Words& words) {
  Hello out;
  out.rank = words.number<uint32_t>(0, sweep::kMembersMost - 1);
  out.port = words.number<uint16_t>(1, 65535);
  out.host = words.name(true);
  out.address = words.name(false);
  out.busy = words.sentence();
  return out;
}

Task task_of(Words& words) {
  Task out;
  out.id = words.number<uint64_t>(1, UINT64_MAX / 4);
  out.connects = words.flag();
  out.address = words.name(out.connects);
  out.port = words.number<uint16_t>(0, 65535);
  out.bytes = words.number<uint64_t>(1, kBytesMost);
  out.within_ms = words.number<uint32_t>(1, kWithinMost);
  return out;
}

std::optional<Done> done_of(Words& words) {
  Done out;
  out.id = words.number<uint64_t>(1, UINT64_MAX / 4);
  const auto at = std::ranges::find(kAnswers, words.word());
  if (at == std::end(kAnswers)) return std::nullopt;
  out.answer = static_cast<Done::Answer>(at - std::begin(kAnswers));
  out.measured = words.flag();
  out.bytes = words.number<uint64_t>(0, kBytesMost);
  out.wrong = words.number<uint64_t>(0, out.bytes);
  out.took_ns = words.number<TimeNs>(0, kTimeMost);
  out.waited_in_ns = words.number<TimeNs>(0, kTimeMost);
  out.waited_out_ns = words.number<TimeNs>(0, kTimeMost);
  const TimeNs latency = words.number<TimeNs>(-1, kTimeMost);
  if (latency >= 0) out.latency_ns = latency;
  return out;
}

End end_of(Words& words) {
  End out;
  out.named = words.flag();
  out.trouble = static_cast<sweep::Trouble>(words.number<uint32_t>(0, std::size(sweep::kTroubles) - 1));
  out.bad = words.number<uint32_t>(0, sweep::kMembersMost);
  out.tried = words.number<uint32_t>(0, sweep::kMembersMost);
  out.figure = words.number<double>(0, 1e18);
  out.usual = words.number<double>(0, 1e18);
  return out;
}

}  // namespace

std::string to_line(const Message& message) {
  std::string out = std::visit([](const auto& one) { return line_of(one); }, message);
  std::ranges::replace(out, '\n', ' ');
  out.resize(std::min(out.size(), kLineMost - 1));
  return out + "\n";
}

Result<Message> parse_message(std::string_view line) {
  Words words(line);
  const std::string_view kind = words.word();
  std::optional<Message> out;
  if (kind == "hello") out = hello_of(words);
  if (kind == "pair") out = task_of(words);
  if (kind == "end") out = end_of(words);
  if (kind == "done")
    if (auto done = done_of(words)) out = *done;
  if (line.size() >= kLineMost || !out || !words.is_right())
    return fail(ErrorCode::kInvalid, "a message of the sweep has not the form of its kind");
  return *out;
}

}  // namespace culprit::app::sweeping
