#include "app/jobs/job_recognition.h"

#include <re2/re2.h>

#include <vector>

#include "base/text.h"
#include "core/logs/placement.h"

namespace culprit::app {

struct JobRecognition::Impl {
  JobRules rules;
  std::unique_ptr<re2::RE2> pattern;
  int group = 0;

  std::optional<std::string> of_path(const std::string& path) const {
    if (!pattern) return std::nullopt;
    std::vector<re2::StringPiece> groups(static_cast<size_t>(group) + 1);
    if (!pattern->Match(path, 0, path.size(), re2::RE2::UNANCHORED, groups.data(), group + 1))
      return std::nullopt;
    const re2::StringPiece& found = groups[static_cast<size_t>(group)];
    return found.empty() ? std::nullopt : std::optional(to_utf8({found.data(), found.size()}));
  }
};

JobRecognition::JobRecognition(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
JobRecognition::JobRecognition(JobRecognition&&) noexcept = default;
JobRecognition& JobRecognition::operator=(JobRecognition&&) noexcept = default;
JobRecognition::~JobRecognition() = default;

Result<JobRecognition> JobRecognition::create(JobRules rules) {
  auto impl = std::make_unique<Impl>();
  if (!rules.job_pattern.empty()) {
    const std::string shown = shorten(rules.job_pattern, 200);
    re2::RE2::Options options;
    options.set_log_errors(false);
    impl->pattern = std::make_unique<re2::RE2>(logs::with_named_groups(rules.job_pattern), options);
    if (!impl->pattern->ok())
      return fail(ErrorCode::kInvalid, "job_pattern '" + shown + "': " + impl->pattern->error());
    const auto& groups = impl->pattern->NamedCapturingGroups();
    const auto found = groups.find("job");
    if (found == groups.end())
      return fail(ErrorCode::kInvalid,
                  "job_pattern '" + shown + "': no group is named 'job', as in (?P<job>...)");
    impl->group = found->second;
  }
  impl->rules = std::move(rules);
  return JobRecognition(std::move(impl));
}

std::string JobRecognition::of_file(const std::string& path) const {
  if (!impl_->rules.job.empty()) return impl_->rules.job;
  if (auto job = impl_->of_path(path)) return *job;
  if (!impl_->rules.processes) return impl_->rules.otherwise;
  // A pattern without a match does not decide, so the writing process may determine the job.
  const auto file = facts_of_file(path);
  if (!file) return impl_->rules.otherwise;
  // A process that created the file has had it open since `born_ns`.
  const auto view = impl_->rules.processes(file->born_ns);
  return view ? job_of_file(*view, path, *file).value_or(impl_->rules.otherwise) : impl_->rules.otherwise;
}

}  // namespace culprit::app
