// All that a healthy job says, compiled for one site, and the faults by name. The tables behind are constant
// data in the files tables_*.cc, noise.cc, chatter.cc and faults_*.cc; any thread may read them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/report.h"
#include "sim/batch.h"
#include "sim/site.h"
#include "sim/spec.h"

namespace culprit::sim {

struct FrameworkLines {
  std::string_view name, help;
  Lines launch, init, iteration, checkpoint, evaluation, teardown;
};
std::span<const FrameworkLines> frameworks_megatron();
std::span<const FrameworkLines> frameworks_trainers();
std::span<const FrameworkLines> frameworks_others();

// What software below the framework says.
Lines launcher_lines(Launcher launcher);
Lines accel_init_lines(Accel accel);
Lines common_init_lines();
Lines monitor_lines(Accel accel);
Lines kernel_boot_lines();
Lines deep_trace_lines(Accel accel);

// Harmless alarms. `per_thousand`: of jobs in which it occurs at all, or, above 1,000, events per thousand
// jobs.
struct NoiseSpec {
  Who who;  // kRank, kHost, kKernel, kAgent: at one random place each time; kLauncher
  Shape shape;
  Tone tone;
  uint16_t per_thousand;
  uint8_t burst_max;  // events that follow one another at the same place
  const char* text;
};
std::span<const NoiseSpec> noise_specs();

// Debug lines composed of parts, other ones for each site.
std::vector<std::string> compose_chatter(Random& random, size_t count);

struct CompiledLine {
  Who who;
  Line line;
  uint16_t percent;
  Template text;
};
struct CompiledNoise {
  const NoiseSpec* spec;
  Template text;
};
struct Tables {
  std::vector<CompiledLine> launch, init, iteration, checkpoint, evaluation, teardown, monitor, chatter;
  std::vector<CompiledNoise> noise;
};
Tables compile_tables(const Site& site);

// ---- faults
enum class Scope : uint8_t { kHost, kRank, kEverywhere };
enum class Course : uint8_t {
  kStop,   // progress stops where the fault sets in
  kDrift,  // the job goes on, changed, and ends later
};
enum class Tail : uint8_t {
  kReset,     // neighbours lose their connections within seconds, the rest is killed or times out soon after
  kWatchdog,  // the collectives of all others time out, minutes later
  kKilled,    // the launcher kills the others within seconds
  kWaiting,   // the others wait, say so in ordinary words, and are ended by a signal
  kSilent,    // everything just ends
};
struct FaultKind {
  std::string_view name, help;
  Category category;
  Component component;
  Symptom symptom;
  Stage stage;
  Scope scope;
  Course course;
  Tail tail;
  uint8_t exit_code;           // 128 + signal, or the process's own
  bool victim_silent;          // nothing at all comes from the host afterwards
  bool reorder;                // drift: the host's lines come in another order
  uint16_t stretch_percent;    // drift: of the iteration's time
  Script nvidia, ascend, tpu;  // an empty one falls back to `nvidia`
};
std::span<const FaultKind> faults_hardware();
std::span<const FaultKind> faults_cluster();
std::span<const FaultKind> faults_program();
std::span<const FaultKind> faults_quiet();
const FaultKind* find_fault(std::string_view name);

Script tail_script(Tail tail, Accel accel);
Script end_script(Launcher launcher, bool quiet);

}  // namespace culprit::sim
