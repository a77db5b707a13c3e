// The table of this plugin's findings, and its thresholds; README.md has it with the sources.
#pragma once

#include "common/report.h"

namespace host {

using health::Kind;

// Pressure stall information, share of the last minute in percent. Own numbers: the kernel has none. Full: no
// task ran, so a training job loses this share of its time.
constexpr double kMemoryFull = 10, kIoFull = 40, kCpuSome = 80;
// Space that is left: of disks a share, since logs and checkpoints grow with them.
constexpr double kSpaceLow = 0.05, kSpaceFull = 0.005, kInodesLow = 0.02;
constexpr double kClockStep_s = 0.5;     // traces of hosts are compared by milliseconds; NTP slews below this
constexpr double kCorrectedPerDay = 10;  // mcelog's default for a DIMM (mcelog.conf, ce-error-threshold)
constexpr int64_t kStuck_s = 120;        // the kernel's hung_task_timeout_secs
constexpr int64_t kRpcStall_s = 60;      // timeo of NFS over TCP: the first major timeout
constexpr double kRpcBacklog = 64;  // RPCs that wait for a slot; the slot table starts with 2, at most 65536

constexpr Kind kMemoryPressure = {
    "host.memory_pressure",
    "Tasks wait for memory of the host",
    "platform",
    "host_memory",
    "slowdown",
    "check",
    "Look for the process that grew; lower the workers of the data loader or the size of caches.",
    CULPRIT_WARNING,
    0.85,
    2,
    2};
constexpr Kind kIoPressure = {"host.io_pressure",
                              "Tasks wait for storage",
                              "platform",
                              "storage",
                              "slowdown",
                              "check",
                              "Look at the file system that the job reads from and writes to.",
                              CULPRIT_WARNING,
                              0.6,
                              2,
                              2};
constexpr Kind kCpuPressure = {"host.cpu_pressure",
                               "Tasks wait for a CPU",
                               "platform",
                               "cpu",
                               "slowdown",
                               "check",
                               "Look for other load on the host; lower the workers of the data loader.",
                               CULPRIT_WARNING,
                               0.5,
                               3,
                               2};
constexpr Kind kOom = {"host.oom_kill",
                       "Kernel killed a process since memory ran out",
                       "user",
                       "host_memory",
                       "crash",
                       "fix",
                       "Lower the memory use of the job, or raise its limit.",
                       CULPRIT_ERR,
                       0.9};
constexpr Kind kSpaceLowKind = {"storage.space_low",
                                "File system is almost full",
                                "platform",
                                "storage",
                                "other",
                                "mitigate",
                                "Delete old checkpoints and logs.",
                                CULPRIT_WARNING,
                                0.9,
                                2,
                                2};
constexpr Kind kSpaceFullKind = {"storage.space_full",
                                 "File system is full",
                                 "platform",
                                 "storage",
                                 "crash",
                                 "mitigate",
                                 "Delete old checkpoints and logs.",
                                 CULPRIT_ERR,
                                 0.9,
                                 2,
                                 2};
constexpr Kind kInodesLowKind = {"storage.inodes_low",
                                 "File system has almost no inodes left",
                                 "platform",
                                 "storage",
                                 "crash",
                                 "mitigate",
                                 "Delete small files.",
                                 CULPRIT_WARNING,
                                 0.9,
                                 2,
                                 2};
constexpr Kind kMountHangs = {"storage.mount_hangs",
                              "File system does not answer",
                              "platform",
                              "storage",
                              "hang",
                              "check",
                              "Look at the file server and the network to it.",
                              CULPRIT_ERR,
                              0.9};
constexpr Kind kReadOnly = {"storage.read_only",
                            "File system became read-only",
                            "hardware",
                            "storage",
                            "crash",
                            "check",
                            "Look into the kernel log for errors of the disk; run fsck.",
                            CULPRIT_ERR,
                            0.9};
constexpr Kind kNfsStall = {"storage.nfs_stall",
                            "NFS server does not answer",
                            "platform",
                            "storage",
                            "hang",
                            "check",
                            "Look at the file server and the network to it.",
                            CULPRIT_ERR,
                            0.85};
constexpr Kind kNfsBacklog = {"storage.nfs_backlog",
                              "NFS requests wait for the server",
                              "platform",
                              "storage",
                              "slowdown",
                              "check",
                              "Look at the load of the file server.",
                              CULPRIT_WARNING,
                              0.6,
                              2,
                              2};
constexpr Kind kClockStep = {"host.clock_step",
                             "Clock of the host was set",
                             "platform",
                             "platform",
                             "other",
                             "check",
                             "Check the time service; compare traces across this moment with care.",
                             CULPRIT_WARNING,
                             0.95};
constexpr Kind kClockUnsynced = {"host.clock_unsynced",
                                 "Clock of the host is not synchronised",
                                 "platform",
                                 "platform",
                                 "other",
                                 "check",
                                 "Start a time service (chrony, ntpd).",
                                 CULPRIT_INFO,
                                 0.9,
                                 10,
                                 1};
constexpr Kind kMemoryUncorrected = {"host.memory_uncorrected",
                                     "Uncorrectable error in host memory",
                                     "hardware",
                                     "host_memory",
                                     "crash",
                                     "isolate",
                                     "Drain the host and replace the DIMM.",
                                     CULPRIT_ERR,
                                     0.95};
constexpr Kind kMemoryCorrected = {"host.memory_corrected",
                                   "Many corrected errors in host memory",
                                   "hardware",
                                   "host_memory",
                                   "other",
                                   "check",
                                   "Replace the DIMM at the next maintenance.",
                                   CULPRIT_WARNING,
                                   0.5};
constexpr Kind kCpuThrottle = {"host.cpu_throttle",
                               "CPU runs slower because it is too hot",
                               "hardware",
                               "cpu",
                               "slowdown",
                               "check",
                               "Check fans, air flow and inlet temperature of this host.",
                               CULPRIT_WARNING,
                               0.9,
                               2,
                               3};
constexpr Kind kStuck = {"host.stuck_process",
                         "Process hangs inside the kernel",
                         "unknown",
                         "host_kernel",
                         "hang",
                         "check",
                         "Look into the kernel log for the device or file system that it waits for.",
                         CULPRIT_WARNING,
                         0.7};

}  // namespace host
