// A value passed between Lua and C++, such as a rule's table. Tables are trees: a list part, and named fields
// in the order of their names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace culprit::rules {

struct Value {
  enum class Kind : uint8_t { kNil, kBoolean, kNumber, kString, kTable, kFunction, kOther };
  Kind kind = Kind::kNil;
  bool boolean = false;
  double number = 0;
  bool integer = false;  // whether the number was an integer
  int64_t whole = 0;     // that integer; a double cannot hold times exactly
  std::string string;
  std::vector<Value> list;
  std::map<std::string, Value, std::less<>> fields;
  int function = 0;  // a reference in its Sandbox
  // For a table passed to a function: its permitted names, each followed by a blank. Reading another name is
  // an error. Empty: any name.
  std::string names;

  static Value of(std::string text) {
    Value v;
    v.kind = Kind::kString;
    v.string = std::move(text);
    return v;
  }
  static Value of(int64_t number) {
    Value v;
    v.kind = Kind::kNumber;
    v.number = static_cast<double>(number);
    v.integer = true;
    v.whole = number;
    return v;
  }
  static Value table() {
    Value v;
    v.kind = Kind::kTable;
    return v;
  }
  const Value* find(std::string_view name) const {
    const auto it = fields.find(name);
    return it == fields.end() ? nullptr : &it->second;
  }
};

}  // namespace culprit::rules
