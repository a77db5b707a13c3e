#include "sim/comm_fault.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "sim/comm_event.h"

namespace culprit::sim {
namespace {

enum class Somebody : uint8_t { kNo, kListed, kYes };
struct Kind {
  std::string_view name, kind, help;
  Somebody somebody;
};
constexpr Kind kKinds[] = {
    {"gpu", "gpu", "one device computes slower, as when it throttles", Somebody::kYes},
    {"host", "host", "all ranks of a host compute slower: its processors are busy with something else",
     Somebody::kYes},
    {"stall", "host", "a rank is blocked once, for a while", Somebody::kYes},
    {"stall-periodic", "host", "a rank is blocked again and again, with a period", Somebody::kYes},
    {"spike", "gpu", "one device computes slower in one step of seven or so", Somebody::kYes},
    {"nic", "nic", "one card of a host carries less, in both directions", Somebody::kYes},
    {"link", "link", "the path between two hosts loses packets", Somebody::kYes},
    {"nvlink", "nvlink", "what connects the devices of a host carries less", Somebody::kYes},
    {"switch", "switch", "all traffic of the hosts below a leaf switch is slower", Somebody::kYes},
    {"hang-host", "hang", "a rank never enters an operation: its process is stuck", Somebody::kYes},
    {"hang-device", "hang", "a rank enters an operation that its peers leave, and never leaves it",
     Somebody::kYes},
    {"spike-gpu", "gpu", "one device computes slower in two or three steps of the job", Somebody::kListed},
    {"spike-host", "host", "all ranks of a host compute slower in two or three steps", Somebody::kListed},
    {"spike-link", "link", "the path between two hosts loses packets in two or three steps",
     Somebody::kListed},
    {"fluctuation-gpu", "gpu", "one device computes slower now and then, never by the same",
     Somebody::kListed},
    {"fluctuation-link", "link", "a path loses packets now and then, never as many", Somebody::kListed},
    {"stop-once", "host", "a process is stopped for a minute and goes on", Somebody::kListed},
    {"pause-once", "host", "a process stands still once, for some hundred milliseconds", Somebody::kListed},
    {"pause-twice", "host", "a process stands still twice, for 120 to 300 ms", Somebody::kListed},
    {"gc", "job", "garbage collection pauses, in one process after another: no fault", Somebody::kNo},
    {"burst", "job", "other work takes a host's processors for some steps, once: no fault", Somebody::kNo},
    {"imbalance-expert", "job", "batches load experts very unevenly: no fault", Somebody::kNo},
    {"imbalance-sequence", "job", "samples are of very different lengths: no fault", Somebody::kNo},
    {"imbalance-stage", "job", "the last stage has more to compute than the others: no fault", Somebody::kNo},
    {"pause-all", "job", "all ranks pause together, as for a checkpoint: no fault", Somebody::kNo},
    {"pause-moves", "job", "a pause comes a few times, each time to another rank: no fault", Somebody::kNo},
    {"loader-moves", "job", "a few times a host is late with its data, each time another: no fault",
     Somebody::kNo},
    {"rank0-saves", "job", "rank 0 saves or logs every few steps: no fault", Somebody::kNo},
};

// Minimum stall, longer than a garbage collection (some hundred milliseconds), so that the two are
// distinguishable. Causes: a file system that does not answer, a transfer that is retried.
constexpr uint64_t kStallNs = 500'000'000;

int64_t units(double value) { return static_cast<int64_t>(value * static_cast<double>(kUnit)); }

bool has_rhythm(const CommFault& fault) { return fault.name == "stall-periodic" || fault.name == "spike"; }

// Chooses the steps of a recurring fault: four to eight stalls, or one in every five to nine steps.
void choose_rhythm(CommFault& fault, uint32_t steps, Random random) {
  const auto stalls = static_cast<uint32_t>(random.range(4, 9));
  const uint32_t period =
      fault.name == "spike" ? static_cast<uint32_t>(random.range(5, 10)) : std::max(2u, steps / stalls);
  const auto first = static_cast<uint32_t>(random.below(period));
  fault.active.assign(steps, 0);
  for (uint32_t step = std::min(first, steps - 1); step < steps; step += period) fault.active[step] = 1;
}

// Chooses the steps of a preemption or a neighbour's job: 3 to 12 of at least a hundred.
void choose_burst(CommFault& fault, uint32_t steps, Random random) {
  const auto length = std::clamp(static_cast<uint32_t>(random.range(3, 13)), 1u, std::max(1u, steps / 10));
  const auto from = static_cast<uint32_t>(random.below(steps - length + 1));
  fault.active.assign(steps, 0);
  for (uint32_t step = from; step < from + length; ++step) fault.active[step] = 1;
}

Status choose_steps(CommFault& fault, const CommJobOptions& o, Random random) {
  if (has_rhythm(fault)) return choose_rhythm(fault, o.steps, random), Status{};
  if (fault.name == "burst") return choose_burst(fault, o.steps, random), Status{};
  std::string onset = o.onset;
  const uint32_t last = o.steps - 1;
  if (is_hang(fault) || fault.name == "stall") {
    if (onset.empty() || onset == "start" || onset == "intermittent")
      onset = fmt::format("{}", random.range(last / 3, last));
  } else if (onset.empty()) {
    const uint64_t dice = random.below(100);
    onset = dice < 40   ? "start"
            : dice < 80 ? fmt::format("{}", random.range(1, last / 2 + 1))
                        : "intermittent";
  }
  fault.active.assign(o.steps, 0);
  uint32_t from = 0;
  if (onset != "start" && onset != "intermittent") {
    const auto [end, error] = std::from_chars(onset.data(), onset.data() + onset.size(), from);
    if (error != std::errc() || end != onset.data() + onset.size() || from > last)
      return fail(ErrorCode::kInvalid,
                  "onset: " + onset + " is neither start, nor intermittent, nor a step of the job");
  }
  const bool once = is_hang(fault) || fault.name == "stall";
  for (uint32_t step = from; step <= (once ? from : last); ++step)
    fault.active[step] = onset != "intermittent" || random.chance(50);
  if (onset == "intermittent") fault.active[random.below(o.steps)] = 1;
  return {};
}

void add_rank(CommFault& fault, const CommSite& site, uint32_t rank) {
  fault.ranks.push_back(rank);
  if (fault.hosts.empty() || fault.hosts.back() != site.host_of(rank))
    fault.hosts.push_back(site.host_of(rank));
}

void add_host(CommFault& fault, const CommSite& site, uint32_t host) {
  const uint32_t first = host * site.ranks_per_host;
  for (uint32_t r = first; r < std::min(first + site.ranks_per_host, site.world); ++r)
    add_rank(fault, site, r);
}

// Collects the groups and channels where two ranks exchange bytes and `slow(a, b)` holds.
template <class Slow>
void find_slow(CommFault& fault, const CommSite& site, Slow slow) {
  for (uint8_t kind = 1; kind < kCommGroups; ++kind) {
    const CommGroups& groups = site.groups[kind];
    for (uint32_t n = 0; n < groups.count(); ++n) {
      const uint32_t *members = &groups.members[groups.first[n]], size = groups.size(n);
      bool hit = false;
      for (uint32_t i = 0; size > 1 && i < size && !hit; ++i) hit = slow(members[i], members[(i + 1) % size]);
      if (hit) fault.slow_groups[kind].push_back(n);
    }
  }
  for (uint32_t r = 0; site.pp > 1 && r < site.world; ++r) {
    if (slow(r, site.next(r))) fault.slow_channels.push_back(2 * r);
    if (slow(r, site.previous(r))) fault.slow_channels.push_back(2 * r + 1);
  }
}

void slow_card(CommFault& fault, const CommSite& site) {
  const uint32_t rank = fault.ranks[0];
  find_slow(fault, site, [&](uint32_t a, uint32_t b) {
    return (a == rank || b == rank) && site.host_of(a) != site.host_of(b);
  });
  // A ring uses several cards of a host in parallel; all members wait for the slowest card.
  for (uint8_t kind = 1; kind < kCommGroups; ++kind) {
    const CommGroups& groups = site.groups[kind];
    const uint32_t n = groups.of_rank[rank];
    auto& slow = fault.slow_groups[kind];
    if (groups.spans[n] && slow.empty()) slow.push_back(n);
  }
}

void slow_way(CommFault& fault, const CommSite& site) {
  find_slow(fault, site, [&](uint32_t a, uint32_t b) {
    const uint32_t x = site.host_of(a), y = site.host_of(b);
    return std::pair(std::min(x, y), std::max(x, y)) == fault.link;
  });
}

// Slows the link between two hosts that exchange data: neighbours in a ring or a pipeline.
bool slow_link(CommFault& fault, const CommSite& site, Random& random) {
  std::set<std::pair<uint32_t, uint32_t>> pairs;
  const auto add = [&](uint32_t a, uint32_t b) {
    const uint32_t x = site.host_of(a), y = site.host_of(b);
    if (x != y) pairs.insert({std::min(x, y), std::max(x, y)});
  };
  for (const CommGroup kind : {CommGroup::kDp, CommGroup::kEp, CommGroup::kCp}) {
    const CommGroups& groups = site.of(kind);
    for (uint32_t n = 0; n < groups.count(); ++n)
      for (uint32_t i = groups.first[n]; i + 1 < groups.first[n + 1]; ++i)
        add(groups.members[i], groups.members[i + 1]);
  }
  for (uint32_t r = 0; site.pp > 1 && r < site.world; ++r)
    if (site.stage_of(r) + 1 < site.pp) add(r, site.next(r));
  if (pairs.empty()) return false;
  auto chosen = pairs.begin();
  std::advance(chosen, static_cast<int64_t>(random.below(pairs.size())));
  fault.link = *chosen;
  fault.hosts = {chosen->first, chosen->second};
  slow_way(fault, site);
  return true;
}

// Ranks whose fault could cause the same slowdown: the members of the smallest slow group, or both ends of
// the slow channel.
std::vector<uint32_t> others_that_may(const CommFault& fault, const CommSite& site) {
  if (!fault.slow_channels.empty()) {
    const uint32_t c = fault.slow_channels[0], r = c / 2;
    return {r, c % 2 == 0 ? site.next(r) : site.previous(r)};
  }
  std::vector<uint32_t> out;
  for (uint8_t kind = 1; kind < kCommGroups; ++kind) {
    const CommGroups& groups = site.groups[kind];
    for (const uint32_t n : fault.slow_groups[kind])
      if (out.empty() || groups.size(n) < out.size())
        out.assign(&groups.members[groups.first[n]], &groups.members[groups.first[n]] + groups.size(n));
  }
  return out;
}

// Whether the same fault at another place would leave the same trace.
bool has_twin(const CommFault& fault, const CommSite& site) {
  const std::vector<uint32_t> ranks = others_that_may(fault, site);
  const auto same = [&](const CommFault& other) {
    return other.slow_groups == fault.slow_groups && other.slow_channels == fault.slow_channels;
  };
  for (size_t i = 0; i < ranks.size(); ++i) {
    CommFault other;
    if (fault.name == "nic") {
      if (ranks[i] == fault.ranks[0]) continue;
      other.ranks = {ranks[i]};
      slow_card(other, site);
    } else {
      const uint32_t x = site.host_of(ranks[i]), y = site.host_of(ranks[(i + 1) % ranks.size()]);
      other.link = std::minmax(x, y);
      if (x == y || other.link == fault.link) continue;
      slow_way(other, site);
    }
    if (same(other)) return true;
  }
  return false;
}

void choose_stop(CommFault& fault, const CommSite& site, Random& random) {
  const CommProgram program = train_program(site, site.stage_of(fault.ranks[0]));
  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < program.actions.size(); ++i) {
    const CommAct& one = program.actions[i];
    if (one.act == Act::kEnter && site.of(one.group).size(site.of(one.group).of_rank[fault.ranks[0]]) > 1)
      places.push_back(i);
  }
  fault.stop_at = places[random.below(places.size())];  // there is at least the all_reduce of the norm
}

void imbalance(CommFault& fault, CommSite& site, Random& random) {
  if (fault.name == "imbalance-expert") site.expert = random.range(kUnit / 3, kUnit * 2 / 3);
  if (fault.name == "imbalance-sequence") site.sequence = random.range(kUnit / 6, kUnit / 2);
  if (fault.name == "burst" && fault.severity == 1)
    fault.severity = static_cast<double>(random.range(kUnit * 3 / 2, kUnit * 4)) / static_cast<double>(kUnit);
  if (fault.name == "imbalance-stage") site.stage = random.range(kUnit * 5 / 4, kUnit * 2);
  if (fault.name != "gc") return;
  site.gc_every = static_cast<uint32_t>(std::max<int64_t>(4, random.range(1, 4) * site.world / 8));
  site.gc_ns = static_cast<uint64_t>(random.range(100, 400)) * 1'000'000;
}

Status choose_place(CommFault& fault, const CommSite& site, Random& random) {
  const auto needs = [&](bool there, std::string_view what) -> Status {
    if (there) return {};
    return fail(ErrorCode::kInvalid, fmt::format("fault {}: the job needs {}", fault.name, what));
  };
  const auto rank = static_cast<uint32_t>(random.below(site.world));
  if (fault.name == "host" || fault.name == "spike-host" || fault.name == "nvlink")
    add_host(fault, site, site.host_of(rank));
  else if (fault.name == "switch") {
    const uint32_t leaf = site.host_of(rank) / site.hosts_per_switch * site.hosts_per_switch;
    for (uint32_t h = leaf; h < std::min(leaf + site.hosts_per_switch, site.hosts); ++h)
      add_host(fault, site, h);
    find_slow(fault, site, [&](uint32_t a, uint32_t b) {
      const auto below = [&](uint32_t r) { return site.host_of(r) / site.hosts_per_switch; };
      const uint32_t mine = leaf / site.hosts_per_switch;
      return site.host_of(a) != site.host_of(b) && (below(a) == mine || below(b) == mine);
    });
  } else if (fault.name == "burst" && random.chance(50)) {
    add_host(fault, site, site.host_of(rank));
  } else if (fault.name == "burst" || (fault.kind != "link" && fault.somebody))
    add_rank(fault, site, rank);
  if (fault.name == "nic") slow_card(fault, site);
  if (fault.name == "nvlink")
    find_slow(fault, site, [&](uint32_t a, uint32_t b) {
      return site.host_of(a) == fault.hosts[0] && site.host_of(b) == fault.hosts[0];
    });
  if (is_hang(fault)) choose_stop(fault, site, random);
  if (fault.name == "nic" || fault.name == "switch") return needs(site.hosts > 1, "two hosts or more");
  if (fault.name == "nvlink") return needs(site.ranks_per_host > 1, "two ranks on a host or more");
  if (fault.name == "imbalance-expert") return needs(site.ep > 1, "experts (--ep)");
  if (fault.name == "imbalance-stage") return needs(site.pp > 1, "a pipeline (--pp)");
  if (fault.kind == "link")
    return needs(slow_link(fault, site, random), "two hosts that speak to one another");
  return {};
}

void multiply(std::vector<int64_t>& list, size_t size, size_t i, int64_t factor) {
  if (list.empty()) list.assign(size, kUnit);
  list[i] = static_cast<int64_t>(scaled(static_cast<uint64_t>(list[i]), factor));
}

int64_t level(const CommFault& fault, uint32_t step) {
  return step < fault.levels.size() ? fault.levels[step] : kUnit;
}

void add_slow_links(const CommFault& fault, const CommSite& site, int64_t slower, CommEffects& effects) {
  for (uint8_t kind = 1; kind < kCommGroups; ++kind) {
    const CommGroups& groups = site.groups[kind];
    for (const uint32_t n : fault.slow_groups[kind]) {
      int64_t factor = slower;
      // Between hosts, the network card is the slowest link, unless the slowed NVLink is even slower.
      if (fault.name == "nvlink" && groups.spans[n]) {
        const uint64_t inside = scaled(site.nvlink_ns_per_mib, slower);
        factor = static_cast<int64_t>((std::max(inside, groups.ns_per_mib[n]) << 16) / groups.ns_per_mib[n]);
      }
      multiply(effects.group[kind], groups.count(), n, factor);
    }
  }
  for (const uint32_t c : fault.slow_channels) multiply(effects.channel, 2 * size_t{site.world}, c, slower);
}

}  // namespace

const std::vector<NamedChoice>& comm_faults() {
  static const std::vector<NamedChoice> choices = [] {
    std::vector<NamedChoice> out;
    for (const Kind& kind : kKinds) out.push_back({kind.name, kind.help});
    return out;
  }();
  return choices;
}

bool is_hang(const CommFault& fault) { return fault.kind == "hang"; }
bool is_of_job(const CommFault& fault) { return !fault.somebody; }

Result<CommFault> make_comm_fault(std::string_view name, const CommJobOptions& options, CommSite& site,
                                  Random random) {
  const auto kind =
      std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& one) { return one.name == name; });
  if (kind == std::end(kKinds))
    return fail(ErrorCode::kInvalid, fmt::format("fault: there is no kind named {}", name));
  CommFault fault;
  fault.name = kind->name;
  fault.kind = kind->kind;
  fault.somebody = kind->somebody != Somebody::kNo;
  fault.listed = kind->somebody == Somebody::kListed;
  fault.key = random.fork(1).next();
  if (options.severity != 0) fault.severity = options.severity;
  Random place = random.fork(2), strength = random.fork(4);
  if (Status status = choose_place(fault, site, place); !status) return tl::unexpected(status.error());
  if (is_event(fault))
    choose_event(fault, site, random.fork(3));
  else if (Status status = choose_steps(fault, options, random.fork(3)); !status)
    return tl::unexpected(status.error());
  if (fault.name == "nic" || fault.kind == "link") fault.twin = has_twin(fault, site);
  imbalance(fault, site, strength);
  return fault;
}

void add_effects(const CommFault& fault, const CommSite& site, uint32_t step, CommEffects& effects) {
  if (fault.active[step] == 0) return;
  const int64_t slower =
      kUnit +
      static_cast<int64_t>(scaled(static_cast<uint64_t>(units(fault.severity) - kUnit), level(fault, step)));
  if (is_pause(fault)) {
    add_pauses(fault, site, step, effects);
  } else if (is_hang(fault)) {
    effects.stops.push_back({fault.ranks[0], fault.stop_at, fault.name == "hang-device"});
  } else if (fault.name == "stall" || fault.name == "stall-periodic") {
    // Duration of the pause: all compute of a micro-batch times the severity.
    const uint64_t work = (site.block_ns + site.expert_ns) * site.blocks * site.micro_batches;
    effects.pauses.push_back({fault.ranks[0], mix64(fault.key, has_rhythm(fault) ? 0 : step),
                              std::max(kStallNs, scaled(work, slower))});
  } else if (fault.kind == "gpu") {
    multiply(effects.compute, site.world, fault.ranks[0], slower);
  } else if (fault.name == "host" || fault.name == "spike-host" || fault.name == "burst") {
    // Contention differs between ranks and between steps.
    for (const uint32_t r : fault.ranks) {
      const int64_t spread = lognormal_unit(mix64(mix64(fault.key, r), step), kUnit / 4);
      const int64_t factor =
          kUnit + static_cast<int64_t>(scaled(static_cast<uint64_t>(slower - kUnit), spread));
      multiply(effects.compute, site.world, r, factor);
      multiply(effects.host, site.world, r, 2 * factor);
    }
  } else {
    add_slow_links(fault, site, slower, effects);
  }
}

}  // namespace culprit::sim
