#include "core/rules/kept_functions.h"

#include <algorithm>
#include <cstring>
#include <lua.hpp>
#include <string_view>
#include <tuple>
#include <vector>

namespace culprit::rules {
namespace {

// Longer numerals are rejected: parsing cost grows with length and is not counted as instructions.
constexpr size_t kNumeral = 200;
// Limit on the results of one string.byte call: each needs a stack slot.
constexpr lua_Integer kBytes = 250;

Meter& meter_of(lua_State* state) { return *static_cast<Meter*>(lua_touserdata(state, lua_upvalueindex(1))); }

// Calls Lua's original function, the second upvalue, with all arguments.
int call_original(lua_State* state) {
  lua_pushvalue(state, lua_upvalueindex(2));
  lua_insert(state, 1);
  lua_call(state, lua_gettop(state) - 1, LUA_MULTRET);
  return lua_gettop(state);
}

// A key of a table, in the order of pairs(): booleans, numbers, texts. Views into Lua's text.
struct OrderedKey {
  int kind = 0;
  long double number = 0;  // exact for all integers and floats of Lua
  std::string_view text;
  bool whole = false;

  bool operator<(const OrderedKey& other) const {
    return std::tie(kind, number, text) < std::tie(other.kind, other.number, other.text);
  }
};

OrderedKey key_at(lua_State* state, int at) {
  switch (lua_type(state, at)) {
    case LUA_TBOOLEAN:
      return {0, lua_toboolean(state, at) ? 1.0L : 0.0L, {}};
    case LUA_TNUMBER:
      if (lua_isinteger(state, at)) return {1, static_cast<long double>(lua_tointeger(state, at)), {}, true};
      return {1, static_cast<long double>(lua_tonumber(state, at)), {}};
    case LUA_TSTRING: {
      size_t size = 0;
      const char* text = lua_tolstring(state, at, &size);
      return {2, 0, {text, size}};
    }
    default:
      luaL_error(state, "a table whose keys are tables or functions has no order");
      return {};
  }
}

// Pushes the key after `after` (null: the first key) of the table at `table`; false: no more keys.
bool push_next_key(lua_State* state, int table, const OrderedKey* after) {
  Meter& meter = meter_of(state);
  OrderedKey best;
  bool found = false;
  lua_pushnil(state);  // the smallest key so far
  lua_pushnil(state);
  while (lua_next(state, table)) {
    meter.charge(state, 1);
    lua_pop(state, 1);
    const OrderedKey key = key_at(state, -1);
    if ((after && !(*after < key)) || (found && !(key < best))) continue;
    best = key;
    found = true;
    lua_pushvalue(state, -1);
    lua_replace(state, -3);
  }
  return found;
}

// Replaces a read-only view by its table.
void uncover(lua_State* state, int at) {
  luaL_checktype(state, at, LUA_TTABLE);
  if (luaL_getmetafield(state, at, "guarded")) lua_replace(state, at);
}

int next(lua_State* state) {
  lua_settop(state, 2);
  uncover(state, 1);
  const bool first = lua_isnil(state, 2);
  const OrderedKey after = first ? OrderedKey{} : key_at(state, 2);
  if (!push_next_key(state, 1, first ? nullptr : &after)) {
    lua_pushnil(state);
    return 1;
  }
  lua_pushvalue(state, -1);
  lua_rawget(state, 1);
  return 2;
}

// Upvalues: the sorted keys, the table, the number of keys returned.
int next_of_pairs(lua_State* state) {
  lua_Integer at = lua_tointeger(state, lua_upvalueindex(3));
  for (;;) {
    if (lua_rawgeti(state, lua_upvalueindex(1), ++at) == LUA_TNIL) return 1;
    lua_pushvalue(state, -1);
    if (lua_rawget(state, lua_upvalueindex(2)) != LUA_TNIL) break;
    lua_pop(state, 2);  // the loop removed this key
  }
  lua_pushinteger(state, at);
  lua_replace(state, lua_upvalueindex(3));
  return 2;
}

int pairs(lua_State* state) {
  uncover(state, 1);
  std::vector<OrderedKey> keys;
  Meter& meter = meter_of(state);
  lua_settop(state, 1);
  lua_pushnil(state);
  while (lua_next(state, 1)) {
    meter.charge(state, 2);  // for sorting
    lua_pop(state, 1);
    keys.push_back(key_at(state, -1));
  }
  std::sort(keys.begin(), keys.end());
  lua_createtable(state, static_cast<int>(keys.size()), 0);
  for (size_t i = 0; i < keys.size(); ++i) {
    const OrderedKey& key = keys[i];
    if (key.kind == 0)
      lua_pushboolean(state, key.number != 0);
    else if (key.kind == 2)
      lua_pushlstring(state, key.text.data(), key.text.size());
    else if (key.whole)
      lua_pushinteger(state, static_cast<lua_Integer>(key.number));
    else
      lua_pushnumber(state, static_cast<lua_Number>(key.number));
    lua_rawseti(state, 2, static_cast<lua_Integer>(i + 1));
  }
  lua_pushvalue(state, 1);
  lua_pushinteger(state, 0);
  lua_pushcclosure(state, next_of_pairs, 3);
  return 1;
}

// Lua's original would print the address of a table or function, which differs between runs.
void hide_address(lua_State* state, int at) {
  if (lua_type(state, at) <= LUA_TSTRING && lua_type(state, at) != LUA_TLIGHTUSERDATA) return;
  lua_pushstring(state, luaL_typename(state, at));
  lua_replace(state, at);
}

int tostring(lua_State* state) {
  luaL_checkany(state, 1);
  lua_settop(state, 1);
  hide_address(state, 1);
  luaL_tolstring(state, 1, nullptr);
  return 1;
}

int tonumber(lua_State* state) {
  luaL_checkany(state, 1);
  if (lua_type(state, 1) == LUA_TSTRING && lua_rawlen(state, 1) > kNumeral) {
    lua_pushnil(state);
    return 1;
  }
  return call_original(state);
}

int byte(lua_State* state) {
  size_t size = 0;
  luaL_checklstring(state, 1, &size);
  const auto place = [&](lua_Integer at) {
    return at >= 0 ? at : std::max<lua_Integer>(0, at + static_cast<lua_Integer>(size) + 1);
  };
  const lua_Integer from = place(luaL_optinteger(state, 2, 1));
  const lua_Integer to = place(luaL_optinteger(state, 3, from));
  if (std::min(to, static_cast<lua_Integer>(size)) - std::max<lua_Integer>(from, 1) >= kBytes)
    return luaL_error(state, "string.byte gives at most %d values", static_cast<int>(kBytes));
  return call_original(state);
}

int format(lua_State* state) {
  size_t size = 0;
  const char* text = luaL_checklstring(state, 1, &size);
  meter_of(state).charge(state, size + 1);  // each conversion may cost as much as some instructions
  for (size_t i = 0; i + 1 < size; ++i) {
    if (text[i] != '%') continue;
    ++i;
    while (i < size && text[i] != '\0' && std::strchr("-+ #0123456789.", text[i])) ++i;
    if (i < size && text[i] == 'p') return luaL_error(state, "string.format has no '%%p' here");
  }
  for (int i = 2; i <= lua_gettop(state); ++i) hide_address(state, i);
  return call_original(state);
}

struct Replaced {
  const char* name;
  lua_CFunction function;  // null: Lua's original
};

constexpr Replaced kBase[] = {{"assert", nullptr},    {"error", nullptr},     {"ipairs", nullptr},
                              {"next", next},         {"pairs", pairs},       {"select", nullptr},
                              {"tonumber", tonumber}, {"tostring", tostring}, {"type", nullptr}};
constexpr Replaced kString[] = {{"byte", byte},     {"char", nullptr}, {"format", format}, {"len", nullptr},
                                {"lower", nullptr}, {"sub", nullptr},  {"upper", nullptr}};

// Pops Lua's original function and sets the field of the table below it.
void set(lua_State* state, const Replaced& f, Meter& meter) {
  if (f.function) {
    lua_pushlightuserdata(state, &meter);
    lua_insert(state, -2);
    lua_pushcclosure(state, f.function, 2);
  }
  lua_setfield(state, -2, f.name);
}

}  // namespace

void add_base_functions(lua_State* state, Meter& meter) {
  for (const Replaced& f : kBase) {
    lua_getglobal(state, f.name);
    set(state, f, meter);
  }
}

void push_string_functions(lua_State* state, Meter& meter) {
  lua_newtable(state);
  for (const Replaced& f : kString) {
    lua_getglobal(state, "string");
    lua_getfield(state, -1, f.name);
    lua_remove(state, -2);
    set(state, f, meter);
  }
}

}  // namespace culprit::rules
