#include "net_health/watch.h"

#include <algorithm>
#include <cmath>

#include "common/files.h"

namespace net {
namespace {

using health::Count;
using health::format;
using health::Seen;
using health::Subject;

constexpr int64_t kFlapWindowNs = 10 * health::kMinute;
constexpr size_t kOutagesMax = 256;

const std::string* find(const Reading& reading, const std::string& name) {
  const auto found = reading.find(name);
  return found == reading.end() ? nullptr : &found->second;
}

std::optional<uint64_t> count(const Reading& reading, const std::string& name) {
  const std::string* text = find(reading, name);
  return text ? health::number(*text) : std::nullopt;
}

double value(const Reading& reading, const std::string& name) {
  const std::string* text = find(reading, name);
  return text ? health::real(*text).value_or(0) : 0;
}

}  // namespace

double nccl_timeout_s(int timeout, int retries) {
  if (timeout <= 0 || timeout >= 32) return INFINITY;  // as its user guide says
  return 4.096e-6 * std::pow(2, timeout) * retries;
}

void Watch::rdma(const std::string& device, const Reading& reading, bool counters, int64_t now_ns) {
  bool any = false;
  for (const auto& [name, state] : reading) {
    const size_t slash = name.find("/state");
    if (slash == std::string::npos) continue;
    any = true;
    const std::string number = name.substr(0, slash), port_name = device + "/" + number;
    Port& port = ports_[port_name];
    port.rdma = true;
    if (port.counts.empty()) {
      for (const Threshold& threshold : kThresholds) port.counts.emplace_back(threshold.window_ns);
    }
    link(port_name, port, state.find("ACTIVE") != std::string::npos, now_ns);
    if (const auto downed = count(reading, number + "/link_downed")) {
      flaps(port_name, port, *downed, now_ns);
    } else {
      flaps(port_name, port, 0, now_ns);
    }
    speed(port_name, port, value(reading, number + "/rate"));
    for (size_t i = 0; counters && i < kThresholdCount; ++i) {
      const auto errors_now = count(reading, number + "/" + kThresholds[i].file);
      if (errors_now) errors(port_name, port, kThresholds[i], *errors_now, now_ns);
    }
  }
  const auto known = ports_.lower_bound(device + "/");
  const bool was = known != ports_.end() && known->first.compare(0, device.size() + 1, device + "/") == 0;
  if (!was) return;
  report_.state(kExited, Subject{device}, !any, [&] {
    return Seen{device + (any ? ": is there again" : ": has no ports in sysfs any more"), {}};
  });
}

void Watch::interface(const std::string& name, const Reading& reading, int64_t now_ns) {
  const std::string* state = find(reading, "operstate");
  const auto known = ports_.find(name);
  if (known != ports_.end()) {
    report_.state(kExited, Subject{name}, !state, [&] {
      return Seen{name + (state ? ": is there again" : ": is not in sysfs any more"), {}};
    });
  }
  if (!state) return;
  Port& port = ports_[name];
  if (port.counts.empty()) {
    for (const Threshold& threshold : kThresholds) port.counts.emplace_back(threshold.window_ns);
  }
  link(name, port, *state == "up", now_ns);
  // Each flap is two changes.
  flaps(name, port, count(reading, "carrier_changes").value_or(0) / 2, now_ns);
  speed(name, port, value(reading, "speed") / 1000);
  for (const Threshold& threshold : kThresholds) {
    if (threshold.place != Place::kInterface) continue;
    if (const auto errors_now = count(reading, threshold.file))
      errors(name, port, threshold, *errors_now, now_ns);
  }
}

void Watch::link(const std::string& name, Port& port, bool up, int64_t now_ns) {
  port.up = up;
  if (up && port.down_ns != 0) {
    if (port.outages.size() < kOutagesMax) port.outages.emplace_back(port.down_ns, now_ns);
    port.down_ns = 0;
  }
  if (up) port.seen_up = true;
  if (!up && port.seen_up && port.down_ns == 0) port.down_ns = now_ns;
  while (!port.outages.empty() && port.outages.front().second < now_ns - kFlapWindowNs) {
    port.outages.pop_front();
  }
  // A port that was never up is one without a cable.
  report_.state(kLinkDown, Subject{name}, port.down_ns != 0, [&] {
    return Seen{name + (up ? ": is up again" : ": is down"), {{"down_s", down_s(port, now_ns)}}};
  });
}

double Watch::down_s(const Port& port, int64_t now_ns) const {
  int64_t sum_ns = port.down_ns != 0 ? now_ns - port.down_ns : 0;
  for (const auto& [begin, end] : port.outages) sum_ns += end - std::max(begin, now_ns - kFlapWindowNs);
  return double(sum_ns) * 1e-9;
}

void Watch::flaps(const std::string& name, Port& port, uint64_t changes, int64_t now_ns) {
  port.changes.look(changes, now_ns);
  // The counter sees flaps between two looks, the looks also those of ports without a counter.
  const double flaps = std::max(port.changes.recent(now_ns), double(port.outages.size()));
  const double down = down_s(port, now_ns), limit = nccl_timeout_s(timeout_, retries_);
  const auto seen = [&] {
    std::string text = name + format(": %.0f flaps and %.0f s down within 10 minutes", flaps, down);
    if (port.rdma) {
      text += format("; NCCL retries for %.0f s (NCCL_IB_TIMEOUT %d, NCCL_IB_RETRY_CNT %d)", limit, timeout_,
                     retries_);
    }
    return Seen{text, {{"flaps", flaps}, {"down_s", down}, {"nccl_timeout_s", limit}}};
  };
  const bool quiet = flaps < (report_.raised(kLinkFlap, Subject{name}) ? 0.5 : 1);
  report_.state(kLinkFlap, Subject{name}, !quiet, seen);
  // TCP has other timers: this is about RDMA.
  if (port.rdma) report_.state(kOutage, Subject{name}, down > limit, seen);
}

void Watch::speed(const std::string& name, Port& port, double now) {
  if (!port.up || now <= 0) return;
  port.speed = now;
  port.speed_best = std::max(port.speed_best, now);
  const bool slower = now < port.speed_best;
  report_.state(kSlower, Subject{name}, slower, [&] {
    return Seen{name + format(": %g Gb/s, it had %g Gb/s", now, port.speed_best),
                {{"gbit_s", now}, {"best_gbit_s", port.speed_best}}};
  });
}

void Watch::compare() {
  for (auto& [name, port] : ports_) {
    if (!port.rdma || !port.up || port.speed <= 0) continue;
    const std::string family = name.substr(0, name.find_first_of("0123456789"));
    double most = 0;
    int peers = 0, same = 0;
    for (const auto& [other_name, other] : ports_) {
      const bool peer = other_name != name && other.rdma && other.up && other.speed > 0 &&
                        other_name.compare(0, family.size(), family) == 0;
      if (!peer) continue;
      ++peers;
      same += other.speed == most || most == 0;
      most = std::max(most, other.speed);
    }
    // Only if all others agree: hosts with ports of several speeds are common.
    if (peers >= 3 && same == peers && port.speed < most) port.speed_best = std::max(port.speed_best, most);
  }
}

void Watch::errors(const std::string& name, Port& port, const Threshold& threshold, uint64_t value_now,
                   int64_t now_ns) {
  Count& errors = port.counts[size_t(&threshold - kThresholds)];
  errors.look(value_now, now_ns);
  const double recent = errors.recent(now_ns);
  const Subject subject{name};
  const double limit = threshold.limit * (report_.raised(threshold.kind, subject) ? 0.25 : 1);
  report_.state(threshold.kind, subject, recent >= limit, [&] {
    const char* window = threshold.window_ns == health::kHour ? "hour" : "minute";
    return Seen{name + format(": %s grew by %.0f within the last %s (limit %.0f)", threshold.file, recent,
                              window, threshold.limit),
                {{"growth", recent}, {"limit", threshold.limit}}};
  });
}

void Watch::pci(const Reading& reading, int64_t now_ns) {
  for (const auto& [name, what] : reading) {
    const size_t slash = name.find("/what");
    if (slash == std::string::npos) continue;
    const std::string device = name.substr(0, slash);
    lanes(device, reading);
    aer(device, reading, now_ns);
  }
}

void Watch::lanes(const std::string& device, const Reading& reading) {
  const std::string what = *find(reading, device + "/what");
  const Subject subject{device};
  const double width = value(reading, device + "/width"), width_max = value(reading, device + "/width_max");
  const bool known = width > 0 && width <= 32 && width_max > 0;  // else it sleeps
  if (known) {
    report_.state(kWidth, subject, width < width_max, [&] {
      return Seen{what + " " + device + format(": x%g of x%g", width, width_max),
                  {{"width", width}, {"width_max", width_max}}};
    });
  }
  // An idle GPU or disk lowers its speed to save power; an adapter does not.
  if (!known || what != "network adapter") return;
  const double speed = value(reading, device + "/speed"), speed_max = value(reading, device + "/speed_max");
  if (speed <= 0 || speed_max <= 0) return;
  report_.state(kSpeed, subject, speed < speed_max, [&] {
    return Seen{what + " " + device + format(": %g of %g GT/s", speed, speed_max),
                {{"gt_s", speed}, {"gt_s_max", speed_max}}};
  });
}

void Watch::aer(const std::string& device, const Reading& reading, int64_t now_ns) {
  Pci& pci = pci_[device];
  const std::string what = *find(reading, device + "/what") + " " + device;
  const Subject subject{device};
  const auto grown = [&](Count& counter, const char* name) {
    const auto total = count(reading, device + name);
    return total ? counter.look(*total, now_ns) : 0;
  };
  if (const uint64_t errors = grown(pci.fatal, "/fatal")) {
    report_.happened(
        kAerFatal, subject,
        {what + format(": %llu fatal errors", (unsigned long long)errors), {{"errors", double(errors)}}});
  }
  if (const uint64_t errors = grown(pci.nonfatal, "/nonfatal")) {
    report_.happened(
        kAerNonFatal, subject,
        {what + format(": %llu errors", (unsigned long long)errors), {{"errors", double(errors)}}});
  }
  grown(pci.correctable, "/correctable");
  const double recent = pci.correctable.recent(now_ns);
  const double limit = kAerCorrectedPerMinute * (report_.raised(kAerCorrected, subject) ? 0.25 : 1);
  report_.state(kAerCorrected, subject, recent >= limit, [&] {
    return Seen{what + format(": %.0f corrected errors within a minute", recent),
                {{"errors_per_minute", recent}}};
  });
}

void Watch::hangs(const std::string& device, bool bad, double waited_s) {
  report_.state(kQueryHangs, Subject{device}, bad, [&] {
    return Seen{
        bad ? device + format(": sysfs gave no answer for %.0f s", waited_s) : device + ": answers again",
        {{"waited_s", waited_s}}};
  });
}

}  // namespace net
