#include "core/detect/stacks/members.h"

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

// The tool with samples of most processes; on a tie, the one that names Python functions.
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

// The part of a stack that is constant while a process waits at one place: the telling frame and its callers.
uint64_t place_hash(const Found& found) {
  uint64_t hash = mix(1, static_cast<uint64_t>(found.where));
  for (size_t i = found.tells; i < found.frames.size(); ++i) {
    hash = mix(hash, found.frames[i].frame);
    if (i > found.tells || !found.proven) hash = mix(hash, found.frames[i].line);
  }
  return hash;
}

uint64_t shape_hash(const Found& found) {
  uint64_t hash = mix(2, static_cast<uint64_t>(found.where) * 2 + (found.stopped ? 1 : 0));
  for (const CodePlace& s : found.frames) hash = mix(hash, s.frame);
  return hash;
}

// The place of each path, computed once: most ranks share paths.
class PlaceTable {
 public:
  explicit PlaceTable(const Samples& samples) : samples_(samples) {}

  const Found& of(const Sample& sample) {
    key_.clear();
    for (const Thread& t : sample.threads)
      key_.push_back((static_cast<uint64_t>(t.path) << 3) | (t.state == ThreadState::kGil ? 4u : 0u) |
                     (t.child ? 2u : 0u) | (t.main || t.name == "MainThread" ? 1u : 0u));
    const std::string state = sample.process_state + " " + sample.waits_in;
    uint64_t hash = static_cast<uint64_t>(state[0]);
    for (const uint64_t part : key_) hash = mix(hash, part);
    for (auto [at, last] = known_.equal_range(hash); at != last; ++at)
      if (at->second.key == key_ && at->second.state == state) return at->second.found;
    return known_.emplace(hash, Entry{key_, state, place_of(samples_, sample)})->second.found;
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

using Usable = std::vector<const Sample*>;

// "node-3" of "node-3.cluster.example".
std::string_view short_name(std::string_view host) { return host.substr(0, host.find('.')); }

bool of_other_host(const Sample& a, const Sample& b) {
  return !a.host.empty() && !b.host.empty() && short_name(a.host) != short_name(b.host);
}

// Whether two hosts gave the rank's stacks at the same time, so that neither took the rank over from the
// other.
bool is_doubled(const Usable& usable) {
  constexpr TimeNs kTakeover = 60 * kNsPerSecond;
  const Sample& newest = *usable.back();
  TimeNs first = newest.time_ns, last_of_other = kNoTime;
  bool other = false;
  for (const Sample* s : usable) {
    if (of_other_host(*s, newest)) {
      other = true;
      last_of_other = s->time_ns;
    } else if (s->time_ns != kNoTime) {
      first = std::min(first, s->time_ns);
    }
  }
  if (!other) return false;
  return first == kNoTime || last_of_other == kNoTime || first - last_of_other < kTakeover;
}

// The samples with evidence about the process itself in its current state.
Usable usable_of(const Process& process, const std::function<bool(const Sample&)>& keep, PlaceTable& places,
                 bool& helper) {
  Usable out;
  for (const Sample& s : process.samples) {
    if (keep && !keep(s)) continue;
    const Found& found = places.of(s);
    helper = helper || found.helper;
    if (is_usable(found) && !found.helper) out.push_back(&s);
  }
  return out;
}

void keep_newest_process(Usable& usable) {
  const Sample& newest = *usable.back();
  std::erase_if(usable, [&](const Sample* s) {
    return of_other_host(*s, newest) || (s->pid != 0 && newest.pid != 0 && s->pid != newest.pid);
  });
}

Member member_of(const Process& process, const Usable& usable, StackTool preferred, PlaceTable& places) {
  Member out;
  out.process = &process;
  const bool has =
      std::any_of(usable.begin(), usable.end(), [&](const Sample* s) { return s->tool == preferred; });
  const StackTool tool = has ? preferred : usable.back()->tool;
  std::optional<uint64_t> place;
  TimeNs first = kNoTime;
  size_t compared = 0;
  for (const Sample* sample : usable) {
    const Sample& s = *sample;
    if (s.tool != tool) continue;
    const Found& found = places.of(s);
    const uint64_t hash = place_hash(found);
    out.moves = out.moves || (place && *place != hash);
    place = hash;
    if (first == kNoTime) first = s.time_ns;
    // One file may contain several samples without times.
    const bool new_one = !out.sample || s.time_ns != out.sample->time_ns || s.file == out.sample->file;
    compared += new_one ? 1 : 0;
    out.sample = &s;
  }
  out.samples = compared;
  if (first != kNoTime && out.sample->time_ns > first) out.span_ns = out.sample->time_ns - first;
  out.found = places.of(*out.sample);
  if (out.found.proven) return out;
  // A debugger shows the native call made by Python's innermost function.
  for (const Sample* sample : usable) {
    if (sample->tool == tool) continue;
    const Found& other = places.of(*sample);
    out.found.whole = out.found.whole || other.whole;
    if (!other.proven) continue;
    out.found.where = other.where;
    out.found.op = other.op;
    out.found.proven = true;
  }
  return out;
}

}  // namespace

Members members_of(const Samples& samples, const std::function<bool(const Sample&)>& keep) {
  Members out;
  PlaceTable places(samples);
  out.tool = most_used(samples);
  const auto& all = samples.processes();
  const bool ranked =
      std::any_of(all.begin(), all.end(), [](const Process* p) { return p->rank.has_value(); });
  for (const Process* process : all) {
    bool helper = false;
    Usable usable = usable_of(*process, keep, places, helper);
    if (ranked && !process->rank) {
      out.strangers.push_back(process);
    } else if (usable.empty()) {
      if (!process->samples.empty()) (helper ? out.strangers : out.silent).push_back(process);
    } else if (is_doubled(usable)) {
      out.doubled.push_back(process);
    } else {
      keep_newest_process(usable);
      out.members.push_back(member_of(*process, usable, out.tool, places));
    }
  }
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

std::vector<StackCluster> clusters_of(const Samples& samples, const Members& all_members,
                                      const std::vector<bool>& healthy) {
  std::vector<StackCluster> out;
  for (size_t g = 0; g < all_members.groups.size(); ++g) {
    const Group& group = all_members.groups[g];
    StackCluster cluster;
    cluster.healthy = healthy[g];
    std::vector<CodePlace> frames = all_members.members[group.members[0]].found.frames;
    for (const uint32_t m : group.members) {
      const Member& member = all_members.members[m];
      for (size_t i = 0; i < frames.size() && i < member.found.frames.size(); ++i)
        if (frames[i].line != member.found.frames[i].line) frames[i].line = 0;
      if (member.process->rank) cluster.ranks.push_back(*member.process->rank);
    }
    for (const CodePlace& s : frames) cluster.frames.push_back(shown(samples.frame(s.frame), s.line));
    std::sort(cluster.ranks.begin(), cluster.ranks.end());
    out.push_back(std::move(cluster));
  }
  return out;
}

bool is_common_place(const Members& all_members, const Member& member) {
  // Minimum number of processes, and minimum share of all.
  constexpr size_t kFew = 2;
  constexpr double kShare = 0.125;
  if (member.found.proven || member.found.stopped) return false;
  const size_t same = all_members.groups[member.group].members.size();
  return same > kFew && static_cast<double>(same) > kShare * static_cast<double>(all_members.members.size());
}

std::string name_of(const Process& process) {
  if (process.rank) return fmt::format("rank {}", *process.rank);
  if (process.host) return fmt::format("process {} of {}", process.pid, *process.host);
  return fmt::format("process {}", process.pid);
}

}  // namespace culprit::stacks
