#include "cli/recovery_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/rules.h"

namespace culprit::cli {
namespace {

constexpr TimeNs kDay = 24LL * 3600 * kNsPerSecond;
constexpr TimeNs kWindow = 7 * kDay;  // as the controller's policy counts repetitions

std::string shown_span(double seconds) {
  return format_duration(static_cast<TimeNs>(seconds * static_cast<double>(kNsPerSecond)));
}

std::string seconds_text(const Json& object, const char* name) {
  const Json value = object.value(name, Json());
  return value.is_number() ? shown_span(value.get<double>()) : "-";
}

double number_of(const Json& object, const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}

std::string lost_cause(const Json& lost) {
  return lost.value("cause", Json()).is_string() ? text_field(lost, "cause") : "no verdict";
}

// "third time in 7 days", of a host that was taken out lately; "-": not within that time.
std::string how_often(const Json& machine, TimeNs now) {
  constexpr std::array<std::string_view, 5> kOrdinals = {"first", "second", "third", "fourth", "fifth"};
  const auto list = machine.find("isolations");
  if (list == machine.end() || !list->is_array()) return "-";
  const auto lately = static_cast<size_t>(std::ranges::count_if(*list, [&](const Json& at) {
    return at.is_number_integer() && at.get<TimeNs>() <= now && now - at.get<TimeNs>() < kWindow;
  }));
  if (lately == 0) return "-";
  if (lately <= kOrdinals.size()) return fmt::format("{} time in 7 days", kOrdinals[lately - 1]);
  return fmt::format("{} times in 7 days", lately);
}

bool is_out(const Json& machine) {
  const auto op = machine.find("op");
  return op != machine.end() && op->is_string() && !op->get_ref<const std::string&>().empty();
}

std::vector<Json> objects_of(const Json& json, const char* name) {
  std::vector<Json> out;
  if (const auto list = json.find(name); list != json.end() && list->is_array())
    for (const Json& one : *list)
      if (one.is_object()) out.push_back(one);
  return out;
}

std::string joined(const Json& object, const char* name) {
  std::string out;
  if (const auto list = object.find(name); list != object.end() && list->is_array())
    for (const Json& one : *list) out += (out.empty() ? "" : ", ") + shown(one);
  return out.empty() ? "-" : out;
}

// The questions that wait for a person, each with the command that answers it.
std::string questions_text(const Json& json, const Zone& zone) {
  std::string out;
  const auto list = json.find("questions");  // absent from an older daemon
  if (list == json.end() || !list->is_array()) return out;
  for (const Json& one : *list)
    if (one.is_object())
      out += fmt::format("\n{} asks to {}\n  why: {}\n  until {}: culprit recover approve {}\n",
                         text_field(one, "decision"), text_field(one, "does"), text_field(one, "text"),
                         time_field(one, "expires_ns", zone), text_field(one, "decision"));
  return out.empty() ? out : out + "\n";
}

// "the scheduler does not answer: …", since when, and the command that mends it.
std::string trouble_text(const Json& json, const Zone& zone) {
  if (!json.value("trouble", Json()).is_string()) return "";
  const bool since =
      json.value("trouble_since_ns", Json()).is_number_integer();  // absent from an older daemon
  std::string out = fmt::format("nothing is done{}: {}\n",
                                since ? " since " + time_field(json, "trouble_since_ns", zone) : "",
                                text_field(json, "trouble"));
  if (json.value("remedy", Json()).is_string())
    out += fmt::format("  mend: {}\n", text_field(json, "remedy"));
  return out;
}

// "stages: isolate act, restart act, check off, return off".
std::string stages_text(const Json& json) {
  const std::string mode = text_field(json, "mode");
  std::string out;
  for (const Json& one : objects_of(json, "stages")) {
    std::string line;
    for (const char* name : {"isolate", "restart", "check", "return"}) {
      const bool on = one.value(name, Json()) == Json(true) || mode == "observe";  // it shows every stage
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, on ? mode : "off");
    }
    const bool everywhere = !one.value("partition", Json()).is_string();
    out += (out.empty() ? "stages: " : "; ") + (everywhere ? "" : text_field(one, "partition") + ": ") + line;
  }
  return out.empty() ? out : out + "\n";
}

// Without a view of the scheduler its jobs are unknown, or as they were.
std::string no_job_text(const Json& json) {
  const bool unseen = json.contains("view_ns") && json["view_ns"].is_null();
  return unseen ? "no job is known: the scheduler gave no view yet\n" : "the scheduler shows no job\n";
}

}  // namespace

std::string recovery_overview_text(const Json& json, const Zone& zone) {
  std::string out =
      fmt::format("mode {}; {} hosts are out\n", text_field(json, "mode"), text_field(json, "isolated"));
  out += stages_text(json) + trouble_text(json, zone);
  if (json.value("breaker", Json()).is_string()) out += "breaker: " + text_field(json, "breaker") + "\n";
  out += questions_text(json, zone);
  std::vector<std::vector<std::string>> rows{
      {"JOB", "ATTEMPT", "STATE", "SINCE", "DECISION", "WITHOUT", "WHY"}};
  if (const auto items = json.find("items"); items != json.end() && items->is_array())
    for (const Json& one : *items)
      if (one.is_object())
        rows.push_back({text_field(one, "job"), text_field(one, "attempt"),
                        text_field(one, "state") + (one.value("asks", false) ? ", asks" : ""),
                        time_field(one, "since_ns", zone), text_field(one, "decision"),
                        joined(one, "excluded"), text_field(one, "why")});
  constexpr size_t kWhy = 6;  // column
  if (rows.size() == 1) return out + no_job_text(json);
  return out + table(rows, wants_color(), kWhy, page_width());
}

std::string decision_text(const Json& json, const Zone& zone) {
  std::string out =
      fmt::format("job {}, attempt {}: {} since {}\n", text_field(json, "job"), text_field(json, "attempt"),
                  text_field(json, "state"), time_field(json, "since_ns", zone));
  if (json.value("root", Json()).is_string()) out += "cause: " + text_field(json, "root") + "\n";
  if (json.value("why", Json()).is_string()) out += "why: " + text_field(json, "why") + "\n";
  out += trouble_text(json, zone);
  if (const auto list = json.find("waits"); list != json.end() && list->is_array())
    for (const Json& sentence : *list) out += "waits: " + shown(sentence) + "\n";
  out += fmt::format("runs on: {}\nexcluded: {}\n\n", joined(json, "hosts"), joined(json, "excluded"));
  if (const auto list = json.find("explanation"); list != json.end() && list->is_array())
    for (const Json& sentence : *list) out += "  " + shown(sentence) + "\n";
  std::vector<std::vector<std::string>> rows{{"OP", "DECISION", "ACTION", "TARGET", "STATE", "RESULT"}};
  if (const auto list = json.find("actions"); list != json.end() && list->is_array())
    for (const Json& one : *list)
      if (one.is_object())
        rows.push_back({text_field(one, "op"), text_field(one, "decision"), text_field(one, "kind"),
                        text_field(one, "target"), text_field(one, "state"), text_field(one, "detail")});
  constexpr size_t kResult = 5;  // column
  return rows.size() == 1 ? out : out + "\n" + table(rows, wants_color(), kResult, page_width());
}

std::string machines_text(const Json& json, const Zone& zone, TimeNs now) {
  std::vector<Json> machines = objects_of(json, "items");
  std::stable_sort(machines.begin(), machines.end(),
                   [](const Json& a, const Json& b) { return is_out(a) && !is_out(b); });
  std::vector<std::vector<std::string>> rows{
      {"HOST", "DEVICE", "SUSPECTED", "OUT", "RETURNED", "LATELY", "LAST", "CAUSE", "NOW"}};
  for (const Json& one : machines) {
    const std::string device = text_field(one, "device");
    rows.push_back({text_field(one, "host"), device.empty() ? "-" : device, text_field(one, "suspected"),
                    text_field(one, "isolated"), text_field(one, "returned"), how_often(one, now),
                    time_field(one, "last_ns", zone), text_field(one, "last_root"),
                    is_out(one) ? "out by " + text_field(one, "op") : "in"});
  }
  constexpr size_t kCause = 7;  // column
  return rows.size() == 1 ? std::string("no host was suspected\n")
                          : table(rows, wants_color(), kCause, page_width());
}

std::string cost_text(const Json& json) {
  const auto count = [&](const char* name) { return static_cast<uint64_t>(number_of(json, name)); };
  // Nothing was measured yet: that is no share of 0 %.
  const std::string share = number_of(json, "wall_s") > 0 ? fmt::format("{:.1f} % effective training time",
                                                                        100 * number_of(json, "ettr"))
                                                          : "no effective training time measured yet";
  std::string out =
      fmt::format("{}, {}, {}; {}\n", counted(count("jobs"), "job"), counted(count("attempts"), "attempt"),
                  counted(count("failures"), "failure"), share);
  std::vector<std::vector<std::string>> rows{{"LOST BY", "TIME"}};
  for (const Json& one : objects_of(json, "lost"))
    rows.push_back({lost_cause(one), seconds_text(one, "seconds")});
  if (rows.size() > 1) out += table(rows, wants_color());
  for (const auto& [name, words] :
       {std::pair{"detect", "to detect"}, {"decide", "to decide"}, {"again", "to run again"}})
    if (const auto q = json.find(name); q != json.end() && q->is_object() && number_of(*q, "count") > 0)
      out += fmt::format("time {}: {} in the middle, {} at most\n", words, seconds_text(*q, "median_s"),
                         seconds_text(*q, "most_s"));
  return out;
}

std::string job_costs_text(const Json& json, const Zone& zone) {
  std::vector<std::vector<std::string>> rows{
      {"JOB", "LAST", "ATTEMPTS", "FAILURES", "TIME", "EFFECTIVE", "LOST", "MOST OF IT BY"}};
  for (const Json& job : objects_of(json, "items")) {
    const std::vector<Json> lost = objects_of(job, "lost");
    double all = 0;
    for (const Json& one : lost) all += number_of(one, "seconds");
    const auto most = std::max_element(lost.begin(), lost.end(), [](const Json& a, const Json& b) {
      return number_of(a, "seconds") < number_of(b, "seconds");
    });
    rows.push_back(
        {text_field(job, "job"), time_field(job, "last_ns", zone), text_field(job, "attempts"),
         text_field(job, "failures"), seconds_text(job, "wall_s"),
         number_of(job, "wall_s") > 0 ? fmt::format("{:.1f} %", 100 * number_of(job, "ettr")) : "-",
         lost.empty() ? "-" : shown_span(all), most == lost.end() ? "-" : lost_cause(*most)});
  }
  if (rows.size() == 1) return "the controller knows no attempt of a job\n";
  return table(rows, wants_color()) + "\n" + cost_text(json);
}

}  // namespace culprit::cli
