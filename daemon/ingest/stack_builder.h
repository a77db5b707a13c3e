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

// Whether the frame is compiled code, judged by the library or source file. Python frames have a script and a
// line.
bool is_native_frame(std::string_view file, uint32_t line);

class StackBuilder {
 public:
  StackBuilder();

  StackDump& dump() { return dump_; }
  uint32_t word(std::string_view text);
  // Adds a thread; later frames belong to it. Null: the dump has the maximum of threads. `pid`: the thread's
  // process, if different from the dump's.
  StackThread* add_thread(std::string_view name, uint64_t id, uint32_t pid = 0);
  // Adds the next outer frame. Dropped if there is no thread, or beyond the limit.
  void add_frame(std::string_view function, std::string_view file, uint32_t line, bool native);
  // "train.py:forward:120", "libc.so.6:read": file, function and line.
  void add_frame_text(std::string_view text);
  StackFrame* last_frame();
  // Whether the dump has a thread with this id.
  bool has_thread(uint64_t id, uint32_t pid = 0) const { return known_.contains({id, pid}); }
  bool empty() const { return dump_.threads.empty(); }
  uint64_t dropped() const { return dropped_; }  // threads and frames beyond the limits

  // Returns the dump without empty threads, and clears the builder.
  StackDump finish();

 private:
  StackDump dump_;
  std::unordered_map<std::string, uint32_t> words_;
  std::set<std::pair<uint64_t, uint32_t>> known_;  // ids of threads, and their processes
  bool open_ = false;                              // the last thread takes frames
  uint64_t dropped_ = 0;
};

}  // namespace culprit::ingest
