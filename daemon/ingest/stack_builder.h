// Builds a StackDump: interns its texts and applies the limits of threads and frames. One thread; part of the
// readers of stacks.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "model/stack.h"

namespace culprit::ingest {

// Whether the frame is compiled code: by the library or source that a tool names, which for Python is a
// script with a line.
bool is_native_frame(std::string_view file, uint32_t line);

class StackBuilder {
 public:
  StackBuilder();

  StackDump& dump() { return dump_; }
  uint32_t word(std::string_view text);
  // Adds a thread, to which later frames belong. Null: the dump has as many as are read.
  // `pid`: of its process, if it is another than the dump's.
  StackThread* add_thread(std::string_view name, uint64_t id, uint32_t pid = 0);
  // Adds a frame outside of those before. Dropped without a thread, or beyond the limit.
  void add_frame(std::string_view function, std::string_view file, uint32_t line, bool native);
  // "train.py:forward:120", "libc.so.6:read": file, function and line.
  void add_frame_text(std::string_view text);
  StackFrame* last_frame();
  // Whether a thread of this number is there.
  bool has_thread(uint64_t id, uint32_t pid = 0) const { return known_.contains({id, pid}); }
  bool empty() const { return dump_.threads.empty(); }
  uint64_t dropped() const { return dropped_; }  // threads and frames beyond the limits

  // The dump without threads that have no frame; the builder is then empty.
  StackDump finish();

 private:
  StackDump dump_;
  std::unordered_map<std::string, uint32_t> words_;
  std::set<std::pair<uint64_t, uint32_t>> known_;  // numbers of threads, and their processes
  bool open_ = false;                              // the last thread takes frames
  uint64_t dropped_ = 0;
};

}  // namespace culprit::ingest
