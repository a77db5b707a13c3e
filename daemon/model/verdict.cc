#include "model/verdict.h"

#include <fmt/format.h>

#include "model/json_writer.h"
#include "model/report_json.h"

namespace culprit {
namespace {

// The members of the announcement come first.
std::string head_json(const Verdict& v, VerdictForm form) {
  JsonWriter head;
  head.object([&] {
    head.field("job", v.job);
    head.field("run", v.run);
    if (form == VerdictForm::kListed) {
      head.time("first_ns", v.since_ns);
      head.time("last_ns", v.last_ns);
    }
    head.field("verdict", v.leads);
    head.field("settled", v.settled);
    head.field("change", to_string(v.change));
    if (v.replaces_id.empty()) return head.null("replaces");
    head.member("replaces", [&] {
      head.object([&] {
        head.field("id", v.replaces_id);
        head.field("title", v.replaces_title);
      });
    });
  });
  return head.finish();
}

}  // namespace

std::string_view to_string(Change change) {
  constexpr std::string_view kWords[] = {"new", "revised", "withdrawn"};
  return kWords[static_cast<size_t>(change)];
}

std::string kind_of(const Diagnosis& d) {
  return d.rule ? "rule:" + *d.rule : fmt::format("{}:{}", d.detector.value_or(""), to_string(d.symptom));
}

std::string to_json(const Verdict& v, VerdictForm form) {
  const bool known = !v.diagnosis.title.empty();
  JsonWriter w;
  w.object([&] {
    if (!known) {
      w.field("id", v.id());
      if (form == VerdictForm::kListed) w.field("state", to_string(v.state));
      return;
    }
    w.member("accused_ns", [&] {
      w.object([&] {
        for (const auto& [host, time] : v.accused_ns) w.time(host, time);
      });
    });
  });
  std::string out = head_json(v, form);
  out.back() = ',';
  out += w.finish().substr(1);
  if (!known) return out;
  out.back() = ',';
  return out + to_json(v.diagnosis).substr(1);
}

}  // namespace culprit
