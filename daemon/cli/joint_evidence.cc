#include "cli/joint_evidence.h"

#include <charconv>
#include <utility>

#include "cli/attempt_text.h"
#include "cli/child_work.h"
#include "cli/run_end.h"
#include "model/report_json.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr size_t kReportsBytes = 64 << 20;  // of the reports of all members
constexpr TimeNs kReportsWithin = 60 * kNsPerSecond, kFilesWithin = 600 * kNsPerSecond;
constexpr TimeNs kCheckpointWithin = 3600 * kNsPerSecond;

std::optional<Report> report_in(const std::optional<std::string>& text) {
  if (!text || text->empty()) return std::nullopt;
  auto report = report_from_json(*text);
  return report ? std::optional(std::move(*report)) : std::nullopt;
}

}  // namespace

// Of what the hosts' own daemons found; empty: nothing.
std::string JointEvidence::merged_reports() const {
  std::optional<Report> out;
  size_t bytes = 0;
  for (const std::string& host : agreement_.hosts_with("report")) {
    const auto entry = agreement_.read("report", host);
    if (!entry || (bytes += entry->text.size()) > kReportsBytes) continue;
    if (auto one = report_from_json(entry->text)) out = better_report(std::move(out), std::move(*one), false);
  }
  return out ? to_json(*out) : "";
}

std::optional<Report> JointEvidence::report(const app::HeldFolder* attempt) {
  auto live = report_in(in_child([&] { return merged_reports(); }, kReportsWithin, goes_on_));
  const auto inputs =
      attempt ? attempt->enter("job") : Result<app::HeldFolder>(fail(ErrorCode::kNotFound, ""));
  if (!inputs) return live;
  auto files = report_in(in_child(
      [&] {
        const auto report = report_of_inputs(*inputs, run_.folder.exposed(), run_.zone);
        return report ? to_json(*report) : std::string();
      },
      kFilesWithin, goes_on_));
  const bool has_files = files.has_value();
  const std::optional<int64_t> iteration = has_files ? files->job.iteration : std::nullopt;
  auto found = better_report(std::move(live), std::move(files), false);
  // The whole logs have the last step.
  if (found && has_files) found->job.iteration = iteration;
  return found;
}

Result<std::optional<ResumeFrom>> JointEvidence::read_newest(std::optional<int64_t> before) {
  // "STEP\0PATH\0LEFT OUT": STEP may be empty, and PATH is if there is none.
  const auto text = in_child(
      [&] {
        LeftOut left_out;
        const auto from = run_.newest(before, &left_out);
        const ResumeFrom found = from.value_or(ResumeFrom{});
        std::string out = found.step ? std::to_string(*found.step) : "";
        out += '\0' + found.path + '\0';
        return left_out.empty() ? out : out + left_out_sentence(left_out, found.path, found.step);
      },
      kCheckpointWithin, goes_on_);
  const size_t end = text ? text->find('\0') : std::string::npos;
  const size_t path_end = end == std::string::npos ? end : text->find('\0', end + 1);
  if (path_end == std::string::npos) return fail(ErrorCode::kIo, "the checkpoints could not be read");
  left_out_ = text->substr(path_end + 1);
  ResumeFrom out{text->substr(end + 1, path_end - end - 1), std::nullopt};
  if (out.path.empty()) return std::optional<ResumeFrom>();
  int64_t step = 0;
  if (std::from_chars(text->data(), text->data() + end, step).ptr == text->data() + end && end > 0)
    out.step = step;
  return std::optional(std::move(out));
}

Result<std::optional<ResumeFrom>> JointEvidence::newest(std::optional<int64_t> before) {
  if (newest_ && (!before || !*newest_ || ((*newest_)->step && *(*newest_)->step < *before))) return *newest_;
  auto read = read_newest(before);
  if (read && !before) newest_ = *read;
  return read;
}

}  // namespace culprit::cli
