#include "serve/metrics.h"

#include <fmt/format.h>

#include <cmath>

#include "base/check.h"
#include "base/text.h"

namespace culprit::serve {
namespace {

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  // Counts are exact, not 1.2e+16.
  if (std::floor(value) == value && std::abs(value) < 9e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : to_utf8(text)) {
    if (c == '\n')
      out += "\\n";
    else if (c == '\\' || (c == '"' && quotes))
      out += {'\\', c};
    else
      out += c;
  }
  return out;
}

}  // namespace

void MetricsText::family(std::string_view name, std::string_view help, std::string_view type) {
  name_ = name;
  out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(help, false), name, type);
}

MetricsText& MetricsText::counter(std::string_view name, std::string_view help) {
  family(name, help, "counter");
  return *this;
}

MetricsText& MetricsText::gauge(std::string_view name, std::string_view help) {
  family(name, help, "gauge");
  return *this;
}

MetricsText& MetricsText::histogram(std::string_view name, std::string_view help) {
  family(name, help, "histogram");
  return *this;
}

void MetricsText::line(std::string_view suffix, Labels labels, const Label* more, double value) {
  out_ += name_;
  out_ += suffix;
  char before = '{';
  const auto add = [&](const Label& label) {
    out_ += fmt::format("{}{}=\"{}\"", before, label.name, escaped(label.value, true));
    before = ',';
  };
  for (const Label& label : labels) add(label);
  if (more) add(*more);
  if (before == ',') out_ += '}';
  out_ += fmt::format(" {}\n", number(value));
}

MetricsText& MetricsText::value(double value, Labels labels) {
  line("", labels, nullptr, value);
  return *this;
}

MetricsText& MetricsText::value(const Histogram& histogram, Labels labels) {
  CULPRIT_CHECK(histogram.counts.size() == histogram.bounds.size() + 1);
  uint64_t below = 0;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    below += histogram.counts[i];
    const std::string bound = i < histogram.bounds.size() ? number(histogram.bounds[i]) : "+Inf";
    const Label le{"le", bound};
    line("_bucket", labels, &le, static_cast<double>(below));
  }
  line("_sum", labels, nullptr, histogram.sum);
  line("_count", labels, nullptr, static_cast<double>(below));
  return *this;
}

}  // namespace culprit::serve
