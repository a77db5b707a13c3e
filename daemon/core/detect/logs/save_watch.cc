#include "core/detect/logs/save_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/limits.h"
#include "base/text.h"

namespace culprit::detect {
namespace {

constexpr size_t kWhyBytes = 200;

std::string lower_case(std::string_view text) {
  std::string out(text.size(), '\0');
  lower_ascii(text, out.data());
  return out;
}

bool is_save(std::string_view phase) {
  const std::string name = lower_case(phase);
  return name.starts_with("checkpoint") || name.starts_with("save");
}

// "successfully saved checkpoint from iteration <*>", "checkpoint saved to <*>". A line that says that saving
// begins is none.
bool says_saved(std::string_view text) {
  const std::string lower = lower_case(text);
  const auto has = [&](std::string_view word) { return lower.find(word) != std::string::npos; };
  if (!has("checkpoint") && !has("ckpt")) return false;
  return (has("saved") || has("written")) && !has("not ") && !has("fail") && !has("error") &&
         !has("last saved");
}

std::string_view field_of(const LoopEvent& event, std::string_view name) {
  for (const EventField& field : event.fields)
    if (field.name == name) return field.json;
  return {};
}

// A JSON string without escapes; empty: none.
std::string text_of(std::string_view json) {
  if (json.size() < 2 || json.front() != '"' || json.back() != '"') return {};
  json = json.substr(1, json.size() - 2);
  if (json.find('\\') != std::string_view::npos) return {};
  return to_terminal(shorten(to_utf8(json), kWhyBytes));
}

std::optional<uint64_t> number_of(std::string_view json) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), out);
  if (json.empty() || error != std::errc() || end != json.data() + json.size()) return std::nullopt;
  return out;
}

}  // namespace

void SaveWatch::save(int64_t iteration, TimeNs now) {
  if (!saved_ || now > saved_->at_ns) saved_ = {iteration, now};
}

void SaveWatch::phase(const PhaseSeen& seen, int64_t iteration, TimeNs now) {
  if (!is_save(seen.name)) return;
  if (seen.begins) {
    if (within_.size() < limits::kWriters) within_.insert(seen.rank);
    return;
  }
  if (within_.erase(seen.rank) > 0 && within_.empty()) save(iteration, now);
}

void SaveWatch::event(const LoopEvent& event, TimeNs now) {
  if (event.name != "advice") return;
  const auto id = number_of(field_of(event, "id"));
  const auto outcome = advice_outcome(text_of(field_of(event, "outcome")));
  if (!id || *id == 0 || *id > kAdviceIdMax || !outcome) return;
  if (!advice_.contains(*id) && advice_.size() >= kAdvice) {
    if (*id < advice_.begin()->first) return;
    advice_.erase(advice_.begin());
  }
  AdviceSummary& one = advice_[*id];
  one.id = *id;
  one.at_ns = now;
  if (std::string kind = text_of(field_of(event, "advice")); advice_kind(kind)) one.kind = std::move(kind);
  switch (*outcome) {
    case AdviceOutcome::kTaken:
      ++one.taken;
      if (event.step) {
        one.first_step = one.first_step < 0 ? *event.step : std::min(one.first_step, *event.step);
        one.last_step = std::max(one.last_step, *event.step);
      }
      break;
    case AdviceOutcome::kRefused:
      ++one.refused;
      one.why = text_of(field_of(event, "why"));
      break;
    case AdviceOutcome::kAchieved:
      ++one.achieved;
      if (one.kind == to_string(AdviceKind::kSaveNow) && one.achieved >= one.taken && one.taken > 0)
        save(event.step.value_or(-1), now);
      break;
    case AdviceOutcome::kNotApplied:
      ++one.not_applied;
      one.why = text_of(field_of(event, "why"));
      break;
  }
}

void SaveWatch::lines(const logs::JobLog& log, int64_t iteration) {
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.last_ns == kNoTime || t.last_ns <= line_ns_ || t.shape.stage != Stage::kCheckpoint) continue;
    if (!says_saved(log.miner().text(id))) continue;
    line_ns_ = t.last_ns;
    save(iteration, t.last_ns);
  }
}

std::vector<std::string> SaveWatch::sentences() const {
  std::vector<std::string> out;
  for (const auto& [id, one] : advice_) {
    std::string text = fmt::format("advice {} ({}):", one.kind.empty() ? "of an unknown kind" : one.kind, id);
    const char* sign = " ";
    const auto add = [&](std::string part) {
      text += sign + std::move(part);
      sign = ", ";
    };
    if (one.taken > 0 && one.first_step < 0)
      add(fmt::format("taken by {}", counted(one.taken, "rank")));
    else if (one.taken > 0)
      add(fmt::format("taken by {} at step {}{}", counted(one.taken, "rank"), one.first_step,
                      one.last_step == one.first_step ? "" : fmt::format(" to {}", one.last_step)));
    if (one.achieved > 0) add(fmt::format("achieved by {}", counted(one.achieved, "rank")));
    if (one.refused > 0) add(fmt::format("refused by {}", counted(one.refused, "rank")));
    if (one.not_applied > 0) add(fmt::format("not applied by {}", counted(one.not_applied, "rank")));
    if (!one.why.empty()) text += fmt::format(" ({})", one.why);
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace culprit::detect
