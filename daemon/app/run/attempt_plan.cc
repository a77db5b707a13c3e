#include "app/run/attempt_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/run/launch.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using json = nlohmann::json;

// Members learn of their command's end, and write of it, at times that differ by less.
constexpr TimeNs kClearlyBefore = kNsPerSecond;
constexpr TimeNs kLongestDecider = 10 * kNsPerSecond;  // a beat each second, seen by NFS within five
constexpr size_t kRecordTextBytes = 64 * 1024;
constexpr Restart kRestarts[] = {Restart::kNever,     Restart::kSame,  Restart::kLater,
                                 Restart::kElsewhere, Restart::kOlder, Restart::kUnknown};

json number_or_null(std::optional<int64_t> n) { return n ? json(*n) : json(nullptr); }

std::string text_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

// Reads fields of one object; remembers the first wrong one.
class Fields {
 public:
  explicit Fields(const json& object) : object_(object) {
    if (!object.is_object()) wrong_ = "no object";
  }

  template <class T>
  void number(const char* name, T& out, int64_t least, int64_t most) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_number_integer()) return refuse(name);
    const auto n = value->get<int64_t>();
    if (n < least || n > most) return refuse(name);
    out = static_cast<T>(n);
  }
  void time(const char* name, TimeNs& out) { number(name, out, INT64_MIN, INT64_MAX); }
  void optional(const char* name, std::optional<int64_t>& out) {
    const json* value = find(name);
    if (!value || value->is_null()) return;
    if (!value->is_number_integer()) return refuse(name);
    out = value->get<int64_t>();
  }
  void share(const char* name, std::optional<double>& out) {
    const json* value = find(name);
    if (!value || value->is_null()) return;
    if (!value->is_number() || value->get<double>() < 0 || value->get<double>() > 1) return refuse(name);
    out = value->get<double>();
  }
  void boolean(const char* name, bool& out) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_boolean()) return refuse(name);
    out = value->get<bool>();
  }
  void text(const char* name, std::string& out, size_t most = kRecordTextBytes) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_string() || value->get_ref<const std::string&>().size() > most) return refuse(name);
    out = value->get<std::string>();
  }
  void texts(const char* name, std::vector<std::string>& out) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_array() || value->size() > kHostsMost) return refuse(name);
    for (const json& one : *value) {
      if (!one.is_string() || one.get_ref<const std::string&>().size() > kRecordTextBytes)
        return refuse(name);
      out.push_back(one.get<std::string>());
    }
  }
  void host(const char* name, std::string& out) {
    text(name, out);
    if (!check_run_name(out).empty()) refuse(name);
  }
  void hosts(const char* name, std::vector<std::string>& out) {
    texts(name, out);
    for (const std::string& host : out)
      if (!check_run_name(host).empty()) refuse(name);
    if (std::set<std::string>(out.begin(), out.end()).size() != out.size()) refuse(name);
  }
  // Calls `each` with every object of a list, which may be absent.
  template <class Each>
  void objects(const char* name, size_t most, Each each) {
    const json* value = find(name);
    if (!value) return;
    if (!value->is_array() || value->size() > most) return refuse(name);
    for (const json& one : *value) {
      Fields inner(one);
      each(inner);
      join(inner);
    }
  }
  json object(const char* name) {
    const json* value = find(name);
    if (value && value->is_object()) return *value;
    refuse(name);
    return json::object();
  }
  void join(const Fields& inner) {
    if (wrong_.empty()) wrong_ = inner.wrong_;
  }
  void refuse(const char* name) {
    if (wrong_.empty()) wrong_ = std::string(name) + " is not valid";
  }
  Status result() const { return wrong_.empty() ? Status() : fail(ErrorCode::kInvalid, wrong_); }

 private:
  const json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto at = object_.find(name);
    return at == object_.end() ? nullptr : &*at;
  }

  const json& object_;
  std::string wrong_;
};

json json_of(const recover::Failure& f) {
  return {{"root", f.root},
          {"restart", std::string(to_string(f.advice.kind))},
          {"sure", f.advice.sure},
          {"hosts", f.advice.hosts},
          {"devices", f.advice.devices},
          {"hang", f.hang},
          {"preempted", f.preempted},
          {"ran_on", f.ran_on},
          {"first_to_fail", f.first_to_fail},
          {"progress", static_cast<int>(f.progress)},
          {"iteration", number_or_null(f.iteration)},
          {"begin_ns", f.begin_ns},
          {"end_ns", f.end_ns}};
}

void read(Fields& f, recover::Failure& out) {
  std::string restart;
  f.text("root", out.root);
  f.text("restart", restart);
  for (const Restart kind : kRestarts)
    if (to_string(kind) == restart) out.advice.kind = kind;
  f.boolean("sure", out.advice.sure);
  f.hosts("hosts", out.advice.hosts);
  f.texts("devices", out.advice.devices);
  f.boolean("hang", out.hang);
  f.boolean("preempted", out.preempted);
  f.hosts("ran_on", out.ran_on);
  f.text("first_to_fail", out.first_to_fail);
  f.number("progress", out.progress, 0, static_cast<int>(recover::Progress::kUnknown));
  f.optional("iteration", out.iteration);
  f.time("begin_ns", out.begin_ns);
  f.time("end_ns", out.end_ns);
}

json json_of(const recover::Decision& d) {
  return {{"again", d.again}, {"wait_ns", d.wait_ns}, {"probe", d.probe},     {"older", d.older},
          {"hosts", d.hosts}, {"why", d.why},         {"devices", d.devices}, {"code", d.code}};
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
}

json json_of(const AttemptPlan& p) {
  return {{"attempt", p.attempt}, {"left", p.left},
          {"hosts", p.hosts},     {"port", p.port},
          {"resume", p.resume},   {"resume_step", number_or_null(p.resume_step)},
          {"without", p.without}};
}

void read(Fields& f, AttemptPlan& out) {
  f.number("attempt", out.attempt, 0, UINT32_MAX);
  f.number("left", out.left, 0, UINT32_MAX);
  f.hosts("hosts", out.hosts);
  f.number("port", out.port, 0, UINT16_MAX);
  f.text("resume", out.resume);
  f.optional("resume_step", out.resume_step);
  f.texts("without", out.without);
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
  const Attempt& a = d.attempt;
  return text_of({{"by", d.by},
                  {"attempt", a.number},
                  {"begin_ns", a.begin_ns},
                  {"end_ns", a.end_ns},
                  {"status", a.status},
                  {"headline", a.headline},
                  {"confidence", a.confidence ? json(*a.confidence) : json(nullptr)},
                  {"lost_ns", a.lost_ns},
                  {"leaves_out", a.leaves_out},
                  {"without", a.without},
                  {"resume", a.resume},
                  {"from", number_or_null(a.from)},
                  {"to", number_or_null(a.to)},
                  {"failure", json_of(a.failure)},
                  {"decision", json_of(a.decision)},
                  {"absent", d.absent},
                  {"interrupted", d.interrupted},
                  {"next", json_of(d.next)},
                  {"services", json_of(d.services)}});
}

Result<AgreedDecision> agreed_decision(std::string_view text) {
  const json object = parse_json(text);
  Fields f(object);
  AgreedDecision out;
  Attempt& a = out.attempt;
  f.host("by", out.by);
  f.number("attempt", a.number, 0, UINT32_MAX);
  f.time("begin_ns", a.begin_ns);
  f.time("end_ns", a.end_ns);
  f.number("status", a.status, 0, 255);
  f.text("headline", a.headline);
  f.share("confidence", a.confidence);
  f.time("lost_ns", a.lost_ns);
  f.hosts("leaves_out", a.leaves_out);
  f.text("resume", a.resume);
  f.optional("from", a.from);
  f.optional("to", a.to);
  f.hosts("absent", out.absent);
  f.boolean("interrupted", out.interrupted);
  f.texts("without", a.without);
  f.objects("services", kServicesMost, [&](Fields& one) {
    ProbeTarget& service = out.services.emplace_back();
    one.text("host", service.host);
    one.number("port", service.port, 0, UINT16_MAX);
    one.text("path", service.path);
  });
  const json failure = f.object("failure"), decision = f.object("decision"), next = f.object("next");
  Fields of_failure(failure), of_decision(decision), of_next(next);
  read(of_failure, a.failure);
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
