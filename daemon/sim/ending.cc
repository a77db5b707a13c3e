// The end of a job after its fault: the fault's own lines, the reactions of other ranks, the launcher's
// exit.
#include <algorithm>

#include "sim/job.h"

namespace culprit::sim {

namespace {

// Delay between the onset of the fault and the reaction of the other ranks.
TimeNs notice_after(Tail tail, const Site& site, Random& random) {
  switch (tail) {
    case Tail::kReset:
      return random.range(800, 9'000) * kNsPerMs;
    case Tail::kWatchdog:
      return site.timeout_s * kNsPerSecond + random.range(0, 4'000) * kNsPerMs;
    case Tail::kKilled:
      return random.range(300, 5'000) * kNsPerMs;
    case Tail::kWaiting:
      return random.range(120, 420) * kNsPerSecond;
    case Tail::kSilent:
      return random.range(100, 400) * kNsPerSecond;
  }
  return 0;
}

}  // namespace

Status JobWriter::play_stop() {
  if (fault_->course == Course::kDrift) {
    others_stop_ = victim_stop_ = INT64_MAX;
    if (fault_->tail == Tail::kSilent) return sink_.write(batch_);
    return play_end(now_ + 2 * kNsPerSecond, true);
  }
  const Script own = site_.accel == Accel::kAscend && !fault_->ascend.empty() ? fault_->ascend
                     : site_.accel == Accel::kTpu && !fault_->tpu.empty()     ? fault_->tpu
                                                                              : fault_->nvidia;
  const TimeNs onset = outcome_.onset_ns;
  play_script(own, onset, Role::kRoot);
  const TimeNs notice = onset + notice_after(fault_->tail, site_, random_);
  // The hosts' background lines continue while the ranks wait.
  play_monitor(notice, true);
  play_script(tail_script(fault_->tail, site_.accel), notice, Role::kEcho);
  if (fault_->tail == Tail::kSilent) return sink_.write(batch_);
  return play_end(notice + random_.range(2'000, 12'000) * kNsPerMs, fault_->tail == Tail::kWaiting);
}

Status JobWriter::play_end(TimeNs from, bool quiet) {
  play_script(end_script(site_.launcher, quiet), from, Role::kEcho);
  return sink_.write(batch_);
}

void JobWriter::play_script(Script script, TimeNs from, Role victim_role) {
  for (const ScriptLine& line : script)
    play_script_line(line, Template(choose_wording(line.text, random_)), from, victim_role);
}

void JobWriter::play_script_line(const ScriptLine& line, const Template& text, TimeNs from,
                                 Role victim_role) {
  writers(line.who, writers_);
  const TimeNs base = from + random_.range(line.from_ms, line.to_ms) * kNsPerMs;
  // A line of several ranks is written by all of them at nearly the same time.
  const int64_t spread_ms = writers_.size() > 1 ? std::max(40, (line.to_ms - line.from_ms) / 4) : 1;
  const std::vector<Writer> chosen = writers_;
  for (const Writer writer : chosen) {
    if (!random_.chance(line.percent)) continue;
    const bool own = victim(writer.host, writer.slot);
    const bool launcher =
        line.who == Who::kLauncher || line.who == Who::kOtherAgents || line.who == Who::kAgent;
    const bool silenced = fault_->victim_silent && fault_->scope != Scope::kEverywhere;
    if (own && silenced && victim_role == Role::kEcho && !launcher) continue;
    // The launcher is the first to report an event of the whole job (a limit, an eviction).
    const bool whole = fault_->scope == Scope::kEverywhere && victim_role == Role::kRoot;
    const Role role = own && (whole || !launcher) ? victim_role : Role::kEcho;
    for (uint16_t n = 0; n < line.times; ++n) {
      const TimeNs at = base + random_.range(0, spread_ms * kNsPerMs) + n * (line.every_ms * kNsPerMs);
      emit({line.shape, line.tone, &text}, writer, at, role);
    }
  }
}

}  // namespace culprit::sim
