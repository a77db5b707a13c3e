#include "app/run/attempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "core/recover/policy.h"
#include "model/headline.h"
#include "model/restart.h"

namespace culprit::app {
namespace {

constexpr size_t kReasonBytes = 200;

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
}

// Whether a word has nothing but a placeholder without a value. An option before it is removed from `out`.
bool is_left_out(const std::string& word, std::string_view placeholder, const std::string& value,
                 std::vector<std::string>& out) {
  if (!value.empty()) return false;
  if (word == placeholder) {
    if (!out.empty() && out.back().starts_with("--")) out.pop_back();
    return true;
  }
  return word.starts_with("--") && word.ends_with("=" + std::string(placeholder));
}

std::optional<int64_t> last_iteration(const Report& report) {
  std::optional<int64_t> out = report.job.iteration;
  for (const Diagnosis& d : report.diagnoses)
    if (d.iteration) out = std::max(out.value_or(-1), *d.iteration);
  return out;
}

}  // namespace

bool wants_port(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string& w) { return w.find("{port}") != w.npos; });
}

std::vector<std::string> filled(const std::vector<std::string>& words, const Placeholders& values) {
  std::vector<std::string> out;
  for (std::string word : words) {
    if (is_left_out(word, "{resume}", values.resume, out) ||
        is_left_out(word, "{revision}", values.revision, out))
      continue;
    replace_all(word, "{attempt}", std::to_string(values.attempt));
    replace_all(word, "{resume}", values.resume);
    replace_all(word, "{revision}", values.revision);
    if (values.port != 0) replace_all(word, "{port}", std::to_string(values.port));
    if (!values.gpus.empty()) {
      replace_all(word, "{gpus}", fmt::format("{}", fmt::join(values.gpus, ",")));
      replace_all(word, "{ngpus}", std::to_string(values.gpus.size()));
    }
    if (!values.hosts.empty()) {
      replace_all(word, "{hosts}", fmt::format("{}", fmt::join(values.hosts, ",")));
      replace_all(word, "{nhosts}", std::to_string(values.hosts.size()));
      replace_all(word, "{node_rank}", std::to_string(values.node_rank));
      replace_all(word, "{master}", values.hosts.front());
    }
    out.push_back(std::move(word));
  }
  return out;
}

std::vector<std::string> attempt_variables(const Placeholders& values, uint32_t left,
                                           const std::string& last) {
  std::vector<std::string> out = {fmt::format("CULPRIT_ATTEMPT={}", values.attempt),
                                  fmt::format("CULPRIT_ATTEMPTS_LEFT={}", left)};
  if (!values.resume.empty()) out.push_back("CULPRIT_RESUME=" + values.resume);
  if (!values.revision.empty()) out.push_back("CULPRIT_REVISION=" + values.revision);
  if (!last.empty()) out.push_back("CULPRIT_LAST_REASON=" + shorten(last, kReasonBytes));
  return out;
}

recover::Failure failure_of(const std::optional<Report>& report, const std::string& host,
                            std::optional<int64_t> best) {
  recover::Failure out;
  out.ran_on = {host};
  if (!report) return out;
  out.iteration = last_iteration(*report);
  if (out.iteration) {
    const bool further = !best || *out.iteration > *best;
    out.progress = further ? recover::Progress::kMade : recover::Progress::kNone;
  }
  if (const auto advice = restart_of(*report)) out.advice = *advice;
  const Diagnosis* lead = leading(*report);
  if (lead == nullptr) return out;
  out.hang = lead->symptom == Symptom::kHang;
  if (!report->verdict) return out;
  out.root = recover::root_of(*lead);
  return out;
}

void judge(Attempt& attempt, const std::optional<Report>& report, const std::string& host,
           std::optional<int64_t> best) {
  attempt.failure = failure_of(report, host, best);
  attempt.failure.begin_ns = attempt.begin_ns, attempt.failure.end_ns = attempt.end_ns;
  attempt.to = attempt.failure.iteration;
  if (!report) return;
  if (leading(*report)) attempt.headline = headline_of(*report);
  if (report->verdict) attempt.confidence = leading(*report)->confidence;
}

void add_progress(recover::Failure& failure, int64_t saved, std::optional<int64_t> resumed) {
  if (failure.progress != recover::Progress::kUnknown) return;
  const bool further = saved >= 0 && saved > resumed.value_or(-1);
  failure.progress = further ? recover::Progress::kMade : recover::Progress::kNone;
}

std::optional<int64_t> older_than(std::optional<int64_t> resumed, std::optional<int64_t> fault_at) {
  return resumed && fault_at ? std::min(*resumed, *fault_at) : resumed ? resumed : fault_at;
}

int verdict_code(const recover::Failure& failure, const recover::Decision& decision) {
  if (failure.advice.kind == Restart::kUnknown) return 0;
  return decision.again ? recover::kElsewhereHelps : decision.code;
}

TimeNs allocation_end(const Lookup& variable) {
  const auto text = variable("SLURM_JOB_END_TIME");
  int64_t seconds = 0;
  if (!text) return kNoTime;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  const bool read = error == std::errc() && end == text->data() + text->size() && seconds > 0;
  return read && seconds < (int64_t{1} << 33) ? seconds * kNsPerSecond : kNoTime;
}

}  // namespace culprit::app
