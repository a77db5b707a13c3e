#include "app/daemon/collector/host_about.h"

#include <nlohmann/json.hpp>
#include <type_traits>

#include "model/json_text.h"
#include "model/json_writer.h"

namespace culprit::app {

std::string to_json(const HostAbout& about) {
  JsonWriter w;
  w.object([&] {
    w.field("program", about.program.value_or(""));
    w.field("address", about.address.value_or(""));
    w.field("clock_ahead_ns", about.clock_ahead_ns.value_or(0));
    w.field("left", about.left);
    if (about.dropped_bytes) w.field("dropped_bytes", *about.dropped_bytes);
    if (about.dropped_records) w.field("dropped_records", *about.dropped_records);
  });
  return w.finish();
}

HostAbout host_about(std::string_view text) {
  const auto all = parse_json(text);
  HostAbout out;
  if (!all.is_object()) return out;
  const auto read = [&]<class Value>(const char* name, std::optional<Value>& to) {
    const auto at = all.find(name);
    if (at == all.end()) return;
    const bool fits = std::is_same_v<Value, std::string> ? at->is_string()
                      : std::is_signed_v<Value>          ? at->is_number_integer()
                                                         : at->is_number_unsigned();
    if (fits) to = at->template get<Value>();
  };
  read("program", out.program);
  read("address", out.address);
  read("clock_ahead_ns", out.clock_ahead_ns);
  read("dropped_bytes", out.dropped_bytes);
  read("dropped_records", out.dropped_records);
  std::optional<std::string> left;
  read("left", left);
  out.left = left.value_or("");
  return out;
}

}  // namespace culprit::app
