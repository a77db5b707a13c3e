// Writes metrics in Prometheus text format 0.0.4. Pure; any thread.
//
//   MetricsText text;
//   text.counter("culprit_lines_total", "Lines read.").value(12, {{"source", "file"}});
//   text.finish();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace culprit::serve {

constexpr const char* kMetricsContentType = "text/plain; version=0.0.4; charset=utf-8";

struct Label {
  std::string_view name, value;
};
using Labels = std::initializer_list<Label>;

class MetricsText {
 public:
  // A family; its values follow immediately. Each name occurs once.
  MetricsText& counter(std::string_view name, std::string_view help);  // the name ends in _total
  MetricsText& gauge(std::string_view name, std::string_view help);
  MetricsText& histogram(std::string_view name, std::string_view help);

  MetricsText& value(double value, Labels labels = {});
  // A histogram: `counts[i]` values were at most `bounds[i]` and above the previous bound; the last count has
  // those above all bounds.
  struct Histogram {
    std::span<const double> bounds;
    std::span<const uint64_t> counts;  // bounds.size() + 1
    double sum = 0;
  };
  MetricsText& value(const Histogram& histogram, Labels labels = {});

  std::string finish() { return std::move(out_); }

 private:
  void family(std::string_view name, std::string_view help, std::string_view type);
  void line(std::string_view suffix, Labels labels, const Label* more, double value);

  std::string name_, out_;
};

}  // namespace culprit::serve
