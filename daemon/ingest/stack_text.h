// Parses text dumps of stacks, line by line: py-spy, faulthandler, gdb (and pstack), eu-stack, and files of
// torch's debug server, which have a section for each rank. Several dumps may follow one another. Pure; one
// thread. Lines are untrusted.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "ingest/stack_builder.h"
#include "model/stack.h"

namespace culprit::ingest {

class StackText {
 public:
  // `line` without its newline. True: the line belongs to a dump or is known noise of a tool.
  bool add_line(std::string_view line);
  // Ends the input.
  void end();

  std::vector<StackDump> dumps;
  std::vector<StackRefusal> refusals;
  uint64_t dropped = 0;  // dumps, threads and frames beyond the limits
  uint64_t unknown = 0;  // lines that belong to no dump

 private:
  bool add_section(std::string_view text);
  bool add_header(std::string_view text);
  bool add_thread(std::string_view text);
  bool add_frame(std::string_view line, std::string_view text);
  bool add_continuation(std::string_view line, std::string_view text);
  // Begins a thread. If the dump already has a thread with this id, a new dump begins.
  StackThread* begin_thread(StackTool tool, std::string_view name, uint64_t id);
  void close();
  void join_parent(uint32_t pid);

  StackBuilder builder_;
  std::optional<uint32_t> section_;  // rank of the section
  bool in_native_python_ = false;    // faulthandler's own C stack follows
  uint32_t worker_ = 0;              // pid of the worker whose threads follow; 0: the process itself
  uint64_t line_ = 0, begin_ = 0;
  std::map<std::tuple<uint32_t, uint32_t, StackTool>, uint32_t> samples_;  // dumps of a process so far
};

// A thread line and a frame of gdb, pstack and eu-stack; the recogniser uses these too.
struct NativeFrame {
  std::string_view function, file;
  uint32_t line = 0;
};
std::optional<NativeFrame> parse_native_frame(std::string_view text);

}  // namespace culprit::ingest
