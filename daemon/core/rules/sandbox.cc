#include "core/rules/sandbox.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <lua.hpp>

#include "core/rules/text_functions.h"

namespace culprit::rules {
namespace {

constexpr int kHookEvery = 1000;   // instructions between two looks at the budget
constexpr int kDepth = 8;          // of a rule's table
constexpr size_t kValues = 20000;  // in it
// Longer numerals are no numbers; reading one costs its length and is no instruction.
constexpr size_t kNumeral = 200;

}  // namespace

struct SandboxState final : Meter {
  lua_State* lua = nullptr;
  Budget budget = kLoadBudget;
  size_t live = 0, sum = 0;
  uint64_t used = 0;
  Overrun overrun = Overrun::kNone;
  int functions = 0;
  size_t values = 0;
  const Sandbox::Declare* declare = nullptr;
  PatternCache patterns;

  static SandboxState& of(lua_State* state) {
    return **static_cast<SandboxState**>(lua_getextraspace(state));
  }

  static void* allocate(void* self, void* block, size_t before, size_t after) {
    SandboxState& impl = *static_cast<SandboxState*>(self);
    if (!block) before = 0;  // it then tells the kind of object
    if (after == 0) {
      impl.live -= before;
      std::free(block);
      return nullptr;
    }
    if (after > before) {
      const bool fits = after <= impl.budget.block_bytes &&
                        impl.live - before + after <= impl.budget.live_bytes &&
                        impl.sum + after <= impl.budget.sum_bytes;
      if (!fits) {
        impl.overrun = Overrun::kMemory;
        return nullptr;
      }
      impl.sum += after;
    }
    void* out = std::realloc(block, after);
    if (out) impl.live = impl.live - before + after;
    return out;
  }

  static void hook(lua_State* state, lua_Debug*) { of(state).charge(state, kHookEvery); }

  // Work of C functions counts as instructions too.
  void charge(lua_State* state, uint64_t instructions) override {
    used += instructions;
    if (used < budget.instructions) return;
    overrun = Overrun::kInstructions;
    lua_sethook(state, hook, LUA_MASKCOUNT, 1);  // whatever might catch this is ended by the next instruction
    luaL_error(state, "used more than %d instructions", static_cast<int>(budget.instructions));
  }

  void begin(const Budget& next) {
    budget = next;
    used = sum = 0;
    overrun = Overrun::kNone;
    lua_sethook(lua, hook, LUA_MASKCOUNT, kHookEvery);
  }

  // "@name:12: text" of the value on the top, which it takes.
  ScriptError error(int status) {
    ScriptError out;
    out.overrun = overrun;
    if (status == LUA_ERRMEM) {
      out.overrun = Overrun::kMemory;
      out.text = fmt::format("used more than {} KiB of memory", budget.live_bytes >> 10);
      lua_pop(lua, 1);
      return out;
    }
    size_t size = 0;
    const char* text = lua_type(lua, -1) == LUA_TSTRING ? lua_tolstring(lua, -1, &size) : nullptr;
    std::string_view said = text ? std::string_view(text, size) : "raised a value that is no text";
    if (said.starts_with("chunk:")) {
      said.remove_prefix(6);
      const auto [end, bad] = std::from_chars(said.data(), said.data() + said.size(), out.line);
      if (bad == std::errc()) said.remove_prefix(static_cast<size_t>(end - said.data()));
      if (said.starts_with(": ")) said.remove_prefix(2);
    }
    out.text = std::string(said.substr(0, 500));
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
  const char* name = lua_tostring(state, 2);
  return luaL_error(state, "'%s' cannot be assigned: declare it with 'local'", name ? name : "?");
}

int guarded_next(lua_State* state) {
  lua_settop(state, 2);
  return lua_next(state, lua_upvalueindex(1)) ? 2 : 0;
}

// pairs() over a read-only table walks what it guards, without giving it away.
int guarded_pairs(lua_State* state) {
  if (!luaL_getmetafield(state, 1, "guarded")) return luaL_error(state, "a table expected");
  lua_pushcclosure(state, guarded_next, 1);
  return 1;
}

// Numbers as Lua reads them, from texts short enough to be one.
int short_tonumber(lua_State* state) {
  luaL_checkany(state, 1);
  if (lua_type(state, 1) == LUA_TSTRING && lua_rawlen(state, 1) > kNumeral) {
    lua_pushnil(state);
    return 1;
  }
  const int arguments = lua_gettop(state);
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_insert(state, 1);
  lua_call(state, arguments, 1);
  return 1;
}

// A format makes one text; widths are bounded by Lua itself to two digits.
constexpr const char* kKept[] = {"assert", "error", "ipairs", "next", "pairs", "select", "tostring", "type"};
constexpr const char* kString[] = {"byte", "char", "format", "len", "lower", "upper", "sub"};
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
  (*impl.declare)(verb, impl.read(1, 0), line);
  return 0;
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
      break;
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(lua, at, &size);
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

// Leaves a read-only view of the table on the top in its place.
void SandboxState::push_read_only() {
  lua_newtable(lua);  // the view: empty, so that every access asks its metatable
  lua_newtable(lua);
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "__index");
  lua_pushvalue(lua, -3);
  lua_setfield(lua, -2, "guarded");
  lua_pushcfunction(lua, refuse_write);
  lua_setfield(lua, -2, "__newindex");
  lua_pushcfunction(lua, guarded_pairs);
  lua_setfield(lua, -2, "__pairs");
  lua_pushboolean(lua, 0);
  lua_setfield(lua, -2, "__metatable");
  lua_setmetatable(lua, -2);
  lua_remove(lua, -2);
}

// The one table of what a chunk may see stays in the registry; _G itself is out of reach.
void SandboxState::open() {
  lua_newtable(lua);
  for (const char* name : kKept) {
    lua_getglobal(lua, name);
    lua_setfield(lua, -2, name);
  }
  lua_getglobal(lua, "tonumber");
  lua_pushcclosure(lua, short_tonumber, 1);
  lua_setfield(lua, -2, "tonumber");
  lua_getglobal(lua, "string");
  lua_newtable(lua);
  for (const char* name : kString) {
    lua_getfield(lua, -2, name);
    lua_setfield(lua, -2, name);
  }
  lua_remove(lua, -2);
  push_read_only();
  lua_pushliteral(lua, "");  // methods of texts: ("x"):lower()
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
        lua_pushinteger(lua, static_cast<lua_Integer>(value.number));
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

struct Run {
  SandboxState* impl;
  std::string_view text;
};

int run_protected(lua_State* state) {
  const auto& run = *static_cast<Run*>(lua_touserdata(state, 1));
  if (luaL_loadbufferx(state, run.text.data(), run.text.size(), "=chunk", "t") != LUA_OK)
    return lua_error(state);
  run.impl->push_environment();
  lua_setupvalue(state, -2, 1);
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
  impl_->begin(kLoadBudget);
  impl_->declare = &declare;
  Run run{impl_.get(), text};
  lua_pushcfunction(impl_->lua, run_protected);
  lua_pushlightuserdata(impl_->lua, &run);
  const int status = lua_pcall(impl_->lua, 1, 0, 0);
  impl_->declare = nullptr;
  if (status != LUA_OK) return tl::unexpected(impl_->error(status));
  return {};
}

tl::expected<bool, ScriptError> Sandbox::call(int function, const Value& event, const Value& window) {
  impl_->begin(kCallBudget);
  // What the file itself holds is not the call's doing.
  impl_->budget.live_bytes += impl_->live;
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

bool Sandbox::has_functions() const { return impl_->functions > 0; }
size_t Sandbox::live_bytes() const { return impl_->live; }
uint64_t Sandbox::instructions() const { return impl_->used; }

}  // namespace culprit::rules
