#include "core/logs/job_writers.h"

#include <optional>
#include <set>

#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/infer_ranks.h"
#include "core/logs/time_span.h"

namespace culprit::logs {
namespace {

// Writers with their own activity bins; beyond this number, four ranks of a host share one.
constexpr size_t kFineWriters = 16'384;
constexpr size_t kCoarseBins = 64;

// Bare task numbers (srun -l) are ranks if there are as many tasks as ranks; else they number the hosts.
bool tasks_are_hosts(const std::vector<WriterStats>& writers, const JobFile& job) {
  if (job.hosts.size() < 2 || job.ranks_per_host.value_or(1) == 1) return false;
  std::set<uint32_t> tasks;
  for (const WriterStats& w : writers)
    if (w.key.task) tasks.insert(w.key.rank);
  return !tasks.empty() && tasks.size() <= job.hosts.size() && *tasks.rbegin() < job.hosts.size();
}

}  // namespace

uint32_t JobWriters::open(const WriterKey& key) {
  const uint64_t hash = mix64(hash64(key.host), mix64((uint64_t{key.rank} << 32) | key.local, key.task));
  if (const uint32_t* known = ids_.find(hash)) return *known;
  if (writers_.size() >= limits::kWriters) {
    if (folded_ == kNone) folded_ = new_writer({});
    return folded_;
  }
  const uint32_t id = new_writer(key);
  ids_.try_emplace(hash, id);
  return id;
}

uint32_t JobWriters::new_writer(const WriterKey& key) {
  writers_.emplace_back();
  writers_.back().key = key;
  activity_.emplace_back();
  if (writers_.size() > kFineWriters) activity_.back().bins = kCoarseBins;
  return static_cast<uint32_t>(writers_.size() - 1);
}

void JobWriters::count_line(const LogPlace& place) {
  WriterStats& w = writers_[place.writer];
  ++w.lines;
  if (place.writer == folded_) drops_.add(Drop::kWriters);
  if (place.time_ns == kNoTime) return;
  if (w.last_ns != kNoTime && place.time_ns > w.last_ns) w.rhythm.add(place.time_ns - w.last_ns);
  widen(w.first_ns, w.last_ns, place.time_ns);
  activity_[place.writer].add(place.time_ns, 1);
}

void JobWriters::count_owned(const std::string& owner, uint32_t writer, uint64_t lines) {
  aliases_.count(owner, writers_[writer].key.host, lines);
}

void JobWriters::resolve(const JobFile& job) {
  const bool hosts_by_task = tasks_are_hosts(writers_, job);
  resolve_names(job);
  for (WriterStats& w : writers_) {
    const auto other = names_.find(w.key.host);
    w.host = other != names_.end() ? std::optional(other->second)
             : w.key.host.empty()  ? std::nullopt
                                   : std::optional(w.key.host);
    w.rank = w.key.rank == kNoRank ? std::nullopt : std::optional(w.key.rank);
    w.device = w.key.local == kNoRank ? std::nullopt : std::optional(w.key.local);
    if (w.key.task && hosts_by_task) {
      if (!w.host) w.host = job.hosts[w.key.rank];
      w.rank = std::nullopt;
    }
    if (!w.host && w.rank) w.host = host_of_rank(job, *w.rank);
    if (!w.rank && w.host && w.device) w.rank = rank_of_local(job, *w.host, *w.device);
    if (!w.device && w.rank) w.device = device_of_rank(job, *w.rank);
  }
  infer_ranks(writers_);
  index_hosts();
}

void JobWriters::resolve_names(const JobFile& job) {
  std::vector<std::string> all = job.hosts;
  for (const WriterStats& w : writers_)
    if (!w.key.host.empty()) all.push_back(w.key.host);
  names_ = aliases_.resolve(all, job.hosts);
}

void JobWriters::index_hosts() {
  host_of_common_.clear();
  for (const WriterStats& w : writers_) {
    if (!w.host) continue;
    const auto [at, fresh] = host_of_common_.try_emplace(common_host_name(*w.host), *w.host);
    if (!fresh && at->second != *w.host) at->second.clear();
  }
}

std::string JobWriters::host_called(std::string_view name) const {
  const auto other = names_.find(std::string(name));
  if (other != names_.end()) return other->second;
  const auto host = host_of_common_.find(common_host_name(name));
  return host == host_of_common_.end() ? "" : host->second;
}

uint64_t JobWriters::unplaced_lines() const {
  uint64_t lines = 0;
  for (const WriterStats& w : writers_) lines += w.host ? 0 : w.lines;
  return lines;
}

}  // namespace culprit::logs
