#include "ingest/recognise.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/ascii.h"
#include "ingest/flight_reader.h"
#include "ingest/json_head.h"
#include "ingest/ras_reader.h"

namespace culprit::ingest {
namespace {

using namespace std::string_view_literals;

// Binary formats whose beginning may look like text.
constexpr std::array kBinaryMagics = {
    "\x7f"
    "ELF"sv,
    "PK\3\4"sv,
    "\x89PNG"sv,
    "\xff\xd8\xff"sv,
    "GIF8"sv,
    "%PDF-"sv,
    "\x93NUMPY"sv,
    "\x89HDF"sv,
    "SQLite format 3\0"sv,
    "PAR1"sv,
    "ARROW1"sv,
    "BZh9"sv,
    "\x04\x22\x4d\x18"sv,
    "\xff\xfe"sv,  // a UTF-16 or UTF-32 mark, but no text
    "\xfe\xff"sv,
};

// Whether the head is of the safetensors format: 8 bytes of header size, then JSON.
bool is_safetensors(std::string_view head) {
  return head.size() > 9 && head.substr(4, 4) == "\0\0\0\0"sv && head[8] == '{' && head[9] == '"';
}

std::string_view without_compression(std::string_view name) {
  for (std::string_view suffix : {".zst"sv, ".zstd"sv, ".gz"sv, ".xz"sv})
    if (name.size() > suffix.size() && name.ends_with(suffix))
      return name.substr(0, name.size() - suffix.size());
  return name;
}

std::string_view base_name(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? std::string_view() : text.substr(first);
}

// Calls visit(line) for each non-blank line of the head; the last one may lack its end.
template <class Visit>
void each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(" \t\r") != line.npos) visit(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct JsonLines {
  size_t lines = 0, objects = 0, metrics = 0, other_kinds = 0, inspected = 0;
};

JsonLines count_json_lines(std::string_view head) {
  JsonLines count;
  each_line(head, [&](std::string_view line) {
    ++count.lines;
    if (!trimmed(line).starts_with('{')) return;
    ++count.objects;
    const JsonHead object = read_json_head(line);
    // Rows of `python3 -m culprit.align` alone make a file as well.
    const bool aligned = object.kind == "event" && line.find("\"align\"") != line.npos;
    count.inspected += object.has_header && object.has_perf;
    if (object.kind == "metric" || object.kind == "finding" || aligned)
      ++count.metrics;
    else if (object.complete)
      ++count.other_kinds;
  });
  return count;
}

// Classification of a line in a text dump of stacks; `opens`: a dump may begin with this line.
struct StackLine {
  bool opens = false, belongs = false;
};

StackLine stack_line(std::string_view line) {
  const std::string_view text = trimmed(line);
  const auto has = [text](std::string_view what) { return text.find(what) != text.npos; };
  const auto number_after = [text](std::string_view what) {
    return text.starts_with(what) && text.size() > what.size() && digit(text[what.size()]);
  };
  // py-spy: its head, "Thread 1 (active): "MainThread"", "    forward (model.py:120)".
  if (number_after("Process ") && has(": ")) return {true, true};
  if (number_after("Python v") || text.starts_with("Python v")) return {false, true};
  // faulthandler: "Thread 0x00007f (most recent call first):", "Timeout (0:00:10)!", "  File "x.py", line 3
  // in f".
  if (has("(most recent call first)")) return {true, true};
  if (text.starts_with("Timeout (") && has(")!")) return {true, true};
  // torch's debug server: "=== Rank 3: http://node-1:4321 ===", "Error: 503".
  if (number_after("=== Rank ") && text.ends_with("===")) return {true, true};
  if (number_after("Error: ")) return {false, true};
  if (text.starts_with("File \"") && has(", line ")) return {false, true};
  // gdb, pstack, eu-stack: "Thread 2 (Thread 0x7f (LWP 12)):", "PID 12 - process", "TID 12:", "#0  0x0 in
  // read ()".
  if (number_after("Thread ")) return {has("(") && (has("):") || has("): \"") || has(") \"")), true};
  if (number_after("PID ") && has("process")) return {true, true};
  if (number_after("TID ") && has(":")) return {true, true};
  if (text.starts_with("[New LWP ") || text.starts_with("[Thread debugging")) return {true, true};
  if (text.starts_with("Using host libthread_db")) return {false, true};
  if (text.starts_with("0x") && has(" in ") && has(" (")) return {false, true};
  if (text.starts_with("#") && text.size() > 1 && digit(text[1])) return {text.starts_with("#0"), true};
  const bool frame = line.starts_with("    ") && text.ends_with(')') && has(" (") && !has(" = ");
  // eu-stack -s: "    nptl/futex-internal.c:57:12".
  const bool source = line.starts_with("    ") && !has(" ") && has(":") && digit(text[text.size() - 1]);
  return {false, frame || source};
}

// Whether the text begins as a dump and most of it is one: a log that contains a dump is a log.
bool is_stack_text(std::string_view head) {
  size_t lines = 0, belonging = 0;
  bool opened = false;
  each_line(head, [&](std::string_view line) {
    const StackLine kind = stack_line(line);
    if (lines++ == 0) opened = kind.opens;
    if (kind.belongs) ++belonging;
  });
  return opened && lines >= 2 && belonging * 4 >= lines * 3;
}

bool below_stacks(const NamedHead& file) {
  if (base_name(file.argument) == "stacks" && file.argument != file.below) return true;
  return file.below.starts_with("stacks/") || file.below.find("/stacks/") != file.below.npos;
}

bool is_pickle(std::string_view head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

// "_dump_7", "nccl_trace_rank_7", "comm_lib_trace_rank_7", "hccl_trace_rank_7", "run_dump_7.pickle",
// "nccl_trace_rank_<host>_7".
bool named_as_flight_recorder(std::string_view name) {
  if (name.find("_trace_rank_") != name.npos) return rank_in_name(name).has_value();
  constexpr std::string_view kMark = "_dump_";
  const size_t at = name.rfind(kMark);
  return at != name.npos && at + kMark.size() < name.size() && digit(name[at + kMark.size()]);
}

// Kind of a JSON file by content only.
std::optional<FileKind> kind_of_json(const NamedHead& file, std::string_view name) {
  const JsonLines lines = count_json_lines(file.head);
  if (lines.metrics > 0 && lines.objects * 2 >= lines.lines) return FileKind::kMetrics;
  if (lines.inspected > 0 && lines.objects * 2 >= lines.lines) return FileKind::kInspector;
  std::string_view text = trimmed(file.head);
  if (text.starts_with('[')) text = trimmed(text.substr(1));
  if (!text.starts_with('{')) return std::nullopt;  // "[2026-11-21] {...}" is a log
  const JsonHead first = read_json_head(text);
  if (first.kind == "stack") return FileKind::kStacksJson;
  if (first.has_frames && first.has_thread) return FileKind::kStacksJson;  // py-spy dump --json
  if (first.has_pg_config || (first.has_entries && first.has_version)) return FileKind::kFlightRecorder;
  if (first.has_communicators && first.has_version) return FileKind::kRas;
  if (first.has_trace && trimmed(file.head).starts_with('{')) return FileKind::kProfiler;
  // The reader reports a dump that is cut off early.
  if ((first.has_entries || first.has_version) && named_as_flight_recorder(name))
    return FileKind::kFlightRecorder;
  // The first line is longer than the head, so "kind" may follow later.
  if (name.ends_with(".ndjson") && lines.objects > 0 && lines.other_kinds == 0) return FileKind::kMetrics;
  if (is_machine_json(file.head)) return FileKind::kUnread;
  return std::nullopt;
}

std::optional<FileKind> kind_of_binary(std::string_view head, std::string_view name) {
  if (is_pickle(head)) {
    const bool marked = head.find("pg_config") != head.npos ||
                        (head.find("entries") != head.npos && head.find("version") != head.npos);
    return marked || named_as_flight_recorder(name) ? FileKind::kFlightRecorder : FileKind::kUnread;
  }
  if (!is_binary(head)) return std::nullopt;
  // A trace with damaged magic bytes: its reader reports the error.
  return name.ends_with(".comm") ? FileKind::kComm : FileKind::kUnread;
}

// Whether the head is a RAS session with a JSON answer.
bool is_ras_session(std::string_view head) {
  const std::string_view answer = after_ras_replies(head);
  if (answer.size() == head.size() || !answer.starts_with('{')) return false;
  const JsonHead first = read_json_head(answer);
  return first.has_communicators && first.has_version;
}

bool is_stacks_name(std::string_view name) { return name.ends_with(".json") || name.ends_with(".txt"); }

// Whether log lines follow a RAS answer. Lines of an answer never begin with a bracket or a digit.
bool has_log_lines(std::string_view head) {
  for (size_t at = head.find('\n'); at != npos && at + 1 < head.size(); at = head.find('\n', at + 1))
    if (head[at + 1] == '[' || (head[at + 1] >= '0' && head[at + 1] <= '9')) return true;
  return false;
}

}  // namespace

Compression compression_of(std::string_view head) {
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return Compression::kZstd;
  if (head.size() >= 4 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18"sv)
    return Compression::kZstd;
  if (head.starts_with("\x1f\x8b\x08"sv)) return Compression::kGzip;
  if (head.starts_with("\xfd"sv
                       "7zXZ\0"sv))
    return Compression::kXz;
  return Compression::kNone;
}

bool is_binary(std::string_view head) {
  for (std::string_view magic : kBinaryMagics)
    if (head.starts_with(magic)) return true;
  if (is_safetensors(head)) return true;
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return true;
  constexpr size_t kNulBlock = 16;  // no writer writes so many in a row
  size_t controls = 0, others = 0;
  for (size_t i = 0; i < head.size();) {
    const auto c = static_cast<unsigned char>(head[i]);
    size_t run = 1;
    if (c == 0) {
      while (i + run < head.size() && head[i + run] == '\0') ++run;
    }
    i += run;
    if (run >= kNulBlock) continue;
    // \a \b \t \n \v \f \r and escape are sent to terminals.
    const bool control = (c < 0x20 && !(c >= 0x07 && c <= 0x0d) && c != 0x1b) || c == 0x7f;
    (control ? controls : others) += run;
  }
  if (controls + others == 0) return !head.empty();
  // Share of control bytes: random bytes 9 %, UTF-16 50 %, a log with NUL-terminated lines 1 or 2 %.
  return controls > 8 && controls * 20 > controls + others;
}

FileKind kind_of(const NamedHead& file) {
  const std::string_view name = without_compression(base_name(file.below));
  if (file.head.empty()) return name.ends_with(".comm") && !file.whole ? FileKind::kComm : FileKind::kEmpty;
  if (name == "job.toml") return FileKind::kJob;
  if (file.head.starts_with("CULPCOMM")) return FileKind::kComm;
  if (const auto kind = kind_of_binary(file.head, name)) return *kind;
  if (name.ends_with(".stacks")) return FileKind::kStacks;  // written by culprit.watch_stacks()
  if (const auto kind = kind_of_json(file, name)) return *kind;
  if (is_java_dump(file.head) || is_own_page(file.head)) return FileKind::kUnread;
  if (is_ras_session(file.head)) return FileKind::kRas;
  if (is_ras_text(file.head) && !has_log_lines(file.head)) return FileKind::kRas;
  if (is_stack_text(file.head)) return FileKind::kStacks;
  if (below_stacks(file) && is_stacks_name(name))
    return trimmed(file.head).starts_with('{') ? FileKind::kStacksJson : FileKind::kStacks;
  return FileKind::kLog;
}

}  // namespace culprit::ingest
