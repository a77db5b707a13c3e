#include "ingest/unread.h"

#include <algorithm>
#include <iterator>

namespace culprit::ingest {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  UnreadKind kind;
};
constexpr UnreadKind kArchive{"an archive", "the content of the archive, unpacked"};
constexpr UnreadKind kOtherCompression{"compressed in a way that is not read",
                                       "the file unpacked, or compressed with zstd, gzip or xz"};
constexpr UnreadKind kWideText{"text in UTF-32, or damaged UTF-16", "the text in UTF-8"};
constexpr UnreadKind kImage{"an image", ""};
constexpr UnreadKind kProfile{"a profiler's trace", "the job's own logs, or traces of its communication"};
constexpr Magic kMagics[] = {
    {"SQLite format 3\0"sv, {"an SQLite database", "the content of the database, exported as text"}},
    {"PAR1"sv, {"a Parquet file", "the rows of the Parquet file, exported as text"}},
    {"ARROW1"sv, {"an Arrow file", "the rows of the Arrow file, exported as text"}},
    {"PK\3\4"sv, kArchive},
    {"BZh9"sv, kOtherCompression},
    {"\x04\x22\x4d\x18"sv, kOtherCompression},
    {"\x89PNG"sv, kImage},
    {"\xff\xd8\xff"sv, kImage},
    {"GIF8"sv, kImage},
    {"%PDF-"sv, {"a PDF document", ""}},
    {"\x93NUMPY"sv, {"a NumPy array", ""}},
    {"\x89HDF"sv, {"an HDF5 file", ""}},
    {"\xff\xfe"sv, kWideText},
    {"\xfe\xff"sv, kWideText}};

// Whether a quoted value has spaces, like text for people.
bool has_sentence(std::string_view text) {
  for (size_t at = text.find('"'); at != text.npos;) {
    const size_t end = text.find('"', at + 1);
    if (end == text.npos) return false;
    const std::string_view value = text.substr(at + 1, end - at - 1);
    if (std::count(value.begin(), value.end(), ' ') >= 2) return true;
    at = text.find('"', end + 1);
  }
  return false;
}

bool has_key(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
    const size_t end = at + key.size();
    if (at > 0 && text[at - 1] == '"' && text.substr(end, 2) == "\":") return true;
  }
  return false;
}

bool is_profile(std::string_view head) {
  return has_key(head, "traceEvents") || (has_key(head, "ph") && has_key(head, "ts") && has_key(head, "pid"));
}

// Whether the JSON has a key or a sentence of a job's own log.
bool speaks(std::string_view head) {
  constexpr std::string_view kKeys[] = {"msg",   "message",   "log",       "text",       "event",
                                        "error", "exception", "iteration", "iter",       "step",
                                        "steps", "epoch",     "loss",      "global_step"};
  return has_sentence(head) ||
         std::any_of(std::begin(kKeys), std::end(kKeys), [&](auto key) { return has_key(head, key); });
}

}  // namespace

UnreadKind unread_kind(std::string_view head) {
  constexpr size_t kType = 16;  // file type in an ELF header; 4 is a core dump
  if (head.starts_with("\x7f"
                       "ELF"sv)) {
    if (head.size() > kType && head[kType] == 4)
      return {"a core dump", "its stacks as text: gdb -batch -ex 'thread apply all bt' PROGRAM CORE"};
    return {"a program or a core dump", ""};
  }
  for (const Magic& magic : kMagics)
    if (head.starts_with(magic.bytes)) return magic.kind;
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return kArchive;
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return {"a pickle", ""};
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first != head.npos && (head[first] == '{' || head[first] == '['))
    return is_profile(head) ? kProfile
                            : UnreadKind{"JSON without a message or a step in it", "the job's own logs"};
  if (is_java_dump(head))
    return {"the threads of a Java program", "stacks of the training processes: py-spy dump, or gdb"};
  if (is_own_page(head)) return {"a report of Culprit as a page", ""};
  if (!head.empty() && head.find_first_not_of('\0') == head.npos)
    return {"zero bytes alone, as a file system leaves after a crash", "", true};
  return {"no text", ""};
}

bool is_java_dump(std::string_view head) {
  constexpr size_t kBegin = 256;  // jstack may write a time before the title
  return head.substr(0, kBegin).find("Full thread dump") != head.npos &&
         (head.find("tid=0x") != head.npos || head.find("java.lang.Thread.State") != head.npos);
}

bool is_own_page(std::string_view head) {
  constexpr size_t kBegin = 2048;  // the title stands behind a policy with two hashes
  return head.starts_with("<!doctype html>") && head.substr(0, kBegin).find("<title>Culprit: ") != head.npos;
}

bool is_machine_json(std::string_view head) {
  const size_t first = head.find_first_not_of(" \t\r\n");
  if (first == head.npos || (head[first] != '{' && head[first] != '[')) return false;
  // "[2026-11-21 ...] text" is a log
  const size_t second = head.find_first_not_of(" \t\r\n", first + 1);
  if (head[first] == '[' && (second == head.npos || head[second] != '{')) return false;
  if (is_profile(head)) return true;
  size_t lines = 0, objects = 0;
  for (size_t at = first; at < head.size();) {
    const size_t end = std::min(head.find('\n', at), head.size());
    const std::string_view line = head.substr(at, end - at);
    at = end + 1;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    ++lines;
    objects += line.starts_with("{\"");
  }
  return lines >= 2 && objects == lines && !speaks(head);
}

}  // namespace culprit::ingest
