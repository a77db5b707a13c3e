// Reads the fields of a JSON object of an untrusted file. A field that is absent leaves its value; the first
// one of a wrong type, range or size makes the whole record invalid. Pure; any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/run/launch.h"
#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

class Fields {
  using json = nlohmann::json;
  static constexpr size_t kListMost = 10'000;
  static constexpr size_t kTextBytes = 64 * 1024;

 public:
  explicit Fields(const json& object) : object_(object) {
    if (!object.is_object()) wrong_ = "no object";
  }

  template <class T>
  void number(const char* name, T& out, int64_t least, int64_t most) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_number_integer()) return refuse(name);
    const auto n = value->get<int64_t>();
    if (n < least || n > most) return refuse(name);
    out = static_cast<T>(n);
  }
  void time(const char* name, TimeNs& out) { number(name, out, INT64_MIN, INT64_MAX); }
  void optional(const char* name, std::optional<int64_t>& out) {
    const json* value = find(name);
    if (!value || value->is_null()) return;
    if (!value->is_number_integer()) return refuse(name);
    out = value->get<int64_t>();
  }
  void share(const char* name, std::optional<double>& out) {
    const json* value = find(name);
    if (!value || value->is_null()) return;
    if (!value->is_number() || value->get<double>() < 0 || value->get<double>() > 1) return refuse(name);
    out = value->get<double>();
  }
  void boolean(const char* name, bool& out) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_boolean()) return refuse(name);
    out = value->get<bool>();
  }
  void text(const char* name, std::string& out, size_t most = kTextBytes) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_string() || value->get_ref<const std::string&>().size() > most) return refuse(name);
    out = value->get<std::string>();
  }
  void texts(const char* name, std::vector<std::string>& out) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_array() || value->size() > kListMost) return refuse(name);
    for (const json& one : *value) {
      if (!one.is_string() || one.get_ref<const std::string&>().size() > kTextBytes) return refuse(name);
      out.push_back(one.get<std::string>());
    }
  }
  void host(const char* name, std::string& out) {
    text(name, out);
    if (!check_run_name(out).empty()) refuse(name);
  }
  void hosts(const char* name, std::vector<std::string>& out) {
    texts(name, out);
    for (const std::string& host : out)
      if (!check_run_name(host).empty()) refuse(name);
    if (std::set<std::string>(out.begin(), out.end()).size() != out.size()) refuse(name);
  }
  // Calls `each` with every object of a list, which may be absent.
  template <class Each>
  void objects(const char* name, size_t most, Each each) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_array() || value->size() > most) return refuse(name);
    for (const json& one : *value) {
      Fields inner(one);
      each(inner);
      join(inner);
    }
  }
  json object(const char* name) {
    const json* value = find(name);
    if (value && value->is_object()) return *value;
    refuse(name);
    return json::object();
  }
  void join(const Fields& inner) {
    if (wrong_.empty()) wrong_ = inner.wrong_;
  }
  void refuse(const char* name) {
    if (wrong_.empty()) wrong_ = std::string(name) + " is not valid";
  }
  Status result() const { return wrong_.empty() ? Status() : fail(ErrorCode::kInvalid, wrong_); }

 private:
  const json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }

  const json& object_;
  std::string wrong_;
};

}  // namespace culprit::app
