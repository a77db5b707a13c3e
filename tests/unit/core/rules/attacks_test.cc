// Known ways around a sandbox with stock Lua, and others found since. Each must end within its budgets, with
// a sentence and the right kind of overrun.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>

#include "core/rules/sandbox.h"

namespace culprit::rules {
namespace {

struct Attack {
  const char* name;
  const char* body;
  const char* says;  // part of the error
  Overrun overrun = Overrun::kNone;
};

// A single C call may begin just below the budget: a text has at most this length, and this cost.
constexpr uint64_t kLastCall = 20'000;

struct Tried {
  ScriptError error;
  uint64_t instructions = 0;
  size_t grown_bytes = 0;
  bool failed = false;
};

int when_of(Sandbox& sandbox, const std::string& text) {
  int function = 0;
  const auto done = sandbox.run(text, [&](std::string_view, Value table, uint32_t) {
    if (const Value* when = table.find("when")) function = when->function;
    return std::string();
  });
  BOOST_REQUIRE_MESSAGE(done.has_value(), done.error().text);
  return function;
}

Tried call(const std::string& body) {
  Sandbox sandbox;
  const int when = when_of(sandbox, "rule { when = function(event, window) " + body + "\n return true end }");
  const size_t before = sandbox.live_bytes();
  Value event = Value::table();
  event.fields["text"] = Value::of(std::string("a line"));
  const auto answer = sandbox.call(when, event, Value::table());
  Tried out;
  out.failed = !answer;
  if (!answer) out.error = answer.error();
  out.instructions = sandbox.instructions();
  out.grown_bytes = sandbox.live_bytes() - before;
  return out;
}

Tried load(const std::string& body) {
  Sandbox sandbox;
  const auto done = sandbox.run(body, [](std::string_view, Value, uint32_t) { return std::string(); });
  Tried out;
  out.failed = !done;
  if (!done) out.error = done.error();
  out.instructions = sandbox.instructions();
  out.grown_bytes = sandbox.live_bytes();
  return out;
}

void check(const Attack& attack, const Tried& tried, const Budget& budget) {
  BOOST_TEST_CONTEXT(attack.name) {
    BOOST_TEST(tried.failed);
    BOOST_TEST_MESSAGE(attack.name << ": " << tried.error.text);
    BOOST_TEST(tried.error.text.find(attack.says) != std::string::npos, tried.error.text);
    BOOST_TEST(static_cast<int>(tried.error.overrun) == static_cast<int>(attack.overrun));
    BOOST_TEST(tried.instructions <= budget.instructions + kLastCall);
    BOOST_TEST(tried.grown_bytes <= budget.live_bytes);
  }
}

constexpr Overrun kLong = Overrun::kInstructions, kBig = Overrun::kMemory;

// First those of docs/operations.md, then others.
constexpr Attack kAttacks[] = {
    {"pcall in a loop", "while true do pcall(function() while true do end end) end",
     "nil value (global 'pcall')"},
    {"a looping handler of xpcall", "xpcall(error, function() while true do end end)",
     "nil value (global 'xpcall')"},
    {"string.find with a bad pattern", "string.find(('a'):upper(), '.-.-.-.-.-.-b')",
     "nil value (field 'find')"},
    {"a repeat of 2^52", "local s = ('x'):rep(1 << 52)", "nil value (method 'rep')"},
    {"table.move over 2^52", "table.move({}, 1, 1 << 52, 2)", "nil value (global 'table')"},
    {"table.insert with a __len",
     "table.insert(setmetatable({}, {__len = function() return 1 << 52 end}), 1)",
     "nil value (global 'table')"},
    {"a looping __gc", "setmetatable({}, {__gc = function() while true do end end})",
     "nil value (global 'setmetatable')"},
    {"a storm of coroutines", "while true do coroutine.wrap(function() end)() end",
     "nil value (global 'coroutine')"},
    {"an endless loop", "while true do end", "used more than", kLong},
    {"a loop of goto", "::again:: goto again", "used more than", kLong},
    {"a loop that overflows", "for i = math.maxinteger - 1, math.huge do for j = 1, 1e308 do end end",
     "used more than", kLong},
    {"a text that doubles", "local s = 'x' while true do s = s .. s end", "made a text of more than", kBig},
    {"a format that grows", "local s = 'x' while true do s = string.format('%s%s', s, s) end",
     "made a text of more than", kBig},
    {"a table of texts", "local t = {} for i = 1, 1e9 do t[#t + 1] = 'x' .. i end",
     "made a table, text or stack", kBig},
    {"a table of tables",
     "local t = {} for i = 1, 1e9 do t[i % 1000] = {i} for j = 1, 90 do t[i % 1000][j] = i end end", "",
     kLong},
    {"a chain of tables",
     "local t = {} while true do t = {t, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}} end",
     "held more than 4096 KiB", kBig},
    {"a recursion without end", "local function f() return 1 + f() end f()", "made a table, text or stack",
     kBig},
    {"a tail call without end", "local function f() return f() end f()", "used more than", kLong},
    {"comparisons of long texts",
     "local s = '\\0\\0\\0\\0' for i = 1, 10 do s = s .. s end local b = s .. 'x' while true do local c = s "
     "< b end",
     "used more than", kLong},
    {"copies of long texts",
     "local s = 'x' for i = 1, 12 do s = s .. s end while true do local c = s:upper() end",
     "copied more than 64 MiB", kBig},
    {"small texts next to a full state",
     "local t, n = {}, 0 while n < 990 do n = n + 1 t[n] = string.format('%s%d', "
     "('x%s'):format(string.format('%99s', n)), n) end local k = {} for i = 1, 1e9 do k[i % 999] = {'' .. i} "
     "end",
     "used more than", kLong},
    {"widths of formats", "string.format('%999d', 1)", "invalid conversion"},
    {"long numbers", "while true do local s = string.format('%99.99f', 1e308) end", "used more than", kLong},
    {"numerals of many digits", "local s = '1' for i = 1, 12 do s = s .. s end assert(tonumber(s))",
     "assertion failed"},
    {"all bytes of a text at once", "local s = 'x' for i = 1, 12 do s = s .. s end local n = {s:byte(1, -1)}",
     "at most 250 values"},
    {"searching long texts",
     "local s = 'x' for i = 1, 12 do s = s .. s end while true do text.has(s, 'y$') end", "used more than",
     kLong},
    {"a regex of many states",
     "local s = 'x' for i = 1, 12 do s = s .. s end while true do text.has(s, '(x+x+)+y[xy]{0,400}c') end",
     "used more than", kLong},
    {"many regexes", "for i = 1, 1e9 do text.has('x', 'a' .. i) end", "used more than", kLong},
    {"a regex that is none", "text.match('x', '(')", "pattern: missing )"},
    {"next over an emptied table",
     "local t = {} for i = 1, 3000 do t[i] = i end for i = 1, 3000 do t[i] = nil end while true do next(t) "
     "end",
     "used more than", kLong},
    {"next over a full table", "local t = {} for i = 1, 3000 do t[i] = i end while true do next(t, 1) end",
     "used more than", kLong},
    {"an error that is a table", "error({})", "raised a value that is no text"},
    {"an error that is huge", "local s = 'x' for i = 1, 12 do s = s .. s end error(s)", "xxxx"},
    {"a rule within a function", "rule { id = 'x' }", "declared while its file is loaded"},
    {"no answer", "do return end", "has to return true or false"},
    {"another answer than true or false", "do return 1 end", "has to return true or false"},
};

}  // namespace

BOOST_AUTO_TEST_CASE(each_attack_in_a_function_ends_within_its_budgets) {
  for (const Attack& attack : kAttacks) check(attack, call(attack.body), kCallBudget);
}

BOOST_AUTO_TEST_CASE(each_attack_while_a_file_loads_ends_within_its_budgets) {
  const std::string deep(250, '('), tables(250, '{');
  const std::string deep_text = "local x = " + deep, tables_text = "local x = " + tables;
  const std::string calls = "local function f() end " + std::string("f(") + std::string(250, '(') + "1";
  const std::string binary = std::string("\x1bLua") + std::string(20, '\x54');
  const Attack attacks[] = {
      {"200 and more parentheses", deep_text.c_str(), "overflow"},
      {"200 and more tables", tables_text.c_str(), "overflow"},
      {"an endless loop", "while true do end", "used more than 1000000 instructions", kLong},
      {"a table without end", "local t = {} for i = 1, 1e9 do t[i] = {} end", "held more than 4096 KiB",
       kBig},
      {"a text that doubles", "local s = 'x' while true do s = s .. s end", "made a text of more than", kBig},
      {"a recursion without end", "local function f() return 1 + f() end f()", "made a table, text or stack",
       kBig},
      {"one rule without end", "local t = {} for i = 1, 15000 do t[i] = i end while true do rule(t) end",
       "used more than", kLong},
      {"a rule of too many values", "local t = {} for i = 1, 30000 do t[i] = i end rule(t)",
       "more than 20000 values"},
      {"a rule that holds itself", "local t = {} t.t = t rule(t)", "nested deeper than"},
      {"a rule that shares its tables without end",
       "local t = {} for i = 1, 7 do local n = {} for j = 1, 9 do n[j] = t end t = n end rule(t)",
       "more than 20000 values"},
      {"a rule that is none", "rule('x')", "table expected"},
      {"keys that are neither names nor places", "rule { [1.5] = 1 }", "neither a name nor a place"},
  };
  for (const Attack& attack : attacks) check(attack, load(attack.body), kLoadBudget);
  const Tried tried = load(binary);
  BOOST_TEST(tried.failed);
  BOOST_TEST(tried.error.text.find("attempt to load a binary chunk") != std::string::npos, tried.error.text);
  BOOST_TEST(tried.error.syntax);
}

BOOST_AUTO_TEST_CASE(what_can_run_long_or_hide_an_error_is_not_there) {
  for (const char* exited : {"pcall",
                             "xpcall",
                             "coroutine",
                             "load",
                             "loadstring",
                             "loadfile",
                             "dofile",
                             "require",
                             "package",
                             "io",
                             "os",
                             "debug",
                             "collectgarbage",
                             "print",
                             "warn",
                             "setmetatable",
                             "getmetatable",
                             "rawset",
                             "rawget",
                             "rawlen",
                             "rawequal",
                             "table",
                             "utf8",
                             "_G",
                             "string.rep",
                             "string.find",
                             "string.match",
                             "string.gmatch",
                             "string.gsub",
                             "string.dump",
                             "string.reverse",
                             "string.pack",
                             "math.random",
                             "math.randomseed"})
    BOOST_TEST(!load(fmt::format("assert({} == nil)", exited)).failed, exited);
}

BOOST_AUTO_TEST_CASE(what_is_kept_is_there) {
  for (const char* retained :
       {"assert",     "error",        "ipairs",       "next",        "pairs",       "select",
        "tonumber",   "tostring",     "type",         "string.byte", "string.char", "string.format",
        "string.len", "string.lower", "string.upper", "string.sub",  "math.floor",  "math.max",
        "text.has",   "text.match",   "text.number",  "rule",        "override"})
    BOOST_TEST(!load(fmt::format("assert(type({}) == 'function')", retained)).failed, retained);
}

BOOST_AUTO_TEST_CASE(nothing_that_is_given_can_be_changed) {
  for (const char* write : {"x = 1", "rule = nil", "_ENV.x = 1", "_ENV.string = nil", "string.len = nil",
                            "math.pi = 3", "text.has = nil", "string[1] = 1", "string[{}] = 1"}) {
    const Tried tried = load(write);
    BOOST_TEST(tried.error.text.find("cannot be set") != std::string::npos, write);
  }
  for (const char* write : {"event.text = 'x'", "event.new = 1", "window.count = 2", "event[1] = 1"}) {
    const Tried tried = call(write);
    BOOST_TEST(tried.error.text.find("cannot be set") != std::string::npos, write);
  }
}

BOOST_AUTO_TEST_CASE(walking_a_guarded_table_gives_no_way_to_change_it) {
  for (const char* walk :
       {"for k, v in pairs(_ENV) do if type(v) == 'table' then v.x = 1 end end",
        "local f, t = pairs(string) t.x = 1", "local f, t, k = pairs(event or string) k.x = 1",
        "local k, v = next(string) string[k] = nil"})
    BOOST_TEST(load(walk).failed, walk);
  // Iteration is allowed: the functions of a library can be listed.
  BOOST_TEST(!load("local n = 0 for k in pairs(string) do n = n + 1 end assert(n == 7)").failed);
  BOOST_TEST(!load("assert(next(math) ~= nil)").failed);
}

BOOST_AUTO_TEST_CASE(files_share_nothing) {
  Sandbox a;
  const int when = when_of(a, "local n = 0 rule { when = function() n = n + 1 return n == 2 end }");
  Sandbox b;
  const int other = when_of(b, "local n = 0 rule { when = function() n = n + 1 return n == 2 end }");
  BOOST_TEST(!*a.call(when, Value::table(), Value::table()));
  BOOST_TEST(!*b.call(other, Value::table(), Value::table()));
  BOOST_TEST(*a.call(when, Value::table(), Value::table()));
}

}  // namespace culprit::rules
