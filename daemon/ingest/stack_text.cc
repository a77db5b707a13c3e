#include "ingest/stack_text.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit::ingest {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// The number at the beginning of the text, decimal or 0x…; the text is advanced past it.
std::optional<uint64_t> take_number(std::string_view& text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  uint64_t number = 0;
  const char* first = text.data() + (hex ? 2 : 0);
  const auto [end, failed] = std::from_chars(first, text.data() + text.size(), number, hex ? 16 : 10);
  if (failed != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

uint32_t line_number(std::string_view text) {
  const auto number = take_number(text);
  return number && *number <= 100'000'000 ? static_cast<uint32_t>(*number) : 0;
}

std::string_view without_front(std::string_view text, std::string_view front) {
  if (text.starts_with(front)) text.remove_prefix(front.size());
  return text;
}

// Text between the first `open` and the next `close`; empty if there is none.
std::string_view between(std::string_view text, char open, char close) {
  const size_t first = text.find(open);
  if (first == text.npos) return {};
  const size_t end = text.find(close, first + 1);
  return end == text.npos ? std::string_view() : text.substr(first + 1, end - first - 1);
}

// Position where the last balanced parenthesis opens; npos: none.
size_t arguments_of(std::string_view text) {
  if (!text.ends_with(')')) return text.npos;
  size_t depth = 0;
  for (size_t i = text.size(); i-- > 0;) {
    if (text[i] == ')') ++depth;
    if (text[i] == '(' && --depth == 0) return i;
  }
  return text.find(" (");  // a string argument contains a parenthesis
}

// "path/file.cc:120", "file.c:48:7".
void split_place(std::string_view place, std::string_view& file, uint32_t& line) {
  std::string_view rest = place;
  std::string_view last;
  for (int part = 0; part < 2; ++part) {
    const size_t colon = rest.rfind(':');
    if (colon == rest.npos || !all_digits(rest.substr(colon + 1))) break;
    last = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  }
  file = rest;
  line = last.empty() ? 0 : line_number(last);
}

// Removes terminal colour sequences, which py-spy writes.
std::string without_colours(std::string_view line) {
  std::string out;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b' && i + 1 < line.size() && line[i + 1] == '[') {
      i += 2;
      while (i < line.size() && !alpha(line[i])) ++i;
      continue;
    }
    out += line[i];
  }
  return out;
}

ThreadState state_of(std::string_view word) {
  if (word.starts_with("idle")) return ThreadState::kIdle;
  if (word.starts_with("active+gil")) return ThreadState::kGil;
  return word.starts_with("active") ? ThreadState::kActive : ThreadState::kUnknown;
}

bool is_gdb_noise(std::string_view text) {
  for (std::string_view begin : {"[New LWP ",
                                 "[Thread debugging",
                                 "Using host libthread_db",
                                 "[Inferior ",
                                 "[Switching to",
                                 "Reading symbols",
                                 "Attaching to",
                                 "warning:",
                                 "Python Exception",
                                 "(gdb)",
                                 "Backtrace stopped",
                                 "--Type <RET>",
                                 "Python v",
                                 "Extension modules:",
                                 "<no Python frame>",
                                 "Arguments:",
                                 "Locals:",
                                 "Detaching from",
                                 "Downloading",
                                 "GNU gdb"})
    if (text.starts_with(begin)) return true;
  return text == "..." || contains(text, "tstate is freed") || contains(text, "(No such process)");
}

}  // namespace

std::optional<NativeFrame> parse_native_frame(std::string_view text) {
  if (!text.starts_with('#')) return std::nullopt;
  text.remove_prefix(1);
  if (!take_number(text)) return std::nullopt;
  text = trim(text);
  const bool address = text.starts_with("0x");
  if (address) {
    take_number(text);
    text = trim(text);
  }
  const bool gdb = text.starts_with("in ");
  text = without_front(text, "in ");
  NativeFrame out;
  if (address && !gdb) {  // eu-stack: "fn+0x12 - module"
    if (text.starts_with("- ")) text = text.substr(2), out.file = trim(text), text = {};
    if (const size_t dash = text.rfind(" - "); dash != text.npos) {
      out.file = trim(text.substr(dash + 3));
      text = text.substr(0, dash);
    }
    out.function = trim(text);
    return out;
  }
  // gdb: "fn (args) at file:line", "fn (args) from module". Arguments may contain both words.
  size_t place = text.npos, end = 0;
  for (const std::string_view mark : {") at ", ") from "})
    if (const size_t at = text.rfind(mark); at != text.npos && (place == text.npos || at > place)) {
      place = at;
      end = at + mark.size();
    }
  if (place != text.npos) {
    split_place(trim(text.substr(end)), out.file, out.line);
    text = text.substr(0, place + 1);
  }
  if (const size_t open = arguments_of(text); open != text.npos && open > 0) text = text.substr(0, open);
  out.function = trim(text);
  return out;
}

void StackText::close() {
  dropped += builder_.dropped();
  StackDump dump = builder_.finish();
  in_native_python_ = false;
  worker_ = 0;
  if (dump.threads.empty()) return;
  dump.rank = section_;
  dump.line = begin_;
  if (dump.pid == 0)
    for (const StackThread& t : dump.threads)
      if (t.main && t.id <= UINT32_MAX) dump.pid = static_cast<uint32_t>(t.id);
  if (dumps.size() >= limits::kStackDumps) {
    ++dropped;
    return;
  }
  dump.sample = samples_[{dump.rank.value_or(limits::kCommRanks), dump.pid, dump.tool}]++;
  dumps.push_back(std::move(dump));
}

void StackText::end() { close(); }

bool StackText::add_line(std::string_view line) {
  ++line_;
  std::string plain;
  if (contains(line, "\x1b[")) line = plain = without_colours(line);
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::string_view text = trim(line);
  if (text.empty()) return true;
  if (add_section(text) || add_header(text) || add_thread(text)) return true;
  if (add_frame(line, text) || add_continuation(line, text) || is_gdb_noise(text)) return true;
  // Local variables in py-spy's output, indented deeper than frames.
  if (builder_.dump().tool == StackTool::kPySpy && line.starts_with("        ")) return true;
  ++unknown;
  return false;
}

// "=== Rank 3: http://node-1:4321 ===", then the dump or "Error: 503".
bool StackText::add_section(std::string_view text) {
  if (text.starts_with("===") && text.ends_with("===")) {
    std::string_view title = trim(text.substr(3, text.size() - std::min<size_t>(text.size(), 6)));
    close();
    section_.reset();
    if (!title.starts_with("Rank ")) return true;
    title = trim(title.substr(5));
    const auto rank = take_number(title);
    if (rank && *rank < limits::kCommRanks) section_ = static_cast<uint32_t>(*rank);
    return true;
  }
  if (section_ && builder_.empty() && text.starts_with("Error")) {
    if (refusals.size() < limits::kStackDumps)
      refusals.push_back({*section_, to_utf8(text.substr(0, limits::kNameBytes))});
    else
      ++dropped;
    return true;
  }
  return false;
}

// Parses lines that begin the dump of a process.
bool StackText::add_header(std::string_view text) {
  std::string_view rest = text;
  if (text.starts_with("Process ") || text.starts_with("PID ")) {
    const bool py_spy = text.starts_with("Process ");
    rest.remove_prefix(py_spy ? 8 : 4);
    const auto pid = take_number(rest);
    if (!pid || *pid > UINT32_MAX || !(py_spy ? rest.starts_with(":") : rest.starts_with(" - ")))
      return false;
    close();
    builder_.dump().tool = py_spy ? StackTool::kPySpy : StackTool::kEuStack;
    builder_.dump().pid = static_cast<uint32_t>(*pid);
    begin_ = line_;
    return true;
  }
  if (text.starts_with("Parent Process ")) {
    rest.remove_prefix(15);
    if (const auto pid = take_number(rest); pid && *pid <= UINT32_MAX)
      join_parent(static_cast<uint32_t>(*pid));
    return true;
  }
  if ((text.starts_with("Timeout (") && contains(text, ")!")) || text.starts_with("Fatal Python error:")) {
    close();
    builder_.dump().tool = StackTool::kFaultHandler;
    begin_ = line_;
    return true;
  }
  return false;
}

// A worker's dump follows its parent's dump: the worker's threads join the parent's dump, with the worker's
// pid.
void StackText::join_parent(uint32_t pid) {
  const auto parent = std::find_if(dumps.rbegin(), dumps.rend(), [&](const StackDump& d) {
    if (d.tool != StackTool::kPySpy || d.rank != section_) return false;
    return d.pid == pid || std::any_of(d.threads.begin(), d.threads.end(),
                                       [&](const StackThread& t) { return t.pid == pid; });
  });
  if (parent == dumps.rend() || !builder_.empty()) return;
  const uint32_t own = builder_.dump().pid;
  StackDump last = std::move(*parent);
  dumps.erase(std::next(parent).base());
  StackBuilder joined;
  const uint64_t begin = last.line;
  joined.dump().tool = last.tool;
  joined.dump().pid = last.pid;
  for (const StackThread& t : last.threads) {
    StackThread* to = joined.add_thread(last.words[t.name], t.id, t.pid);
    if (!to) break;
    to->main = t.main;
    to->state = t.state;
    for (const StackFrame& f : t.frames)
      joined.add_frame(last.words[f.function], last.words[f.file], f.line, f.native);
  }
  builder_ = std::move(joined);
  begin_ = begin;
  worker_ = own;
}

StackThread* StackText::begin_thread(StackTool tool, std::string_view name, uint64_t id) {
  in_native_python_ = false;
  const bool fresh = builder_.empty() && builder_.dump().tool == StackTool::kUnknown;
  if (!fresh && (builder_.dump().tool != tool || builder_.has_thread(id, worker_))) close();
  if (builder_.empty() && builder_.dump().tool == StackTool::kUnknown) begin_ = line_;
  builder_.dump().tool = tool;
  return builder_.add_thread(name, id, worker_);
}

bool StackText::add_thread(std::string_view text) {
  std::string_view rest = text;
  if (contains(text, "(most recent call first)")) {  // faulthandler, and gdb's py-bt
    if (contains(text, "C stack trace")) return in_native_python_ = true;
    rest = without_front(rest, "Current thread ");
    rest = without_front(rest, "Thread ");
    const uint64_t id = take_number(rest).value_or(0);
    begin_thread(StackTool::kFaultHandler, between(rest, '[', ']'), id);
    return true;
  }
  if (text.starts_with("TID ")) {
    rest.remove_prefix(4);
    const auto id = take_number(rest);
    if (!id || !rest.starts_with(":")) return false;
    if (StackThread* t = begin_thread(StackTool::kEuStack, {}, *id)) t->main = *id == builder_.dump().pid;
    return true;
  }
  if (!text.starts_with("Thread ")) return false;
  rest.remove_prefix(7);
  const auto number = take_number(rest);
  if (!number) return false;
  while (!rest.empty() && rest.front() != '(') rest.remove_prefix(1);
  if (rest.empty()) return false;
  const std::string_view name = between(rest, '"', '"');
  const ThreadState state = state_of(rest.substr(1));
  if (state != ThreadState::kUnknown) {
    if (StackThread* t = begin_thread(StackTool::kPySpy, name, *number)) t->state = state;
    return true;
  }
  if (!text.ends_with(':')) return false;
  uint64_t id = *number;
  if (const size_t lwp = rest.find("LWP "); lwp != rest.npos) {
    std::string_view digits = rest.substr(lwp + 4);
    id = take_number(digits).value_or(id);
  }
  if (StackThread* t = begin_thread(StackTool::kGdb, name, id)) t->main = *number == 1;
  return true;
}

bool StackText::add_frame(std::string_view line, std::string_view text) {
  if (text.starts_with("File \"")) {
    const size_t quote = text.find('"', 6);
    const size_t at = text.find(", line ", 6);
    if (quote == text.npos || at == text.npos || at < quote) return false;
    std::string_view rest = text.substr(at + 7);
    const uint32_t number = line_number(rest);
    const size_t in = rest.find(" in ");
    builder_.add_frame(in == rest.npos ? "" : rest.substr(in + 4), text.substr(6, quote - 6), number, false);
    return true;
  }
  // gdb and eu-stack give better native stacks
  if (in_native_python_ && text.starts_with("Binary file")) return true;
  if (const auto frame = parse_native_frame(text)) {
    // gdb's `bt` of one thread prints no thread line; each #0 begins another thread.
    if (builder_.empty() || (text.starts_with("#0 ") && builder_.last_frame()))
      begin_thread(builder_.dump().tool == StackTool::kEuStack ? StackTool::kEuStack : StackTool::kGdb, {},
                   0);
    builder_.add_frame(frame->function, frame->file, frame->line, true);
    return true;
  }
  // py-spy: four blanks, "forward (model.py:120)" or "read (libc.so.6)".
  if (builder_.dump().tool != StackTool::kPySpy || !line.starts_with("    ") || line.starts_with("     "))
    return false;
  const size_t open = text.rfind(" (");
  if (open == text.npos || !text.ends_with(')')) return false;
  const std::string_view place = text.substr(open + 2, text.size() - open - 3);
  std::string_view file;
  uint32_t number = 0;
  split_place(place, file, number);
  builder_.add_frame(text.substr(0, open), file, number, is_native_frame(file, number));
  return true;
}

// Parses eu-stack's source line below a frame, and a frame that gdb breaks over several lines.
bool StackText::add_continuation(std::string_view line, std::string_view text) {
  StackFrame* last = builder_.last_frame();
  if (!last || !line.starts_with("    ")) return false;
  const StackTool tool = builder_.dump().tool;
  std::string_view file;
  uint32_t number = 0;
  if (tool == StackTool::kGdb && (text.starts_with("at ") || text.starts_with("from ")))
    text = trim(text.substr(text.find(' ')));
  else if (tool == StackTool::kGdb)
    return true;  // more arguments
  else if (tool != StackTool::kEuStack)
    return false;
  split_place(text, file, number);
  if (number > 0 || tool == StackTool::kGdb) {
    last->file = builder_.word(file);
    last->line = number;
  }
  return true;
}

}  // namespace culprit::ingest
