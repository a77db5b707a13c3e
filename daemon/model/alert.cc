#include "model/alert.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/json_text.h"

namespace culprit::alert {
namespace {

using nlohmann::json;

std::string dump_issue(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json json_of(const Fault& f) {
  return {{"job", f.job},
          {"run", f.run},
          {"diagnosis", f.diagnosis},
          {"source", f.source},
          {"title", f.title},
          {"category", f.category},
          {"component", f.component},
          {"symptom", f.symptom},
          {"action", f.action},
          {"remedy", f.remedy},
          {"hosts", f.hosts},
          {"targets", f.targets},
          {"why", f.why},
          {"headline", f.headline},
          {"place", f.place},
          {"seen", f.seen},
          {"confidence", f.confidence},
          {"owner", f.owner},
          {"user", f.user},
          {"vouched", f.vouched},
          {"of_host", f.of_host},
          {"failed_attempts", f.failed_attempts},
          {"again", f.again},
          {"undecided", f.undecided},
          {"decision", f.decision},
          {"answer_by_ns", f.answer_by_ns},
          {"line",
           {{"host", f.line.host}, {"file", f.line.file}, {"text", f.line.text}, {"number", f.line.number}}}};
}

// Reads members of an object; each keeps its default where it is missing or of another type.
class Members {
 public:
  explicit Members(const json& object) : object_(object) {}
  void text(const char* name, std::string& to) const {
    if (const json* at = find(name); at && at->is_string()) to = at->get<std::string>();
  }
  template <class Number>
  void number(const char* name, Number& to) const {
    if (const json* at = find(name); at && at->is_number()) to = at->get<Number>();
  }
  void flag(const char* name, bool& to) const {
    if (const json* at = find(name); at && at->is_boolean()) to = at->get<bool>();
  }
  void texts(const char* name, std::vector<std::string>& to) const {
    const json* at = find(name);
    if (!at || !at->is_array()) return;
    for (const json& one : *at)
      if (one.is_string()) to.push_back(one.get<std::string>());
  }
  json object(const char* name) const {
    const json* at = find(name);
    return at && at->is_object() ? *at : json::object();
  }

 private:
  const json* find(const char* name) const {
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }
  const json& object_;
};

Fault fault_of(const json& object) {
  Fault f;
  const Members m(object);
  m.text("job", f.job);
  m.number("run", f.run);
  m.text("diagnosis", f.diagnosis);
  m.text("source", f.source);
  m.text("title", f.title);
  m.text("category", f.category);
  m.text("component", f.component);
  m.text("symptom", f.symptom);
  m.text("action", f.action);
  m.text("remedy", f.remedy);
  m.texts("hosts", f.hosts);
  m.texts("targets", f.targets);
  m.texts("why", f.why);
  m.text("headline", f.headline);
  m.text("place", f.place);
  m.text("seen", f.seen);
  m.number("confidence", f.confidence);
  m.text("owner", f.owner);
  m.text("user", f.user);
  m.flag("vouched", f.vouched);
  m.flag("of_host", f.of_host);
  m.number("failed_attempts", f.failed_attempts);
  m.text("again", f.again);
  m.flag("undecided", f.undecided);
  m.text("decision", f.decision);
  m.number("answer_by_ns", f.answer_by_ns);
  const json at = m.object("line");
  const Members line(at);
  line.text("host", f.line.host);
  line.text("file", f.line.file);
  line.text("text", f.line.text);
  line.number("number", f.line.number);
  return f;
}

json json_of(const Delivery& d) {
  json out = {{"state", static_cast<int>(d.state)},
              {"revision", d.revision},
              {"dropped", d.dropped},
              {"made_ns", d.made_ns},
              {"change", d.change}};
  if (d.read)
    out["read"] = {{"title", d.read->title},
                   {"where", d.read->where},
                   {"action", d.read->action},
                   {"confidence", d.read->confidence},
                   {"again", d.read->again}};
  return out;
}

Delivery delivery_of(const json& object) {
  Delivery out;
  const Members m(object);
  int state = 0;
  m.number("state", state);
  if (state >= 0 && state <= static_cast<int>(Delivery::State::kSent))
    out.state = static_cast<Delivery::State>(state);
  m.number("revision", out.revision);
  m.flag("dropped", out.dropped);
  m.number("made_ns", out.made_ns);
  m.text("change", out.change);
  if (!object.contains("read")) return out;
  const json at = m.object("read");
  const Members read(at);
  out.read.emplace();
  read.text("title", out.read->title);
  read.text("where", out.read->where);
  read.text("action", out.read->action);
  read.number("confidence", out.read->confidence);
  read.text("again", out.read->again);
  return out;
}

Handling handling_of(const json& object) {
  Handling out;
  const Members m(object);
  m.text("acknowledged_by", out.acknowledged_by);
  m.number("acknowledged_ns", out.acknowledged_ns);
  m.text("silenced_by", out.silenced_by);
  m.number("silent_until_ns", out.silent_until_ns);
  m.text("repaired_by", out.repaired_by);
  m.text("answered_by", out.answered_by);
  return out;
}

bool is_critical(const std::string& category) { return category == "hardware" || category == "platform"; }

}  // namespace

std::string_view to_string(Change change) {
  constexpr std::string_view kWords[] = {"firing", "revised", "resolved"};
  return kWords[static_cast<size_t>(change)];
}

std::string_view sentence_of(End end) {
  constexpr std::string_view kSentences[] = {"",
                                             "the diagnosis was withdrawn",
                                             "a person called the diagnosis wrong",
                                             "the job goes on or ended as planned",
                                             "a later run of the job goes on",
                                             "no news of it for a long time",
                                             "the run is no longer known",
                                             "the storm is over",
                                             "it was repaired",
                                             "approved",
                                             "declined: nothing is done",
                                             "no answer in time: nothing is done",
                                             "no longer asked: the job or its host has changed"};
  return kSentences[static_cast<size_t>(end)];
}

std::string_view to_string(Severity severity) {
  return severity == Severity::kCritical ? "critical" : "warning";
}

std::string where_of(const Fault& f) { return !f.place.empty() ? f.place : f.seen; }

std::string news_of(const Issue& issue, const std::string& change) {
  return issue.news + (issue.news.empty() || change.empty() ? "" : "; ") + change;
}

std::string end_of(const Issue& issue) {
  const std::string& answerer = issue.handling.answered_by;
  if (issue.end == End::kApproved && !answerer.empty()) return "approved by " + answerer;
  if (issue.end == End::kDeclined && !answerer.empty())
    return fmt::format("declined by {}: nothing is done", answerer);
  if (issue.end != End::kRepaired || issue.handling.repaired_by.empty())
    return std::string(sentence_of(issue.end));
  return issue.handling.repaired_by + " repaired it";
}

std::string to_json(const Issue& issue) {
  json deliveries = json::object();
  for (const auto& [receiver, d] : issue.deliveries) deliveries[receiver] = json_of(d);
  const Handling& h = issue.handling;
  return dump_issue({{"key", issue.key},
                     {"fault", json_of(issue.fault)},
                     {"category", issue.category},
                     {"component", issue.component},
                     {"severity", static_cast<int>(issue.severity)},
                     {"raised_ns", issue.raised_ns},
                     {"rearmed", issue.rearmed},
                     {"news", issue.news},
                     {"handling",
                      {{"acknowledged_by", h.acknowledged_by},
                       {"acknowledged_ns", h.acknowledged_ns},
                       {"silenced_by", h.silenced_by},
                       {"silent_until_ns", h.silent_until_ns},
                       {"repaired_by", h.repaired_by},
                       {"answered_by", h.answered_by}}},
                     {"storm", issue.storm},
                     {"members", issue.members},
                     {"count", issue.count},
                     {"revision", issue.revision},
                     {"fired_ns", issue.fired_ns},
                     {"changed_ns", issue.changed_ns},
                     {"resolved_ns", issue.resolved_ns},
                     {"end", static_cast<int>(issue.end)},
                     {"deliveries", std::move(deliveries)}});
}

Result<Issue> issue_from_json(std::string_view text) {
  const json object = parse_json(text);
  if (!object.is_object()) return fail(ErrorCode::kInvalid, "an alert on the disk is no JSON object");
  Issue out;
  const Members m(object);
  m.text("key", out.key);
  out.fault = fault_of(m.object("fault"));
  m.text("category", out.category);
  m.text("component", out.component);
  m.text("storm", out.storm);
  m.texts("members", out.members);
  m.number("count", out.count);
  m.number("revision", out.revision);
  m.number("fired_ns", out.fired_ns);
  m.number("changed_ns", out.changed_ns);
  m.number("resolved_ns", out.resolved_ns);
  int end = 0;
  m.number("end", end);
  if (out.key.empty() || end < 0 || end > static_cast<int>(End::kMoot))
    return fail(ErrorCode::kInvalid, "an alert on the disk lacks its key or has an unknown state");
  out.end = static_cast<End>(end);
  // An issue stored by an earlier version gets the severity of its category.
  int severity = out.storm.empty() ? is_critical(out.fault.category) : 1;
  m.number("severity", severity);
  out.severity = severity == 0 ? Severity::kWarning : Severity::kCritical;
  m.number("raised_ns", out.raised_ns);
  m.flag("rearmed", out.rearmed);
  m.text("news", out.news);
  out.handling = handling_of(m.object("handling"));
  const json deliveries = m.object("deliveries");
  for (const auto& [receiver, one] : deliveries.items())
    if (one.is_object()) out.deliveries[receiver] = delivery_of(one);
  return out;
}

}  // namespace culprit::alert
