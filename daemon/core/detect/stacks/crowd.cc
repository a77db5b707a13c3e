#include "core/detect/stacks/crowd.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace culprit::stacks {
namespace {

constexpr size_t kTools = 5;

// The tool that has a sample of most processes; one that names Python's functions wins a tie.
StackTool most_used(const Samples& samples) {
  std::array<size_t, kTools> count{};
  for (const Process* p : samples.processes()) {
    std::array<bool, kTools> has{};
    for (const Sample& s : p->samples) has[static_cast<size_t>(s.tool)] = true;
    for (size_t t = 0; t < kTools; ++t) count[t] += has[t] ? 1 : 0;
  }
  const auto best = std::max_element(count.begin() + 1, count.end());
  return *best >= count[0] ? static_cast<StackTool>(best - count.begin()) : StackTool::kUnknown;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15 + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccd;
}

// What stays the same while a process waits at one place: the telling frame, and those that called it.
uint64_t standing_hash(const Found& found) {
  uint64_t hash = mix(1, static_cast<uint64_t>(found.where));
  for (size_t i = found.tells; i < found.frames.size(); ++i) {
    hash = mix(hash, found.frames[i].frame);
    if (i > found.tells || !found.proven) hash = mix(hash, found.frames[i].line);
  }
  return hash;
}

uint64_t shape_hash(const Found& found) {
  uint64_t hash = mix(2, static_cast<uint64_t>(found.where) * 2 + (found.stopped ? 1 : 0));
  for (const Standing& s : found.frames) hash = mix(hash, s.frame);
  return hash;
}

// The places of paths, each computed once: most ranks share theirs.
class PlaceTable {
 public:
  explicit PlaceTable(const Samples& samples) : samples_(samples) {}

  const Found& of(const Sample& sample) {
    key_.clear();
    for (const Thread& t : sample.threads)
      key_.push_back((static_cast<uint64_t>(t.path) << 2) | (t.child ? 2u : 0u) |
                     (t.main || t.name == "MainThread" ? 1u : 0u));
    uint64_t hash = sample.process_state.empty() ? 0 : static_cast<uint64_t>(sample.process_state[0]);
    for (const uint64_t part : key_) hash = mix(hash, part);
    for (auto [at, last] = known_.equal_range(hash); at != last; ++at)
      if (at->second.key == key_ && at->second.state == sample.process_state) return at->second.found;
    return known_.emplace(hash, Entry{key_, sample.process_state, place_of(samples_, sample)})->second.found;
  }

 private:
  struct Entry {
    std::vector<uint64_t> key;
    std::string state;
    Found found;
  };
  const Samples& samples_;
  std::vector<uint64_t> key_;
  std::unordered_multimap<uint64_t, Entry> known_;
};

Member member_of(const Process& process, StackTool preferred, PlaceTable& places) {
  Member out;
  out.process = &process;
  const auto has = [&](StackTool tool) {
    return std::any_of(process.samples.begin(), process.samples.end(),
                       [&](const Sample& s) { return s.tool == tool; });
  };
  const StackTool tool = has(preferred) ? preferred : process.samples.back().tool;
  std::optional<uint64_t> standing;
  TimeNs first = kNoTime;
  size_t compared = 0;
  for (const Sample& s : process.samples) {
    if (s.tool != tool) continue;
    const Found& found = places.of(s);
    const uint64_t hash = standing_hash(found);
    out.moves = out.moves || (standing && *standing != hash);
    standing = hash;
    if (first == kNoTime) first = s.time_ns;
    ++compared;
    out.sample = &s;
  }
  out.samples = compared;
  if (first != kNoTime && out.sample->time_ns > first) out.span_ns = out.sample->time_ns - first;
  out.found = places.of(*out.sample);
  if (out.found.proven) return out;
  // A debugger sees the call into which Python's innermost function went.
  for (const Sample& s : process.samples) {
    if (s.tool == tool) continue;
    const Found& other = places.of(s);
    if (!other.proven) continue;
    out.found.where = other.where;
    out.found.op = other.op;
    out.found.proven = true;
  }
  return out;
}

}  // namespace

Crowd make_crowd(const Samples& samples) {
  Crowd out;
  PlaceTable places(samples);
  const StackTool tool = most_used(samples);
  for (const Process* process : samples.processes())
    if (!process->samples.empty()) out.members.push_back(member_of(*process, tool, places));
  std::unordered_map<uint64_t, uint32_t> known;
  for (uint32_t m = 0; m < out.members.size(); ++m) {
    Member& member = out.members[m];
    const auto [at, fresh] = known.try_emplace(shape_hash(member.found), out.groups.size());
    if (fresh) out.groups.push_back({{}, member.found.where, member.found.op});
    out.groups[at->second].members.push_back(m);
  }
  std::stable_sort(out.groups.begin(), out.groups.end(),
                   [](const Group& a, const Group& b) { return a.members.size() > b.members.size(); });
  for (uint32_t g = 0; g < out.groups.size(); ++g)
    for (const uint32_t m : out.groups[g].members) out.members[m].group = g;
  return out;
}

std::vector<StackCluster> clusters_of(const Samples& samples, const Crowd& crowd,
                                      const std::vector<bool>& healthy) {
  std::vector<StackCluster> out;
  for (size_t g = 0; g < crowd.groups.size(); ++g) {
    const Group& group = crowd.groups[g];
    StackCluster cluster;
    cluster.healthy = healthy[g];
    std::vector<Standing> frames = crowd.members[group.members[0]].found.frames;
    for (const uint32_t m : group.members) {
      const Member& member = crowd.members[m];
      for (size_t i = 0; i < frames.size() && i < member.found.frames.size(); ++i)
        if (frames[i].line != member.found.frames[i].line) frames[i].line = 0;
      if (member.process->rank) cluster.ranks.push_back(*member.process->rank);
    }
    for (const Standing& s : frames) cluster.frames.push_back(shown(samples.frame(s.frame), s.line));
    std::sort(cluster.ranks.begin(), cluster.ranks.end());
    out.push_back(std::move(cluster));
  }
  return out;
}

bool is_common_place(const Crowd& crowd, const Member& member) {
  // The least number of processes, and their share of all.
  constexpr size_t kFew = 2;
  constexpr double kShare = 0.125;
  if (member.found.proven || member.found.stopped) return false;
  const size_t same = crowd.groups[member.group].members.size();
  return same > kFew && static_cast<double>(same) > kShare * static_cast<double>(crowd.members.size());
}

std::string name_of(const Process& process) {
  if (process.rank) return fmt::format("rank {}", *process.rank);
  if (process.host) return fmt::format("process {} of {}", process.pid, *process.host);
  return fmt::format("process {}", process.pid);
}

}  // namespace culprit::stacks
