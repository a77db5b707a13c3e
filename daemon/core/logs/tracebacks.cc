#include "core/logs/tracebacks.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/text.h"
#include "core/logs/shape.h"

namespace culprit::logs {
namespace {

constexpr std::string_view kHead = "Traceback (most recent call last)";
constexpr size_t kPlaceBytes = 200;  // limit of a file or function name; real names are shorter
// Unicode box-drawing characters, U+2500 to U+257F, are three bytes that begin with these two pairs. ASCII
// boxes have '+', '-' and '|'.
constexpr std::array<std::string_view, 2> kBoxBytes = {"\xe2\x94", "\xe2\x95"};

// Bytes of the box character or blank at `at`; 0: other text.
size_t box_sign(std::string_view text, size_t at) {
  if (text[at] == ' ' || text[at] == '|' || text[at] == '+' || text[at] == '-') return 1;
  const bool box =
      text.size() - at >= 3 && std::ranges::find(kBoxBytes, text.substr(at, 2)) != kBoxBytes.end();
  return box ? 3 : 0;
}

bool is_box_line(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t size = box_sign(text, at);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

// "+-+---------------- 2 ----------------"
bool is_group_rule(std::string_view text) {
  return text.starts_with('+') && text.find_first_not_of("+- 0123456789.") == npos;
}

}  // namespace

std::optional<TracebackHead> traceback_head(std::string_view bare) {
  const size_t at = bare.find(kHead);
  if (at == npos) return std::nullopt;
  const std::string_view before = trimmed(bare.substr(0, at)),
                         after = trimmed(bare.substr(at + kHead.size()));
  TracebackHead head;
  if (before.empty()) return head;
  if (before == "Original") {
    head.original = true;
    return head;
  }
  if (before == "+ Exception Group") {
    head.style = TracebackStyle::kGroup;
    return head;
  }
  if (is_box_line(before)) {
    head.style = TracebackStyle::kBox;
    return is_box_line(after) && !after.empty() ? std::optional(head) : std::nullopt;
  }
  if (!after.empty() || before.find(':') != npos || !names_exception(before)) return std::nullopt;
  const size_t dot = before.rfind('.');
  if (dot + 1 == before.size()) return std::nullopt;  // the end of a sentence
  const char first = before[dot == npos ? 0 : dot + 1];
  if (first >= 'a' && first <= 'z') return std::nullopt;  // a word of a sentence
  head.style = TracebackStyle::kNotebook;
  head.name = before;
  return head;
}

std::string without_colours(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\x1b') {
      out += text[at];
      continue;
    }
    // "\x1b[1;31m": digits and signs between '[' and a letter.
    if (at + 1 >= text.size() || text[at + 1] != '[') continue;
    at = text.find_first_not_of("0123456789;?", at + 2);
    if (at == npos) break;
  }
  return out;
}

TracebackLine traceback_line(TracebackStyle style, std::string_view bare) {
  TracebackLine line;
  line.text = bare;
  if (style == TracebackStyle::kGroup) {
    line.rule = is_group_rule(bare);
    size_t at = 0;
    while (at < bare.size() && (bare[at] == ' ' || bare[at] == '|')) line.framed |= bare[at++] == '|';
    line.framed |= line.rule;
    line.text = bare.substr(at);
    line.indented = line.framed && bare.substr(0, at).ends_with("  ");
  } else if (style == TracebackStyle::kBox) {
    line.framed = !bare.empty() && bare[0] != ' ' && bare[0] != '-' && box_sign(bare, 0) > 0;
    line.rule = line.framed && is_box_line(bare);
    size_t at = 0;
    while (line.framed && at < bare.size() && box_sign(bare, at) > 0) at += box_sign(bare, at);
    line.text = bare.substr(at);
  }
  return line;
}

bool is_entry(std::string_view frame) {
  // A box has its border after the frame.
  if (const size_t border = frame.find("\xe2\x94\x82"); border != npos) frame = frame.substr(0, border);
  if (frame.ends_with('|')) frame.remove_suffix(1);
  frame = trimmed(frame);
  for (const std::string_view name : {"in <module>", "in _run_module_as_main", "in _bootstrap"})
    if (frame.ends_with(name)) return true;
  for (const std::string_view cell : {"Cell In[", "Cell In [", "Input In [", "<ipython-input-"})
    if (frame.starts_with(cell)) return true;
  return frame.find("in <module>:") != npos || frame.find(" in <module>(") != npos;
}

std::optional<CodePlace> frame_place(std::string_view frame) {
  if (const size_t border = frame.find("\xe2\x94\x82"); border != npos) frame = frame.substr(0, border);
  frame = trimmed(frame);
  constexpr std::string_view kFile = "File \"", kLine = ", line ", kIn = "in ";
  size_t line = npos, after = npos;
  CodePlace out;
  if (frame.starts_with(kFile)) {
    const size_t end = frame.find('"', kFile.size());
    if (end == npos || !frame.substr(end + 1).starts_with(kLine)) return std::nullopt;
    out.file = frame.substr(kFile.size(), end - kFile.size());
    line = end + 1 + kLine.size();
  } else {
    const size_t colon = frame.find(".py:");
    if (colon == npos) return std::nullopt;
    out.file = frame.substr(0, colon + 3);
    line = colon + 4;
  }
  for (after = line; after < frame.size() && digit(frame[after]); ++after)
    if (out.line < 100'000'000) out.line = out.line * 10 + static_cast<uint32_t>(frame[after] - '0');
  if (after == line || out.file.empty()) return std::nullopt;
  if (out.file.size() > kPlaceBytes) {
    size_t cut = out.file.size() - kPlaceBytes;
    while (cut < out.file.size() && (static_cast<unsigned char>(out.file[cut]) & 0xc0) == 0x80) ++cut;
    out.file.erase(0, cut);
  }
  const size_t in = frame.find(kIn, after);
  if (in != npos && in - after <= 2) {
    out.function = shorten(trimmed(frame.substr(in + kIn.size())), kPlaceBytes);
    if (out.function == "<module>") out.function.clear();
  }
  return out;
}

bool is_own_code(const CodePlace& place) {
  const std::string_view file = place.file;
  if (file.empty() || file[0] == '<') return false;  // "<frozen runpy>", "<string>"
  for (const std::string_view part :
       {"/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python", "/bin/"})
    if (file.find(part) != npos) return false;
  return true;
}

bool introduces_cause(std::string_view form) {
  return form.starts_with("-- Process ") && form.find(" terminated with the following error") != npos;
}

bool is_group(std::string_view exception) { return exception.find(" sub-exception") != npos; }

}  // namespace culprit::logs
