#include "sim/tables.h"

#include <algorithm>
#include <array>

namespace culprit::sim {

namespace {

// Percentage of the lines (except fixed ones) that a site never writes.
constexpr uint32_t kLeftOutPercent = 12;

// Whether the line fits the accelerator: NVIDIA's lines occur only with NVIDIA devices.
bool belongs(Accel accel, Shape shape, std::string_view text) {
  if (accel == Accel::kNvidia) return true;
  if (shape == Shape::kNccl || shape == Shape::kTorchCpp) return false;
  constexpr std::array<std::string_view, 9> kOwn = {"NVRM",  "nvidia", "NCCL", "cuBLAS", "CUDA",
                                                    "CUPTI", "apex",   "cuda", "torch"};
  return std::none_of(kOwn.begin(), kOwn.end(),
                      [&](std::string_view word) { return text.find(word) != text.npos; });
}

void compile(Lines lines, Accel accel, Random& random, std::vector<CompiledLine>& out) {
  for (const LineSpec& spec : lines) {
    if (spec.percent != kFixed && !belongs(accel, spec.shape, spec.text)) continue;
    Random own = random.fork(out.size() + 1);
    if (spec.percent != kFixed && own.chance(kLeftOutPercent)) continue;
    out.push_back(
        {spec.who, {spec.shape, spec.tone, nullptr}, spec.percent, Template(choose_wording(spec.text, own))});
  }
}

// Points lines to their own templates, once the vector no longer grows.
void settle(std::vector<CompiledLine>& lines) {
  for (CompiledLine& line : lines) line.line.text = &line.text;
}

const FrameworkLines& framework_lines(std::string_view name) {
  for (const auto all : {frameworks_megatron(), frameworks_trainers(), frameworks_others()})
    for (const FrameworkLines& lines : all)
      if (lines.name == name) return lines;
  return frameworks_others().back();
}

}  // namespace

Tables compile_tables(const Site& site) {
  Tables tables;
  Random random = site.random.fork(0x7ab1e5);
  const FrameworkLines& own = framework_lines(site.framework);
  compile(launcher_lines(site.launcher), site.accel, random, tables.launch);
  if (site.kernel_logs) compile(kernel_boot_lines(), site.accel, random, tables.launch);
  compile(own.launch, site.accel, random, tables.launch);
  compile(common_init_lines(), site.accel, random, tables.init);
  compile(accel_init_lines(site.accel), Accel::kNvidia, random, tables.init);
  compile(own.init, site.accel, random, tables.init);
  compile(own.iteration, site.accel, random, tables.iteration);
  compile(own.checkpoint, site.accel, random, tables.checkpoint);
  compile(own.evaluation, site.accel, random, tables.evaluation);
  compile(own.teardown, site.accel, random, tables.teardown);
  compile(monitor_lines(site.accel), site.accel, random, tables.monitor);
  Random words = random.fork(3);
  compile(deep_trace_lines(site.accel), site.accel, random, tables.chatter);
  for (const std::string& text : compose_chatter(words, 220))
    tables.chatter.push_back({Who::kRank,
                              {words.chance(70) ? Shape::kPython : Shape::kRaw, Tone::kDebug, nullptr},
                              kFixed,
                              Template(text)});
  for (size_t i = tables.chatter.size(); i > 1; --i)
    std::swap(tables.chatter[i - 1], tables.chatter[words.below(i)]);
  for (auto* lines : {&tables.launch, &tables.init, &tables.iteration, &tables.checkpoint, &tables.evaluation,
                      &tables.teardown, &tables.monitor, &tables.chatter})
    settle(*lines);
  for (const NoiseSpec& spec : noise_specs()) {
    if (!belongs(site.accel, spec.shape, spec.text)) continue;
    Random wording = random.fork(0x9000 + tables.noise.size());
    tables.noise.push_back({&spec, Template(choose_wording(spec.text, wording))});
  }
  return tables;
}

const FaultKind* find_fault(std::string_view name) {
  for (const auto all : {faults_hardware(), faults_cluster(), faults_program(), faults_quiet()})
    for (const FaultKind& kind : all)
      if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace culprit::sim
