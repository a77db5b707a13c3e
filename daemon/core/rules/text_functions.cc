#include "core/rules/text_functions.h"

#include <algorithm>
#include <array>
#include <lua.hpp>
#include <string_view>

namespace culprit::rules {
namespace {

constexpr size_t kPatterns = 64;       // per file
constexpr size_t kPatternBytes = 500;  // longer ones belong in `match`
constexpr int kGroups = 16;
constexpr uint64_t kMatchedAnInstruction = 16;   // RE2 reads some 10 bytes in the time of one Lua instruction
constexpr uint64_t kStatesAnInstruction = 64;    // states of a regex's program; usual ones have fewer
constexpr uint64_t kCompilingAPattern = 10'000;  // instructions: some 50 us

struct State {
  Meter* meter;
  PatternCache* cache;
};

State& of(lua_State* lua) { return *static_cast<State*>(lua_touserdata(lua, lua_upvalueindex(1))); }

re2::StringPiece subject(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 1, &size);
  return {text, size};
}

// Charges the worst case of a search: RE2 falls back to all states of its program on each byte.
void charge(lua_State* lua, re2::StringPiece text, const re2::RE2& regex) {
  const auto states = static_cast<uint64_t>(std::max(regex.ProgramSize(), 1));
  of(lua).meter->charge(lua, (text.size() / kMatchedAnInstruction + 1) * (states / kStatesAnInstruction + 1));
}

const re2::RE2& pattern(lua_State* lua) {
  size_t size = 0;
  const char* text = luaL_checklstring(lua, 2, &size);
  State& state = of(lua);
  const auto known = state.cache->find(std::string_view(text, size));
  if (known != state.cache->end()) return *known->second;
  if (size > kPatternBytes)
    luaL_error(lua, "a pattern of more than %d bytes", static_cast<int>(kPatternBytes));
  if (state.cache->size() >= kPatterns)
    luaL_error(lua, "more than %d different patterns in one file", static_cast<int>(kPatterns));
  state.meter->charge(lua, kCompilingAPattern);
  re2::RE2::Options options(re2::RE2::Latin1);
  options.set_log_errors(false);
  options.set_max_mem(256 << 10);  // per pattern; times kPatterns: the limit of one file
  auto made = std::make_unique<re2::RE2>(re2::StringPiece(text, size), options);
  if (!made->ok()) {
    lua_pushlstring(lua, made->error().data(), made->error().size());
    made.reset();
    luaL_error(lua, "pattern: %s", lua_tostring(lua, -1));
  }
  return *state.cache->emplace(std::string(text, size), std::move(made)).first->second;
}

int has(lua_State* lua) {
  const re2::StringPiece text = subject(lua);
  const re2::RE2& regex = pattern(lua);
  charge(lua, text, regex);
  lua_pushboolean(lua, regex.Match(text, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0));
  return 1;
}

int match(lua_State* lua) {
  const re2::StringPiece text = subject(lua);
  const re2::RE2& regex = pattern(lua);
  charge(lua, text, regex);
  const int groups = regex.NumberOfCapturingGroups();
  if (groups > kGroups) return luaL_error(lua, "a pattern of more than %d groups", kGroups);
  std::array<re2::StringPiece, kGroups + 1> found;
  if (!regex.Match(text, 0, text.size(), re2::RE2::UNANCHORED, found.data(), groups + 1)) return 0;
  for (int i = groups ? 1 : 0; i <= groups; ++i) {
    if (found[i].data())
      lua_pushlstring(lua, found[i].data(), found[i].size());
    else
      lua_pushnil(lua);
  }
  return groups ? groups : 1;
}

int number(lua_State* lua) {
  const re2::StringPiece text = subject(lua);
  static const re2::RE2 kNumber(R"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)");
  charge(lua, text, kNumber);
  re2::StringPiece found;
  if (!kNumber.Match(text, 0, text.size(), re2::RE2::UNANCHORED, &found, 1) || found.size() > 64) return 0;
  lua_pushlstring(lua, found.data(), found.size());
  lua_pushnumber(lua, lua_tonumber(lua, -1));
  return 1;
}

}  // namespace

void push_text_functions(lua_State* lua, Meter& meter, PatternCache& cache) {
  lua_newtable(lua);
  auto* state = static_cast<State*>(lua_newuserdatauv(lua, sizeof(State), 0));
  *state = {&meter, &cache};
  constexpr luaL_Reg kFunctions[] = {{"has", has}, {"match", match}, {"number", number}};
  for (const luaL_Reg& f : kFunctions) {
    lua_pushvalue(lua, -1);
    lua_pushcclosure(lua, f.func, 1);
    lua_setfield(lua, -3, f.name);
  }
  lua_pop(lua, 1);
}

}  // namespace culprit::rules
