// Events in the form of CloudEvents 1.0, JSON format (docs/formats.md section 9). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"

namespace culprit::serve {

// Prefix of event types, as the specification requires: "io.culprit.diagnosis".
constexpr std::string_view kCloudEventType = "io.culprit.";
constexpr const char* kCloudEventBatch = "application/cloudevents-batch+json";

struct CloudEvent {
  std::string_view id;      // unique for `source`
  std::string_view source;  // cloud_source()
  std::string_view kind;    // "diagnosis"
  std::string_view job;     // empty: no job
  TimeNs time_ns = kNoTime;
  std::string_view json;  // the data; empty: none
};
// One object on one line.
std::string to_json(const CloudEvent& event);

// URI reference of this daemon's event source: "//HOST/v1/events".
std::string cloud_source(std::string_view host);

// RFC 3339 in UTC: "2026-11-21T02:12:09.123456789Z".
std::string rfc3339(TimeNs time);

}  // namespace culprit::serve
