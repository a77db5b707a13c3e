#include "core/fuse/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "base/text.h"

namespace culprit::core::fuse {
namespace {

constexpr size_t kSteps = 500;        // a longer trace explains nothing
constexpr size_t kNameBytes = 100;    // of a finding in a sentence
constexpr double kSeenChange = 0.01;  // confidence changes below 0.01 are omitted

std::string source_of(const Finding& f) {
  if (!f.rule.empty()) return "rule " + f.rule;
  return f.plugin.empty() ? std::string(to_string(f.detector)) : "plugin " + f.plugin;
}

std::string place_text(const Finding& f) {
  std::string out;
  for (const FindingSubject& s : f.subjects) {
    if (out.size() > kNameBytes) break;
    const std::string rank = s.rank ? fmt::format("rank {}", *s.rank) : "";
    const std::string host = s.host.value_or("");
    out += (out.empty() ? "" : ", ") + (host.empty() ? rank : rank.empty() ? host : host + " " + rank);
  }
  return out;
}

std::string_view role_of(FindingKind kind, FindingRole role) {
  if (kind == FindingKind::kNotice) return "a notice";
  if (kind != FindingKind::kFault) return "no fault by itself";
  return role == FindingRole::kCascade ? "a consequence" : "a cause";
}

// The reason given with the change, as part of a sentence.
std::string because(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  for (auto why = after.rbegin(); why != after.rend(); ++why)
    if (std::ranges::find(before, *why) == before.end()) return ": " + *why;
  return "";
}

}  // namespace

std::map<std::string, Trace::Face> Trace::faces_of(const std::vector<Finding>& findings) {
  std::map<std::string, Face> out;
  for (const Finding& f : findings) {
    if (f.kind != FindingKind::kFault && f.kind != FindingKind::kNotice) continue;
    const std::string place = place_text(f);
    std::string name = fmt::format("\"{}\"", shorten(f.title, kNameBytes));
    if (!place.empty()) name += fmt::format(" ({})", shorten(place, kNameBytes));
    name += " of " + source_of(f);
    std::string key = fmt::format("{}|{}|{}", source_of(f), f.title, place);
    while (out.contains(key)) key += '+';
    out.emplace(std::move(key), Face{std::move(name), f.kind, f.role, f.confidence, f.why, f.evidence.size(),
                                     f.found_by.size()});
  }
  return out;
}

void Trace::after(std::string_view pass, Parts, Parts writes, const Draft& draft) {
  if (writes.has(Part::kFindings)) note(pass, draft.analysis.findings);
}

void Trace::add(std::string_view pass, std::string what) {
  if (steps_.size() < kSteps)
    steps_.push_back({std::string(pass), std::move(what)});
  else
    ++left_out_;
}

std::vector<PassStep> Trace::steps() const {
  std::vector<PassStep> out = steps_;
  if (left_out_ > 0) out.push_back({"", fmt::format("{} more", left_out_)});
  return out;
}

void Trace::note(std::string_view pass, const std::vector<Finding>& findings) {
  std::map<std::string, Face> after = faces_of(findings);
  std::vector<const Face*> fresh, grown;  // grown: findings that may have absorbed others
  std::string reason;
  for (const auto& [key, now] : after) {
    const auto at = before_.find(key);
    if (at == before_.end()) {
      fresh.push_back(&now);
      continue;
    }
    const Face& was = at->second;
    const std::string why = because(was.why, now.why);
    if (now.found_by > was.found_by || now.evidence > was.evidence) {
      grown.push_back(&now);
      reason = why;
    }
    if (was.kind != now.kind || was.role != now.role)
      add(pass, fmt::format("{} is now {}, not {}{}", now.name, role_of(now.kind, now.role),
                            role_of(was.kind, was.role), why));
    else if (std::abs(was.confidence - now.confidence) >= kSeenChange)
      add(pass, fmt::format("{}: {:.0f} % after {:.0f} %{}", now.name, 100 * now.confidence,
                            100 * was.confidence, why));
  }
  // The most certain findings come first for the reader.
  std::ranges::stable_sort(fresh, std::ranges::greater(), &Face::confidence);
  for (const Face* one : fresh)
    add(pass,
        fmt::format("{} is {}, {:.0f} %", one->name, role_of(one->kind, one->role), 100 * one->confidence));
  for (const auto& [key, was] : before_)
    if (!after.contains(key))
      add(pass, grown.size() == 1 ? fmt::format("{} is joined into {}{}", was.name, grown[0]->name, reason)
                                  : fmt::format("{} is left out", was.name));
  before_ = std::move(after);
}

}  // namespace culprit::core::fuse
