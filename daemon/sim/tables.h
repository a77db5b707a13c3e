// All lines of a healthy job, compiled for one site, and the faults by name. The underlying tables are
// constant data in tables_*.cc, noise.cc, chatter.cc and faults_*.cc; any thread.
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

// Lines of software below the framework.
Lines launcher_lines(Launcher launcher);
Lines accel_init_lines(Accel accel);
Lines common_init_lines();
Lines monitor_lines(Accel accel);
Lines kernel_boot_lines();
Lines deep_trace_lines(Accel accel);

// Harmless alarms. `per_thousand`: jobs in a thousand that have the alarm; above 1,000: events per thousand
// jobs.
struct NoiseSpec {
  Who who;  // kRank, kHost, kKernel, kAgent: one random place per event; kLauncher
  Shape shape;
  Tone tone;
  uint16_t per_thousand;
  uint8_t burst_max;  // consecutive events at the same place
  const char* text;
};
std::span<const NoiseSpec> noise_specs();

// Debug lines assembled from parts, different for each site.
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
  kStop,   // progress stops at the onset
  kDrift,  // the job continues, changed, and ends later
};
enum class Tail : uint8_t {
  // Neighbours lose their connections within seconds; soon after, other ranks are killed or time out.
  kReset,
  kWatchdog,  // minutes later the collectives of all others time out
  kKilled,    // the launcher kills the others within seconds
  kWaiting,   // the others wait, report this in ordinary words, and are killed by a signal
  kSilent,    // all output ends
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
  bool victim_silent;          // no output of the host after the onset
  bool reorder;                // drift: the host's lines change their order
  uint16_t stretch_percent;    // drift: of the duration of an iteration
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
