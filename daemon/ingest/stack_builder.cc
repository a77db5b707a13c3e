#include "ingest/stack_builder.h"

#include <charconv>
#include <utility>

#include "base/ascii.h"
#include "base/limits.h"
#include "base/text.h"

namespace culprit::ingest {
namespace {

uint32_t whole_number(std::string_view text) {
  uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failed == std::errc() && end == text.data() + text.size() ? number : 0;
}

}  // namespace

bool is_native_frame(std::string_view file, uint32_t line) {
  if (file.ends_with(".py") || file.starts_with('<')) return false;
  if (line == 0 || file.ends_with(".so") || file.find(".so.") != file.npos || file.starts_with("lib"))
    return true;
  // With debug symbols, a debugger reports source file and line.
  for (const std::string_view end :
       {".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".S", ".s", ".cu", ".cuh", ".inl", ".rs", ".go"})
    if (file.ends_with(end)) return true;
  return false;
}

StackBuilder::StackBuilder() { dump_.words.emplace_back(); }

uint32_t StackBuilder::word(std::string_view text) {
  if (text.empty()) return 0;
  std::string own = to_utf8(text.substr(0, limits::kStackName));
  const auto [at, fresh] = words_.try_emplace(own, static_cast<uint32_t>(dump_.words.size()));
  if (fresh) dump_.words.push_back(std::move(own));
  return at->second;
}

StackThread* StackBuilder::add_thread(std::string_view name, uint64_t id, uint32_t pid) {
  open_ = dump_.threads.size() < limits::kStackThreads;
  if (!open_) {
    ++dropped_;
    return nullptr;
  }
  known_.emplace(id, pid);
  StackThread& thread = dump_.threads.emplace_back();
  thread.name = word(name);
  thread.id = id;
  thread.pid = pid;
  return &thread;
}

void StackBuilder::add_frame(std::string_view function, std::string_view file, uint32_t line, bool native) {
  if (!open_ || dump_.threads.back().frames.size() >= limits::kStackFrames) {
    ++dropped_;
    return;
  }
  dump_.threads.back().frames.push_back({word(function), word(file), line, native});
}

void StackBuilder::add_frame_text(std::string_view text) {
  text = trim(text);
  if (text.empty()) return;
  uint32_t line = 0;
  const size_t last = text.rfind(':');
  if (last != text.npos && last + 1 < text.size() && digit(text[last + 1])) {
    line = whole_number(text.substr(last + 1));
    text = text.substr(0, last);
  }
  // A C++ name contains "::", so the file ends before the first single colon.
  size_t first = text.find(':');
  if (first != text.npos && first + 1 < text.size() && text[first + 1] == ':') first = text.npos;
  const bool named = first != text.npos;
  const std::string_view file = named ? text.substr(0, first) : std::string_view();
  const std::string_view function = named ? text.substr(first + 1) : text;
  add_frame(function, file, line, is_native_frame(file, line));
}

StackFrame* StackBuilder::last_frame() {
  if (!open_ || dump_.threads.empty() || dump_.threads.back().frames.empty()) return nullptr;
  return &dump_.threads.back().frames.back();
}

StackDump StackBuilder::finish() {
  std::erase_if(dump_.threads, [](const StackThread& t) { return t.frames.empty(); });
  StackDump out = std::move(dump_);
  *this = StackBuilder();
  return out;
}

}  // namespace culprit::ingest
