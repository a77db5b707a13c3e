#include "core/detect/numerics/align.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <set>

#include "base/text.h"

namespace culprit::numerics {
namespace {

constexpr size_t kDevices = 16'384, kFindings = 64;
constexpr size_t kTextBytes = 200;
constexpr size_t kPeers = 3;  // devices of one class that have answered
// A digest that differs from most others' may also have another library behind it.
constexpr double kDiffers = 0.9, kUnstable = 0.95;

// The text of a JSON string without escapes; nothing: another value.
std::optional<std::string> text_in(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.find('\\') != json.npos) return std::nullopt;
  json = json.substr(1, json.size() - 2);
  if (json.empty() || json.size() > kTextBytes) return std::nullopt;
  return std::string(json);
}

std::string_view field_of(const LoopEvent& event, std::string_view name) {
  for (const EventField& f : event.fields)
    if (f.name == name) return f.json;
  return {};
}

// "cuda:3": 3.
std::optional<uint32_t> device_number(const std::string& device) {
  const size_t colon = device.rfind(':');
  if (colon == device.npos) return std::nullopt;
  uint32_t out = 0;
  const char* end = device.data() + device.size();
  const auto [at, error] = std::from_chars(device.data() + colon + 1, end, out);
  return error == std::errc() && at == end ? std::optional(out) : std::nullopt;
}

// What the devices of one class answered.
struct ClassVotes {
  struct Side {
    size_t devices = 0;
    std::set<std::string_view> hosts;
  };
  std::map<std::string_view, Side> of;  // by digest, of devices that agree with themselves
  std::set<std::string_view> hosts;
  size_t all = 0, unstable = 0;

  void add(const AlignedDevice& row) {
    if (row.stable && row.digest.empty()) return;
    ++all;
    hosts.insert(row.host);
    if (!row.stable) return void(++unstable);
    Side& side = of[row.digest];
    ++side.devices;
    side.hosts.insert(row.host);
  }
  // Empty: none.
  std::string_view majority() const {
    for (const auto& [digest, side] : of)
      if (all >= kPeers && 2 * side.devices > all && 2 * side.hosts.size() > hosts.size()) return digest;
    return {};
  }
};

using Votes = std::map<std::string_view, ClassVotes>;  // by class

template <class Rows>
Votes votes_of(const Rows& rows) {
  Votes out;
  for (const auto& [key, row] : rows) out[row.kind].add(row);
  return out;
}

JudgedDevice judged(const AlignedDevice& row, const ClassVotes& peers) {
  JudgedDevice out{row.host, row.device, AlignAnswer::kUnknown, "", row.time_ns, row.stable};
  const std::string_view common = peers.majority();
  const auto because = [&](AlignAnswer answer, std::string why) {
    out.answer = answer;
    out.why = std::move(why);
    return out;
  };
  if (row.stable && row.digest.empty()) return because(AlignAnswer::kUnknown, "it gave no digest");
  if (common.empty())
    return because(AlignAnswer::kUnknown,
                   peers.all < kPeers ? fmt::format("{} of its class answered, and {} are needed ({})",
                                                    counted(peers.all, "device"), kPeers, row.kind)
                                      : fmt::format("no bits are those of most of {} ({})",
                                                    counted(peers.all, "device"), row.kind));
  if (!row.stable) return because(AlignAnswer::kDiffers, "equal steps gave different bits");
  const size_t most = peers.of.at(common).devices;
  if (row.digest == common)
    return because(AlignAnswer::kAgrees,
                   fmt::format("its bits are those of {} of {} devices", most, peers.all));
  const ClassVotes::Side& own = peers.of.at(row.digest);
  std::string why =
      fmt::format("an equal step gave other bits than on {} of {} devices ({})", most, peers.all, row.kind);
  if (own.hosts.size() == 1) return because(AlignAnswer::kDiffers, std::move(why));
  return because(AlignAnswer::kUnknown, why + fmt::format(", the same on {}: another library there?",
                                                          counted(own.hosts.size(), "host")));
}

}  // namespace

bool Alignment::add(const LoopEvent& event) {
  if (event.name != "align") return false;
  const auto device = text_in(field_of(event, "at"));
  const auto kind = text_in(field_of(event, "class"));
  if (event.host.empty() || !device || !kind) return ++unread_, true;
  AlignedDevice row;
  row.host = std::string(event.host);
  row.device = *device;
  row.kind = *kind;
  row.digest = text_in(field_of(event, "digest")).value_or("");
  row.stable = field_of(event, "stable") != "false";
  row.time_ns = event.time_ns;
  add(std::move(row));
  return true;
}

void Alignment::add(AlignedDevice device) {
  std::pair key(device.host, device.device);
  if (!rows_.contains(key) && rows_.size() >= kDevices) return void(++dropped_);
  rows_[std::move(key)] = std::move(device);
}

std::vector<JudgedDevice> Alignment::judge() const {
  const Votes votes = votes_of(rows_);
  std::vector<JudgedDevice> out;
  out.reserve(rows_.size());
  for (const auto& [key, row] : rows_) out.push_back(judged(row, votes.at(row.kind)));
  return out;
}

std::vector<std::string> Alignment::open() const {
  std::vector<std::string> out;
  for (const auto& [kind, peers] : votes_of(rows_)) {
    if (out.size() >= kFindings) break;
    if (peers.of.size() < 2 && peers.unstable == 0) continue;
    const std::string_view common = peers.majority();
    if (common.empty()) {
      out.push_back(fmt::format(
          "which device of {} ({}) computes wrong bits: an equal step gave {}{}, and no "
          "majority agrees; align three or more",
          peers.all, kind, counted(peers.of.size(), "result"),
          peers.unstable == 0 ? ""
                              : fmt::format(", and none twice on {}", counted(peers.unstable, "device"))));
      continue;
    }
    for (const auto& [digest, side] : peers.of)
      if (digest != common && side.hosts.size() > 1 && out.size() < kFindings)
        out.push_back(
            fmt::format("why {} of {} devices ({}) compute the same other bits on {}: another "
                        "library there?",
                        side.devices, peers.all, kind, counted(side.hosts.size(), "host")));
  }
  return out;
}

std::vector<Finding> Alignment::findings() const {
  std::vector<Finding> out;
  for (const JudgedDevice& one : judge()) {
    if (one.answer != AlignAnswer::kDiffers || out.size() >= kFindings) continue;
    Finding& f = out.emplace_back();
    f.detector = DetectorKind::kNumerics;
    f.kind = FindingKind::kFault;
    f.title = "Device computes other bits than its peers";
    f.confidence = one.stable ? kDiffers : kUnstable;
    f.category = Category::kHardware;
    f.component = one.device.starts_with("cpu") ? Component::kCpu : Component::kGpu;
    f.symptom = Symptom::kNumeric;
    f.action = ActionKind::kIsolate;
    f.restart = Restart::kElsewhere;
    f.remedy = "Take the device out, and have it tested: a fixed step gives wrong bits on it.";
    f.first_ns = f.last_ns = one.time_ns;
    f.lines = 1;
    FindingSubject subject;
    subject.host = one.host;
    subject.device = device_number(one.device);
    subject.strength = 2;
    f.subjects.push_back(std::move(subject));
    f.why.push_back(fmt::format("{} of {}: {}", one.device, one.host, one.why));
  }
  return out;
}

std::vector<std::string> Alignment::problems() const {
  std::vector<std::string> out;
  if (unread_ > 0)
    out.push_back(fmt::format("{} rows of an alignment lack a host, 'at' or 'class'", unread_));
  if (dropped_ > 0)
    out.push_back(
        fmt::format("{} devices of an alignment beyond the first {} are left out", dropped_, kDevices));
  return out;
}

}  // namespace culprit::numerics
