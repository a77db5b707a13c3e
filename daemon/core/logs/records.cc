#include "core/logs/records.h"

#include <charconv>
#include <utility>

#include "base/limits.h"

namespace culprit::logs {
namespace {

// "[3]:", torchrun's number of a failed process.
bool is_index(std::string_view message) {
  if (message.size() < 3 || message[0] != '[') return false;
  const size_t end = message.find_first_not_of("0123456789", 1);
  return end != std::string_view::npos && end > 1 && message.substr(end).starts_with("]:") &&
         message.find_first_not_of(" \t\r", end + 2) == std::string_view::npos;
}

// Limit on the lines of a notebook's traceback before its exception; some ten lines per frame.
constexpr uint32_t kNotebookLines = 400;

// Whether the interpreter prints the source line below this frame: after "File "a.py", line 4" and "..., line
// 4, in f", but not after faulthandler's "..., line 4 in f".
bool shows_source(std::string_view frame) {
  constexpr std::string_view kLine = "\", line ";
  if (!frame.starts_with("File \"")) return false;
  const size_t at = frame.find(kLine);
  if (at == frame.npos) return false;
  const size_t end = frame.find_first_not_of("0123456789", at + kLine.size());
  return end == frame.npos || frame[end] == ',' || frame[end] == '\r';
}

// A notebook's traceback ends with the exception of its first line.
bool begins_with_name(std::string_view text, std::string_view name) {
  return text.starts_with(name) && (text.size() == name.size() || text[name.size()] == ':' ||
                                    text.find_first_not_of(" \r", name.size()) == std::string_view::npos);
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

LineRole Record::add(const RecordLine& line, std::optional<RecordEvent>& done,
                     std::vector<Relabel>& relabels) {
  return continues(line, done, relabels) ? LineRole::kContinues : begin(line);
}

void Record::finish(std::optional<RecordEvent>& done, std::vector<Relabel>& relabels) {
  if (block_ || open_) close(held_.form, done, relabels);
}

void Record::buffer(const RecordLine& line) {
  held_.form = line.form;
  held_.shape = *line.shape;
  held_.place = line.place;
  held_.text.assign(line.text.substr(0, limits::kEvidenceText + 1));
  held_.text_line = line.place.line;
  held_.again = held_.uncaught = held_.cause = false;
  held_.code.reset();
  held_.own_time = line.own_time;
}

// Whether the line begins a traceback; sets its layout.
bool Record::begins_traceback(const RecordLine& line) {
  const std::string bare = without_colours(line.text);
  const auto head = traceback_head(bare);
  if (!head) return false;
  style_ = head->style;
  name_ = head->name;
  cause_ = cause_ || head->original;
  code_ = entered_ = boxed_ = framed_ = false;
  shown_ = 0;
  return true;
}

LineRole Record::begin(const RecordLine& line) {
  const uint32_t before = form_;
  plain(line.form);
  ignored_ = line.shape->ignored;
  source_ = line.shape->kind == ShapeKind::kFrame && shows_source(line.text);
  traceback_ = open_ = line.shape->kind == ShapeKind::kTraceback && begins_traceback(line);
  block_ = line.shape->kind == ShapeKind::kRootCause;
  if (!open_ && !block_) return LineRole::kEvent;
  cause_ = false;  // the exception caused by this one is not in this record
  buffer(line);
  held_.before = before;
  if (open_) lines_.push_back(line.index);
  return LineRole::kHeld;
}

// Completes the pending event; `form` is that of its exception, or its own.
void Record::close(uint32_t form, std::optional<RecordEvent>& done, std::vector<Relabel>& relabels) {
  if (ignored_) form = form_;
  for (const uint32_t line : lines_) relabels.push_back({line, form});
  lines_.clear();
  framed_ = open_ && style_ == TracebackStyle::kGroup;
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
  if (framed_ && traceback_line(TracebackStyle::kGroup, line.text).framed) {
    relabels.push_back({line.index, form_});
    return true;
  }
  framed_ = false;
  const bool source = std::exchange(source_, false) && line.indented && !line.own_time;
  if ((kind == ShapeKind::kFrame || source) && form_ != kNoForm) {
    relabels.push_back({line.index, form_});
    source_ = kind == ShapeKind::kFrame && shows_source(line.text);
    return true;
  }
  if (block_) close(held_.form, done, relabels);
  if (ignored_ && kind == ShapeKind::kTraceback && begins_traceback(line)) {
    open_ = true;
    held_.own_time = line.own_time;
    lines_.push_back(line.index);
    return true;
  }
  return traceback_ && continues_chain(line, relabels);
}

// Handles further exceptions of a chain. An exception raised while another was handled gets its own entry. If
// a parent process passes an exception on, that exception ended the parent too.
bool Record::continues_chain(const RecordLine& line, std::vector<Relabel>& relabels) {
  const ShapeKind kind = line.shape->kind;
  const bool begins = kind == ShapeKind::kTraceback && begins_traceback(line) && (chained_ || cause_);
  if (kind != ShapeKind::kChained && !begins) return false;
  relabels.push_back({line.index, form_});
  chained_ = kind == ShapeKind::kChained;
  if (chained_) cause_ = introduces_cause(line.text);
  open_ = begins;
  if (!open_) return true;
  // The first line represents the traceback until its exception arrives.
  held_.shape = *line.shape;
  held_.text.assign(line.text.substr(0, limits::kEvidenceText + 1));
  held_.text_line = line.place.line;
  held_.again = true;
  held_.code.reset();
  held_.cause = entered_ = std::exchange(cause_, false);
  held_.uncaught = held_.uncaught && held_.cause;
  return true;
}

Record::Part Record::notebook_part(const RecordLine& line, std::string_view bare) {
  Part part{true, begins_with_name(bare, name_), bare};
  const bool other = line.shape->progress || (line.own_time && !held_.own_time);
  if (!part.exception && (other || ++shown_ > kNotebookLines)) part.belongs = false;
  if (!part.exception && part.belongs && !std::exchange(entered_, true)) held_.uncaught = is_entry(bare);
  return part;
}

Record::Part Record::part_of(const RecordLine& line, std::string_view bare) {
  if (style_ == TracebackStyle::kNotebook) return notebook_part(line, bare);
  const TracebackLine inner = traceback_line(style_, bare);
  const std::string_view text = inner.text;
  if (inner.rule || (inner.framed && traceback_head(text))) {
    boxed_ = style_ == TracebackStyle::kBox;
    return {true, false, text};
  }
  const bool boxed = style_ == TracebackStyle::kBox;
  if (boxed) boxed_ = boxed_ && !inner.framed;
  // Carets below a source line belong to the frame; no further source line follows.
  const bool carets = text.find_first_not_of("^~ ") == text.npos;
  const bool stack =
      line.shape->kind == ShapeKind::kFrame || text.starts_with("File \"") || (boxed && inner.framed);
  const bool code = std::exchange(code_, stack && !carets && !boxed);
  const bool known = line.shape->kind == ShapeKind::kException;
  const bool indented = style_ == TracebackStyle::kGroup ? inner.indented : line.indented && !boxed_;
  const bool frame = stack || indented || (code && !known);
  const bool exception =
      !frame && (known || names_exception(text)) && (style_ != TracebackStyle::kGroup || inner.framed);
  if (stack && !std::exchange(entered_, true)) held_.uncaught = is_entry(text);
  if (stack)
    if (auto place = frame_place(text); place && is_own_code(*place)) held_.code = std::move(place);
  return {frame || exception, exception, text};
}

bool Record::continues_traceback(const RecordLine& line, std::optional<RecordEvent>& done,
                                 std::vector<Relabel>& relabels) {
  const bool coloured = line.text.find('\x1b') != line.text.npos;
  const std::string bare = coloured ? without_colours(line.text) : std::string();
  const Part part = part_of(line, coloured ? std::string_view(bare) : line.text);
  if (!part.belongs) {  // the traceback is truncated, or mixed with lines of another writer
    close(held_.form, done, relabels);
    return false;
  }
  lines_.push_back(line.index);
  if (!part.exception) return true;
  held_.shape = *line.shape;
  held_.text.assign(part.text.substr(0, limits::kEvidenceText + 1));
  held_.text_line = line.place.line;
  // The group's own line does not describe its exceptions, so the first of them is used.
  if (style_ == TracebackStyle::kGroup && is_group(part.text)) {
    held_.form = line.form;
    return true;
  }
  close(line.form, done, relabels);
  return true;
}

}  // namespace culprit::logs
