#include "respond/otlp.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "model/json_text.h"
#include "model/json_writer.h"

namespace culprit::respond {
namespace {

using nlohmann::json;

constexpr size_t kOtlpTextBytes = 4000;
constexpr int kCumulative = 2;  // AGGREGATION_TEMPORALITY_CUMULATIVE

std::string otlp_dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json text_attribute(std::string_view name, std::string_view value) {
  return {{"key", name}, {"value", {{"stringValue", value}}}};
}

json attribute_json(const OtlpAttribute& a) {
  json value;
  if (const auto* text = std::get_if<std::string>(&a.value))
    value["stringValue"] = shorten(to_utf8(*text), kOtlpTextBytes);
  else if (const auto* integer = std::get_if<int64_t>(&a.value))
    value["intValue"] = std::to_string(*integer);
  else if (const auto* number = std::get_if<double>(&a.value))
    value["doubleValue"] = *number;
  else
    value["boolValue"] = std::get<bool>(a.value);
  return {{"key", a.name}, {"value", std::move(value)}};
}

json resource_json(const OtlpResource& resource) {
  return {{"attributes",
           {text_attribute("service.name", "culprit"), text_attribute("service.version", CULPRIT_VERSION),
            text_attribute("host.name", resource.host)}}};
}

json scope_json() { return {{"name", "culprit"}, {"version", CULPRIT_VERSION}}; }

std::string_view severity_text(OtlpSeverity severity) {
  switch (severity) {
    case OtlpSeverity::kInfo:
      return "INFO";
    case OtlpSeverity::kWarning:
      return "WARN";
    case OtlpSeverity::kError:
      return "ERROR";
    default:
      return "FATAL";
  }
}

// ---- the Prometheus text

using TextLabels = std::vector<std::pair<std::string, std::string>>;
struct Sample {
  std::string_view name;
  TextLabels labels;
  double value = 0;
};

// `text` begins after '{'; it is advanced past '}'.
std::optional<TextLabels> take_labels(std::string_view& text) {
  TextLabels out;
  for (;;) {
    while (text.starts_with(',') || text.starts_with(' ')) text.remove_prefix(1);
    if (text.starts_with('}')) return text.remove_prefix(1), out;
    const size_t equals = text.find("=\"");
    if (equals == text.npos) return std::nullopt;
    std::string name(text.substr(0, equals)), value;
    size_t at = equals + 2;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] != '\\' || at + 1 == text.size()) {
        value += text[at];
      } else {
        ++at;
        value += text[at] == 'n' ? '\n' : text[at];
      }
    }
    if (at >= text.size()) return std::nullopt;
    text.remove_prefix(at + 1);
    out.emplace_back(std::move(name), std::move(value));
  }
}

std::optional<Sample> sample_of(std::string_view line) {
  Sample out;
  const size_t end = line.find_first_of("{ ");
  if (end == line.npos || end == 0) return std::nullopt;
  out.name = line.substr(0, end);
  line.remove_prefix(end);
  if (line.starts_with('{')) {
    line.remove_prefix(1);
    auto labels = take_labels(line);
    if (!labels) return std::nullopt;
    out.labels = std::move(*labels);
  }
  line = trim(line);
  if (line == "+Inf") {
    out.value = HUGE_VAL;
    return out;
  }
  const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), out.value);
  if (error != std::errc()) return std::nullopt;
  return out;
}

class MetricsReader {
 public:
  MetricsReader(TimeNs started_ns, TimeNs now)
      : started_(std::to_string(std::max<TimeNs>(started_ns, 0))), now_(std::to_string(now)) {}

  void line(std::string_view text) {
    if (text.starts_with("# HELP ")) return begin(text.substr(7));
    if (text.starts_with("# TYPE ")) return void(type_ = text.substr(text.rfind(' ') + 1));
    if (text.empty() || text.starts_with('#')) return;
    const auto sample = sample_of(text);
    if (!sample) return;
    if (type_ == "histogram") return bucket(*sample);
    if (!std::isfinite(sample->value)) return;
    if (!room()) return;
    json point = {
        {"attributes", attributes(sample->labels)}, {"timeUnixNano", now_}, {"asDouble", sample->value}};
    if (type_ == "counter") point["startTimeUnixNano"] = started_;
    points_.push_back(std::move(point));
  }

  OtlpMetrics finish(const OtlpResource& resource) {
    end_family();
    out_.body =
        otlp_dump({{"resourceMetrics",
                    {{{"resource", resource_json(resource)},
                      {"scopeMetrics", {{{"scope", scope_json()}, {"metrics", std::move(metrics_)}}}}}}}});
    return std::move(out_);
  }

 private:
  struct Histogram {
    TextLabels labels;
    std::vector<double> bounds;
    std::vector<uint64_t> up_to;
    double sum = 0;
    uint64_t count = 0;
  };

  bool room() {
    if (out_.points < kOtlpPoints) return ++out_.points, true;
    ++out_.left_out;
    return false;
  }

  static json attributes(const TextLabels& labels) {
    json out = json::array();
    for (const auto& [name, value] : labels) out.push_back(text_attribute(name, value));
    return out;
  }

  void begin(std::string_view text) {
    end_family();
    const size_t space = text.find(' ');
    name_ = text.substr(0, space);
    help_ = space == text.npos ? "" : text.substr(space + 1);
    type_ = {};
  }

  void bucket(const Sample& s) {
    TextLabels labels = s.labels;
    double bound = 0;
    std::erase_if(labels, [&](const auto& label) {
      if (label.first != "le") return false;
      bound = label.second == "+Inf" ? HUGE_VAL : std::strtod(label.second.c_str(), nullptr);
      return true;
    });
    Histogram& h = histograms_[otlp_dump(attributes(labels))];
    h.labels = std::move(labels);
    if (s.name.ends_with("_sum")) {
      h.sum = s.value;
    } else if (s.name.ends_with("_count")) {
      h.count = static_cast<uint64_t>(s.value);
    } else {
      if (std::isfinite(bound)) h.bounds.push_back(bound);
      h.up_to.push_back(static_cast<uint64_t>(s.value));
    }
  }

  void add_histograms() {
    for (auto& [key, h] : histograms_) {
      if (!room()) continue;
      json counts = json::array();
      uint64_t before = 0;
      for (const uint64_t n : h.up_to) {
        counts.push_back(std::to_string(n - std::min(n, before)));
        before = n;
      }
      points_.push_back({{"attributes", attributes(h.labels)},
                         {"startTimeUnixNano", started_},
                         {"timeUnixNano", now_},
                         {"count", std::to_string(h.count)},
                         {"sum", h.sum},
                         {"bucketCounts", std::move(counts)},
                         {"explicitBounds", h.bounds}});
    }
    histograms_.clear();
  }

  void end_family() {
    add_histograms();
    if (points_.empty()) return;
    json metric = {{"name", name_}, {"description", help_}};
    if (type_ == "counter")
      metric["sum"] = {
          {"dataPoints", std::move(points_)}, {"aggregationTemporality", kCumulative}, {"isMonotonic", true}};
    else if (type_ == "histogram")
      metric["histogram"] = {{"dataPoints", std::move(points_)}, {"aggregationTemporality", kCumulative}};
    else
      metric["gauge"] = {{"dataPoints", std::move(points_)}};
    metrics_.push_back(std::move(metric));
    points_ = json::array();
  }

  const std::string started_, now_;
  std::string_view name_, help_, type_;
  json points_ = json::array(), metrics_ = json::array();
  std::map<std::string, Histogram> histograms_;
  OtlpMetrics out_;
};

}  // namespace

std::string otlp_log(const OtlpLog& log) {
  json attributes = json::array();
  for (const OtlpAttribute& a : log.attributes) {
    const auto* text = std::get_if<std::string>(&a.value);
    if (!text || !text->empty()) attributes.push_back(attribute_json(a));
  }
  json out = {{"severityNumber", static_cast<int>(log.severity)},
              {"severityText", severity_text(log.severity)},
              {"body", {{"stringValue", shorten(to_utf8(log.text), kOtlpTextBytes)}}},
              {"attributes", std::move(attributes)}};
  if (log.time_ns >= 0) out["timeUnixNano"] = std::to_string(log.time_ns);
  if (log.seen_ns >= 0) out["observedTimeUnixNano"] = std::to_string(log.seen_ns);
  return otlp_dump(out);
}

std::string otlp_logs_body(const std::vector<std::string>& records, const OtlpResource& resource) {
  JsonWriter w;
  w.object([&] {
    w.member("resourceLogs", [&] {
      w.array(std::initializer_list<int>{0}, [&](int) {
        w.object([&] {
          w.raw("resource", otlp_dump(resource_json(resource)));
          w.member("scopeLogs", [&] {
            w.array(std::initializer_list<int>{0}, [&](int) {
              w.object([&] {
                w.raw("scope", otlp_dump(scope_json()));
                w.list("logRecords", records, [&](const std::string& record) { w.write_raw(record); });
              });
            });
          });
        });
      });
    });
  });
  return w.finish();
}

OtlpMetrics otlp_metrics_body(std::string_view text, const OtlpResource& resource, TimeNs started_ns,
                              TimeNs now) {
  MetricsReader reader(started_ns, now);
  for (std::string_view line : split(text, '\n')) reader.line(line);
  return reader.finish(resource);
}

uint64_t otlp_rejected(std::string_view reply) {
  const json answer = parse_json(reply);
  if (!answer.is_object()) return 0;
  const auto partial = answer.find("partialSuccess");
  if (partial == answer.end() || !partial->is_object()) return 0;
  for (const char* name : {"rejectedLogRecords", "rejectedDataPoints"}) {
    const auto at = partial->find(name);
    if (at == partial->end()) continue;
    if (at->is_number_unsigned()) return at->get<uint64_t>();
    uint64_t n = 0;
    if (!at->is_string()) continue;
    const std::string& digits = at->get_ref<const std::string&>();
    std::from_chars(digits.data(), digits.data() + digits.size(), n);
    return n;
  }
  return 0;
}

}  // namespace culprit::respond
