#include "core/logs/records.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/limits.h"

namespace culprit::logs {
namespace {

// "[3]:", as torchrun numbers the processes that failed.
bool is_index(std::string_view message) {
  if (message.size() < 3 || message[0] != '[') return false;
  const size_t end = message.find_first_not_of("0123456789", 1);
  return end != std::string_view::npos && end > 1 && message.substr(end).starts_with("]:") &&
         message.find_first_not_of(" \t\r", end + 2) == std::string_view::npos;
}

// Whether a traceback's first frame is the entry point of a program or process. The traceback of an exception
// that a function caught and printed begins in that function.
bool is_entry(std::string_view frame) {
  while (!frame.empty() && (frame.back() == ' ' || frame.back() == '\r')) frame.remove_suffix(1);
  for (const std::string_view name : {"in <module>", "in _run_module_as_main", "in _bootstrap"})
    if (frame.ends_with(name)) return true;
  return false;
}

// Python 3.13 colours tracebacks: names and frames are read without the colours.
std::string without_colours(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at)
    if (text[at] != '\x1b')
      out += text[at];
    else
      at = std::min(text.find('m', at), text.size());
  return out;
}

}  // namespace

std::string listed_host(std::string_view text) {
  constexpr std::string_view kHost = " host ";
  const size_t at = text.find(kHost);
  if (at == text.npos) return {};
  const size_t colon = text.find_first_not_of(' ', at + kHost.size());
  if (colon == text.npos || text[colon] != ':') return {};
  const size_t begin = text.find_first_not_of(' ', colon + 1);
  return begin == text.npos ? std::string() : std::string(text.substr(begin, text.find(' ', begin) - begin));
}

std::optional<uint32_t> listed_rank(std::string_view list, std::string_view line) {
  constexpr std::string_view kRank = " rank ";
  const size_t here = list.find(line);
  const size_t at = here == list.npos ? here : list.rfind(kRank, here);
  if (at == list.npos) return std::nullopt;
  const size_t digit = list.find_first_not_of(" :", at + kRank.size());
  uint32_t rank = 0;
  const auto [end, error] =
      std::from_chars(list.data() + std::min(digit, list.size()), list.data() + list.size(), rank);
  return error == std::errc() ? std::optional(rank) : std::nullopt;
}

LineRole Record::take(const RecordLine& line, std::optional<RecordEvent>& done,
                      std::vector<Relabel>& relabels) {
  return continues(line, done, relabels) ? LineRole::kContinues : begin(line);
}

void Record::finish(std::optional<RecordEvent>& done, std::vector<Relabel>& relabels) {
  if (block_ || open_) close(held_.form, done, relabels);
}

void Record::hold(const RecordLine& line) {
  held_.form = line.form;
  held_.shape = *line.shape;
  held_.place = line.place;
  held_.text.assign(line.text.substr(0, limits::kEvidenceText + 1));
  held_.again = held_.uncaught = false;
  held_.own_time = line.own_time;
}

LineRole Record::begin(const RecordLine& line) {
  const uint32_t before = form_;
  plain(line.form);
  code_ = entered_ = false;
  ignored_ = line.shape->ignored;
  traceback_ = open_ = line.shape->kind == ShapeKind::kTraceback;
  block_ = line.shape->kind == ShapeKind::kRootCause;
  if (!open_ && !block_) return LineRole::kEvent;
  hold(line);
  held_.before = before;
  if (open_) lines_.push_back(line.index);
  return LineRole::kHeld;
}

// The event that was held back is known now; `form` is that of its exception, or its own.
void Record::close(uint32_t form, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels) {
  if (ignored_) form = form_;
  for (const uint32_t line : lines_) relabels.push_back({line, form});
  lines_.clear();
  open_ = block_ = false;
  form_ = form;
  held_.form = form;
  if (!std::exchange(ignored_, false)) done = held_;
  held_.text.clear();
}

bool Record::continues(const RecordLine& line, std::optional<RecordEvent>& done,
                       std::vector<Relabel>& relabels) {
  const ShapeKind kind = line.shape->kind;
  if (kind == ShapeKind::kRule || (block_ && (line.indented || is_index(line.text)))) {
    if (form_ != kNoForm) relabels.push_back({line.index, form_});
    if (block_ && kind != ShapeKind::kRule && held_.text.size() <= limits::kEvidenceText)
      held_.text.append(" ").append(line.text.substr(0, limits::kEvidenceText));
    return true;
  }
  if (open_) return continues_traceback(line, done, relabels);
  if (kind == ShapeKind::kFrame && form_ != kNoForm) {
    relabels.push_back({line.index, form_});
    return true;
  }
  if (block_) close(held_.form, done, relabels);
  if (ignored_ && kind == ShapeKind::kTraceback) {
    open_ = true;
    lines_.push_back(line.index);
    return true;
  }
  if (!traceback_ || (kind != ShapeKind::kChained && !(chained_ && kind == ShapeKind::kTraceback)))
    return false;
  relabels.push_back({line.index, form_});
  chained_ = kind == ShapeKind::kChained;
  open_ = kind == ShapeKind::kTraceback;
  if (open_) {
    held_.again = true;
    held_.uncaught = entered_ = false;
  }
  return true;
}

bool Record::continues_traceback(const RecordLine& line, std::optional<RecordEvent>& done,
                                 std::vector<Relabel>& relabels) {
  const ShapeKind kind = line.shape->kind;
  const bool coloured = line.text.find('\x1b') != line.text.npos;
  const std::string bare = coloured ? without_colours(line.text) : std::string();
  const std::string_view text = coloured ? std::string_view(bare) : line.text;
  // Carets below a source line are a frame's too, and no source line follows them.
  const bool carets = text.find_first_not_of("^~ ") == text.npos;
  const bool code = std::exchange(code_, kind == ShapeKind::kFrame && !carets);
  const bool frame = kind == ShapeKind::kFrame || line.indented || (code && kind != ShapeKind::kException);
  const bool exception = !frame && (kind == ShapeKind::kException || names_exception(text));
  if (!frame && !exception) {  // cut off, or another one's lines between
    close(held_.form, done, relabels);
    return false;
  }
  lines_.push_back(line.index);
  if (kind == ShapeKind::kFrame && !std::exchange(entered_, true)) held_.uncaught = is_entry(text);
  if (!exception) return true;
  held_.shape = *line.shape;
  held_.text.assign(text.substr(0, limits::kEvidenceText + 1));
  close(line.form, done, relabels);
  return true;
}

}  // namespace culprit::logs
