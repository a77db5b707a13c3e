// Tables: faults without a message. Ordinary lines are missing, slower, more frequent or in another order.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

// kStop: milliseconds after the onset. kDrift: thousandths of each iteration.
constexpr ScriptLine kHang[] = {
    {kVictimHost, kPython, I, 2000, 9000,
     "device <fl> sm clock <i:210:345> MHz power <i:70:110> W util 100 temp <i:31:40> C ||| device <fl>: "
     "pstate "
     "P8, "
     "clock 345 MHz, draw <i:70:110> W, busy 100 %",
     3, 30000},
    {kVictim, kPython, D, 1000, 6000,
     "stream 0x<x:12> last marker <i:10:99> s old, <i:300:900> kernels queued ||| event query pending, depth "
     "<i:300:900>",
     4, 20000},
    {kVictimKernel, kDmesg, I, 3000, 40000,
     "perf: interrupt took too long (<i:2500:5200> > <i:2400:5100>), lowering "
     "kernel.perf_event_max_sample_rate to "
     "<i:20000:80000>",
     2, 9000, 60},
};
constexpr ScriptLine kLoader[] = {
    {kVictim, kPython, I, 3000, 20000,
     "prefetch queue 0/<i:4:16>, last batch <i:5:60> s ago ||| loader worker <i:0:7> of rank <r> idle, index "
     "cursor unchanged",
     5, 30000},
};
constexpr ScriptLine kSlowSave[] = {
    {kVictimLocals, kPython, I, 9000, 40000,
     "rank <r> shard write at <f:0.2:9:1> MiB/s, <i:3:20> % done ||| shard of rank <r>: <i:100:900> MiB of "
     "<i:4000:9000> MiB flushed",
     4, 40000},
    {kVictimHost, kPython, I, 60000, 90000, "fsync of <i:8:32> files took <f:60:180:2> s on <h>"},
};
constexpr ScriptLine kSlow[] = {
    {kVictimHost, kPython, W, 100, 900,
     "data loader waited <f:1.1:6:2> s for shard <i:0:900>, storage may be slow", 1, 0, 55},
    {kVictimHost, kPython, I, 200, 900,
     "host stats: rss=<f:80:96:1>GiB page_cache=<f:300:700:1>GiB load1=<f:90:190:2> fds=<i:900:2100> "
     "procs=<i:300:500>",
     1, 0, 25},
};
constexpr ScriptLine kThermal[] = {
    {kVictimHost, kPython, I, 100, 900, "device <fl> sm clock dipped to <i:990:1350> MHz for <i:2:9> s", 1, 0,
     45},
    {kVictimHost, kPython, I, 100, 900,
     "device <fl> temp <i:84:91> C, fan duty 100 %, clock reason sw_thermal_slowdown", 1, 0, 25},
};
constexpr ScriptLine kPcie[] = {
    {kVictimHost, kPython, I, 100, 900,
     "device <fl> pcie gen<i:1:3> x<w:4,8> negotiated, h2d <f:1.5:7:1> GiB/s ||| h2d copy of device <fl>: "
     "<f:1.5:7:1> GiB/s over a x<w:4,8> link",
     1, 0, 30},
    {kVictim, kPython, D, 200, 900, "staging copy <f:120:800:1> ms for <i:100:900> MiB", 1, 0, 70},
};
constexpr ScriptLine kFlap[] = {
    {kVictimKernel, kDmesg, I, 0, 900, "mlx5_core 0000:<w:18,29>:00.0 ens<i:1:8>f0np0: Link up", 1, 0, 35},
    {kVictimHost, Shape::kNccl, I, 0, 900, "NET/IB : mlx5_<i:0:3>:1 async event: GID table change", 1, 0, 35},
    {kVictimHost, kPython, I, 0, 900,
     "nic mlx5_<i:0:3> state INIT -> ACTIVE, speed <w:100,200,400> Gb/s, carrier changes <i:3:90>", 1, 0, 30},
};
constexpr ScriptLine kReorder[] = {
    {kVictimLocals, kPython, D, 100, 900,
     "refetch of micro batch <i:0:31> on rank <r>, second pass <f:1:30:2> ms", 2, 0, 35},
};
constexpr ScriptLine kLeak[] = {
    {kVictimHost, kPython, I, 0, 900,
     "host stats: rss=<f:700:1900:1>GiB page_cache=<f:2:20:1>GiB load1=<f:12:38:2> fds=<i:900:2100> "
     "procs=<i:200:300>",
     1, 0, 40},
    {kVictimHost, kPython, D, 0, 900, "gc: collected <i:0:40> objects in <f:2:19:3> s", 1, 0, 50},
};

constexpr Category kHw = Category::kHardware, kPlat = Category::kPlatform, kFrame = Category::kFramework;
constexpr auto kSlowdown = Symptom::kSlowdown;
constexpr FaultKind kQuietFaults[] = {
    {"gpu-hang-silent",
     "an accelerator hangs without a message; its counters differ, then the others time out",
     kHw,
     Component::kGpu,
     Symptom::kHang,
     Stage::kIterative,
     Scope::kHost,
     Course::kStop,
     Tail::kWatchdog,
     134,
     false,
     false,
     100,
     kHang,
     {},
     {}},
    {"dataloader-stuck",
     "one rank's data loader stands still",
     kFrame,
     Component::kFramework,
     Symptom::kHang,
     Stage::kIterative,
     Scope::kRank,
     Course::kStop,
     Tail::kWaiting,
     143,
     false,
     false,
     100,
     kLoader,
     {},
     {}},
    {"slow-checkpoint-no-words",
     "one host writes its checkpoint ever more slowly",
     kPlat,
     Component::kStorage,
     Symptom::kHang,
     Stage::kCheckpoint,
     Scope::kHost,
     Course::kStop,
     Tail::kWaiting,
     143,
     false,
     false,
     100,
     kSlowSave,
     {},
     {}},
    {"slow-host-no-words",
     "one host becomes slower",
     kHw,
     Component::kUnknown,
     kSlowdown,
     Stage::kIterative,
     Scope::kHost,
     Course::kDrift,
     Tail::kWaiting,
     143,
     false,
     false,
     240,
     kSlow,
     {},
     {}},
    {"thermal-no-words",
     "one accelerator throttles",
     kHw,
     Component::kGpu,
     kSlowdown,
     Stage::kIterative,
     Scope::kHost,
     Course::kDrift,
     Tail::kWaiting,
     143,
     false,
     false,
     180,
     kThermal,
     {},
     {}},
    {"pcie-degraded-no-words",
     "one accelerator's bus link loses width",
     kHw,
     Component::kPcie,
     kSlowdown,
     Stage::kIterative,
     Scope::kHost,
     Course::kDrift,
     Tail::kWaiting,
     143,
     false,
     false,
     200,
     kPcie,
     {},
     {}},
    {"link-flap-no-words",
     "one host's fabric port goes down and up again",
     kHw,
     Component::kNetwork,
     kSlowdown,
     Stage::kIterative,
     Scope::kHost,
     Course::kDrift,
     Tail::kWaiting,
     143,
     false,
     false,
     170,
     kFlap,
     {},
     {}},
    {"temporal-change-no-words",
     "one host's events come in another order until the job ends",
     kHw,
     Component::kUnknown,
     kSlowdown,
     Stage::kIterative,
     Scope::kHost,
     Course::kDrift,
     Tail::kSilent,
     143,
     false,
     true,
     115,
     kReorder,
     {},
     {}},
    {"memory-leak-no-words",
     "one host's memory fills up until everything ends",
     Category::kUser,
     Component::kHostMemory,
     kSlowdown,
     Stage::kIterative,
     Scope::kHost,
     Course::kDrift,
     Tail::kSilent,
     143,
     false,
     false,
     130,
     kLeak,
     {},
     {}},
};

}  // namespace

std::span<const FaultKind> faults_quiet() { return kQuietFaults; }

}  // namespace culprit::sim
