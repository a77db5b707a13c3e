// Text functions for rules, on RE2: linear in the text's length for any pattern. Offered to Lua as `text`:
//   text.has(s, regex)    whether s contains a match
//   text.match(s, regex)  the groups, or the whole match without groups; nil if there is no match
//   text.number(s)        the first number in s, or nil
#pragma once

#include <re2/re2.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

struct lua_State;

namespace culprit::rules {

// Counts work that is not a Lua instruction; raises an error in Lua when the budget is spent.
class Meter {
 public:
  virtual void charge(lua_State* state, uint64_t instructions) = 0;

 protected:
  ~Meter() = default;
};

using PatternCache = std::map<std::string, std::unique_ptr<re2::RE2>, std::less<>>;

// Leaves the table of functions on the stack; `meter` and `cache` must outlive the state.
void push_text_functions(lua_State* state, Meter& meter, PatternCache& cache);

}  // namespace culprit::rules
