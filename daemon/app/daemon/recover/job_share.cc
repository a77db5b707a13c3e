#include "app/daemon/recover/job_share.h"

#include <set>
#include <utility>
#include <variant>

namespace culprit::app {
namespace {

// Null: the input is about no job.
const ScheduledJob* job_of(const recover::Input& input) {
  return std::visit(
      [](const auto& one) -> const ScheduledJob* {
        if constexpr (requires { one.job.restarts; })
          return &one.job;
        else
          return nullptr;
      },
      input);
}

}  // namespace

JobShare::Selected JobShare::select(std::vector<recover::Input> inputs, const ScheduledJobs& jobs,
                                    const Sources& from) {
  Selected out;
  std::map<std::string, uint64_t> own;
  for (const std::string& id : jobs.ids())
    if (const auto epoch = from.epoch_of(id)) own.emplace(id, *epoch);
  std::set<std::string> started, ended;  // ended: its end is given here
  for (const recover::Input& input : inputs)
    if (const auto* one = std::get_if<recover::AttemptStarted>(&input)) started.insert(one->job.id);
  for (const auto& [id, epoch] : own) {
    const auto before = own_.find(id);
    if (before != own_.end() && before->second == epoch) continue;
    out.gained.push_back(id);
    const ScheduledJob now = jobs.known(id).value_or(ScheduledJob{});
    bool has_ended = from.has_ended && from.has_ended(now);
    if (auto adopted = from.adopted ? from.adopted(id) : std::nullopt) {
      const AttemptRecord& newest = adopted->attempts.back();
      has_ended = newest.end_ns != kNoTime && newest.job.restarts == now.restarts;
      out.inputs.emplace_back(std::move(*adopted));
    }
    if (started.contains(id) || has_ended) continue;
    for (recover::Input& input : jobs.again(id)) {
      const bool is_end = std::holds_alternative<recover::AttemptEnded>(input);
      if (is_end) ended.insert(id);
      (is_end ? out.ends : out.inputs).push_back(std::move(input));
    }
  }
  for (const auto& [id, epoch] : own_) {
    const auto known = jobs.known(id);
    if (own.contains(id) || !known) continue;
    out.inputs.push_back(recover::AttemptEnded{*known, recover::JobEnd::kCancelled, {}, "OTHER-MEMBER"});
  }
  for (recover::Input& input : inputs) {
    const ScheduledJob* job = job_of(input);
    if (job != nullptr && !own.contains(job->id)) continue;
    if (job != nullptr && std::holds_alternative<recover::AttemptEnded>(input) && ended.contains(job->id))
      continue;
    out.inputs.push_back(std::move(input));
  }
  own_ = std::move(own);
  return out;
}

}  // namespace culprit::app
