// Tables: faults of the program, its data and its configuration.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;
constexpr Scope kRankOnly = Scope::kRank;

constexpr ScriptLine kAllRanks[] = {
    {kRank, kRaw, E, 0, 900,
     "Traceback (most recent call last):\n  File \"<root>/src/train.py\", line <i:200:420>, in <module>\n    "
     "main()\n  File \"<root>/src/train.py\", line "
     "<i:80:199>, in main\n    logits = model(batch)\n  File \"<root>/src/model.py\", line <i:100:600>, in "
     "forward\n    x = x + self.pos_emb[:, :x.size(1)]\nRuntimeError: The size of "
     "tensor a (8192) must match the size of tensor b (4096) at non-singleton dimension 1 ||| Traceback "
     "(most recent call last):\n  File \"<root>/src/launch.py\", line <i:20:90>, in "
     "<module>\n    run(cfg)\n  File \"<root>/src/schedule.py\", line <i:20:190>, in step\n    warmup = "
     "cfg['optimizer']['warmup_steps']\nKeyError: 'warmup_steps' ||| Traceback (most "
     "recent call last):\n  File \"<root>/src/engine.py\", line <i:90:700>, in train_batch\n    assert micro "
     "* accum == per_rank\nAssertionError: global batch <i:100:999> is not divisible by "
     "micro batch times data parallel size"},
};
constexpr ScriptLine kOneRank[] = {
    {kVictim, kPython, W, 0, 100,
     "sample <i:1000:99999999>: unexpected field layout, keys=['text', 'meta'] ||| collate: lengths differ "
     "[4096, 4096, 4095, 4096]"},
    {kVictim, kRaw, E, 100, 800,
     "Traceback (most recent call last):\n  File \"<root>/src/data/dataset.py\", line <i:40:290>, in "
     "__getitem__\n    return self.decode(self.raw[i])\n  File "
     "\"<root>/src/data/dataset.py\", line <i:40:290>, in decode\n    return torch.frombuffer(raw, "
     "dtype=torch.int32)\nValueError: buffer length (<i:1000:9999> bytes) is not a multiple of "
     "element size (4) ||| Original Traceback (most recent call last):\n  File "
     "\"/opt/conda/lib/python3.10/site-packages/torch/utils/data/_utils/worker.py\", line 308, in "
     "_worker_loop\n    data = "
     "fetcher.fetch(index)\njson.decoder.JSONDecodeError: Expecting ',' delimiter: line 1 column "
     "<i:100:9000> (char <i:100:9000>)"},
};
constexpr ScriptLine kImport[] = {
    {kRank, kRaw, E, 0, 1500,
     "Traceback (most recent call last):\n  File \"<root>/src/pretrain.py\", line <i:3:30>, in <module>\n    "
     "from fused_ops import rope\nModuleNotFoundError: No module named "
     "'fused_ops' ||| Traceback (most recent call last):\n  File \"<root>/src/train.py\", line <i:3:30>, in "
     "<module>\n    import transformer_engine.pytorch as te\nImportError: "
     "libtransformer_engine.so: undefined symbol: _ZN3c10<i:10:30>warning_handlerEv ||| python3: can't open "
     "file '<root>/src/pretrian.py': [Errno 2] No such file or directory"},
};
constexpr ScriptLine kCudaOom[] = {
    {kVictim, kPython, W, 0, 60, "allocator: retrying after freeing <f:0.2:4:2> GiB of cached blocks"},
    {kVictim, kRaw, E, 60, 900,
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate <f:1:9:2> GiB. GPU <l> has a total "
     "capacity of 79.11 GiB of which <i:100:900>.<i:10:99> MiB is free. "
     "Process <pid> has <f:77:79:2> GiB memory in use. Of the allocated memory <f:70:76:2> GiB is allocated "
     "by PyTorch, and <f:0.3:3:2> GiB is reserved by PyTorch but unallocated. ||| RuntimeError: CUDA "
     "out of memory. Tried to allocate <f:1:9:2> GiB (GPU <l>; 79.15 GiB total capacity; <f:70:76:2> GiB "
     "already allocated; <f:0.1:0.9:2> GiB free; <f:76:78:2> GiB reserved in total by PyTorch)"},
};
constexpr ScriptLine kNpuOom[] = {
    {kVictim, kRaw, E, 0, 900,
     "RuntimeError: Out of Memory!!! Request memory size: <i:1000000000:9000000000>B, Memory Statistic: "
     "Device HBM memory size: 65536M, MindSpore Used memory "
     "peak in this step: <i:58000:60000>M"},
};
constexpr ScriptLine kCudaOomAll[] = {
    {kRank, kRaw, E, 0, 900,
     "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate <f:1:9:2> GiB. GPU <l> has a total "
     "capacity of 79.11 GiB of which <i:100:900>.<i:10:99> MiB is free. "
     "||| jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate <f:1:9:2>G. That "
     "was not possible. There are <f:0.3:3:2>G free.; (0x0x0_HBM0)"},
};
constexpr ScriptLine kNan[] = {
    {kRank0, kPython, W, 0, 300,
     "loss is nan at step <it>, grad norm nan ||| step <it>: non-finite loss on rank 0, batch dropped", 3,
     1500},
    {kRank, kPython, W, 100, 900,
     "rank <r>: found NaN in local grad norm in backward pass before data-parallel communication collective "
     "||| rank <r>: grads are nan, update skipped",
     1, 0, 60},
    {kRank0, kPython, I, 6000, 12000,
     "stopping after <i:3:9> consecutive nan steps ||| loss did not recover, leaving the training loop"},
};
constexpr ScriptLine kMismatch[] = {
    {kVictimLocals, Shape::kNccl, W, 0, 900,
     "bootstrap.cc:77 NCCL WARN Message truncated : received 680 bytes instead of 584 ||| init.cc:960 NCCL "
     "WARN Mismatch NCCL version detected, rank <r> has "
     "2.18.<i:1:6>, rank 0 has 2.20.5"},
    {kVictimLocals, kRaw, E, 300, 1800,
     "torch.distributed.DistBackendError: NCCL error in: "
     "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, internal error - please report this issue to "
     "the NCCL "
     "developers, NCCL version 2.18.<i:1:6>\nncclInternalError: Internal check failed."},
    {kSomeOthers, Shape::kNccl, W, 200, 2500,
     "bootstrap.cc:133 NCCL WARN Bootstrap Root : mismatch in rank count from procs <i:8:64> : <R> ||| "
     "misc/socket.cc:49 NCCL WARN socketProgress: Connection closed "
     "by remote peer <fh><<i:30000:60000>>"},
};
constexpr ScriptLine kMismatchNpu[] = {
    {kVictimLocals, kMind, E, 0, 900,
     "HCCL|[topoinfo_exchange_agent.cc:360][<tid>][Verify][ClusterInfo]cann version check fail: local "
     "8.0.RC1, root 8.0.RC2"},
    {kSomeOthers, kMind, E, 400, 3000,
     "HCCL|[adapter_hccp.cc:872][<tid>][Recv][RaSocket]errNo[0x0000000005000013] socket closed by remote "
     "[<fip>]"},
};
constexpr ScriptLine kSegfault[] = {
    {kVictimKernel, kDmesg, I, 0, 5,
     "pt_main_thread[<fpid>]: segfault at <x:12> ip 00007f<x:10> sp 00007f<x:10> error 4 in "
     "libnccl.so.2[7f<x:10>+d3d3000]"},
    {kVictim, kRaw, E, 0, 60,
     "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f<x:10> (most recent call first):\n  "
     "File \"<root>/src/ops/attn.py\", line <i:30:300> in "
     "forward\n  File \"/opt/conda/lib/python3.10/site-packages/torch/nn/modules/module.py\", line 1541 in "
     "_call_impl ||| *** Process received signal ***\nSignal: Segmentation fault (11)\nSignal "
     "code: Address not mapped (1)\nFailing at address: 0x<x:12>"},
};

constexpr ScriptLine kTpuOom[] = {
    {kVictim, kRaw, E, 0, 900,
     "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Error loading program: Attempting to reserve "
     "<f:1:9:2>G at the bottom of memory. That was not possible. There are <f:0.3:3:2>G free, 0B reserved, "
     "and <f:0.1:2:2>G reservable. (0x<l>x0_HBM0)"},
};
constexpr ScriptLine kMismatchTpu[] = {
    {kVictimHost, kRaw, E, 0, 900,
     "jaxlib.xla_extension.XlaRuntimeError: INVALID_ARGUMENT: process <r> joined with jaxlib 0.4.<i:20:25>, "
     "coordinator runs 0.4.30"},
    {kSomeOthers, kGlog, E, 400, 3000,
     "coordination_service_agent.cc:342] barrier PjRT_Client_Connect cancelled, task <fr> left with "
     "INVALID_ARGUMENT"},
};

constexpr FaultKind kProgramFaults[] = {
    {"user-error-all-ranks",
     "a Python error on all ranks",
     Category::kUser,
     Component::kUserCode,
     Symptom::kCrash,
     Stage::kInit,
     kEverywhere,
     Course::kStop,
     Tail::kKilled,
     1,
     false,
     false,
     100,
     kAllRanks,
     {},
     {}},
    {"user-error-one-rank",
     "one rank meets data it cannot read",
     Category::kUser,
     Component::kUserData,
     Symptom::kCrash,
     Stage::kIterative,
     kRankOnly,
     Course::kStop,
     Tail::kReset,
     1,
     false,
     false,
     100,
     kOneRank,
     {},
     {}},
    {"import-error-launch",
     "an import fails on all ranks",
     Category::kUser,
     Component::kDependency,
     Symptom::kLaunchFailure,
     Stage::kLaunch,
     kEverywhere,
     Course::kStop,
     Tail::kKilled,
     1,
     false,
     false,
     100,
     kImport,
     {},
     {}},
    {"cuda-oom", "one rank runs out of device memory", Category::kUser, Component::kGpuMemory,
     Symptom::kCrash, Stage::kIterative, kRankOnly, Course::kStop, Tail::kReset, 1, false, false, 100,
     kCudaOom, kNpuOom, kTpuOom},
    {"cuda-oom-all",
     "all ranks run out of device memory",
     Category::kUser,
     Component::kGpuMemory,
     Symptom::kCrash,
     Stage::kIterative,
     kEverywhere,
     Course::kStop,
     Tail::kKilled,
     1,
     false,
     false,
     100,
     kCudaOomAll,
     {},
     {}},
    {"nan-loss",
     "the loss becomes nan, without an error word",
     Category::kUser,
     Component::kNumeric,
     Symptom::kNumeric,
     Stage::kIterative,
     kEverywhere,
     Course::kStop,
     Tail::kSilent,
     143,
     false,
     false,
     100,
     kNan,
     {},
     {}},
    {"nccl-init-mismatch", "one host brings another version of the collective library", Category::kUser,
     Component::kNcclComm, Symptom::kLaunchFailure, Stage::kInit, kHostOnly, Course::kStop, Tail::kKilled, 1,
     false, false, 100, kMismatch, kMismatchNpu, kMismatchTpu},
    {"segfault-one-rank",
     "one rank dies of a segmentation fault",
     Category::kFramework,
     Component::kFramework,
     Symptom::kCrash,
     Stage::kIterative,
     kRankOnly,
     Course::kStop,
     Tail::kReset,
     139,
     false,
     false,
     100,
     kSegfault,
     {},
     {}},
};

}  // namespace

std::span<const FaultKind> faults_program() { return kProgramFaults; }

}  // namespace culprit::sim
