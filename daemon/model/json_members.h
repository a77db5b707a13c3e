// Members of a JSON object, named once for writing and reading: a function template over `Io` lists them, and
// gets one of these two. Times are null where they are unknown. Reading never fails at once: wrong() has the
// first member that is missing or of another type. Pure; one thread.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/json_writer.h"

namespace culprit {

// Words of an enum without gaps that begins at 0; found by argument: `word_list(Enum())` gives them in its
// order, as a range of std::string_view.

class JsonMembersOut {
 public:
  explicit JsonMembersOut(JsonWriter& w) : w_(w) {}
  template <class Value>
  void member(const char* name, const Value& value) {
    w_.field(name, value);
  }
  template <class Value>
  void member(const char* name, const std::vector<Value>& values) {
    w_.values(name, values);
  }
  void time(const char* name, TimeNs value) { w_.time(name, value); }
  template <class Enum>
  void word(const char* name, Enum value) {
    w_.field(name, word_list(value)[static_cast<size_t>(value)]);
  }
  template <class Body>
  void object(const char* name, Body body) {
    w_.member(name, [&] { w_.object([&] { body(*this); }); });
  }
  // `each` lists the members of one value.
  template <class Value, class Each>
  void list(const char* name, const std::vector<Value>& values, Each each) {
    w_.list(name, values, [&](const Value& value) { w_.object([&] { each(*this, value); }); });
  }

 private:
  JsonWriter& w_;
};

class JsonMembersIn {
 public:
  explicit JsonMembersIn(const nlohmann::json& json) : json_(&json) {}
  const std::string& wrong() const { return wrong_; }
  // The caller found the member invalid.
  void refuse(const char* name) { bad(name); }

  void member(const char* name, std::string& out) {
    if (const Json* value = find(name))
      value->is_string() ? void(out = value->get<std::string>()) : bad(name);
  }
  void member(const char* name, bool& out) {
    if (const Json* value = find(name)) value->is_boolean() ? void(out = value->get<bool>()) : bad(name);
  }
  template <std::integral Number>
  void member(const char* name, Number& out) {
    if (const Json* value = find(name)) whole(name, *value, out);
  }
  void member(const char* name, double& out) {
    const Json* value = find(name);
    if (value && value->is_number())
      out = value->get<double>();
    else if (value && !value->is_null())
      bad(name);
  }
  template <class Value>
  void member(const char* name, std::optional<Value>& out) {
    const Json* value = find(name);
    if (!value || value->is_null()) return;
    Value one{};
    member(name, one);
    out = one;
  }
  void member(const char* name, std::vector<std::string>& out) {
    each(name, [&](const Json& value) { value.is_string() ? out.push_back(value) : bad(name); });
  }
  void member(const char* name, std::vector<TimeNs>& out) {
    each(name, [&](const Json& value) { whole(name, value, out.emplace_back()); });
  }
  void time(const char* name, TimeNs& out) {
    const Json* value = find(name);
    if (value && !value->is_null()) whole(name, *value, out);
  }
  template <class Enum>
  void word(const char* name, Enum& out) {
    const Json* value = find(name);
    const auto& all = word_list(Enum());
    for (size_t n = 0; value && value->is_string() && n < std::size(all); ++n)
      if (value->get_ref<const std::string&>() == all[n]) return void(out = static_cast<Enum>(n));
    bad(name);
  }
  template <class Body>
  void object(const char* name, Body body) {
    const Json* value = find(name);
    if (!value || !value->is_object()) return bad(name);
    const Json* outer = std::exchange(json_, value);
    body(*this);
    json_ = outer;
  }
  template <class Value, class Each>
  void list(const char* name, std::vector<Value>& out, Each read) {
    each(name, [&](const Json& value) {
      if (!value.is_object()) return bad(name);
      const Json* outer = std::exchange(json_, &value);
      read(*this, out.emplace_back());
      json_ = outer;
    });
  }

 private:
  using Json = nlohmann::json;

  const Json* find(const char* name) {
    const auto found = json_->find(name);
    return found == json_->end() ? nullptr : &*found;
  }
  template <class Number>
  void whole(const char* name, const Json& value, Number& out) {
    if (!value.is_number_integer()) return bad(name);
    if constexpr (std::is_same_v<Number, uint32_t>)
      if (!value.is_number_unsigned() || value.get<uint64_t>() > UINT32_MAX) return bad(name);
    out = value.get<Number>();
  }
  template <class Body>
  void each(const char* name, Body body) {
    const Json* value = find(name);
    if (value && !value->is_array()) return bad(name);
    if (value)
      for (const Json& one : *value) body(one);
  }
  void bad(const char* name) {
    if (wrong_.empty()) wrong_ = fmt::format("'{}' is missing or invalid", name);
  }

  const Json* json_;
  std::string wrong_;
};

}  // namespace culprit
