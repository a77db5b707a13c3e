// Tables: faults of hosts, storage and the cluster around the job.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr ScriptLine kHostOom[] = {
    {kVictimKernel, kDmesg, W, 0, 5,
     "python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, "
     "oom_score_adj=0"},
    {kVictimKernel, kDmesg, I, 5, 9,
     "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=<job>,mems_allowed=0-1,task=python3,pid=<"
     "fpid>,uid=<i:1000:60000> ||| "
     "Tasks state (memory values in pages):\n[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents "
     "oom_score_adj name"},
    {kVictimKernel, kDmesg, E, 9, 14,
     "Out of memory: Killed process <fpid> (python3) total-vm:<i:90000000:190000000>kB, "
     "anon-rss:<i:80000000:180000000>kB, "
     "file-rss:<i:10000:90000>kB, shmem-rss:0kB ||| Memory cgroup out of memory: Killed process <fpid> "
     "(pt_main_thread) total-vm:<i:90000000:190000000>kB"},
    {kVictimAgent, kRaw, E, 100, 1500,
     "slurmstepd: error: Detected <i:1:3> oom_kill events in StepId=<job>.0. Some of the step tasks have "
     "been OOM Killed. ||| "
     "E torch/distributed/elastic: worker local_rank <fl> (pid <fpid>) was sent SIGKILL (exitcode -9)"},
};
constexpr ScriptLine kDiskFull[] = {
    {kVictim, kPython, W, 0, 300,
     "could not extend <w:/tmp,/local/scratch,/raid>/cache_<x:6>.bin: [Errno 28] No space left on device"},
    {kVictim, kRaw, E, 300, 1200,
     "Traceback (most recent call last):\n  File \"<root>/src/data/cache.py\", line <i:40:190>, in put\n    "
     "self._file.write(block)\nOSError: [Errno "
     "28] No space left on device ||| RuntimeError: [enforce fail at inline_container.cc:603] . "
     "PytorchStreamWriter failed writing file data/<i:1:900>: file write failed"},
    {kVictimKernel, kDmesg, W, 10, 400,
     "EXT4-fs warning (device nvme0n1p2): ext4_da_update_reserve_space: ext4_da_update_reserve_space: ino "
     "<i:1000:90000>, allocated <i:1:9> with "
     "only 0 reserved ||| systemd-journald[<i:400:900>]: Failed to write entry (9 items, 300 bytes), "
     "ignoring: No space left on device",
     1, 0, 60},
};
constexpr ScriptLine kStorage[] = {
    {kVictimKernel, kDmesg, E, 0, 500,
     "LustreError: 11-0: scratch-OST00<x:2>-osc-ffff<x:12>: operation ost_write to node <pip>@o2ib failed: "
     "rc = -107 ||| blk_update_request: "
     "I/O error, dev nvme<i:0:7>n1, sector <i:1000:9999999> op 0x1:(WRITE) flags 0x0"},
    {kVictimLocals, kPython, W, 200, 2500, "write of shard <r> stalled, attempt <i:1:2>/3", 1, 0, 60},
    {kVictim, kRaw, E, 3000, 9000,
     "Traceback (most recent call last):\n  File \"<root>/src/checkpointing.py\", line <i:100:500>, in "
     "save_checkpoint\n    torch.save(state_dict, "
     "path)\n  File \"/opt/conda/lib/python3.10/site-packages/torch/serialization.py\", line <i:400:900>, in "
     "save\n    with _open_zipfile_writer(f) as opened_zipfile:\n"
     "OSError: [Errno 5] Input/output error: '<ckpt>/iter_<it>/mp_rank_<l>.pt' ||| "
     "torch.distributed.checkpoint.api.CheckpointException: CheckpointException "
     "ranks:dict_keys([<r>])\nTraceback (most recent call last): (RANK <r>)\n  File "
     "\"<root>/src/dist_ckpt.py\", line <i:100:500>, in write_data\nOSError: [Errno "
     "116] Stale file handle"},
};
constexpr ScriptLine kStorageAll[] = {
    {kRank, kPython, W, 200, 3500, "write of shard <r> stalled, attempt <i:1:2>/3", 1, 0, 50},
    {kRank, kRaw, E, 4000, 9000,
     "OSError: [Errno 122] Disk quota exceeded: '<ckpt>/iter_<it>/shard_<r>.pt' ||| OSError: [Errno 30] "
     "Read-only file system: '<ckpt>/iter_<it>/shard_<r>.pt'"},
};
constexpr ScriptLine kStalled[] = {
    {kVictimKernel, kDmesg, W, 5000, 30000, "nfs: server <w:nas01,nas02,filer3> not responding, still trying",
     3, 60000},
    {kVictimKernel, kDmesg, W, 121000, 124000,
     "INFO: task python3:<fpid> blocked for more than 120 seconds.\n      Tainted: P           OE     "
     "5.15.0-105-generic\n"
     "task:python3         state:D stack:    0 pid:<fpid> ppid:     1 flags:0x00000002"},
    {kVictim, kPython, I, 4000, 20000,
     "waiting for shard <i:0:900> from <root>/data, <i:10:20> s so far ||| reader of rank <r> has no batch "
     "ready, prefetch queue 0/<i:4:16>",
     4, 30000},
    {kVictimHost, kPython, I, 20000, 40000, "io pressure: some avg60=<f:70:99:2> full avg60=<f:60:98:2>", 2,
     45000},
};
constexpr ScriptLine kPreempted[] = {
    {kLauncher, kRaw, E, 0, 500,
     "slurmstepd: error: *** JOB <job> ON <h0> CANCELLED AT <nowT> DUE TO PREEMPTION *** ||| srun: Job <job> "
     "preempted by a job of partition "
     "urgent, requeue in 30 seconds ||| Received preemption notice from the node pool, draining in 30 s"},
    {kAgent, kRaw, W, 100, 1500,
     "Received signal 15, forwarding to workers ||| Stopping container trainer, grace period 30 s"},
    {kRank, kPython, W, 200, 3000, "SIGTERM received by rank <r>, finishing the current step and leaving", 1,
     0, 90},
    {kRank0, kPython, I, 3000, 5000, "emergency checkpoint skipped, grace period too short"},
};
constexpr ScriptLine kTimeLimit[] = {
    {kLauncher, kRaw, E, 0, 300,
     "slurmstepd: error: *** JOB <job> ON <h0> CANCELLED AT <nowT> DUE TO TIME LIMIT *** ||| srun: Job step "
     "<job>.0 reached its time limit ||| "
     "level=warning msg=\"job <model> exceeded activeDeadlineSeconds\" reason=DeadlineExceeded"},
    {kAgent, kRaw, W, 100, 1200,
     "Received signal 15, forwarding to workers ||| sending SIGTERM to <i:8:8> workers"},
    {kRank, kRaw, W, 500, 2500, "Terminated", 1, 0, 60},
};

constexpr FaultKind kClusterFaults[] = {
    {"host-oom",
     "the kernel kills a rank for memory",
     Category::kUser,
     Component::kHostMemory,
     Symptom::kCrash,
     Stage::kIterative,
     kHostOnly,
     Course::kStop,
     Tail::kReset,
     137,
     false,
     false,
     100,
     kHostOom,
     {},
     {}},
    {"disk-full",
     "the local disk of one host is full",
     Category::kPlatform,
     Component::kStorage,
     Symptom::kCrash,
     Stage::kIterative,
     kHostOnly,
     Course::kStop,
     Tail::kKilled,
     1,
     false,
     false,
     100,
     kDiskFull,
     {},
     {}},
    {"storage-checkpoint",
     "storage fails one host in a checkpoint",
     Category::kPlatform,
     Component::kStorage,
     Symptom::kCrash,
     Stage::kCheckpoint,
     kHostOnly,
     Course::kStop,
     Tail::kKilled,
     1,
     false,
     false,
     100,
     kStorage,
     {},
     {}},
    {"storage-checkpoint-all",
     "storage fails all hosts in a checkpoint",
     Category::kPlatform,
     Component::kStorage,
     Symptom::kCrash,
     Stage::kCheckpoint,
     kEverywhere,
     Course::kStop,
     Tail::kKilled,
     1,
     false,
     false,
     100,
     kStorageAll,
     {},
     {}},
    {"nfs-stall",
     "one host's file system stalls, without an error word",
     Category::kPlatform,
     Component::kStorage,
     Symptom::kHang,
     Stage::kIterative,
     kHostOnly,
     Course::kStop,
     Tail::kWaiting,
     143,
     false,
     false,
     100,
     kStalled,
     {},
     {}},
    {"host-silent",
     "a host falls silent, the others time out",
     Category::kHardware,
     Component::kUnknown,
     Symptom::kHang,
     Stage::kIterative,
     kHostOnly,
     Course::kStop,
     Tail::kWatchdog,
     134,
     true,
     false,
     100,
     {},
     {},
     {}},
    {"host-silent-no-echo",
     "a host falls silent, the others only stop",
     Category::kHardware,
     Component::kUnknown,
     Symptom::kHang,
     Stage::kIterative,
     kHostOnly,
     Course::kStop,
     Tail::kSilent,
     143,
     true,
     false,
     100,
     {},
     {},
     {}},
    {"preemption",
     "the scheduler takes the job's hosts",
     Category::kPlatform,
     Component::kPlatform,
     Symptom::kCrash,
     Stage::kIterative,
     kEverywhere,
     Course::kStop,
     Tail::kKilled,
     143,
     false,
     false,
     100,
     kPreempted,
     {},
     {}},
    {"time-limit",
     "the job reaches its time limit",
     Category::kPlatform,
     Component::kPlatform,
     Symptom::kCrash,
     Stage::kIterative,
     kEverywhere,
     Course::kStop,
     Tail::kKilled,
     143,
     false,
     false,
     100,
     kTimeLimit,
     {},
     {}},
};

}  // namespace

std::span<const FaultKind> faults_cluster() { return kClusterFaults; }

}  // namespace culprit::sim
