#include "app/daemon/alert_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/jobs/judgement.h"
#include "base/text.h"

namespace culprit::app {
namespace {

using Object = nlohmann::json;

constexpr size_t kNamed = 3;         // places
constexpr size_t kHostsKept = 1024;  // for maintenance windows
constexpr size_t kAlertTextBytes = 1000;
constexpr size_t kReasons = 8;

std::string text_member(const Object& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? shorten(at->get<std::string>(), kAlertTextBytes) : "";
}

const Object& list_member(const Object& object, const char* name) {
  static const Object none = Object::array();
  const auto at = object.find(name);
  return at != object.end() && at->is_array() ? *at : none;
}

// "device 4", "ranks 3, 7 and 9 more".
void add_numbers(const Object& place, const char* name, const char* noun, std::vector<std::string>& out) {
  std::vector<std::string> numbers;
  for (const Object& n : list_member(place, name))
    if (n.is_number_integer()) numbers.push_back(std::to_string(n.get<int64_t>()));
  if (numbers.empty()) return;
  const size_t shown = std::min(numbers.size(), kNamed);
  std::string text =
      fmt::format("{}{} {}", noun, numbers.size() > 1 ? "s" : "",
                  fmt::join(numbers.begin(), numbers.begin() + static_cast<long>(shown), ", "));
  if (numbers.size() > shown) text += fmt::format(" and {} more", numbers.size() - shown);
  out.push_back(std::move(text));
}

std::string place_text(const Object& place) {
  std::vector<std::string> parts;
  add_numbers(place, "devices", "device", parts);
  add_numbers(place, "ranks", "rank", parts);
  const std::string host = text_member(place, "host");
  if (parts.empty()) return host;
  const std::string inside = fmt::format("{}", fmt::join(parts, ", "));
  return host.empty() ? inside : fmt::format("{} ({})", host, inside);
}

std::string named_first(const std::vector<std::string>& places) {
  if (places.size() <= kNamed) return fmt::format("{}", fmt::join(places, ", "));
  return fmt::format("{} and {} more", fmt::join(places.begin(), places.begin() + kNamed, ", "),
                     places.size() - kNamed);
}

std::string places_text(const Object& diagnosis) {
  std::vector<std::string> out;
  for (const Object& place : list_member(diagnosis, "hosts"))
    if (std::string text = place.is_object() ? place_text(place) : ""; !text.empty()) out.push_back(text);
  for (const Object& link : list_member(diagnosis, "links"))
    if (link.is_object())
      out.push_back(fmt::format("link {} - {}", text_member(link, "a"), text_member(link, "b")));
  return named_first(out);
}

// Where the evidence was seen: a fault without an accused host has a place too.
std::string seen_text(const Object& diagnosis) {
  std::vector<std::string> places;
  for (const Object& e : list_member(diagnosis, "evidence")) {
    if (!e.is_object()) continue;
    const auto rank = e.find("rank");
    const std::string inside = rank != e.end() && rank->is_number_integer()
                                   ? fmt::format("rank {}", rank->get<int64_t>())
                                   : std::string();
    std::string host = text_member(e, "host");
    std::string place = inside.empty() ? host : host.empty() ? inside : fmt::format("{} ({})", host, inside);
    if (!place.empty() && std::ranges::find(places, place) == places.end())
      places.push_back(std::move(place));
  }
  return named_first(places);
}

respond::Fault::Line first_line(const Object& diagnosis) {
  for (const Object& e : list_member(diagnosis, "evidence")) {
    if (!e.is_object() || text_member(e, "file").empty()) continue;
    respond::Fault::Line out{text_member(e, "host"), text_member(e, "file"), text_member(e, "text"), 0};
    if (const auto at = e.find("line"); at != e.end() && at->is_number_unsigned())
      out.number = at->get<uint64_t>();
    return out;
  }
  return {};
}

// Whether a line of the kernel, of root or of a service matched the rule. Lines of a user name their user.
bool is_of_host(const store::DiagnosisRow& row, const Object& diagnosis) {
  return row.kind.starts_with("rule:") &&
         std::ranges::any_of(list_member(diagnosis, "evidence"), [](const Object& e) {
           return e.is_object() && !text_member(e, "file").empty() && !e.contains("uid");
         });
}

respond::Fault fault_from(const store::DiagnosisRow& row, const Object& d) {
  respond::Fault out;
  out.job = row.job;
  out.run = row.run;
  out.diagnosis = row.id;
  out.source = row.kind;
  out.title = text_member(d, "title");
  out.headline = text_member(d, "headline");
  out.category = text_member(d, "category");
  out.component = text_member(d, "component");
  out.symptom = text_member(d, "symptom");
  out.remedy = text_member(d, "remedy");
  if (const auto at = d.find("confidence"); at != d.end() && at->is_number())
    out.confidence = at->get<double>();
  if (const auto action = d.find("action"); action != d.end() && action->is_object()) {
    out.action = text_member(*action, "kind");
    for (const Object& target : list_member(*action, "targets"))
      if (target.is_string() && out.targets.size() < kHostsKept)
        out.targets.push_back(target.get<std::string>());
  }
  for (const Object& place : list_member(d, "hosts"))
    if (std::string host = place.is_object() ? text_member(place, "host") : "";
        !host.empty() && out.hosts.size() < kHostsKept &&
        std::ranges::find(out.hosts, host) == out.hosts.end())
      out.hosts.push_back(std::move(host));
  for (const Object& why : list_member(d, "why"))
    if (why.is_string() && out.why.size() < kReasons)
      out.why.push_back(shorten(why.get<std::string>(), kAlertTextBytes));
  const auto said = d.find("said_by");
  out.vouched = said == d.end() || !said->is_object();
  out.of_host = out.vouched && is_of_host(row, d);
  out.place = places_text(d);
  out.seen = seen_text(d);
  out.line = first_line(d);
  return out;
}

struct Candidate {
  const store::DiagnosisRow* row;
  Object json;
  double confidence = 0;
};

}  // namespace

RunVerdict verdict_of(std::vector<store::DiagnosisRow> rows) {
  RunVerdict out;
  out.known = !rows.empty();
  std::vector<Candidate> candidates;
  Judgements judgements;
  for (const store::DiagnosisRow& row : rows) {
    if (row.state == "refuted") out.refuted.insert(row.id);
    if (row.state == "withdrawn") continue;
    Object d = Object::parse(row.json, nullptr, false);
    if (!d.is_object()) continue;
    if (!row.judged_by.empty()) judgements[row.id] = row.state == "confirmed";
    const double confidence =
        d.contains("confidence") && d["confidence"].is_number() ? d["confidence"].get<double>() : 0;
    candidates.push_back({&row, std::move(d), confidence});
  }
  // Of equal ones the newest; a report lists the most probable first.
  std::ranges::stable_sort(candidates, std::ranges::greater(), &Candidate::confidence);
  std::vector<RankedDiagnosis> ranked;
  std::optional<size_t> verdict;
  for (const Candidate& c : candidates) {
    const auto flag = [&](const char* name, bool otherwise) {
      const auto at = c.json.find(name);
      return at != c.json.end() && at->is_boolean() ? at->get<bool>() : otherwise;
    };
    if (flag("verdict", false)) {
      if (!verdict) verdict = ranked.size();
      out.settled = out.settled && (flag("settled", true) || out.refuted.contains(c.row->id));
    }
    ranked.push_back({c.row->id, c.confidence});
  }
  const JudgedOrder judged = order_of(ranked, verdict, judgements);
  if (!judged.verdict) return out;
  const Candidate& chosen = candidates[*judged.verdict];
  out.fault = fault_from(*chosen.row, chosen.json);
  return out;
}

RunVerdict verdict_of(store::Index& index, const std::string& job, uint32_t run) {
  auto rows = index.diagnoses({.job = job, .run = run});
  RunVerdict out;
  if (rows)
    out = verdict_of(std::move(*rows));
  else
    out.settled = false;  // it is looked at again
  out.job = job;
  out.run = run;
  return out;
}

}  // namespace culprit::app
