#include "core/detect/numerics/align.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

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

struct Votes {
  std::map<std::string, size_t> of;  // by digest
  size_t all = 0;

  // The digest of more than half; empty: none.
  std::string majority() const {
    for (const auto& [digest, count] : of)
      if (all >= kPeers && 2 * count > all) return digest;
    return {};
  }
};

// By class.
template <class Rows>
std::map<std::string, Votes> votes_of(const Rows& rows) {
  std::map<std::string, Votes> out;
  for (const auto& [key, row] : rows)
    if (row.stable && !row.digest.empty()) ++out[row.kind].of[row.digest], ++out[row.kind].all;
  return out;
}

}  // namespace

bool Alignment::add(const LoopEvent& event) {
  if (event.name != "align") return false;
  const auto device = text_in(field_of(event, "at"));
  const auto kind = text_in(field_of(event, "class"));
  if (event.host.empty() || !device || !kind) return ++unread_, true;
  const std::pair key(std::string(event.host), *device);
  if (!rows_.contains(key) && rows_.size() >= kDevices) return ++dropped_, true;
  Row& row = rows_[key];
  row.kind = *kind;
  row.digest = text_in(field_of(event, "digest")).value_or("");
  row.stable = field_of(event, "stable") != "false";
  row.time_ns = event.time_ns;
  return true;
}

std::vector<std::string> Alignment::open() const {
  std::map<std::string, Votes> votes = votes_of(rows_);
  std::vector<std::string> out;
  for (const auto& [kind, of] : votes) {
    if (of.of.size() < 2 || !of.majority().empty() || out.size() >= kFindings) continue;
    out.push_back(
        fmt::format("which device of {} ({}) computes wrong bits: an equal step gave {} different "
                    "results, and no majority agrees; align three or more",
                    of.all, kind, of.of.size()));
  }
  return out;
}

std::vector<Finding> Alignment::findings() const {
  std::map<std::string, Votes> votes = votes_of(rows_);
  std::vector<Finding> out;
  for (const auto& [key, row] : rows_) {
    std::string why;
    const Votes& peers = votes[row.kind];
    const std::string common = peers.majority();
    if (!row.stable)
      why = fmt::format("{} of {}: equal steps gave different bits", key.second, key.first);
    else if (!row.digest.empty() && !common.empty() && row.digest != common)
      why = fmt::format("{} of {}: an equal step gave other bits than on {} of {} devices ({})", key.second,
                        key.first, peers.of.at(common), peers.all, row.kind);
    if (why.empty() || out.size() >= kFindings) continue;
    Finding& f = out.emplace_back();
    f.detector = DetectorKind::kNumerics;
    f.kind = FindingKind::kFault;
    f.title = "Device computes other bits than its peers";
    f.confidence = row.stable ? kDiffers : kUnstable;
    f.category = Category::kHardware;
    f.component = key.second.starts_with("cpu") ? Component::kCpu : Component::kGpu;
    f.symptom = Symptom::kNumeric;
    f.action = ActionKind::kIsolate;
    f.restart = Restart::kElsewhere;
    f.remedy = "Take the device out, and have it tested: a fixed step gives wrong bits on it.";
    f.first_ns = f.last_ns = row.time_ns;
    f.lines = 1;
    FindingSubject subject;
    subject.host = key.first;
    subject.device = device_number(key.second);
    subject.strength = 2;
    f.subjects.push_back(std::move(subject));
    f.why.push_back(std::move(why));
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
