#include "sim/sim_world.h"

#include <algorithm>
#include <utility>

#include "sim/sim_env.h"

namespace culprit::sim {

namespace {

// Limit of events at one moment of virtual time; more indicate an endless loop.
constexpr uint64_t kEventsOfAMoment = 200'000;
// Interval at which a blocked or paused connection is checked.
constexpr TimeNs kLookAgainNs = 200 * kNsPerMs;
constexpr size_t kReadBytes = 64 << 10;

}  // namespace

void World::at(TimeNs when_ns, std::function<void()> call) {
  events_.push_back({std::max(when_ns, now_), ++order_, std::move(call)});
  std::push_heap(events_.begin(), events_.end(), Later());
}

bool World::run_for(TimeNs ns) {
  const TimeNs until = now_ + ns;
  uint64_t of_moment = 0;
  while (!events_.empty() && events_.front().when <= until) {
    std::pop_heap(events_.begin(), events_.end(), Later());
    const Event event = std::move(events_.back());
    events_.pop_back();
    of_moment = event.when == now_ ? of_moment + 1 : 0;
    if (of_moment > kEventsOfAMoment) return false;
    now_ = event.when;
    ++ran_;
    event.call();
  }
  now_ = until;
  return true;
}

// ---- the network

void World::heal() {
  faults = {};
  blocked_.clear();
  for (const auto& weak : links_)
    if (const auto link = weak.lock()) {
      for (Link::End& end : link->ends) end.bytes_per_second = 0;
      if (link->cut_at != 0) link->cut_at = link->half_open_at = ~uint64_t{0};
    }
}

void World::block(const std::string& machine, bool blocked) { blocked_[machine] = blocked; }

bool World::is_blocked(const Link& link) const {
  return std::any_of(std::begin(link.ends), std::end(link.ends), [&](const Link::End& end) {
    const auto found = blocked_.find(end.machine);
    return found != blocked_.end() && found->second;
  });
}

void World::cut_all(const std::string& machine) {
  for (const auto& weak : std::vector(links_))
    if (const auto link = weak.lock())
      if (link->ends[0].machine == machine || link->ends[1].machine == machine) reset(link);
}

void World::set_half_open(const std::string& machine) {
  for (const auto& weak : links_)
    if (const auto link = weak.lock())
      if (link->ends[0].machine == machine || link->ends[1].machine == machine)
        half_opens += !std::exchange(link->half_open, true);
}

std::unique_ptr<io::Stream> World::dial(SimEnv& from, const std::string& address) {
  const auto found = listening_.find(address);
  Random& random = net_random_;
  if (found == listening_.end() || found->second.alive.expired() || random.chance(faults.refused_percent)) {
    ++refused;
    return nullptr;
  }
  auto link = std::make_shared<Link>();
  link->number = ++connections;
  link->ends[0].machine = from.machine(), link->ends[0].alive = from.alive_;
  link->ends[1].machine = found->second.machine, link->ends[1].alive = found->second.alive;
  link->latency_ns = random.range(0, std::max<TimeNs>(faults.latency_ns, 1));
  link->kernel_bytes = 1 + random.below(faults.kernel_bytes);
  if (random.chance(faults.cut_percent)) link->cut_at = random.below(faults.fault_after_bytes);
  if (random.chance(faults.half_open_percent)) link->half_open_at = random.below(faults.fault_after_bytes);
  if (random.chance(faults.slow_percent))
    link->ends[random.below(2)].bytes_per_second = 1 + random.below(random.chance(50) ? 20 : 2000);
  std::erase_if(links_, [](const auto& weak) { return weak.expired(); });
  links_.push_back(link);
  const auto accept = found->second.call;
  accept(std::make_unique<SimStream>(*this, link, 1));
  return std::make_unique<SimStream>(*this, link, 0);
}

void World::pump_soon(const std::shared_ptr<Link>& link, int to, TimeNs ns) {
  if (std::exchange(link->ends[to].pumping, true)) return;
  after(ns, [this, link, to] {
    link->ends[to].pumping = false;
    pump(link, to);
  });
}

void World::end(const std::shared_ptr<Link>& link, int to, const Error* error) {
  Link::End& end = link->ends[to];
  if (!end.open || !end.started || end.alive.expired() || std::exchange(end.ended, true)) return;
  const auto handlers = end.handlers;
  if (handlers->on_end) handlers->on_end(error);
}

void World::reset(const std::shared_ptr<Link>& link) {
  ++cuts;
  link->cut_at = 0;
  for (int to = 0; to < 2; ++to) {
    link->ends[to].wire.clear();
    pump_soon(link, to, 0);
  }
}

// The sender's kernel has accepted all bytes of direction `to`.
void World::notify_sent(const std::shared_ptr<Link>& link, int to) {
  Link::End& writer = link->ends[1 - to];
  if (link->ends[to].wire.size() > link->kernel_bytes || std::exchange(link->ends[to].reported, true)) return;
  if (!writer.open || writer.ended || writer.alive.expired() || !writer.handlers) return;
  const auto handlers = writer.handlers;
  if (handlers->on_sent) handlers->on_sent();
}

// Moves the bytes of one direction; schedules the next call if needed.
void World::pump(const std::shared_ptr<Link>& link, int to) {
  Link::End& end_to = link->ends[to];
  if (link->half_open || !end_to.open || end_to.ended || end_to.alive.expired()) return;
  if (is_blocked(*link)) return pump_soon(link, to, kLookAgainNs);
  // A paused reader is informed when it resumes.
  if (!end_to.started || end_to.paused) return;
  if (link->cut_at == 0) {
    const Error error{ErrorCode::kIo, "a connection: connection reset by peer"};
    return end(link, to, &error);
  }
  if (!end_to.wire.empty()) {
    const uint64_t faulty = std::min(link->cut_at, link->half_open_at);
    size_t size = std::min(end_to.wire.size(), kReadBytes);
    // A read returns a random part of the available bytes.
    if (net_random_.chance(30)) size = 1 + net_random_.below(size);
    TimeNs next_ns = 0;
    if (end_to.bytes_per_second > 0) {
      size = std::min<size_t>(size, std::max<uint64_t>(1, end_to.bytes_per_second / 4));
      next_ns = static_cast<TimeNs>(size) * kNsPerSecond / static_cast<TimeNs>(end_to.bytes_per_second);
    }
    size = std::min(size, faulty - link->moved);
    link->moved += size;
    end_to.delivered += size;
    const std::string bytes = end_to.wire.substr(0, size);
    end_to.wire.erase(0, size);
    if (link->moved >= link->half_open_at) link->half_open = true, ++half_opens;
    if (link->moved >= link->cut_at)
      reset(link);
    else
      pump_soon(link, to, next_ns);
    const auto handlers = end_to.handlers;
    if (size > 0) handlers->on_bytes(bytes);
    return notify_sent(link, to);
  }
  if (end_to.hung_up) end(link, to, nullptr);
}

}  // namespace culprit::sim
