#include "app/run/attempt_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/run/attempt_json.h"
#include "app/run/launch.h"
#include "app/run/record_fields.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using json = nlohmann::json;

// Members learn of their command's end, and write of it, at times that differ by less.
constexpr TimeNs kClearlyBefore = kNsPerSecond;
constexpr TimeNs kLongestDecider = 10 * kNsPerSecond;  // a beat each second, seen by NFS within five
json number_or_null(std::optional<int64_t> n) { return n ? json(*n) : json(nullptr); }

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// What the attempt's line does not have.
json json_of(const recover::Failure& f) {
  return {{"sure", f.advice.sure},
          {"first_to_fail", f.first_to_fail},
          {"iteration", number_or_null(f.iteration)}};
}

void read(Fields& f, recover::Failure& out) {
  f.boolean("sure", out.advice.sure);
  f.text("first_to_fail", out.first_to_fail);
  f.optional("iteration", out.iteration);
}

json json_of(const recover::Decision& d) {
  return {{"again", d.again},     {"wait_ns", d.wait_ns}, {"probe", d.probe},
          {"older", d.older},     {"hosts", d.hosts},     {"why", d.why},
          {"devices", d.devices}, {"code", d.code},       {"revision", d.revision}};
}

void read(Fields& f, recover::Decision& out) {
  f.boolean("again", out.again);
  f.number("wait_ns", out.wait_ns, 0, 24 * 3600 * kNsPerSecond);
  f.boolean("probe", out.probe);
  f.boolean("older", out.older);
  f.hosts("hosts", out.hosts);
  f.text("why", out.why);
  f.texts("devices", out.devices);
  f.number("code", out.code, 0, 255);
  f.text("revision", out.revision);
}

json json_of(const AttemptPlan& p) {
  return {{"attempt", p.attempt}, {"left", p.left},        {"hosts", p.hosts},
          {"port", p.port},       {"resume", p.resume},    {"resume_step", number_or_null(p.resume_step)},
          {"without", p.without}, {"revision", p.revision}};
}

void read(Fields& f, AttemptPlan& out) {
  f.number("attempt", out.attempt, 0, UINT32_MAX);
  f.number("left", out.left, 0, UINT32_MAX);
  f.hosts("hosts", out.hosts);
  f.number("port", out.port, 0, UINT16_MAX);
  f.text("resume", out.resume);
  f.optional("resume_step", out.resume_step);
  f.texts("without", out.without);
  f.text("revision", out.revision);
}

json json_of(const VisibleGpus& gpus) {
  json list = json::array();
  for (const Gpu& gpu : gpus.gpus)
    list.push_back({{"uuid", gpu.uuid}, {"address", gpu.address}, {"model", gpu.model}});
  return {{"variable", gpus.variable}, {"numbered", gpus.numbered}, {"list", std::move(list)}};
}

void read(Fields& f, VisibleGpus& out) {
  f.text("variable", out.variable);
  f.boolean("numbered", out.numbered);
  f.objects("list", kGpusMost, [&](Fields& one) {
    Gpu& gpu = out.gpus.emplace_back();
    one.text("uuid", gpu.uuid);
    one.text("address", gpu.address);
    one.text("model", gpu.model);
  });
}

json json_of(const std::vector<ProbeTarget>& services) {
  json out = json::array();
  for (size_t i = 0; i < services.size() && i < kServicesMost; ++i)
    out.push_back({{"host", services[i].host}, {"port", services[i].port}, {"path", services[i].path}});
  return out;
}

std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

}  // namespace

std::optional<uint32_t> AttemptPlan::rank_of(std::string_view host) const {
  const auto at = std::ranges::find(hosts, host);
  return at == hosts.end() ? std::nullopt : std::optional(static_cast<uint32_t>(at - hosts.begin()));
}

std::string to_json(const MemberRecord& r) {
  return text_of({{"host", r.host},
                  {"member", r.member},
                  {"port", r.port},
                  {"spare", r.spare},
                  {"status", r.status},
                  {"interrupted", r.interrupted},
                  {"ended_by_us", r.ended_by_us},
                  {"stuck", r.stuck},
                  {"begin_ns", r.begin_ns},
                  {"end_ns", r.end_ns},
                  {"age_ns", r.age_ns},
                  {"gpus", json_of(r.gpus)}});
}

Result<MemberRecord> member_record(std::string_view text) {
  const json object = parse_json(text);
  Fields f(object);
  MemberRecord out;
  f.host("host", out.host);
  f.number("member", out.member, 0, UINT32_MAX);
  f.number("port", out.port, 0, UINT16_MAX);
  f.boolean("spare", out.spare);
  f.number("status", out.status, 0, 255);
  f.boolean("interrupted", out.interrupted);
  f.boolean("ended_by_us", out.ended_by_us);
  f.text("stuck", out.stuck);
  f.time("begin_ns", out.begin_ns);
  f.time("end_ns", out.end_ns);
  f.number("age_ns", out.age_ns, 0, 24 * 3600 * kNsPerSecond);
  if (object.is_object() && object.contains("gpus")) {
    const json gpus = f.object("gpus");
    Fields of_gpus(gpus);
    read(of_gpus, out.gpus);
    f.join(of_gpus);
  }
  if (Status read = f.result(); !read) return tl::unexpected(read.error());
  return out;
}

std::string to_json(const AgreedDecision& d) {
  json out = json::parse(ledger_line(d.attempt));
  out["by"] = d.by;
  out["failure"] = json_of(d.attempt.failure);
  out["decision"] = json_of(d.attempt.decision);
  out["absent"] = d.absent;
  out["interrupted"] = d.interrupted;
  out["next"] = json_of(d.next);
  out["services"] = json_of(d.services);
  return text_of(out);
}

Result<AgreedDecision> agreed_decision(std::string_view text) {
  const json object = parse_json(text);
  Fields f(object);
  AgreedDecision out;
  Attempt& a = out.attempt;
  read_attempt(f, a);
  f.host("by", out.by);
  f.hosts("absent", out.absent);
  f.boolean("interrupted", out.interrupted);
  f.objects("services", kServicesMost, [&](Fields& one) {
    ProbeTarget& service = out.services.emplace_back();
    one.text("host", service.host);
    one.number("port", service.port, 0, UINT16_MAX);
    one.text("path", service.path);
  });
  const json failure = f.object("failure"), decision = f.object("decision"), next = f.object("next");
  Fields of_failure(failure), of_decision(decision), of_next(next);
  read(of_failure, a.failure);
  a.decision = {};
  read(of_decision, a.decision);
  read(of_next, out.next);
  for (const Fields* inner : {&of_failure, &of_decision, &of_next}) f.join(*inner);
  if (a.decision.again && out.next.hosts.empty()) f.refuse("next");
  if (Status read = f.result(); !read) return tl::unexpected(read.error());
  return out;
}

std::vector<std::string> first_hosts(const std::map<std::string, MemberRecord>& joined, uint32_t nodes) {
  std::vector<const MemberRecord*> order;
  for (const auto& [host, record] : joined) order.push_back(&record);
  std::ranges::sort(order, [](const MemberRecord* a, const MemberRecord* b) {
    if (a->member != b->member) return a->member < b->member;
    return natural_less(a->host, b->host);
  });
  std::vector<std::string> out;
  for (size_t i = 0; i < order.size() && i < nodes; ++i) out.push_back(order[i]->host);
  return out;
}

std::optional<std::vector<std::string>> next_hosts(const std::vector<std::string>& hosts,
                                                   const std::set<std::string>& without,
                                                   const std::vector<std::string>& spares) {
  std::vector<std::string> out = hosts;
  size_t used = 0;
  for (std::string& host : out) {
    if (!without.contains(host)) continue;
    while (used < spares.size() && without.contains(spares[used])) ++used;
    if (used == spares.size()) return std::nullopt;
    host = spares[used++];
  }
  return out;
}

void name_members(RestartAdvice& advice, const std::vector<std::string>& hosts) {
  std::vector<std::string> out;
  for (const std::string& name : advice.hosts) {
    auto at = std::ranges::find(hosts, name);
    if (at == hosts.end())
      at = std::ranges::find_if(hosts,
                                [&](const std::string& h) { return short_name(h) == short_name(name); });
    if (at != hosts.end() && std::ranges::find(out, *at) == out.end()) out.push_back(*at);
  }
  // Without a host of the attempt there is nothing to leave out.
  if (out.empty()) advice.devices.clear();
  advice.hosts = std::move(out);
}

TimeNs comparable_end(const MemberRecord& end) {
  return end.shared_end_ns != kNoTime ? end.shared_end_ns : end.end_ns;
}

std::string first_to_fail(const std::map<std::string, MemberRecord>& ends) {
  std::vector<std::tuple<TimeNs, std::string>> failed;
  for (const auto& [host, end] : ends)
    if (!end.spare && end.status != 0 && !end.ended_by_us && comparable_end(end) != kNoTime)
      failed.emplace_back(comparable_end(end), host);
  if (failed.empty()) return "";
  std::ranges::sort(failed);
  const auto& [first, host] = failed.front();
  return failed.size() == 1 || std::get<0>(failed[1]) - first >= kClearlyBefore ? host : "";
}

Patience::Patience(TimeNs ends)
    : stop_ns(ends / 4),
      ends_ns(ends),
      late_ns(2 * ends),
      decider_ns(std::min(ends / 2, kLongestDecider)),
      answers_ns(std::min(ends / 4, 2 * kNsPerSecond)),
      turn_ns(ends / 6),
      ready_ns(ends + ends / 2),
      decision_ns(3 * ends) {}

bool has_failure(const AttemptView& view) {
  return !view.lost.empty() || std::ranges::any_of(view.ends, [](const auto& one) {
    return one.second.status != 0 || !one.second.stuck.empty();
  });
}

bool all_ended(const AttemptView& view) {
  return std::ranges::all_of(view.hosts, [&](const std::string& host) {
    return view.ends.contains(host) || view.lost.contains(host);
  });
}

TimeNs since_due(const AttemptView& view, const Patience& patience) {
  TimeNs out = kNoTime;
  const bool slow = std::ranges::any_of(view.hosts, [&](const std::string& host) {
    return view.alive.contains(host) && !view.ends.contains(host);
  });
  const TimeNs ends = slow ? patience.late_ns : patience.ends_ns;
  if (view.since_failure != kNoTime && view.since_failure >= ends) out = view.since_failure - ends;
  if (view.since_ends == kNoTime) return out;
  const auto answers = static_cast<uint32_t>(
      std::ranges::count_if(view.ends, [](const auto& one) { return one.second.spare; }));
  // Spares matter only after a failure.
  const bool answered = !has_failure(view) || answers >= view.spares;
  // Hosts that seem lost all at once may be back in a moment, as after a file server's pause.
  if (!view.lost.empty() && view.since_failure < patience.stop_ns) return out;
  if (answered) return std::max(out, view.since_ends);
  if (view.since_ends >= patience.answers_ns) return std::max(out, view.since_ends - patience.answers_ns);
  return out;
}

WaitStep wait_step(const AttemptView& view, const Patience& patience, size_t turn) {
  TimeNs due = since_due(view, patience);
  if (due != kNoTime && view.deciding) return WaitStep::kWait;
  if (due != kNoTime) {
    if (view.since_deciding != kNoTime) due = std::min(due, view.since_deciding);
    if (due >= patience.decision_ns) return WaitStep::kGiveUp;
    return due >= static_cast<TimeNs>(turn) * patience.turn_ns ? WaitStep::kDecide : WaitStep::kWait;
  }
  const bool late = view.since_failure != kNoTime && view.since_failure >= patience.stop_ns;
  return late && !all_ended(view) ? WaitStep::kStop : WaitStep::kWait;
}

}  // namespace culprit::app
