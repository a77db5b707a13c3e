// Bodies of OTLP over HTTP in JSON: logs and metrics. Pure; any thread. In this encoding members are in
// camelCase, 64-bit integers are strings, and enums are numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"

namespace culprit::respond {

struct OtlpResource {
  std::string host;
};

struct OtlpAttribute {
  std::string name;
  std::variant<std::string, int64_t, double, bool> value;
};

// Severity numbers of the OpenTelemetry data model.
enum class OtlpSeverity : uint8_t { kInfo = 9, kWarning = 13, kError = 17, kFatal = 21 };

struct OtlpLog {
  TimeNs time_ns = kNoTime, seen_ns = kNoTime;  // when it happened, if known; when it was found
  OtlpSeverity severity = OtlpSeverity::kInfo;
  std::string text;
  std::vector<OtlpAttribute> attributes;  // those with an empty text are left out
};
// One record.
std::string otlp_log(const OtlpLog& log);
// Of POST /v1/logs, from records.
std::string otlp_logs_body(const std::vector<std::string>& records, const OtlpResource& resource);

// Limit of metrics from one answer to GET /metrics; further ones are dropped and counted.
constexpr size_t kOtlpPoints = 5000;
struct OtlpMetrics {
  std::string body;  // of POST /v1/metrics
  size_t points = 0, left_out = 0;
};
// Converts the Prometheus text format that MetricsText writes: counters since `started_ns`, gauges,
// histograms.
OtlpMetrics otlp_metrics_body(std::string_view text, const OtlpResource& resource, TimeNs started_ns,
                              TimeNs now);

// Number of rejected records in an answer with status 200.
uint64_t otlp_rejected(std::string_view reply);

}  // namespace culprit::respond
