// Types of the simulator's tables: LineSpec (lines of a healthy job) and ScriptLine (lines that a fault
// adds). Constant data; any thread.
#pragma once

#include <cstdint>
#include <span>

namespace culprit::sim {

enum class Accel : uint8_t { kNvidia, kAscend, kTpu };
enum class Launcher : uint8_t { kTorchrun, kSlurm, kMpirun, kKubernetes };

// The header before the text. kHf and kMind take a first field from the text, which ends at the first '|'.
enum class Shape : uint8_t {
  kRaw,       // none
  kDeep,      // [2021-05-25 06:29:49,234] [INFO] file.py ...
  kPython,    // the site's own logging format
  kNccl,      // host:pid:tid [device] NCCL INFO ...; from warnings on, the text includes the file
  kGlog,      // I0511 18:18:30.779522 915 file.cc:211] ...
  kHf,        // [INFO|file.py:415] 2021-05-25 06:30:01,222 >> ...
  kNemo,      // [NeMo I 2023-09-11 22:31:45 module:12] ...
  kDmesg,     // [12345.678901] ...
  kMind,      // [INFO] HCCL(pid,python3):2025-01-24-11:24:07.908.424 [file.cc:1][tid] ...
  kMindPy,    // 2024-11-21 09:26:37,123 - mindformers[...] - INFO - ...
  kTorchCpp,  // [rank3]:[E1121 09:26:37.123456789 File.cpp:1] ... or [E File.cpp:1] ...
  kElastic,   // [2024-03-12 08:22:45,549] torch.distributed...: [WARNING] ...
  kLogfmt,    // time="..." level=info msg=...
};
enum class Tone : uint8_t { kDebug, kInfo, kWarning, kError };

enum class Who : uint8_t {
  kRank0,
  kLast,      // the last rank (of the last pipeline stage)
  kRank,      // every rank
  kHost,      // local rank 0 of every host
  kAgent,     // the launcher's process on every host
  kLauncher,  // the job's launcher
  kKernel,    // the kernel of every host
  // Only in fault scripts:
  kVictim,        // the faulty rank
  kVictimLocals,  // every rank of the faulty host
  kVictimHost,    // local rank 0 of the faulty host
  kVictimAgent,   // the launcher's process on the faulty host
  kVictimKernel,  // kernel of the faulty host
  kOthers,        // every rank of the other hosts
  kOtherHosts,    // local rank 0 of the other hosts
  kOtherAgents,   // the launcher's processes on the other hosts
  kSomeOthers,    // about a tenth of the ranks of the other hosts, at least two
  kNeighbours,    // ranks next to the faulty one in its rings, on other hosts
  kAllButVictim,  // every rank but the faulty one
};

// `percent`: probability of the line at each occasion. kFixed: always, and at every site.
constexpr uint16_t kFixed = 1000;
struct LineSpec {
  Who who;
  Shape shape;
  Tone tone;
  uint16_t percent;
  const char* text;  // holes: template.h; " ||| " separates alternative wordings
};
using Lines = std::span<const LineSpec>;

struct ScriptLine {
  Who who;
  Shape shape;
  Tone tone;
  int32_t from_ms, to_ms;  // time after the onset (for cascades: after their start)
  const char* text;
  uint16_t times = 1;  // repeats, `every_ms` apart
  int32_t every_ms = 0;
  uint16_t percent = 100;  // share of the writers in `who`
};
using Script = std::span<const ScriptLine>;

}  // namespace culprit::sim
