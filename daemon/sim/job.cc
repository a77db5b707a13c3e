#include "sim/job.h"

#include <algorithm>

namespace culprit::sim {

namespace {

// Average line length in the bench logs; only a first estimate for the padding.
constexpr uint64_t kLineBytes = 140;
// Limit of debug lines per host and iteration; more padding takes further iterations.
constexpr uint64_t kChatterMax = 400;
constexpr uint32_t kHarmlessBefore = 4;  // iterations

}  // namespace

JobWriter::JobWriter(const Site& site, const Tables& tables, const Run& run, Sink& sink)
    : site_(site), tables_(tables), run_(run), sink_(sink), random_(run.random.fork(11)) {}

Result<FaultOutcome> JobWriter::write(const FaultKind* fault, uint64_t bytes) {
  fault_ = fault;
  now_ = run_.start_ns;
  plan(bytes);
  plan_noise();
  if (fault_) plan_fault();
  const auto at = [&](Stage stage) {
    return fault_ && fault_->course == Course::kStop && fault_->stage == stage;
  };
  set_moment(0);
  play_planned(now_);
  if (at(Stage::kLaunch)) set_in(random_.range(1, 4) * kNsPerSecond);
  if (Status status = play_stage(tables_.launch, 5 * kNsPerSecond); !status)
    return tl::unexpected(status.error());
  if (!at(Stage::kLaunch)) {
    if (at(Stage::kInit)) set_in(random_.range(4, 18) * kNsPerSecond);
    if (Status status = play_stage(tables_.init, 22 * kNsPerSecond); !status)
      return tl::unexpected(status.error());
    monitor_next_.resize(site_.hosts);
    for (TimeNs& next : monitor_next_)
      next = now_ + random_.range(0, static_cast<int64_t>(site_.monitor_s) * kNsPerSecond);
    now_ = std::max(now_, run_.first_iteration_ns);
    if (!at(Stage::kInit)) {
      for (uint32_t i = 1; i <= iterations_; ++i) {
        if (Status status = play_iteration(i, bytes); !status) return tl::unexpected(status.error());
        if (victim_stop_ != INT64_MAX || i >= end_) break;
      }
    }
  }
  Status status;
  if (fault_) {
    status = play_stop();
  } else if (run_.ends) {
    status = play_stage(tables_.teardown, 6 * kNsPerSecond);
  }
  play_planned(INT64_MAX);
  if (status) status = sink_.write(batch_);
  if (!status) return tl::unexpected(status.error());
  return outcome_;
}

void JobWriter::plan(uint64_t bytes) {
  iterations_ = site_.iterations;
  if (!run_.steps_us.empty()) iterations_ = static_cast<uint32_t>(run_.steps_us.size());
  chatter_ = site_.chatter_per_host;
  if (bytes == 0) return;
  const uint64_t room = bytes / kLineBytes / site_.hosts;
  if (room / std::max(1u, iterations_) > kChatterMax)
    iterations_ = static_cast<uint32_t>(std::min<uint64_t>(room / kChatterMax, 10'000'000));
  chatter_ = std::max<uint64_t>(chatter_, room / std::max(1u, iterations_));
}

void JobWriter::plan_noise() {
  for (uint32_t index = 0; index < tables_.noise.size(); ++index) {
    const NoiseSpec& spec = *tables_.noise[index].spec;
    const bool kernel = spec.who == Who::kKernel;
    uint64_t places = spec.per_thousand / 1000;
    if (random_.per_mille(spec.per_thousand % 1000)) ++places;
    if (kernel && !site_.kernel_logs) continue;
    // Events of many hosts occur more often in larger jobs.
    if (places > 0 && spec.per_thousand >= 1000) places = std::max<uint64_t>(1, places * site_.hosts / 16);
    for (; places > 0; --places) {
      const auto host = static_cast<uint32_t>(random_.below(site_.hosts));
      const auto local = static_cast<uint32_t>(random_.below(site_.ranks_per_host));
      auto iteration = static_cast<uint32_t>(random_.range(1, iterations_));
      // In a job that continues, an alarm in the last iterations has no later lines that prove it harmless.
      if (!run_.ends && iteration + kHarmlessBefore > iterations_) continue;
      for (uint64_t n = 1 + random_.below(spec.burst_max); n > 0; --n) {
        noise_.push_back({std::min(iteration, iterations_), host, local, index});
        iteration += static_cast<uint32_t>(random_.below(std::max(2u, iterations_ / 8)));
        if (!run_.ends && iteration + kHarmlessBefore > iterations_) break;
      }
    }
  }
  std::stable_sort(noise_.begin(), noise_.end(),
                   [](const NoiseEvent& a, const NoiseEvent& b) { return a.iteration < b.iteration; });
}

void JobWriter::plan_fault() {
  outcome_.stage = fault_->stage;
  if (fault_->stage == Stage::kLaunch || fault_->stage == Stage::kInit) return;
  const auto n = static_cast<int64_t>(iterations_);
  onset_ = static_cast<uint32_t>(random_.range(std::min(n, 1 + n / 5), std::max(n / 5 + 1, n - 1 - n / 20)));
  if (fault_->stage == Stage::kCheckpoint)
    onset_ = std::max(1u, onset_ / site_.checkpoint_every) * site_.checkpoint_every;
  if (fault_->course == Course::kDrift) {
    onset_ =
        static_cast<uint32_t>(random_.range(std::max<int64_t>(1, n / 3), std::max<int64_t>(1, n * 3 / 5)));
    end_ = static_cast<uint32_t>(
        std::min<int64_t>(n, onset_ + std::max<int64_t>(2, n * random_.range(20, 35) / 100)));
    for (const ScriptLine& line : fault_->nvidia) drift_.emplace_back(choose_wording(line.text, random_));
  }
  onset_ = std::min(onset_, iterations_);
}

void JobWriter::set_moment(uint32_t index) {
  moment_.iteration = run_.first_iteration + index;
  const int64_t i = moment_.iteration;
  moment_.loss_e6 = 1'700'000 + 9'300'000 * 60 / (60 + i) + random_.range(-20'000, 20'000);
  moment_.grad_e3 = 350 + 4'000 * 20 / (20 + i) + random_.range(-60, 90);
  moment_.rate_e9 = i < 40 ? i * 7'500 : 300'000 - std::min<int64_t>(250'000, i * 30);
  moment_.seq += site_.layers * 2 + 3;
  moment_.scale = 65536u >> (i % 97 == 0 ? 1 : 0);
  const auto usual = static_cast<int64_t>(site_.iteration_us);
  moment_.iteration_us = usual + random_.range(-usual / 40, usual / 40);
  if (index > 0 && index <= run_.steps_us.size()) moment_.iteration_us = run_.steps_us[index - 1];
  if (drifting_) moment_.iteration_us = moment_.iteration_us * fault_->stretch_percent / 100;
  if (fault_ && fault_->component == Component::kNumeric && index >= onset_) moment_.loss_e6 = -1;
}

void JobWriter::set_in(TimeNs after) {
  victim_stop_ = now_ + after;
  const bool everywhere = fault_->scope == Scope::kEverywhere;
  others_stop_ =
      victim_stop_ + (everywhere ? random_.range(0, 300) * kNsPerMs
                                 : random_.range(10, 80) * (moment_.iteration_us / 400) * kNsPerUs);
  outcome_.onset_ns = victim_stop_;
}

Status JobWriter::play_stage(const std::vector<CompiledLine>& lines, TimeNs length_ns) {
  // Written in parts, so that the initialisation of a thousand hosts is not in memory at once.
  const size_t piece = site_.ranks > 512 ? 4 : lines.size();
  for (size_t begin = 0; begin < lines.size(); begin += piece) {
    for (size_t i = begin; i < std::min(lines.size(), begin + piece); ++i) {
      const TimeNs at = now_ + length_ns * static_cast<int64_t>(i) / static_cast<int64_t>(lines.size());
      writers(lines[i].who, writers_);
      for (const Writer writer : writers_) {
        if (lines[i].percent != kFixed && !random_.chance(lines[i].percent)) continue;
        const TimeNs late = run_.hosts[writer.host].delay_ns + random_.range(0, 400'000'000);
        if (!cut_off(writer.host, writer.slot, at + late))
          emit(lines[i].line, writer, at + late, Role::kNone);
      }
    }
    if (Status status = sink_.write(batch_); !status) return status;
  }
  now_ += length_ns + random_.range(1, 3) * kNsPerSecond;
  if (victim_stop_ != INT64_MAX) now_ = others_stop_;
  return {};
}

Status JobWriter::play_iteration(uint32_t index, uint64_t bytes) {
  if (bytes > 0 && index > 1) {
    // Approaches the requested size: each remaining iteration gets a share that depends on the bytes so
    // far.
    const uint64_t done = sink_.bytes();
    // A job with a drifting fault continues after the onset, so one more iteration can always be padded.
    const uint32_t last = std::min(iterations_, std::min(onset_, end_)) + 2;
    const uint64_t left = (bytes > done ? bytes - done : 0) / (last > index ? last - index : 1);
    chatter_ = std::max<uint64_t>(1, left / kLineBytes / site_.hosts);
  }
  const bool stops = fault_ && fault_->course == Course::kStop && index == onset_;
  if (fault_ && fault_->course == Course::kDrift && index >= onset_ && !drifting_) {
    drifting_ = true;
    outcome_.onset_ns = now_;
    outcome_.iteration = run_.first_iteration + index;
  }
  set_moment(index);
  const TimeNs length = moment_.iteration_us * kNsPerUs;
  const bool checkpoint = index % site_.checkpoint_every == 0;
  if (stops) {
    outcome_.iteration = moment_.iteration;
    const bool saving = fault_->stage == Stage::kCheckpoint;
    set_in(saving ? length + random_.range(200, 900) * kNsPerMs : length * random_.range(10, 50) / 100);
  }
  play_pattern(index, length);
  play_chatter(index, length);
  play_noise(index, length);
  if (drifting_) play_drift(length);
  play_monitor(std::min(now_ + length, victim_stop_), false);
  now_ += length;
  if (checkpoint) play_block(tables_.checkpoint, random_.range(2, 9) * kNsPerSecond);
  if (index % site_.evaluate_every == 0) play_block(tables_.evaluation, random_.range(3, 12) * kNsPerSecond);
  play_planned(now_);
  return sink_.write(batch_);
}

void JobWriter::play_pattern(uint32_t index, TimeNs length) {
  const auto n = static_cast<int64_t>(tables_.iteration.size());
  const TimeNs own = drifting_ ? length * 100 / fault_->stretch_percent : length;
  for (int64_t i = 0; i < n; ++i) {
    const CompiledLine& line = tables_.iteration[static_cast<size_t>(i)];
    if (line.percent == kFixed && index % site_.log_every != 0) continue;
    writers(line.who, writers_);
    for (const Writer writer : writers_) {
      if (line.percent != kFixed && !random_.chance(line.percent)) continue;
      const bool slow = drifting_ && victim(writer.host, writer.slot);
      int64_t place = line.percent == kFixed ? n : i + 1;  // an iteration is logged at its end
      if (slow && fault_->reorder) place = n - i;
      // The other ranks compute at their own speed and wait at the end.
      const TimeNs within = (slow || place == n ? length : own) * place / (n + 1);
      const TimeNs at = now_ + within + random_.range(0, own / 50);
      if (!cut_off(writer.host, writer.slot, at)) emit(line.line, writer, at, Role::kNone);
    }
  }
}

void JobWriter::play_chatter(uint32_t index, TimeNs length) {
  const TimeNs own = drifting_ ? length * 100 / fault_->stretch_percent : length;
  const size_t kinds = tables_.chatter.size();
  for (uint32_t host = 0; host < site_.hosts; ++host) {
    const uint64_t count = (chatter_ * run_.hosts[host].chatty + 50) / 100;
    const bool slow = drifting_ && host == run_.fault_host;
    for (uint64_t j = 0; j < count; ++j) {
      const uint32_t local = static_cast<uint32_t>((j + index) % site_.ranks_per_host);
      const uint64_t place = slow && fault_->reorder ? count - 1 - j : j;
      const size_t kind = random_.chance(4) ? random_.below(kinds) : place % kinds;
      const TimeNs within =
          (slow ? length : own) * static_cast<int64_t>(j + 1) / static_cast<int64_t>(count + 1);
      const TimeNs at = now_ + within + random_.range(0, 2'000'000);
      if (!cut_off(host, local, at)) emit(tables_.chatter[kind].line, {host, local}, at, Role::kNone);
    }
  }
}

void JobWriter::play_noise(uint32_t index, TimeNs length) {
  for (; noise_at_ < noise_.size() && noise_[noise_at_].iteration <= index; ++noise_at_) {
    const NoiseEvent& event = noise_[noise_at_];
    const CompiledNoise& noise = tables_.noise[event.index];
    const uint32_t slot = noise.spec->who == Who::kKernel     ? kKernelSlot
                          : noise.spec->who == Who::kAgent    ? kAgentSlot
                          : noise.spec->who == Who::kLauncher ? kLauncherSlot
                                                              : event.local;
    const TimeNs at = now_ + random_.range(0, length);
    const Line line{noise.spec->shape, noise.spec->tone, &noise.text};
    if (!cut_off(event.host, slot, at)) emit(line, {event.host, slot}, at, Role::kNone);
  }
}

void JobWriter::play_monitor(TimeNs until_ns, bool stalled) {
  for (uint32_t host = 0; host < site_.hosts && host < monitor_next_.size(); ++host) {
    for (; monitor_next_[host] < until_ns;
         monitor_next_[host] += static_cast<int64_t>(site_.monitor_s) * kNsPerSecond) {
      const TimeNs at = monitor_next_[host] + random_.range(0, kNsPerSecond);
      if (stalled && fault_->victim_silent && host == run_.fault_host) continue;
      for (const CompiledLine& line : tables_.monitor) {
        const bool kernel = line.who == Who::kKernel;
        if (!random_.chance(std::min<uint32_t>(line.percent, 100))) continue;
        emit(line.line, {host, kernel ? kKernelSlot : 0}, at + random_.range(0, 50'000'000), Role::kNone);
      }
    }
  }
}

void JobWriter::play_block(const std::vector<CompiledLine>& lines, TimeNs length) {
  for (size_t i = 0; i < lines.size(); ++i) {
    writers(lines[i].who, writers_);
    const TimeNs begin = now_ + length * static_cast<int64_t>(i) / static_cast<int64_t>(lines.size());
    for (const Writer writer : writers_) {
      if (lines[i].percent != kFixed && !random_.chance(lines[i].percent)) continue;
      const TimeNs at = begin + random_.range(0, length / 10);
      if (!cut_off(writer.host, writer.slot, at)) emit(lines[i].line, writer, at, Role::kNone);
    }
  }
  now_ += length;
}

void JobWriter::play_drift(TimeNs length) {
  for (size_t i = 0; i < fault_->nvidia.size(); ++i) {
    const ScriptLine& line = fault_->nvidia[i];
    writers(line.who, writers_);
    const std::vector<Writer> chosen = writers_;
    for (const Writer writer : chosen) {
      if (!random_.chance(line.percent)) continue;
      const TimeNs at = now_ + length * random_.range(line.from_ms, line.to_ms) / 1000;
      const Role role = victim(writer.host, writer.slot) ? Role::kRoot : Role::kEcho;
      emit({line.shape, line.tone, &drift_[i]}, writer, at, role);
    }
  }
}

void JobWriter::play_planned(TimeNs until_ns) {
  for (; planned_at_ < run_.planned.size() && run_.planned[planned_at_].time_ns < until_ns; ++planned_at_) {
    const PlannedLine& one = run_.planned[planned_at_];
    const Template text(one.text);
    emit({one.shape, one.tone, &text}, {one.host, one.slot}, one.time_ns, Role::kNone);
  }
}

void JobWriter::writers(Who who, std::vector<Writer>& out) {
  out.clear();
  const uint32_t per = site_.ranks_per_host;
  const auto host_slots = [&](uint32_t slot, bool skip_victim) {
    for (uint32_t h = 0; h < site_.hosts; ++h)
      if (!skip_victim || h != run_.fault_host) out.push_back({h, slot});
  };
  switch (who) {
    case Who::kRank0:
      out.push_back({0, 0});
      break;
    case Who::kLast:
      out.push_back({site_.hosts - 1, per - 1});
      break;
    case Who::kHost:
      host_slots(0, false);
      break;
    case Who::kOtherHosts:
      host_slots(0, true);
      break;
    case Who::kAgent:
      host_slots(kAgentSlot, false);
      break;
    case Who::kOtherAgents:
      host_slots(kAgentSlot, true);
      break;
    case Who::kKernel:
      host_slots(kKernelSlot, false);
      break;
    case Who::kLauncher:
      out.push_back({0, kLauncherSlot});
      break;
    case Who::kVictim:
      out.push_back({run_.fault_host, run_.fault_local});
      break;
    case Who::kVictimHost:
      out.push_back({run_.fault_host, 0});
      break;
    case Who::kVictimAgent:
      out.push_back({run_.fault_host, kAgentSlot});
      break;
    case Who::kVictimKernel:
      out.push_back({run_.fault_host, kKernelSlot});
      break;
    case Who::kVictimLocals:
      for (uint32_t l = 0; l < per; ++l) out.push_back({run_.fault_host, l});
      break;
    case Who::kNeighbours:
      for (const uint32_t step : {1u, site_.hosts - 1}) {
        const uint32_t h = (run_.fault_host + step) % site_.hosts;
        if (h != run_.fault_host) out.push_back({h, run_.fault_local});
        if (site_.hosts <= 2) break;
      }
      break;
    case Who::kRank:
    case Who::kOthers:
    case Who::kAllButVictim:
    case Who::kSomeOthers:
      for (uint32_t h = 0; h < site_.hosts; ++h)
        for (uint32_t l = 0; l < per; ++l) {
          if (who != Who::kRank && h == run_.fault_host &&
              (who != Who::kAllButVictim || l == run_.fault_local))
            continue;
          if (who == Who::kSomeOthers && !random_.chance(10) && out.size() >= 2) continue;
          out.push_back({h, l});
        }
  }
}

bool JobWriter::victim(uint32_t host, uint32_t slot) const {
  if (!fault_) return false;
  if (fault_->scope == Scope::kEverywhere) return true;
  (void)slot;
  return host == run_.fault_host;
}

bool JobWriter::cut_off(uint32_t host, uint32_t slot, TimeNs at) const {
  const bool own = victim(host, slot);
  if (slot == kKernelSlot) return own && fault_->victim_silent && at > victim_stop_;
  if (own && fault_->scope == Scope::kRank && slot != run_.fault_local) return at > others_stop_;
  return at > (own ? victim_stop_ : others_stop_);
}

void JobWriter::emit(const Line& line, Writer writer, TimeNs at, Role role) {
  if (writer.slot == kKernelSlot && !site_.kernel_logs) return;
  const uint32_t local = writer.slot < site_.ranks_per_host ? writer.slot : 0;
  const Context context{
      site_, run_, moment_, random_, writer.host, local, at + run_.hosts[writer.host].skew_ns};
  const uint64_t begin = batch_.text.size();
  append_line(line, context, batch_.text);
  batch_.records.push_back({at, writer.host, writer.slot, begin,
                            static_cast<uint32_t>(batch_.text.size() - begin), line.shape, line.tone, role});
}

}  // namespace culprit::sim
