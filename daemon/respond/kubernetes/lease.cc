#include "respond/kubernetes/lease.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit::respond::kubernetes {
namespace {

constexpr std::string_view kLeases = "/apis/coordination.k8s.io/v1/namespaces";

}  // namespace

std::string Lease::body(const Json* known, bool taken, TimeNs wall) const {
  Json out = known ? *known : Json::object();
  out["apiVersion"] = "coordination.k8s.io/v1";
  out["kind"] = "Lease";
  if (!known) out["metadata"] = {{"name", name_.name}, {"namespace", name_.space}};
  const std::string now = time_text(wall, true);
  Json spec = member(out, {"spec"}).is_object() ? member(out, {"spec"}) : Json::object();
  const Json& before = member(spec, {"leaseTransitions"});
  const int64_t transitions = before.is_number_integer() ? before.get<int64_t>() : 0;
  spec["holderIdentity"] = name_.holder;
  spec["leaseDurationSeconds"] = std::max<int64_t>(1, name_.duration_ns / kNsPerSecond);
  spec["renewTime"] = now;
  if (taken) spec["acquireTime"] = now;
  spec["leaseTransitions"] = transitions + (taken && known ? 1 : 0);
  out["spec"] = std::move(spec);
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Lease::State Lease::troubled(std::string why, TimeNs now) const {
  State out;
  out.held = renewed_ns_ != kNoTime && now - renewed_ns_ < name_.duration_ns;
  out.trouble = std::move(why);
  return out;
}

Lease::State Lease::answered(const ApiAnswer& answer, Pace& pace, TimeNs asked) {
  if (answer.status == 200 || answer.status == 201) {
    renewed_ns_ = asked;
    return {true, name_.holder, {}};
  }
  if (answer.status == 409) {  // another writer was first
    renewed_ns_ = kNoTime;
    return {false, {}, message_of(answer)};
  }
  return troubled(message_of(answer), pace.now());
}

Lease::State Lease::hold(Pace& pace) {
  const std::string all = fmt::format("{}/{}/leases", kLeases, escaped(name_.space));
  const std::string one = fmt::format("{}/{}", all, escaped(name_.name));
  const TimeNs asked = pace.now();
  const ApiAnswer read = call_({"GET", one}, pace);
  if (read.status == 404)
    return answered(call_({"POST", all, "application/json", body(nullptr, true, pace.wall())}, pace), pace,
                    asked);
  if (read.status != 200) return troubled(message_of(read), pace.now());
  const Json lease = Json::parse(read.body, nullptr, false);
  if (!lease.is_object()) return troubled("the answer is no lease", pace.now());
  const std::string holder = text_of(lease, {"spec", "holderIdentity"});
  const bool ours = holder == name_.holder;
  if (!ours && !holder.empty()) {
    const std::string seen = fmt::format("{} {}", holder, text_of(lease, {"spec", "renewTime"}));
    if (seen != seen_) seen_ = seen, seen_since_ns_ = asked;
    const Json& seconds = member(lease, {"spec", "leaseDurationSeconds"});
    const TimeNs duration =
        std::clamp<int64_t>(seconds.is_number_integer() ? seconds.get<int64_t>() : 1, 1, 3600) * kNsPerSecond;
    renewed_ns_ = kNoTime;
    if (asked - seen_since_ns_ < duration) return {false, holder, {}};
  }
  return answered(call_({"PUT", one, "application/json", body(&lease, !ours, pace.wall())}, pace), pace,
                  asked);
}

}  // namespace culprit::respond::kubernetes
