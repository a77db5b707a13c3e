#include "core/rules/sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <lua.hpp>

#include "base/text.h"
#include "core/rules/kept_functions.h"
#include "core/rules/keys.h"

namespace culprit::rules {
namespace {

constexpr int kHookEvery = 1000;            // instructions between two checks of the budget
constexpr int kDepth = 8;                   // nesting of a rule's table
constexpr size_t kValues = 20000;           // in a rule's table
constexpr size_t kBytesAnInstruction = 16;  // bytes copied in about the time of one instruction
constexpr size_t kNameBytes = 60;           // of a name in an error
constexpr size_t kTextHeader = 32;          // size of Lua's own header of a text
// If an allocation fails, Lua collects all garbage and tries again. A nearly full state could cause a
// collection for each small text: after this number of failures, all allocations fail.
constexpr int kRefusals = 32;

}  // namespace

struct SandboxState final : Meter {
  lua_State* lua = nullptr;
  Budget budget = kLoadBudget;
  size_t live = 0, sum = 0;
  size_t held = 0;  // bytes in use after loading the file
  uint64_t used = 0;
  LoadWork* work = nullptr;
  int refusals = 0;
  bool out_of_instructions = false;
  std::string refused;  // the reason of the last failed allocation
  int functions = 0;
  size_t values = 0;
  const Sandbox::Declare* declare = nullptr;
  PatternCache patterns;

  static SandboxState& of(lua_State* state) {
    return **static_cast<SandboxState**>(lua_getextraspace(state));
  }

  // Whether a block may grow from `before` to `after` bytes.
  bool grants(size_t before, size_t after, bool text) {
    if (refusals >= kRefusals) return false;
    if (text && after > budget.text_bytes + kTextHeader)
      refused = fmt::format("made a text of more than {} bytes", budget.text_bytes);
    else if (after > budget.block_bytes)
      refused = fmt::format("made a table, text or stack of more than {} KiB", budget.block_bytes >> 10);
    else if (live - before + after > held + budget.live_bytes)
      refused = fmt::format("held more than {} KiB of memory", budget.live_bytes >> 10);
    else if (sum + after > budget.sum_bytes)
      refused = fmt::format("copied more than {} MiB of memory", budget.sum_bytes >> 20);
    else
      return true;
    ++refusals;
    return false;
  }

  static void* allocate(void* self, void* block, size_t before, size_t after) {
    SandboxState& impl = *static_cast<SandboxState*>(self);
    const bool text = !block && before == LUA_TSTRING;  // without a block, `before` is the type of the object
    if (!block) before = 0;
    if (after == 0) {
      impl.live -= before;
      std::free(block);
      return nullptr;
    }
    if (after > before) {
      if (!impl.grants(before, after, text)) return nullptr;
      impl.sum += after;
    }
    void* out = std::realloc(block, after);
    if (out) impl.live = impl.live - before + after;
    return out;
  }

  // False if the budget is spent: nothing may continue.
  bool count(uint64_t instructions) {
    used += instructions;
    return (!work || work->spend(instructions * kLuaInstruction)) && used < budget.instructions;
  }

  static void hook(lua_State* state, lua_Debug* at) {
    SandboxState& impl = of(state);
    if (impl.count(kHookEvery)) return;
    lua_getinfo(state, "l", at);
    impl.raise_instructions(state, at->currentline);
  }

  // Counts work of C functions as instructions.
  void charge(lua_State* state, uint64_t instructions) override {
    if (count(instructions)) return;
    lua_Debug caller{};
    const bool known = lua_getstack(state, 1, &caller) && lua_getinfo(state, "l", &caller);
    raise_instructions(state, known ? caller.currentline : 0);
  }

  void raise_instructions(lua_State* state, int line) {
    out_of_instructions = true;
    lua_sethook(state, hook, LUA_MASKCOUNT, 1);  // the next instruction ends any code that catches this error
    if (work && work->ended())
      // A literal, so it is NUL-terminated.
      lua_pushfstring(state, "chunk:%d: %s", std::max(line, 0), work->why().data());
    else
      lua_pushfstring(state, "chunk:%d: used more than %d instructions", std::max(line, 0),
                      static_cast<int>(budget.instructions));
    lua_error(state);
  }

  void begin(const Budget& next) {
    budget = next;
    used = sum = 0;
    refusals = 0;
    out_of_instructions = false;
    refused.clear();
    lua_sethook(lua, hook, LUA_MASKCOUNT, kHookEvery);
  }

  // Pops the error value "@name:12: text".
  ScriptError error(int status) {
    ScriptError out;
    if (out_of_instructions) out.overrun = Overrun::kInstructions;
    if (status == LUA_ERRMEM) {
      out.overrun = Overrun::kMemory;
      out.text = refused.empty() ? "found no memory" : refused;
      lua_pop(lua, 1);
      return out;
    }
    size_t size = 0;
    const char* text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, &size) : nullptr;
    std::string_view message = text ? std::string_view(text, size) : "raised a value that is no text";
    if (message.starts_with("chunk:")) {
      message.remove_prefix(6);
      const auto [end, bad] = std::from_chars(message.data(), message.data() + message.size(), out.line);
      if (bad == std::errc()) message.remove_prefix(static_cast<size_t>(end - message.data()));
      if (message.starts_with(": ")) message.remove_prefix(2);
    }
    out.text = std::string(message.substr(0, 500));
    lua_pop(lua, 1);
    return out;
  }

  void read_table(int at, int depth, Value& out);
  Value read(int at, int depth);
  void push(const Value& value);
  void push_read_only();
  void open();
  void push_environment();
};

namespace {

int refuse_write(lua_State* state) {
  const char* name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "a value without a name";
  return luaL_error(state, "'%s' cannot be set: what a rule is given is read-only, and its own is 'local'",
                    name);
}

// Index of a name that a table of known names lacks: nil if the name is one of them.
int refuse_unknown(lua_State* state) {
  size_t size = 0;
  const char* names = lua_tolstring(state, lua_upvalueindex(1), &size);
  const std::string_view name = lua_type(state, 2) == LUA_TSTRING ? lua_tostring(state, 2) : "";
  SandboxState::of(state).charge(state, size / kBytesAnInstruction + 1);
  {
    // Nothing here needs a destructor when the error below leaves the function.
    const std::vector<std::string_view> all = split({names, size}, ' ');
    if (std::find(all.begin(), all.end(), name) != all.end()) return 0;
    const std::string_view best = nearest(name.substr(0, kNameBytes), all);
    const std::string what = fmt::format("there is no '{}' here{}", shorten(name, kNameBytes),
                                         best.empty() ? "" : fmt::format("; did you mean '{}'?", best));
    luaL_where(state, 1);
    lua_pushlstring(state, what.data(), what.size());
    lua_concat(state, 2);
  }
  return lua_error(state);
}

constexpr const char* kNoMath[] = {"random", "randomseed"};

int open_libraries(lua_State* state) {
  luaL_requiref(state, "_G", luaopen_base, 1);
  luaL_requiref(state, "string", luaopen_string, 1);
  luaL_requiref(state, "math", luaopen_math, 1);
  SandboxState::of(state).open();
  return 0;
}

int declare_rule(lua_State* state) {
  luaL_checktype(state, 1, LUA_TTABLE);
  lua_Debug call{};
  uint32_t line = 0;
  if (lua_getstack(state, 1, &call) && lua_getinfo(state, "l", &call) && call.currentline > 0)
    line = static_cast<uint32_t>(call.currentline);
  SandboxState& impl = SandboxState::of(state);
  if (!impl.declare) return luaL_error(state, "a rule is declared while its file is loaded, not later");
  impl.values = 0;
  const char* verb = lua_tostring(state, lua_upvalueindex(1));
  const std::string refusal = (*impl.declare)(verb, impl.read(1, 0), line);
  return refusal.empty() ? 0 : luaL_error(state, "%s", refusal.c_str());
}

}  // namespace

void SandboxState::read_table(int at, int depth, Value& out) {
  out.kind = Value::Kind::kTable;
  if (depth >= kDepth) luaL_error(lua, "a rule's table is nested deeper than %d", kDepth);
  const lua_Unsigned length = lua_rawlen(lua, at);
  luaL_checkstack(lua, 4, "a rule's table is nested too deep");
  for (lua_Unsigned i = 1; i <= length; ++i) {
    lua_rawgeti(lua, at, static_cast<lua_Integer>(i));
    out.list.push_back(read(lua_gettop(lua), depth + 1));
    lua_pop(lua, 1);
  }
  lua_pushnil(lua);
  while (lua_next(lua, at)) {
    if (lua_type(lua, -2) == LUA_TSTRING) {
      size_t size = 0;
      const char* name = lua_tolstring(lua, -2, &size);
      out.fields.emplace(std::string(name, size), read(lua_gettop(lua), depth + 1));
    } else if (!lua_isinteger(lua, -2) || lua_tointeger(lua, -2) < 1 ||
               static_cast<lua_Unsigned>(lua_tointeger(lua, -2)) > length) {
      luaL_error(lua, "a rule's table has a key that is neither a name nor a place in a list");
    }
    lua_pop(lua, 1);
  }
}

Value SandboxState::read(int at, int depth) {
  if (++values > kValues) luaL_error(lua, "a rule's table holds more than %d values", int{kValues});
  charge(lua, 1);
  Value out;
  switch (lua_type(lua, at)) {
    case LUA_TNIL:
      break;
    case LUA_TBOOLEAN:
      out.kind = Value::Kind::kBoolean;
      out.boolean = lua_toboolean(lua, at);
      break;
    case LUA_TNUMBER:
      out.kind = Value::Kind::kNumber;
      out.number = lua_tonumber(lua, at);
      out.integer = lua_isinteger(lua, at);
      out.whole = lua_tointeger(lua, at);
      break;
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(lua, at, &size);
      charge(lua, size / kBytesAnInstruction);
      out = Value::of(std::string(text, size));
      break;
    }
    case LUA_TTABLE:
      read_table(at, depth, out);
      break;
    case LUA_TFUNCTION:
      out.kind = Value::Kind::kFunction;
      lua_pushvalue(lua, at);
      out.function = luaL_ref(lua, LUA_REGISTRYINDEX);
      ++functions;
      break;
    default:
      out.kind = Value::Kind::kOther;
  }
  return out;
}

// Replaces the table on the top by a read-only view.
void SandboxState::push_read_only() {
  lua_newtable(lua);  // the view is empty, so that every access uses its metatable
  lua_newtable(lua);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "guarded");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

// The table of permitted names is in the registry; _G itself is unreachable.
void SandboxState::open() {
  lua_newtable(lua);
  add_base_functions(lua, *this);
  push_string_functions(lua, *this);
  push_read_only();
  lua_pushliteral(lua, "");  // sets methods of texts: ("x"):lower()
  lua_getmetatable(lua, -1);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pop(lua, 2);
  lua_setfield(lua, -2, "string");
  lua_getglobal(lua, "math");
  for (const char* name : kNoMath) {
    lua_pushnil(lua);
    lua_setfield(lua, -2, name);
  }
  push_read_only();
  lua_setfield(lua, -2, "math");
  push_text_functions(lua, *this, patterns);
  push_read_only();
  lua_setfield(lua, -2, "text");
  for (const char* verb : {"rule", "override"}) {
    lua_pushstring(lua, verb);
    lua_pushcclosure(lua, declare_rule, 1);
    lua_setfield(lua, -2, verb);
  }
  lua_setfield(lua, LUA_REGISTRYINDEX, "culprit.visible");
}

void SandboxState::push_environment() {
  lua_getfield(lua, LUA_REGISTRYINDEX, "culprit.visible");
  push_read_only();
}

void SandboxState::push(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kBoolean:
      lua_pushboolean(lua, value.boolean);
      break;
    case Value::Kind::kNumber:
      if (value.integer)
        lua_pushinteger(lua, value.whole);
      else
        lua_pushnumber(lua, value.number);
      break;
    case Value::Kind::kString:
      lua_pushlstring(lua, value.string.data(), value.string.size());
      break;
    case Value::Kind::kTable:
      lua_newtable(lua);
      for (const auto& [name, field] : value.fields) {
        push(field);
        lua_setfield(lua, -2, name.c_str());
      }
      if (!value.names.empty()) {
        lua_createtable(lua, 0, 1);
        lua_pushlstring(lua, value.names.data(), value.names.size());
        lua_pushcclosure(lua, refuse_unknown, 1);
        lua_setfield(lua, -2, "__index");
        lua_setmetatable(lua, -2);
      }
      push_read_only();
      break;
    default:
      lua_pushnil(lua);
  }
}

Sandbox::Sandbox() : impl_(std::make_unique<SandboxState>()) {
  lua_State* state = lua_newstate(SandboxState::allocate, impl_.get());
  if (!state) return;
  impl_->lua = state;
  *static_cast<SandboxState**>(lua_getextraspace(state)) = impl_.get();
  lua_pushcfunction(state, open_libraries);
  if (lua_pcall(state, 0, 0, 0) != LUA_OK) {
    lua_close(state);
    impl_->lua = nullptr;
  }
}

Sandbox::~Sandbox() {
  if (impl_->lua) lua_close(impl_->lua);
}

namespace {

int run_protected(lua_State* state) {
  SandboxState::of(state).push_environment();
  lua_setupvalue(state, 1, 1);
  lua_call(state, 0, 0);
  return 0;
}

struct Call {
  SandboxState* impl;
  int function;
  const Value* event;
  const Value* window;
};

int call_protected(lua_State* state) {
  const auto& call = *static_cast<Call*>(lua_touserdata(state, 1));
  lua_rawgeti(state, LUA_REGISTRYINDEX, call.function);
  call.impl->push(*call.event);
  call.impl->push(*call.window);
  lua_call(state, 2, 1);
  if (!lua_isboolean(state, -1)) return luaL_error(state, "has to return true or false");
  return 1;
}

}  // namespace

tl::expected<void, ScriptError> Sandbox::run(std::string_view text, const Declare& declare) {
  if (!impl_->lua) return tl::unexpected(ScriptError{"no memory for a Lua state", 0, Overrun::kMemory});
  lua_State* state = impl_->lua;
  impl_->begin(kLoadBudget);
  impl_->declare = &declare;
  int status = luaL_loadbufferx(state, text.data(), text.size(), "=chunk", "t");
  const bool parsed = status == LUA_OK;
  if (parsed) {
    lua_pushcfunction(state, run_protected);
    lua_insert(state, -2);
    status = lua_pcall(state, 1, 0, 0);
  }
  impl_->declare = nullptr;
  tl::expected<void, ScriptError> out;
  if (status != LUA_OK) {
    out = tl::unexpected(impl_->error(status));
    out.error().syntax = !parsed && status != LUA_ERRMEM;
  }
  lua_gc(state, LUA_GCCOLLECT);
  impl_->held = impl_->live;
  return out;
}

tl::expected<bool, ScriptError> Sandbox::call(int function, const Value& event, const Value& window) {
  impl_->begin(kCallBudget);
  Call call{impl_.get(), function, &event, &window};
  lua_pushcfunction(impl_->lua, call_protected);
  lua_pushlightuserdata(impl_->lua, &call);
  const int status = lua_pcall(impl_->lua, 1, 1, 0);
  tl::expected<bool, ScriptError> out = false;
  if (status != LUA_OK) {
    out = tl::unexpected(impl_->error(status));
  } else {
    out = static_cast<bool>(lua_toboolean(impl_->lua, -1));
    lua_pop(impl_->lua, 1);
  }
  return out;
}

void Sandbox::count_into(LoadWork* work) { impl_->work = work; }
bool Sandbox::has_functions() const { return impl_->functions > 0; }
size_t Sandbox::live_bytes() const { return impl_->live; }
uint64_t Sandbox::instructions() const { return impl_->used; }

}  // namespace culprit::rules
