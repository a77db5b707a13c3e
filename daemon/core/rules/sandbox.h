// A Lua state for untrusted rule files: an allocator with limits, text chunks only, a closed set of
// functions, a budget of instructions. Exceeding a budget raises an error inside Lua. Budgets count work,
// never time, so that a replay gives the same result. One thread at a time.
//
// The reason of each limit: tests/unit/core/rules/attacks_test.cc has one case for each escape that stock Lua
// permits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "core/rules/value.h"
#include "core/rules/work.h"

namespace culprit::rules {

struct SandboxState;

// Budgets of one file's state. Live memory limits the bytes in use beyond those after loading. The lengths of
// a text and a block limit the cost of one instruction (a comparison, a concatenation, passing arguments).
// The sum limits copying in a loop.
struct Budget {
  uint64_t instructions = 100'000;
  size_t live_bytes = 4 << 20;
  size_t block_bytes = 64 << 10;
  size_t sum_bytes = 64 << 20;  // allocated in one call
  // Comparing texts full of NULs takes some 6 ns per byte: with this length 100,000 instructions take less
  // than 2 s.
  size_t text_bytes = 8 << 10;
};
// Limits of loading: a file is loaded once, and may create a family of rules in a loop.
constexpr Budget kLoadBudget{1'000'000, 4 << 20, 1 << 20, 256 << 20, 8 << 10};
constexpr Budget kCallBudget{};
// Units of LoadWork: an instruction takes some 5 ns, but 20,000 ns if it compares the longest texts.
constexpr uint64_t kLuaInstruction = 1'000;

enum class Overrun : uint8_t { kNone, kInstructions, kMemory };

// An error in Lua: its sentence without "file:line: ", and that line (0: unknown).
struct ScriptError {
  std::string text;
  uint32_t line = 0;
  Overrun overrun = Overrun::kNone;
  bool syntax = false;  // the text is not valid Lua; nothing was executed
};

class Sandbox {
 public:
  // Called by the chunk as rule{...} and override{...}: the name, the table, the line of the call. A returned
  // sentence rejects the table and ends the chunk; empty: accepted.
  using Declare = std::function<std::string(std::string_view verb, Value table, uint32_t line)>;

  Sandbox();
  ~Sandbox();
  Sandbox(const Sandbox&) = delete;
  Sandbox& operator=(const Sandbox&) = delete;

  // Runs a chunk once.
  tl::expected<void, ScriptError> run(std::string_view text, const Declare& declare);

  // Calls a function of the chunk (Value::function) with two read-only tables. It must return a boolean.
  tl::expected<bool, ScriptError> call(int function, const Value& event, const Value& window);

  // From now on instructions also count against this budget; when it is spent, the running code ends.
  // Borrowed; null: none.
  void count_into(LoadWork* work);

  bool has_functions() const;
  size_t live_bytes() const;
  uint64_t instructions() const;  // of the last run or call

 private:
  std::unique_ptr<SandboxState> impl_;
};

}  // namespace culprit::rules
