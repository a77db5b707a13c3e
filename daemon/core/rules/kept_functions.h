// Functions of Lua that rule files keep in another form: Lua's own give away addresses (tostring, format),
// walk tables in an order that differs from run to run (next, pairs), or do work that no instruction counts.
#pragma once

#include "core/rules/text_functions.h"

namespace culprit::rules {

// Fills the table on the top of the stack: assert error ipairs next pairs select tonumber tostring type.
// Needs Lua's libraries as globals; `meter` must outlive the state.
void add_base_functions(lua_State* state, Meter& meter);

// Leaves a table on the stack: byte char format len lower sub upper.
void push_string_functions(lua_State* state, Meter& meter);

}  // namespace culprit::rules
