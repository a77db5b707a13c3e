#include "app/daemon/alerts/alert_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kNamed = 3;        // places
constexpr size_t kHostsMax = 1024;  // limit of hosts for maintenance windows
constexpr size_t kAlertTextBytes = 1000;
constexpr size_t kReasons = 8;

std::string alert_text(std::string_view text) { return shorten(text, kAlertTextBytes); }

// "GPU 4", "ranks 3, 7 and 9 more".
void add_numbers(const std::vector<uint32_t>& numbers, const char* noun, std::vector<std::string>& out) {
  if (numbers.empty()) return;
  const size_t shown = std::min(numbers.size(), kNamed);
  std::string text =
      fmt::format("{}{} {}", noun, numbers.size() > 1 ? "s" : "",
                  fmt::join(numbers.begin(), numbers.begin() + static_cast<long>(shown), ", "));
  if (numbers.size() > shown) text += fmt::format(" and {} more", numbers.size() - shown);
  out.push_back(std::move(text));
}

std::string place_text(const Suspect& place) {
  std::vector<std::string> parts;
  add_numbers(place.devices, "GPU", parts);
  add_numbers(place.ranks, "rank", parts);
  const std::string host = alert_text(place.host.value_or(""));
  if (parts.empty()) return host;
  const std::string inside = fmt::format("{}", fmt::join(parts, ", "));
  return host.empty() ? inside : fmt::format("{} ({})", host, inside);
}

std::string named_first(const std::vector<std::string>& places) {
  if (places.size() <= kNamed) return fmt::format("{}", fmt::join(places, ", "));
  return fmt::format("{} and {} more", fmt::join(places.begin(), places.begin() + kNamed, ", "),
                     places.size() - kNamed);
}

std::string places_text(const Diagnosis& d) {
  std::vector<std::string> out;
  for (const Suspect& place : d.hosts)
    if (std::string text = place_text(place); !text.empty()) out.push_back(std::move(text));
  for (const Link& link : d.links)
    out.push_back(fmt::format("link {} - {}", alert_text(link.a), alert_text(link.b)));
  return named_first(out);
}

// The places of the evidence, for a fault without an accused host.
std::string seen_text(const Diagnosis& d) {
  std::vector<std::string> places;
  for (const Evidence& e : d.evidence) {
    Suspect at;
    at.host = e.host;
    if (e.rank) at.ranks.push_back(*e.rank);
    if (std::string place = place_text(at);
        !place.empty() && std::ranges::find(places, place) == places.end())
      places.push_back(std::move(place));
  }
  return named_first(places);
}

alert::Fault::Line first_line(const Diagnosis& d) {
  for (const Evidence& e : d.evidence)
    if (!e.file.empty())
      return {alert_text(e.host.value_or("")), alert_text(e.file), alert_text(e.text), e.line.value_or(0)};
  return {};
}

// Whether a line of the kernel, root or a service matched the rule. A user's lines name the user.
bool is_of_host(const Diagnosis& d) {
  return d.rule &&
         std::ranges::any_of(d.evidence, [](const Evidence& e) { return !e.file.empty() && !e.uid; });
}

void add_attempts(const RunVerdict& of_run, alert::Fault& out) {
  if (!of_run.attempts) return;
  const JobAttempts& a = *of_run.attempts;
  const bool runs = a.state == AttemptState::kRuns && of_run.running;  // else it was killed with its job
  out.undecided = runs || a.state == AttemptState::kWell;
  out.failed_attempts = out.undecided ? a.attempt - 1 : a.attempt;
  if (!of_run.next_is_late) out.again = runs_again(a);
}

}  // namespace

alert::Fault fault_of(const RunVerdict& of_run) {
  const Verdict& v = *of_run.verdict;
  const Diagnosis& d = v.diagnosis;
  alert::Fault out;
  out.job = v.job;
  out.run = v.run;
  out.diagnosis = v.id();
  out.source = v.kind;
  out.title = alert_text(d.title);
  out.headline = alert_text(d.headline);
  out.category = to_string(d.category);
  out.component = to_string(d.component);
  out.symptom = to_string(d.symptom);
  out.remedy = alert_text(d.remedy);
  out.confidence = d.confidence;
  out.action = to_string(d.action.kind);
  for (const std::string& target : d.action.targets)
    if (out.targets.size() < kHostsMax) out.targets.push_back(target);
  for (const Suspect& place : d.hosts)
    if (std::string host = alert_text(place.host.value_or(""));
        !host.empty() && out.hosts.size() < kHostsMax &&
        std::ranges::find(out.hosts, host) == out.hosts.end())
      out.hosts.push_back(std::move(host));
  for (const std::string& why : d.why)
    if (out.why.size() < kReasons) out.why.push_back(alert_text(why));
  out.vouched = v.has_proof();
  out.of_host = out.vouched && is_of_host(d);
  out.place = places_text(d);
  out.seen = seen_text(d);
  out.line = first_line(d);
  out.owner = of_run.owner;
  out.user = of_run.user;
  add_attempts(of_run, out);
  return out;
}

}  // namespace culprit::app
