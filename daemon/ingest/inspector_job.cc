// Global ranks of the processes that wrote files of NCCL's Inspector.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/inspector_file.h"

namespace culprit::ingest {
namespace {

uint32_t root_of(std::vector<uint32_t>& parent, uint32_t at) {
  while (parent[at] != at) at = parent[at] = parent[parent[at]];
  return at;
}

// Processes that share communicators, directly or over others: one run of a job, or a part of it.
struct Run {
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  std::set<std::string> hosts;
  bool earlier = false;  // another one began later on one of its hosts
};

using Numbered = InspectorJob::Numbered;
using Hole = InspectorJob::Hole;
using PairCounts = InspectorJob::PairCounts;

// What a loop repeats is far less; a hostile file repeats nothing.
constexpr size_t kUsualMax = 65'536;

// What usually comes between two others of a loop.
class Between {
 public:
  explicit Between(const std::vector<Numbered>& order) {
    size_t kinds = 0;
    for (size_t i = 2; i < order.size() && kinds < kUsualMax; ++i)
      if (order[i].sn == order[i - 2].sn + 2)
        kinds += seen_[{order[i - 2].pair, order[i].pair}][order[i - 1].pair]++ == 0;
  }
  // The most frequent one, before all others one that `lacking` has; of these it takes one away.
  std::optional<uint64_t> find(uint64_t before, uint64_t after, PairCounts& lacking) const {
    const auto at = seen_.find({before, after});
    if (at == seen_.end()) return std::nullopt;
    std::optional<uint64_t> best;
    std::pair<bool, uint64_t> most;
    for (const auto& [pair, times] : at->second) {
      const auto lacks = lacking.find(pair);
      const std::pair<bool, uint64_t> rank{lacks != lacking.end() && lacks->second > 0, times};
      if (!best || rank > most) best = pair, most = rank;
    }
    if (most.first) --lacking[*best];
    return best;
  }

 private:
  std::map<std::pair<uint64_t, uint64_t>, std::map<uint64_t, uint64_t>> seen_;
};

// Finds the pairs of single missing lines. Returns the other holes.
std::vector<Hole> fill_holes(InspectorJob::Membership& own, PairCounts lacking) {
  std::vector<Numbered> order = std::exchange(own.p2p, {});
  std::vector<Hole> holes;
  std::sort(order.begin(), order.end(), [](const Numbered& a, const Numbered& b) { return a.sn < b.sn; });
  uint64_t missing = order.empty() || order[0].sn < 2 ? 0 : order[0].sn - 1;
  if (missing > 0) holes.push_back({order[0].sn - 1, missing});
  for (size_t i = 1; i < order.size(); ++i) missing += order[i].sn - order[i - 1].sn != 1;
  // A line that came twice, from a copy of the file, spoils the count of its pair too.
  own.lost_p2p = own.lost_p2p || missing > 0;
  if (missing == 0) return holes;
  const Between usual(order);
  for (size_t i = 1; i < order.size(); ++i) {
    const uint64_t distance = order[i].sn - order[i - 1].sn;
    if (distance < 2) continue;
    std::optional<uint64_t> pair;
    if (distance == 2) pair = usual.find(order[i - 1].pair, order[i].pair, lacking);
    if (pair)
      own.pairs.at(*pair).lose({order[i].sn - 1, 1});
    else
      holes.push_back({order[i].sn - 1, distance - 1});
  }
  return holes;
}

bool share_host(const Run& a, const Run& b) {
  return std::any_of(a.hosts.begin(), a.hosts.end(),
                     [&](const auto& host) { return b.hosts.contains(host); });
}

}  // namespace

void InspectorJob::settle() {
  for (Comm& comm : comms_) {
    std::sort(comm.members.begin(), comm.members.end());
    for (size_t i = 1; i < comm.members.size(); ++i)
      comm.repeats = comm.repeats || comm.members[i].first == comm.members[i - 1].first;
  }
  use_untimed_ = bunched_ * 10 <= untimed_;
  drop_earlier_runs();
  if (!number_by_world()) {
    number_in_order(order_by_members());
    guessed_ = !processes_.empty();
  }
  number_devices();
  find_lost_p2p();
}

// A job that was started again wrote other files on the same hosts, with other communicators.
void InspectorJob::drop_earlier_runs() {
  std::vector<uint32_t> parent(processes_.size());
  std::iota(parent.begin(), parent.end(), 0u);
  for (const Comm& comm : comms_)
    for (const auto& [rank, process] : comm.members)
      parent[root_of(parent, process)] = root_of(parent, comm.members[0].second);
  std::map<uint32_t, Run> runs;
  for (uint32_t p = 0; p < processes_.size(); ++p) {
    Run& run = runs[root_of(parent, p)];
    run.first_ns = std::min(run.first_ns, processes_[p].first_ns);
    run.last_ns = std::max(run.last_ns, processes_[p].last_ns);
    run.hosts.insert(processes_[p].host);
  }
  current_.assign(processes_.size(), true);
  // Only the latest runs are compared: a hostile file may name any number of processes.
  constexpr size_t kCompared = 64;
  std::vector<const Run*> latest;
  for (const auto& [root, run] : runs) latest.push_back(&run);
  std::sort(latest.begin(), latest.end(), [](const Run* a, const Run* b) { return a->last_ns > b->last_ns; });
  latest.resize(std::min(latest.size(), kCompared));
  for (auto& [root, run] : runs)
    run.earlier = std::any_of(latest.begin(), latest.end(), [&own = run](const Run* other) {
      return other->first_ns > own.last_ns && share_host(own, *other);
    });
  for (uint32_t p = 0; p < processes_.size(); ++p) {
    current_[p] = !runs[root_of(parent, p)].earlier;
    earlier_ += !current_[p];
  }
}

// PyTorch's default group has all ranks in their order. The files may be a part of the job's: job.toml tells.
bool InspectorJob::number_by_world() {
  const auto all = static_cast<size_t>(std::count(current_.begin(), current_.end(), true));
  const auto size = [](const Comm& comm) { return std::pair(comm.n_ranks, comm.members.size()); };
  const Comm* world = nullptr;
  for (const Comm& comm : comms_)
    if (!comm.members.empty() && is_current(comm.members[0].second) && (!world || size(comm) > size(*world)))
      world = &comm;
  if (!world || world->members.size() < all || world->n_ranks < all || world->repeats) return false;
  const size_t told = job_.hosts.size() * job_.ranks_per_host.value_or(0);
  if (told > world->n_ranks) return false;
  if (told == 0) world_ = world->n_ranks;
  for (const auto& [rank, process] : world->members) processes_[process].global = rank;
  return true;
}

// Places of the processes by host, then by pid: launchers start the ranks of a host in their order.
std::vector<uint32_t> InspectorJob::places() const {
  const auto host_place = [this](const std::string& host) {
    return std::find(job_.hosts.begin(), job_.hosts.end(), host) - job_.hosts.begin();
  };
  std::map<std::string, std::ptrdiff_t> by_host;
  for (const Process& process : processes_)
    if (!by_host.contains(process.host)) by_host[process.host] = host_place(process.host);
  std::vector<uint32_t> order(processes_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Process &x = processes_[a], &y = processes_[b];
    if (x.host == y.host) return x.pid < y.pid;
    const auto at = by_host.find(x.host)->second, bt = by_host.find(y.host)->second;
    return at != bt ? at < bt : natural_less(x.host, y.host);
  });
  std::vector<uint32_t> place(processes_.size());
  for (uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

// Ranks within a group have the order of the global ranks. Among processes that no group orders, the place
// decides.
std::vector<uint32_t> InspectorJob::order_by_members() {
  const std::vector<uint32_t> place = places();
  std::vector<std::vector<uint32_t>> after(processes_.size());
  std::vector<uint32_t> before(processes_.size(), 0);
  for (const Comm& comm : comms_)
    for (size_t i = 1; i < comm.members.size(); ++i) {
      const uint32_t a = comm.members[i - 1].second, b = comm.members[i].second;
      if (comm.members[i - 1].first == comm.members[i].first) continue;
      after[a].push_back(b);
      ++before[b];
    }
  const auto later = [&](uint32_t a, uint32_t b) { return place[a] > place[b]; };
  std::priority_queue<uint32_t, std::vector<uint32_t>, decltype(later)> free(later);
  for (uint32_t p = 0; p < processes_.size(); ++p)
    if (before[p] == 0) free.push(p);
  std::vector<uint32_t> out;
  for (; !free.empty();) {
    const uint32_t p = free.top();
    free.pop();
    out.push_back(p);
    for (const uint32_t next : after[p])
      if (--before[next] == 0) free.push(next);
  }
  if (out.size() == processes_.size()) return out;
  contradicts_ = true;
  out.resize(processes_.size());
  for (uint32_t p = 0; p < processes_.size(); ++p) out[place[p]] = p;
  return out;
}

void InspectorJob::number_in_order(const std::vector<uint32_t>& order) {
  // With the hosts of job.toml, processes of hosts without files keep their numbers free.
  std::map<std::string, uint32_t> on_host;
  bool known = job_.ranks_per_host.has_value() && !job_.hosts.empty();
  for (const uint32_t p : order) {
    if (!is_current(p)) continue;
    const uint32_t local = on_host[processes_[p].host]++;
    known = known && local < *job_.ranks_per_host && rank_of_local(job_, processes_[p].host, local);
  }
  on_host.clear();
  uint32_t next = 0;
  for (const uint32_t p : order) {
    if (!is_current(p)) continue;
    const uint32_t local = on_host[processes_[p].host]++;
    processes_[p].global = known ? *rank_of_local(job_, processes_[p].host, local) : next++;
  }
}

void InspectorJob::number_devices() {
  std::map<std::string, std::vector<uint32_t>> on_host;
  for (uint32_t p = 0; p < processes_.size(); ++p)
    if (processes_[p].global != kCommUnknown) on_host[processes_[p].host].push_back(p);
  for (auto& [host, all] : on_host) {
    std::sort(all.begin(), all.end(),
              [this](uint32_t a, uint32_t b) { return processes_[a].global < processes_[b].global; });
    if (all.size() > limits::kDevicesOfHost) continue;
    for (uint32_t i = 0; i < all.size(); ++i) processes_[all[i]].device = i;
  }
}

// The Inspector numbers the sends and receives of a communicator together, from 1, so it shows where a line
// is missing. The peers tell what a pair lacks, and the order that a loop repeats tells where: the neighbours
// of a hole are known. A hole of several lines has what the peers have more.
void InspectorJob::find_lost_p2p() {
  struct Holes {
    Membership* own;
    std::vector<Hole> open;
  };
  std::vector<Holes> open;
  for (Process& process : processes_)
    for (auto& [id, own] : process.comms) {
      Holes holes{&own, fill_holes(own, lacking(own))};
      if (!holes.open.empty()) open.push_back(std::move(holes));
    }
  for (const Holes& one : open)
    if (one.open.size() == 1) share_lost(*one.own, one.open[0]);
  for (Process& process : processes_)
    for (auto& [id, own] : process.comms)
      for (auto& [pair, side] : own.pairs) {
        std::sort(side.lost.begin(), side.lost.end(), [](Hole a, Hole b) { return a.sn < b.sn; });
        uint64_t sum = 0;
        for (Hole& hole : side.lost) hole.count = std::exchange(sum, sum + hole.count);
      }
  for (const Process& process : processes_)
    for (const auto& [id, own] : process.comms)
      for (const auto& [pair, side] : own.pairs)
        if (!matches(own, pair)) lost_p2p_ += side.count;
}

// What the peers have more, by pair. Where several processes say that they have one rank, no peer is known.
InspectorJob::PairCounts InspectorJob::lacking(const Membership& own) const {
  PairCounts out;
  if (comms_[own.comm].repeats) return out;
  for (const auto& [pair, side] : own.pairs) {
    const Membership* peer = find_member(own.comm, static_cast<uint32_t>(pair >> 1));
    if (!peer) continue;
    const auto other = peer->pairs.find(inspector_pair(own.rank, (pair & 1) == 0));
    const uint64_t all = other == peer->pairs.end() ? 0 : other->second.all();
    if (all > side.all()) out[pair] = all - side.all();
  }
  return out;
}

// A sum that differs is of a side that ended earlier, or of pairs that have no line at all.
void InspectorJob::share_lost(Membership& own, Hole hole) const {
  const PairCounts shares = lacking(own);
  uint64_t sum = 0;
  for (const auto& [pair, count] : shares) sum += count;
  if (sum != hole.count) return;
  for (const auto& [pair, count] : shares) own.pairs.at(pair).lose({hole.sn, count});
}

std::vector<Problem> InspectorJob::problems() const {
  std::vector<Problem> out = problems_;
  const auto add = [&](std::string what) {
    out.push_back({"", std::nullopt, "NCCL Inspector: " + std::move(what)});
  };
  if (untimed_ > 0 && !use_untimed_)
    add(fmt::format(
        "{} of {} have no times of their own and were written long after they ended: they are left "
        "out; set NCCL_INSPECTOR_DUMP_VERBOSE=1 in the job",
        untimed_, counted(operations_, "operation")));
  else if (untimed_ > 0)
    add(
        fmt::format("{} of {} have no times of their own: the time of their writing counts; "
                    "NCCL_INSPECTOR_DUMP_VERBOSE=1 in the job gives exact ones",
                    untimed_, counted(operations_, "operation")));
  if (earlier_ > 0)
    add(fmt::format("{} of an earlier run on the same hosts left out", counted(earlier_, "process")));
  if (contradicts_)
    add("the order of the processes in their communicators is contradictory: ranks are numbered by host and "
        "pid, "
        "and may be others");
  else if (guessed_)
    add("no communicator has all ranks: ranks are numbered by their order in communicators, host and "
        "pid");
  else if (world_ > 0)
    add(
        fmt::format("ranks are numbered by the largest communicator, of {}: if the job has more, give hosts "
                    "and ranks_per_host in job.toml",
                    counted(world_, "rank")));
  if (lost_p2p_ > 0)
    add(fmt::format("{} left out: others between the same ranks have no line",
                    counted(lost_p2p_, "point-to-point operation")));
  if (changed_ranks_ > 0)
    add(fmt::format("{} of processes with several ranks in one communicator left out",
                    counted(changed_ranks_, "operation")));
  if (beyond_ > 0) add(fmt::format("{} beyond the limits left out", counted(beyond_, "operation")));
  return out;
}

// ---- records

Result<std::unique_ptr<InspectorFile>> InspectorFile::open(const SourceFile& file, const InspectorJob& job) {
  auto bytes = Decompressor::open(file);
  if (!bytes) return tl::unexpected(std::move(bytes.error()));
  return over(std::move(*bytes), job);
}

std::unique_ptr<InspectorFile> InspectorFile::over(Decompressor bytes, const InspectorJob& job) {
  return std::unique_ptr<InspectorFile>(new InspectorFile(std::move(bytes), job));
}

void InspectorFile::next(std::vector<CommRecord>& out, size_t most) {
  out.clear();
  std::string_view text;
  for (;;) {
    if (!held_) {
      if (!lines_.next(text)) return;
      if (parse_inspector_line(text, line_) != InspectorPiece::kOperation) continue;
      held_ = true;
      begin_process();
    }
    // A block has one host.
    if (line_.host != header_.host && !out.empty()) return;
    header_.host = line_.host;
    for (; !joins_.empty() && out.size() < most; joins_.pop_back()) out.push_back(joins_.back());
    if (out.size() >= most) return;
    CommRecord record;
    if (make_record(record)) out.push_back(record);
    held_ = false;
  }
}

// A communicator has members that may have no records left: their joins tell them.
void InspectorFile::begin_process() {
  const uint32_t found = job_.find_process(line_.host, line_.pid);
  if (found == process_) return;
  process_ = found;
  if (found == InspectorJob::kNoProcess || !begun_.insert(found).second) return;
  const InspectorJob::Process& process = job_.processes()[found];
  if (process.global == kCommUnknown) return;
  for (const auto& [id, own] : process.comms)
    for (const InspectorJob::Stream& stream : own.streams) {
      CommRecord join;
      join.start_ns = join.end_ns = std::max<uint64_t>(own.first_ns, 1);
      join.comm = inspector_stream(id, stream.op);
      join.rank = process.global;
      join.comm_size = job_.comms()[own.comm].n_ranks;
      join.device = process.device;
      joins_.push_back(join);
    }
}

bool InspectorFile::make_record(CommRecord& out) {
  if (process_ == InspectorJob::kNoProcess) return false;
  const InspectorJob::Process& process = job_.processes()[process_];
  const auto member = process.comms.find(line_.comm);
  if (process.global == kCommUnknown || member == process.comms.end()) return false;
  if (member->second.rank != line_.rank || (!line_.has_times && !job_.use_untimed())) return false;
  out.start_ns = std::max<uint64_t>(line_.start_ns, 1);
  out.end_ns = line_.end_ns;
  out.comm = inspector_stream(line_.comm, line_.op);
  out.seq = line_.sn;
  out.bytes = line_.bytes;
  out.rank = process.global;
  out.comm_size = line_.n_ranks;
  out.op = line_.op;
  out.flags = line_.device_time ? kCommDeviceTimes : uint8_t{0};
  out.device = process.device;
  if (!is_p2p(line_.op)) return true;
  out.peer = job_.global_rank(member->second.comm, line_.peer);
  if (out.peer == kCommUnknown) return false;
  // Both sides count the operations of a pair from 0.
  const uint64_t key = inspector_pair(line_.peer, line_.op == CommOp::kSend);
  const auto side = member->second.pairs.find(key);
  if (side == member->second.pairs.end()) return false;
  const auto [at, fresh] = pairs_.try_emplace({uint64_t{process_} << 32 | member->second.comm, key});
  Pair& pair = at->second;
  if (fresh) {
    pair.side = &side->second;
    pair.matches = job_.matches(member->second, key);
  }
  if (pair.count >= pair.side->count) return false;  // beyond limits
  const auto& lost = pair.side->lost;
  const auto after =
      std::partition_point(lost.begin(), lost.end(), [this](const Hole& hole) { return hole.sn < line_.sn; });
  out.seq = pair.count++ + (after == lost.end() ? pair.side->missing : after->count);
  return pair.matches;
}

}  // namespace culprit::ingest
