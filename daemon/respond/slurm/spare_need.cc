#include "respond/slurm/spare_need.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "respond/slurm/look.h"

namespace culprit::respond::slurm {
namespace {

bool has(const std::vector<std::string>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

bool shares_partition(const std::vector<std::string>& partitions, std::string_view list) {
  return std::ranges::any_of(split(list, ','), [&](std::string_view one) { return has(partitions, one); });
}

// A job that waits for nothing but nodes, or that Slurm has not looked at yet.
bool may_start(const SeenJob& job) {
  if (job.state != SeenJob::State::kPending) return false;
  const bool later = job.reason == "BeginTime" && job.job.restarts == 0;
  return !later && !job.reason.starts_with("Dependency") && job.reason != "JobArrayTaskLimit";
}

}  // namespace

SpareNeed need_of_spares(const SpareQuestion& question, std::string_view jobs, std::string_view nodes) {
  std::optional<SeenJob> own;
  std::vector<SeenJob> others;
  for (const std::string_view line : split(jobs, '\n')) {
    if (trim(line).empty()) continue;
    std::string list;
    auto job = parse_job_line(line, list);
    if (!job) return {};
    if (job->job.id == question.job)
      own = std::move(*job);
    else if (may_start(*job))
      others.push_back(std::move(*job));
  }
  if (!own) return {};
  std::vector<std::string> partitions;
  for (const std::string_view one : split(own->partition, ',')) partitions.emplace_back(one);
  if (!question.partition.empty() && !has(partitions, question.partition)) return {0, false};
  if (std::ranges::any_of(others,
                          [&](const SeenJob& job) { return shares_partition(partitions, job.partition); }))
    return {};

  uint32_t free = 0;
  for (const std::string_view line : split(nodes, '\n')) {
    if (trim(line).empty()) continue;
    const auto node = parse_node_line(line);
    if (!node) return {};
    const bool here =
        std::ranges::any_of(node->partitions, [&](const std::string& one) { return has(partitions, one); });
    if (!here || node->out || has(question.excluded, node->host) || has(question.pool, node->host)) continue;
    if (line.find(" State=MIXED") != line.npos) return {};
    free += node->idle || has(question.own, node->host);
  }
  return {own->nodes > free ? own->nodes - free : 0, true};
}

}  // namespace culprit::respond::slurm
