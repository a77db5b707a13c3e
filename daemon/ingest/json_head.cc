#include "ingest/json_head.h"

#include <cstddef>

namespace culprit::ingest {
namespace {

// The content of the string that opens at `at`; `at` then points after it. Escapes are not decoded: no needed
// key has one.
std::string_view read_string(std::string_view text, size_t& at) {
  const size_t first = ++at;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  if (at >= text.size()) {
    at = text.size();
    return {};
  }
  return text.substr(first, at++ - first);
}

void skip_blanks(std::string_view text, size_t& at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r'))
    ++at;
}

void note(JsonHead& head, std::string_view key, std::string_view value) {
  if (key == "kind") head.kind = value;
  head.has_frames |= key == "frames" || key == "threads";
  head.has_thread |= key == "thread_id" || key == "thread_name" || key == "os_thread_id";
  head.has_entries |= key == "entries";
  head.has_pg_config |= key == "pg_config" || key == "pg_status";
  head.has_communicators |= key == "communicators" || key == "communicators_count";
  head.has_header |= key == "header";
  head.has_perf |= key == "coll_perf" || key == "p2p_perf";
  head.has_trace |= key == "distributedInfo" || key == "deviceProperties";
  head.has_version |= key == "version" || key == "nccl_version" || key == "comm_lib_version";
}

}  // namespace

JsonHead read_json_head(std::string_view text) {
  JsonHead head;
  size_t at = text.find('{');
  if (at == text.npos) return head;
  size_t depth = 0;
  for (; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      const std::string_view key = read_string(text, at);
      if (depth != 1) continue;
      skip_blanks(text, at);
      if (at >= text.size() || text[at] != ':') continue;
      skip_blanks(text, ++at);
      note(head, key, at < text.size() && text[at] == '"' ? read_string(text, at) : std::string_view());
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;  // never below 0: the loop ends before
    ++at;
    if (depth == 0) {
      head.complete = true;
      break;
    }
  }
  return head;
}

}  // namespace culprit::ingest
