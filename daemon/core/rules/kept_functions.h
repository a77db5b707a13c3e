// Replacements for Lua functions in rule files. Some of Lua's own functions show addresses (tostring,
// format). Others walk tables in an order that differs between runs (next, pairs), or do work that the
// instruction count misses.
#pragma once

#include "core/rules/text_functions.h"

namespace culprit::rules {

// Fills the table on the top of the stack: assert error ipairs next pairs select tonumber tostring type.
// Needs Lua's libraries as globals; `meter` must outlive the state.
void add_base_functions(lua_State* state, Meter& meter);

// Leaves a table on the stack: byte char format len lower sub upper.
void push_string_functions(lua_State* state, Meter& meter);

}  // namespace culprit::rules
