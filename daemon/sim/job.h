// Writes one job from its launch to its end, line by line, into a sink. One JobWriter per job; one thread.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "sim/sink.h"
#include "sim/tables.h"

namespace culprit::sim {

// The actual place and time of the fault.
struct FaultOutcome {
  Stage stage = Stage::kIterative;
  std::optional<int64_t> iteration;
  TimeNs onset_ns = kNoTime;
};

class JobWriter {
 public:
  // `fault`: null for a healthy job. `bytes`: approximate size to pad to; 0: no padding.
  JobWriter(const Site& site, const Tables& tables, const Run& run, Sink& sink);
  Result<FaultOutcome> write(const FaultKind* fault, uint64_t bytes);

 private:
  struct Writer {
    uint32_t host, slot;
  };
  struct NoiseEvent {
    uint32_t iteration, host, local, index;
  };
  void plan(uint64_t bytes);
  void plan_noise();
  void plan_fault();
  Status play_stage(const std::vector<CompiledLine>& lines, TimeNs length_ns);
  Status play_iteration(uint32_t index, uint64_t bytes);
  void play_pattern(uint32_t index, TimeNs length_ns);
  void play_chatter(uint32_t index, TimeNs length_ns);
  void play_noise(uint32_t index, TimeNs length_ns);
  void play_monitor(TimeNs until_ns, bool stalled);
  void play_block(const std::vector<CompiledLine>& lines, TimeNs length_ns);
  void play_drift(TimeNs length_ns);
  void play_planned(TimeNs until_ns);
  void set_moment(uint32_t index);
  // Sets the onset of the fault to now_ + `after`: later lines are dropped.
  void set_in(TimeNs after);
  Status play_stop();
  Status play_end(TimeNs from, bool quiet);
  void play_script(Script script, TimeNs from, Role victim_role);
  void play_script_line(const ScriptLine& line, const Template& text, TimeNs from, Role victim_role);
  void writers(Who who, std::vector<Writer>& out);
  bool victim(uint32_t host, uint32_t slot) const;
  bool cut_off(uint32_t host, uint32_t slot, TimeNs at) const;
  void emit(const Line& line, Writer writer, TimeNs at, Role role);

  const Site& site_;
  const Tables& tables_;
  const Run& run_;
  Sink& sink_;
  const FaultKind* fault_ = nullptr;
  Random random_;
  Batch batch_;
  Moment moment_;
  FaultOutcome outcome_;
  TimeNs now_ = 0;
  TimeNs victim_stop_ = INT64_MAX, others_stop_ = INT64_MAX;
  bool drifting_ = false;
  uint32_t onset_ = UINT32_MAX;  // index of the iteration
  uint32_t end_ = UINT32_MAX;    // drift: the last iteration
  uint32_t iterations_ = 0;
  uint64_t chatter_ = 0;  // per host and iteration
  std::vector<TimeNs> monitor_next_;
  std::vector<NoiseEvent> noise_;
  size_t noise_at_ = 0, planned_at_ = 0;
  std::vector<Writer> writers_;
  std::vector<Template> drift_;
};

}  // namespace culprit::sim
