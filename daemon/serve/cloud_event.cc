#include "serve/cloud_event.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "model/json_writer.h"

namespace culprit::serve {

std::string rfc3339(TimeNs time) {
  // Supports years from 0 on, as RFC 3339 does; 64-bit nanoseconds end in 2262.
  TimeNs ns = time % kNsPerSecond;
  auto seconds = static_cast<time_t>(time / kNsPerSecond);
  if (ns < 0) ns += kNsPerSecond, --seconds;
  tm at{};
  gmtime_r(&seconds, &at);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", at.tm_year + 1900, at.tm_mon + 1,
                     at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec, ns);
}

std::string cloud_source(std::string_view host) {
  std::string out = "//";
  for (const char c : host) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("-._~").find(c) != std::string_view::npos;
    plain ? out += c : out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out + "/v1/events";
}

std::string to_json(const CloudEvent& e) {
  JsonWriter w;
  w.object([&] {
    w.field("specversion", "1.0");
    w.field("id", e.id);
    w.field("source", e.source);
    w.field("type", fmt::format("{}{}", kCloudEventType, e.kind));
    if (!e.job.empty()) w.field("subject", e.job);
    if (e.time_ns != kNoTime) w.field("time", rfc3339(e.time_ns));
    w.field("datacontenttype", "application/json");
    if (!e.json.empty()) w.raw("data", e.json);
  });
  return w.finish();
}

}  // namespace culprit::serve
