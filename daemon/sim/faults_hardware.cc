// Tables: faults of devices and links with explicit messages.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr ScriptLine kGpuLost[] = {
    {kVictimKernel, kDmesg, E, 0, 5,
     "NVRM: Xid (PCI:<fbus>): 79, pid=<fpid>, name=python3, GPU has fallen off the bus. ||| NVRM: GPU at "
     "PCI:<fbus>: GPU-<x:8>-<x:4>-<x:4>-<x:12>\nNVRM: Xid (PCI:<fbus>): 79, pid='<unknown>', name=<unknown>, "
     "GPU has fallen off the bus."},
    {kVictimKernel, kDmesg, E, 5, 12,
     "NVRM: GPU <fbus>.0: GPU has fallen off the bus.\nNVRM: GPU 0000:<fbus>.0: GPU serial number is "
     "16542<i:10000:99999>."},
    {kVictimKernel, kDmesg, W, 30, 90,
     "NVRM: A GPU crash dump has been created. If possible, please run\nNVRM: nvidia-bug-report.sh as root "
     "to collect this data before\nNVRM: the NVIDIA kernel module is unloaded.",
     1, 0, 70},
    {kVictimKernel, kDmesg, W, 2, 60, "pcieport 0000:<w:15,26,80,97>:01.0: pciehp: Slot(<i:1:40>): Link Down",
     1, 0, 50},
    {kVictim, kRaw, E, 200, 2500,
     "Traceback (most recent call last):\n  File \"<root>/src/train.py\", line <i:200:420>, in <module>\n    "
     "main()\n"
     "  File \"<root>/src/train.py\", line <i:80:199>, in main\n    loss.backward()\n  File "
     "\"/opt/conda/lib/python3.10/site-packages/torch/_tensor.py\", "
     "line 522, in backward\n    torch.autograd.backward(\nRuntimeError: CUDA error: unspecified launch "
     "failure\nCUDA kernel errors might be "
     "asynchronously reported at some other API call, so the stacktrace below might be incorrect.\nFor "
     "debugging consider passing "
     "CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions. ||| "
     "terminate called after throwing an "
     "instance of 'c10::Error'\n  what():  CUDA error: device not ready\nException raised from query at "
     "../aten/src/ATen/cuda/CUDAEvent.h:95 (most recent call first):\nframe #0: "
     "c10::Error::Error(c10::SourceLocation, std::string) + 0x57 "
     "(0x<x:12> in libc10.so)\nframe #1: c10::cuda::c10_cuda_check_implementation(int, char const*) + 0x118 "
     "(0x<x:12> in libc10_cuda.so)"},
    {kVictimHost, kPython, W, 1500, 9000,
     "nvml: Unable to determine the device handle for GPU<fbus>.0: Unknown Error ||| nvml query for index "
     "<fl> "
     "returned NVML_ERROR_GPU_IS_LOST",
     2, 4000, 80},
};
constexpr ScriptLine kNpuLost[] = {
    {kVictim, kMind, E, 0, 200,
     "DRV|[ascend][curpid: <pid>, <tid>][drv][tsdrv][share_log_read <i:400:900>][Event id=0x<x:8>] device "
     "<l> heartbeat lost, card is dropped"},
    {kVictim, kMind, E, 100, 600,
     "RUNTIME|[engine.cc:1262]<tid> ReportExceptProc:Task exception! device_id=<l>, stream_id=<i:1:90>, "
     "task_id=<i:1:60000>, "
     "type=13, retCode=0x91, [the model stream execute failed]."},
    {kVictim, kRaw, E, 500, 1500,
     "RuntimeError: Call runtime rtStreamSynchronize failed, error code 507899 [aclError=507018], device <l> "
     "may be "
     "removed or reset.\n\n----------------------------------------------------\n- Ascend Error Message:\n"
     "----------------------------------------------------\nEL9999: Inner Error! drv retcode=87"},
};
constexpr ScriptLine kTpuLost[] = {
    {kVictimHost, kGlog, E, 0, 500,
     "tpu_driver.cc:881] chip <fl> stopped responding on <fh>: DEADLINE_EXCEEDED waiting for doorbell; core "
     "state 0x<x:4>"},
    {kVictimHost, kRaw, E, 300, 2000,
     "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Accelerator device halted prematurely, perhaps due to "
     "an "
     "on-device check-failure. Node <fl> halted unexpectedly at tag:pc TensorCoreSequencer:1:0x<x:3>."},
};
constexpr ScriptLine kGpuEcc[] = {
    {kVictimKernel, kDmesg, E, 0, 8,
     "NVRM: Xid (PCI:<fbus>): 48, pid=<fpid>, name=python3, An uncorrectable double bit error (DBE) has been "
     "detected on "
     "GPU in the framebuffer at partition <i:0:11>, subpartition <i:0:1>. ||| NVRM: Xid (PCI:<fbus>): 95, "
     "pid=<fpid>, name=python3, Uncontained: "
     "FBHUB. RST: Yes, D-RST: No ||| NVRM: Xid (PCI:<fbus>): 94, pid=<fpid>, name=python3, Contained: SM "
     "(0x1). RST: No, D-RST: Yes"},
    {kVictimKernel, kDmesg, E, 8, 30,
     "NVRM: Xid (PCI:<fbus>): 64, pid='<unknown>', name=<unknown>, Row Remapper: Error, row remapping has "
     "failed ||| "
     "NVRM: Xid (PCI:<fbus>): 63, pid='<unknown>', name=<unknown>, Row Remapper: Inactive row marked for "
     "remapping, reset gpu to activate."},
    {kVictimKernel, kDmesg, W, 30, 80,
     "NVRM: Xid (PCI:<fbus>): 45, pid=<fpid>, name=python3, Ch 0000000<i:8:9>", 6, 1, 80},
    {kVictim, kRaw, E, 20, 900,
     "Traceback (most recent call last):\n  File \"<root>/src/pretrain.py\", line <i:100:300>, in <module>\n "
     "   pretrain(model_provider, forward_step)\n"
     "  File \"<root>/src/training.py\", line <i:300:900>, in train_step\n    losses = "
     "forward_backward_func(\nRuntimeError: CUDA error: uncorrectable "
     "ECC error encountered ||| terminate called after throwing an instance of 'c10::CUDAError'\n  what():  "
     "CUDA error: uncorrectable ECC error "
     "encountered\nException raised from create_event_internal at ../c10/cuda/CUDACachingAllocator.cpp:1055 "
     "(most recent call first):"},
    {kVictimHost, kPython, W, 2000, 15000,
     "gpu <fl> ecc volatile uncorrectable aggregate=1 pending_remap=yes", 1, 0, 70},
};
constexpr ScriptLine kNpuEcc[] = {
    {kVictim, kMind, E, 0, 300,
     "DRV|[ascend][drv][hbm]device <l> HBM multi-bit ecc, Event id=0x80e01801, address 0x<x:12>"},
    {kVictim, kMind, E, 200, 700,
     "RUNTIME|[device_error_proc.cc:1109]<tid> ProcessStarsHbmErrorInfo:HBM MULTI BIT ECC is detected on "
     "device <l>, stream_id=<i:1:90>"},
    {kVictim, kRaw, E, 500, 1200,
     "RuntimeError: The inner error is reported as above. aclrtSynchronizeStreamWithTimeout failed, error "
     "code is 507054: HBM ECC"},
};
constexpr ScriptLine kNvlink[] = {
    {kVictimKernel, kDmesg, E, 0, 10,
     "NVRM: Xid (PCI:<fbus>): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link "
     "<i:0:17>(0x<x:5>, "
     "0x0, 0x0, 0x0, 0x0, 0x0, 0x0) ||| nvidia-nvswitch<i:0:3>: SXid (PCI:0000:<w:05,06,07,08>:00.0): "
     "<w:20034,22012,24007,12028>, Fatal, Link <i:0:35> "
     "LTSSM Fault Up"},
    {kVictimKernel, kDmesg, E, 10, 30,
     "nvidia-nvswitch<i:0:3>: SXid (PCI:0000:<w:05,06,07,08>:00.0): 20034, Severity 1 Engine instance "
     "<i:0:35> Sub-engine instance 00\n"
     "nvidia-nvswitch: SXid (PCI:0000:07:00.0): 20034, Data {0x<x:8>, 0x<x:8>, 0x0, 0x0}",
     2, 3, 70},
    {kVictimLocals, Shape::kNccl, W, 300, 3000,
     "transport/nvls.cc:254 NCCL WARN Cuda failure 'remote NVLINK transaction error' ||| "
     "p2p.cc:311 NCCL WARN Cuda failure 'an uncorrectable NVLink error was detected during the execution'",
     1, 0, 75},
    {kVictim, kRaw, E, 800, 3500,
     "torch.distributed.DistBackendError: NCCL error in: "
     "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2006, unhandled "
     "cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5\nncclUnhandledCudaError: Call "
     "to CUDA function failed.\nLast error:\nCuda "
     "failure 'unspecified launch failure'"},
    {kVictimHost, kPython, W, 3000, 12000,
     "fabricmanager: link <i:0:17> of gpu <fl> not in ACTIVE state, requesting partition reset", 1, 0, 60},
};
constexpr ScriptLine kHccs[] = {
    {kVictim, kMind, E, 0, 300,
     "DRV|[ascend][drv][hccs]device <l> link lane <i:0:7> down, Event id=0x<x:8>, health status major alarm"},
    {kVictimLocals, kMind, E, 200, 2000,
     "HCCL|[comm_base.cc:970][<tid>]|  comm error, device[<l>], peer device [<fl>] sdma link exception"},
};
constexpr ScriptLine kIbDown[] = {
    {kVictimKernel, kDmesg, W, 0, 10,
     "mlx5_core 0000:<w:18,29,5d,9a>:00.0: port_module:249:(pid 0): Port module event: module 0, Cable "
     "unplugged ||| "
     "mlx5_core 0000:<w:18,29,5d,9a>:00.0 ib<i:0:7>: Link down ||| mlx5_<i:0:7>: Port: 1 Link DOWN"},
    {kVictimKernel, kDmesg, W, 15, 60,
     "ib<i:0:7>: link down event, state DOWN phys Polling ||| IPv6: ADDRCONF(NETDEV_CHANGE): ib<i:0:7>: link "
     "becomes not ready"},
    {kVictim, Shape::kNccl, W, 100, 1500,
     "transport/net_ib.cc:94 NCCL WARN NET/IB : mlx5_<i:0:3>:1 Got async event : port error"},
    {kVictimLocals, Shape::kNccl, W, 8000, 20000,
     "transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer <pip><<i:30000:60000>> with "
     "status=12 opcode=0 "
     "len=0 vendor err 129 (Send)",
     1, 0, 40},
    {kNeighbours, Shape::kNccl, W, 8000, 22000,
     "transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer <fip><<i:30000:60000>> with "
     "status=12 opcode=0 "
     "len=0 vendor err 129 (Recv) localGid ::ffff:<ip> remoteGids::ffff:<fip>"},
};
constexpr ScriptLine kNicDown[] = {
    {kVictim, kMind, W, 0, 500,
     "HCCP|[rs_ssl.c:120]tid:<tid>,phy_id(<l>) link status change, eth port DOWN, cqe status 0x<x:2>"},
    {kVictim, kMind, E, 3000, 9000,
     "HCCL|[adapter_hccp.cc:561][<tid>]roce cqe error, status[12], local[<ip>], remote[<pip>], retry "
     "exceeded"},
    {kNeighbours, kMind, E, 3000, 12000,
     "HCCL|[adapter_hccp.cc:561][<tid>]roce cqe error, status[12], local[<ip>], remote[<fip>], transport "
     "retry counter exceeded"},
};
constexpr ScriptLine kMce[] = {
    {kVictimKernel, kDmesg, E, 0, 5,
     "mce: [Hardware Error]: CPU <i:0:95>: Machine Check Exception: 5 Bank <i:1:27>: b<x:15>\nmce: [Hardware "
     "Error]: RIP "
     "!INEXACT! 33:<0000<x:12>>\nmce: [Hardware Error]: TSC <x:14> ADDR <x:11> MISC 8c ||| [Hardware Error]: "
     "Uncorrected, software restartable error.\n"
     "[Hardware Error]: CPU:<i:0:95> (19:1:1) MC<i:0:27>_STATUS[-|UE|MiscV|AddrV|-|TCC|-|-|UECC]: 0x<x:16>"},
    {kVictimKernel, kDmesg, E, 5, 20,
     "EDAC MC<i:0:3>: 1 UE memory read error on CPU_SrcID#<i:0:1>_MC#<i:0:3>_Chan#<i:0:1>_DIMM#<i:0:1> "
     "(page:0x<x:7>) ||| Memory "
     "failure: 0x<x:7>: Sending SIGBUS to python3:<fpid> due to hardware memory corruption"},
    {kVictim, kRaw, E, 20, 200,
     "*** SIGBUS (@0x<x:12>) received by PID <pid> (TID 0x<x:12>) from PID <i:1000:9000>; stack trace: *** "
     "||| Fatal Python error: Bus "
     "error\n\nThread 0x00007f<x:10> (most recent call first):\n  File "
     "\"/opt/conda/lib/python3.10/site-packages/torch/utils/data/_utils/pin_memory.py\", "
     "line <i:20:60> in do_one_step"},
};
constexpr ScriptLine kDriver[] = {
    {kVictimKernel, kDmesg, E, 0, 100,
     "NVRM: API mismatch: the client has the version 550.54.15, but\nNVRM: this kernel module has the "
     "version "
     "535.161.08.  Please\nNVRM: make sure that this kernel module and all NVIDIA driver\nNVRM: components "
     "have the same version."},
    {kVictimLocals, kRaw, E, 100, 900,
     "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
     "calling NumCudaDevices() "
     "that might have already set an error? Error 803: system has unsupported display driver / cuda driver "
     "combination ||| Failed to initialize NVML: "
     "Driver/library version mismatch\nRuntimeError: No CUDA GPUs are available"},
};
constexpr ScriptLine kDriverNpu[] = {
    {kVictimLocals, kMind, E, 0, 900,
     "ASCENDCL|[acl.cpp:310]<tid> aclrtSetDevice failed, runtime result = 507899, driver package 23.0.3 does "
     "not match CANN 8.0.RC2"},
    {kVictimLocals, kRaw, E, 100, 1200,
     "RuntimeError: Initialize:torch_npu/csrc/core/npu/sys_ctrl/npu_sys_ctrl.cpp:125 NPU function error: "
     "aclInit(), error code is 500000"},
};

constexpr ScriptLine kIciDown[] = {
    {kVictimHost, kGlog, E, 0, 800,
     "ici_resilience.cc:214] ICI link <i:0:5> of chip <fl> is down, neighbour chip <i:0:3> unreachable, "
     "state 0x<x:4>"},
    {kVictimHost, kRaw, E, 900, 4000,
     "jaxlib.xla_extension.XlaRuntimeError: UNAVAILABLE: slice health check: link <i:0:5> not trained on "
     "<fh>"},
};
constexpr ScriptLine kDcnDown[] = {
    {kVictimHost, kGlog, W, 0, 900,
     "dcn_transport.cc:402] interface eth<i:0:1> carrier gone on <fh>, <i:1:16> flows paused"},
    {kVictimHost, kGlog, E, 4000, 9000,
     "dcn_transport.cc:455] flow to <pip> closed: keepalive watchdog timeout"},
    {kNeighbours, kGlog, E, 4000, 12000,
     "dcn_transport.cc:455] flow to <fip> closed: keepalive watchdog timeout"},
};
constexpr ScriptLine kDriverTpu[] = {
    {kVictimHost, kRaw, E, 0, 900,
     "RuntimeError: Unable to initialize backend 'tpu': FAILED_PRECONDITION: libtpu version mismatch, "
     "terminal 2024.<i:1:12>, driver on <fh> 2023.<i:1:12> (set JAX_PLATFORMS='' to automatically choose an "
     "available backend)"},
};

constexpr FaultKind kHardwareFaults[] = {
    {"gpu-lost", "an accelerator falls off its bus (Xid 79 and the like)", Category::kHardware,
     Component::kGpu, Symptom::kCrash, Stage::kIterative, kHostOnly, Course::kStop, Tail::kReset, 134, false,
     false, 100, kGpuLost, kNpuLost, kTpuLost},
    {"gpu-ecc", "an uncorrectable memory error of an accelerator", Category::kHardware, Component::kGpuMemory,
     Symptom::kCrash, Stage::kIterative, kHostOnly, Course::kStop, Tail::kReset, 134, false, false, 100,
     kGpuEcc, kNpuEcc, kTpuLost},
    {"nvlink", "a link between the accelerators of one host breaks (Xid 74, SXid)", Category::kHardware,
     Component::kNvlink, Symptom::kCrash, Stage::kIterative, kHostOnly, Course::kStop, Tail::kWatchdog, 134,
     false, false, 100, kNvlink, kHccs, kIciDown},
    {"ib-port-down", "a port of the fabric goes down on one host", Category::kHardware, Component::kNetwork,
     Symptom::kCrash, Stage::kIterative, kHostOnly, Course::kStop, Tail::kWatchdog, 134, false, false, 100,
     kIbDown, kNicDown, kDcnDown},
    {"mce",
     "a machine check on one host",
     Category::kHardware,
     Component::kHostMemory,
     Symptom::kCrash,
     Stage::kIterative,
     kHostOnly,
     Course::kStop,
     Tail::kReset,
     135,
     false,
     false,
     100,
     kMce,
     {},
     {}},
    {"driver-mismatch-one-host", "one host has another driver than its libraries", Category::kPlatform,
     Component::kDriver, Symptom::kLaunchFailure, Stage::kInit, kHostOnly, Course::kStop, Tail::kKilled, 1,
     false, false, 100, kDriver, kDriverNpu, kDriverTpu},
};

}  // namespace

std::span<const FaultKind> faults_hardware() { return kHardwareFaults; }

}  // namespace culprit::sim
