// Tables: lines of launchers, drivers, collective libraries, kernels and monitors in any job.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr LineSpec kTorchrun[] = {
    {kAgent, kRaw, W, 100, "WARNING:torch.distributed.run:"},
    {kAgent, kRaw, W, 100, "*****************************************"},
    {kAgent, kRaw, W, 100,
     "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system "
     "being overloaded, please further tune the variable for optimal performance in your application as "
     "needed."},
    {kAgent, kElastic, I, 100, "Starting elastic_operator with launch configs:"},
    {kAgent, kRaw, I, 100,
     "  entrypoint       : pretrain.py\n  min_nodes        : <H>\n  max_nodes        : <H>\n"
     "  nproc_per_node   : <i:8:8>\n  run_id           : <job>\n  rdzv_backend     : c10d\n"
     "  rdzv_endpoint    : <h0>:<port>\n  rdzv_configs     : {'timeout': 900}\n  max_restarts     : 0\n"
     "  monitor_interval : 5\n  log_dir          : <root>/logs/<job>\n  metrics_cfg      : {}"},
    {kAgent, kElastic, I, 100, "[default] starting workers for entrypoint: python3"},
    {kAgent, kElastic, I, 100, "[default] Rendezvous'ing worker group"},
    {kAgent, kElastic, I, 100,
     "[default] Rendezvous complete for workers. Result: restart_count=0 "
     "master_addr=<h0> master_port=<port> group_world_size=<H>"},
    {kAgent, kElastic, I, 80,
     "Environment variable 'TORCHELASTIC_ENABLE_FILE_TIMER' not found. Do not start "
     "FileTimerServer. ||| use_agent_store: True"},
    {kAgent, kElastic, I, 80,
     "Setting worker<i:0:7> reply file to: /tmp/torchelastic_<x:8>/<job>_<x:8>/error.json"},
};
constexpr LineSpec kSlurm[] = {
    {kLauncher, kRaw, I, 100, "+ source <root>/env/activate.sh"},
    {kLauncher, kRaw, I, 100, "+ export MASTER_ADDR=<h0>\n+ export MASTER_PORT=<port>"},
    {kLauncher, kRaw, I, 100,
     "SLURM_JOB_ID=<job>\nSLURM_JOB_NUM_NODES=<H>\nSLURM_NTASKS=<R>\n"
     "SLURM_JOB_PARTITION=train\nSLURM_SUBMIT_DIR=<root>/src\nSLURM_KILL_BAD_EXIT=1"},
    {kLauncher, kRaw, I, 90,
     "++ scontrol show hostnames ||| + srun --label --kill-on-bad-exit=1 python pretrain.py"},
    {kLauncher, kRaw, W, 60,
     "srun: warning: can't honor --ntasks-per-node set to 8 which doesn't match the "
     "requested tasks <R> ||| srun: error: ioctl(TIOCGWINSZ): Inappropriate ioctl for device"},
    {kLauncher, kRaw, I, 70,
     "srun: Job step created for StepId=<job>.0 ||| srun: launching StepId=<job>.0 on host <h0>, 8 tasks: "
     "[0-7]"},
    {kHost, kRaw, I, 60, "slurmstepd: task/affinity: using cpu_bind mask 0x<x:12> for <h>"},
    {kHost, kRaw, W, 40,
     "slurmstepd: error: couldn't chdir to `/home/<user>': No such file or directory: going to "
     "/tmp instead ||| slurmstepd: pam_systemd(slurm:session): Failed to create session: No such process"},
};
constexpr LineSpec kMpirun[] = {
    {kLauncher, kRaw, I, 100, " Data for JOB [<i:1000:60000>,1] offset 0 Total slots allocated <R>"},
    {kLauncher, kRaw, I, 100, " ========================   JOB MAP   ========================"},
    {kLauncher, kRaw, W, 80,
     "--------------------------------------------------------------------------\n"
     "WARNING: There was an error initializing an OpenFabrics device.\n\n  Local host:   <h0>\n  Local "
     "device: "
     "mlx5_<i:0:3>\n--------------------------------------------------------------------------"},
    {kLauncher, kRaw, W, 60,
     "[<h0>:<i:900:9000>] <i:7:63> more processes have sent help message "
     "help-mpi-btl-openib.txt / error in device init\n[<h0>:<i:900:9000>] Set MCA parameter "
     "\"orte_base_help_aggregate\" to 0 to see all help / error messages"},
};
constexpr LineSpec kKubernetes[] = {
    {kAgent, kLogfmt, I, 100, "\"pod <h> scheduled to node <w:pool-a,pool-b,pool-c>-<x:5>\""},
    {kAgent, kLogfmt, I, 100,
     "\"Successfully pulled image registry.local/train/<model>:<rev> in <f:2:90:3>s\""},
    {kAgent, kLogfmt, I, 100, "\"Started container trainer\" pod=<h> restartCount=0"},
    {kAgent, kLogfmt, I, 80, "\"waiting for <H> workers\" ready=<i:1:9> elapsed=<f:0.1:20:2>s"},
    {kAgent, kLogfmt, W, 50,
     "\"nslookup <h0> failed, retrying\" attempt=<i:1:4> ||| \"init container exited, retry\" "
     "reason=DNS attempt=<i:1:3>"},
};

constexpr LineSpec kCommonInit[] = {
    {kHost, kRaw, W, 75,
     "[W socket.cpp:464] [c10d] The server socket has failed to listen on [::]:<port> (errno: 97 - Address "
     "family not supported by protocol), using IPv4."},
    {kHost, kRaw, W, 70,
     "/opt/conda/lib/python3.10/site-packages/torchvision/io/image.py:13: UserWarning: Failed to load image "
     "Python extension: 'libjpeg.so.8: cannot open shared object file'\n  warn("},
    {kHost, kRaw, W, 60,
     "Failed to import optional module 'flash_attn_3' with ModuleNotFoundError(\"No module named "
     "'flash_attn_3'\"), using version 2"},
    {kRank, kPython, W, 25,
     "numactl binding failed for rank <r>: set_mempolicy: Operation not permitted (ignored)"},
    {kHost, kPython, I, 95,
     "python 3.10.12 torch 2.3.0+cu121 host <h> ip <ip> ||| environment: host=<h> cpus=<i:96:224> "
     "mem_gib=<i:900:2015>"},
    {kHost, kRaw, I, 90,
     "NCCL_DEBUG=INFO\nNCCL_IB_HCA=mlx5\nNCCL_ASYNC_ERROR_HANDLING=1\nTORCH_NCCL_BLOCKING_WAIT=0\n"
     "CUDA_DEVICE_MAX_CONNECTIONS=1\nPYTHONFAULTHANDLER=1"},
    {kRank, kPython, I, 70,
     "process <r> of <R> bound to device <l> on <h> (pid <pid>) ||| rank <r>/<R> local_rank <l> up, "
     "pid=<pid>"},
    {kRank, kPython, D, 35, "seed offset <i:1:99999> rng state restored for rank <r>"},
    {kRank0, kPython, I, 90,
     "config: {'on_error': 'raise', 'error_log': None, 'max_failures': 3, 'abort_on_nan': "
     "True, 'timeout_minutes': 10, 'ignore_errors': False}"},
    {kRank0, kRaw, I, 95,
     "{\n  \"architecture\": \"<model>\",\n  \"hidden_size\": <i:1024:16384>,\n  "
     "\"num_layers\": <layers>,\n  \"error_if_nonfinite\": false,\n  \"fail_on_missing_keys\": true,\n  "
     "\"torch_dtype\": \"bfloat16\"\n}"},
    {kHost, kRaw, W, 70,
     "/opt/conda/lib/python3.10/site-packages/torch/utils/tensorboard/__init__.py:4: "
     "DeprecationWarning: distutils Version classes are deprecated. Use packaging.version instead.\n  if not "
     "hasattr(tensorboard, '__version__') or LooseVersion("},
    {kHost, kRaw, W, 60,
     "/opt/conda/lib/python3.10/site-packages/apex/__init__.py:68: DeprecatedFeatureWarning: "
     "apex.amp is deprecated and will be removed by the end of February 2023."},
    {kRank0, kRaw, W, 70,
     "Could not load library libfoo_fast_decoder.so. Error: libfoo_fast_decoder.so: cannot open "
     "shared object file: No such file or directory. Falling back to the slow path. ||| "
     "FileNotFoundError while reading tuning cache, ignored: [Errno 2] No such file or directory: "
     "'/root/.cache/tune.json'"},
    {kRank0, kPython, I, 90,
     "tokenizer loaded: vocab <i:32000:151936> (padded to <i:32000:152064>) from <root>/tokenizer"},
    {kHost, kPython, I, 80,
     "dataset shard map: <i:100:900> shards, <i:1:40> local, index at <root>/data/index_<x:6>.npy"},
    {kHost, kPython, I, 70, "building sample index took <f:0.1:9:3> s, <i:100000:900000000> samples"},
    {kRank, kPython, D, 40,
     "optimizer param group 0: <i:10:400> tensors, <i:1000000:99000000> elements on rank <r>"},
    {kHost, kRaw, W, 40,
     "huggingface/tokenizers: The current process just got forked, after parallelism has already "
     "been used. Disabling parallelism to avoid deadlocks..."},
    {kRank0, kPython, I, 80, "git revision <rev>, branch main, dirty=False"},
    {kHost, kPython, I, 60,
     "memory before model: allocated <f:0:2:2> GiB, reserved <f:0:3:2> GiB, host rss <f:3:20:2> GiB"},
};

constexpr LineSpec kNvidiaInit[] = {
    {kHost, Shape::kNccl, I, 95, "Bootstrap : Using eth0:<ip><0>"},
    {kHost, Shape::kNccl, I, 90,
     "NET/Plugin: No plugin found (libnccl-net.so), using internal implementation ||| "
     "NET/Plugin : dlerror=libnccl-net.so: cannot open shared object file: No such file or directory No "
     "plugin "
     "found (libnccl-net.so), using internal implementation"},
    {kRank0, kRaw, I, 95, "NCCL version 2.19.3+cuda12.3 ||| NCCL version 2.21.5+cuda12.4"},
    {kHost, Shape::kNccl, I, 90,
     "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; "
     "OOB eth0:<ip><0>"},
    {kRank, Shape::kNccl, I, 80,
     "comm 0x<x:12> rank <r> nranks <R> cudaDev <l> nvmlDev <l> busId <x:5> commId 0x<x:16> - "
     "Init START"},
    {kRank, Shape::kNccl, I, 60, "Setting affinity for GPU <l> to ffff,ffff0000,00000000"},
    {kRank, Shape::kNccl, I, 55,
     "NVLS multicast support is available on dev <l> ||| MNNVL busId 0x<x:5> fabric UUID 0.0 "
     "cliqueId 0x0 state 3 healthMask 0x0"},
    {kRank, Shape::kNccl, I, 80, "Trees [0] <i:-1:7>/-1/-1-><r>-><i:-1:7> [1] <i:-1:7>/-1/-1-><r>-><i:-1:7>"},
    {kRank, Shape::kNccl, I, 80, "Channel 00/0 : <r>[<l>] -> <p>[<i:0:7>] [send] via NET/IB/<i:0:3>/GDRDMA"},
    {kRank, Shape::kNccl, I, 80,
     "Channel 01/0 : <p>[<i:0:7>] -> <r>[<l>] [receive] via NET/IB/<i:0:3>/GDRDMA"},
    {kRank, Shape::kNccl, I, 70,
     "Channel <w:02,03,04,05>/0 : <r>[<l>] -> <p>[<i:0:7>] via P2P/CUMEM/read ||| Channel "
     "<w:02,03,04,05> : <r>[<bus>] -> <p>[<bus>] via P2P/IPC/read"},
    {kRank, Shape::kNccl, I, 80, "Connected all rings"},
    {kRank, Shape::kNccl, I, 70, "Connected all trees"},
    {kRank, Shape::kNccl, I, 50, "threadThresholds 8/8/64 | 1024/8/64 | 512 | 512"},
    {kRank, Shape::kNccl, I, 60,
     "<i:8:24> coll channels, 0 collnet channels, 0 nvls channels, <i:8:32> p2p channels, "
     "<i:1:4> p2p channels per peer"},
    {kRank, Shape::kNccl, I, 90,
     "comm 0x<x:12> rank <r> nranks <R> cudaDev <l> busId <x:5> commId 0x<x:16> - Init COMPLETE"},
    {kRank, kTorchCpp, I, 50,
     "ProcessGroupNCCL.cpp:864] [PG 0 Rank <r>] ProcessGroupNCCL initialization options: size: "
     "<R>, global rank: <r>, TIMEOUT(ms): 600000, USE_HIGH_PRIORITY_STREAM: 0, SPLIT_FROM: 0, SPLIT_COLOR: "
     "0"},
    {kRank, kTorchCpp, I, 40, "ProcessGroupNCCL.cpp:2200] [PG 0 Rank <r>] NCCL_DEBUG: INFO"},
};
constexpr LineSpec kAscendInit[] = {
    {kRank, kMind, I, 90,
     "HCCL|[op_base.cc:413][<tid>]Entry-HcclCommInitRootInfo:ranks[<R>], rank[<r>], rootinfo: host "
     "ip[<ip0>] port[60000] nicDeploy[1] identifier[<ip0>%bond0_60000_0_<i:1000000000:1999999999>], "
     "deviceLogicId[<l>]"},
    {kRank, kMind, I, 90,
     "HCCL|[topoinfo_detect.cc:208][<tid>][HCCL_TRACE]SetupAgent rankNum[<R>], rank[<r>], rootInfo "
     "identifier[<ip0>%bond0_60000_0_<x:8>], server[<ip>%bond0], logicDevId[<l>], phydevId[<l>], "
     "deviceIp[29.0.<i:0:250>.<i:1:250>]"},
    {kRank, kMind, I, 80,
     "HCCL|[ccl_buffer_manager.cc:38][<tid>][HCCL_TRACE][CreateCCLbuffer]Create ccl buffer success. "
     "buffer ptr[0x<x:12>], size[209715200]"},
    {kRank, kMind, I, 80,
     "HCCL|[op_base.cc:489][<tid>][HCCL_TRACE]HcclCommInitRootInfo success,take time "
     "[<i:900000:4000000>]us, rankNum[<R>], rank[<r>]"},
    {kRank, kMind, I, 60,
     "HCCL|[externalinput.cc:374][<tid>]environmental variable HCCL_CONNECT_TIMEOUT is set, timeOut[600]"},
    {kRank, kMind, I, 60,
     "HCCL|[config.cc:261][<tid>]environmental variable HCCL_EXEC_TIMEOUT is default, timeOut[1836]"},
    {kRank, kMind, I, 60,
     "RUNTIME|[runtime.cc:1731]<tid> GetAicoreNumByPlatFormInfo:workingDev_=<l>,aicoreCount:24"},
    {kRank, kMind, I, 60, "GE|[gelib.cc:94]<tid> Initialize:GELib initial success, device <l>"},
    {kRank, kMind, I, 50,
     "TDT|[client_process.cpp:112][<tid>][tsd client] tsd open success, deviceId[<l>] rankSize[<R>]"},
    {kRank, kMind, W, 35,
     "DRV|[drv_log_user.c:31][ascend][curpid: <pid>, <tid>][drv][devmm]heap alloc 2M page not enough, "
     "retry 4K page"},
    {kRank, kMind, I, 50,
     "ASCENDCL|[acl.cpp:221]<tid> aclInit: successfully execute aclInit, config is empty"},
    {kRank, kMindPy, I, 60,
     "device <l> rank <r>: context.set_context mode=GRAPH_MODE device_target=Ascend "
     "max_device_memory=<i:26:58>GB"},
};
constexpr LineSpec kTpuInit[] = {
    {kHost, kGlog, I, 90,
     "tpu_topology.cc:118] worker <h> sees <i:4:4> chips, slice topology <w:8x8x8,4x4x8,16x16x4>"},
    {kHost, kGlog, I, 90, "distributed.py:106] Connecting to JAX distributed service on <ip0>:8476"},
    {kHost, kGlog, I, 80,
     "distributed.py:119] JAX distributed initialized: process <r> of <R>, local devices 4"},
    {kRank, kGlog, I, 60,
     "tpu_hal.cc:77] chip <l> firmware 0.<i:3:9>.<i:10:99> hbm 95 GiB core_freq <i:900:1100> MHz"},
    {kHost, kGlog, W, 70,
     "xla_bridge.py:661] Unable to initialize backend 'cuda': INTERNAL: Failed to load libcuda ||| "
     "xla_bridge.py:863] An NVIDIA GPU may be present on this machine, but a CUDA-enabled jaxlib is not "
     "installed. "
     "Falling back to tpu."},
    {kHost, kGlog, W, 60,
     "computation_placer.cc:177] computation placer already registered. Please check linkage and "
     "avoid linking the same target more than once."},
    {kHost, kGlog, E, 50,
     "cuda_dnn.cc:9261] Unable to register cuDNN factory: Attempting to register factory for plugin "
     "cuDNN when one has already been registered"},
    {kHost, kGlog, I, 60,
     "coordination_service_agent.cc:369] Coordination agent has successfully connected."},
    {kRank, kGlog, I, 40,
     "pjrt_client.cc:132] PjRt-TPU device <l> memory limit <i:90:95> GiB, premapped <i:1:4> GiB"},
    {kRank0, kGlog, I, 70,
     "compilation_cache.py:238] Persistent compilation cache hit for 'jit_train_step' with key "
     "'jit_train_step-<x:32>'"},
};

constexpr LineSpec kNvidiaMonitor[] = {
    {kHost, kPython, I, 100,
     "gpu stats: temp_c=[<i:51:66>, <i:51:66>, <i:51:66>, <i:51:66>] power_w=<i:520:690> "
     "sm_mhz=1980 mem_mhz=2619 util=<i:95:100> ||| dcgm host=<h> gpus=8 tmax=<i:55:68>C pavg=<i:540:690>W "
     "clk=1980MHz xid_errors=0"},
    {kHost, kPython, I, 80,
     "host stats: rss=<f:80:96:1>GiB page_cache=<f:300:700:1>GiB load1=<f:12:38:2> fds=<i:900:2100> "
     "procs=<i:200:300>"},
    {kHost, kPython, D, 60,
     "nic mlx5_<i:0:3> tx=<i:8000000:9900000> rx=<i:8000000:9900000> pkts discards=0 symbol_errors=0 "
     "link_downed=0"},
    {kHost, kPython, D, 40, "[heartbeat] host <h> alive, step <it>, trainer pids ok"},
    {kKernel, kDmesg, I, 6,
     "perf: interrupt took too long (<i:2500:5200> > <i:2400:5100>), lowering "
     "kernel.perf_event_max_sample_rate to <i:20000:80000>"},
};
constexpr LineSpec kAscendMonitor[] = {
    {kHost, kMindPy, I, 90,
     "npu stats: temp=[<i:44:58>, <i:44:58>, <i:44:58>, <i:44:58>] hbm_used=<i:41000:60000>MB "
     "aicore=<i:70:99>% health=OK"},
    {kHost, kMindPy, I, 70, "host stats: rss=<f:80:96:1>GiB cached=<f:200:600:1>GiB threads=<i:800:1900>"},
    {kHost, kMindPy, D, 40, "heartbeat node <h> step <it> ok"},
};
constexpr LineSpec kTpuMonitor[] = {
    {kHost, kGlog, I, 90,
     "monitor.py:51] tpu duty_cycle=<f:91:99:1> hbm_used_gib=<f:70:92:1> tensorcore_util=<f:50:68:1>"},
    {kHost, kGlog, I, 60, "monitor.py:77] host rss_gib=<f:40:90:1> open_fds=<i:300:900> goodput=<f:95:99:2>"},
    {kHost, kGlog, I, 30, "gc.cc:15] freelist defragmented <i:1:40> MiB in <f:0.2:9:2> ms"},
};
constexpr LineSpec kKernelBoot[] = {
    {kKernel, kDmesg, I, 70, "nvidia-nvswitch<i:0:3>: open (major=510)"},
    {kKernel, kDmesg, I, 60, "docker0: port 1(veth<x:7>) entered forwarding state"},
    {kKernel, kDmesg, I, 60, "systemd[1]: Started Session <i:100:9000> of user <user>."},
    {kKernel, kDmesg, W, 40,
     "python3 (<pid>): drop_caches: 3 ||| cgroup: fork rejected by pids controller in "
     "/system.slice/node-problem-detector.service"},
    {kKernel, kDmesg, I, 50, "nvidia-uvm: Loaded the UVM driver, major device number 507."},
    {kKernel, kDmesg, I, 50, "infiniband mlx5_<i:0:3>: dump_cqe:272:(pid 0): no dump requested"},
};
constexpr LineSpec kNvidiaTrace[] = {
    {kRank, Shape::kNccl, D, kFixed,
     "AllReduce: opCount <x:4> sendbuff 0x<x:12> recvbuff 0x<x:12> count <i:1024:99999999> "
     "datatype 9 op 0 root 0 comm 0x<x:12> [nranks=<R>] stream 0x<x:12>"},
    {kRank, Shape::kNccl, D, kFixed,
     "ReduceScatter: opCount <x:4> sendbuff 0x<x:12> recvbuff 0x<x:12> count "
     "<i:1024:99999999> datatype 9 op 0 root 0 comm 0x<x:12> [nranks=<dp>] stream 0x<x:12>"},
    {kRank, Shape::kNccl, D, kFixed,
     "AllGather: <i:1048576:99999999> Bytes -> Algo 1 proto 2 time <f:50:9000:3>"},
    {kRank, Shape::kNccl, D, 100, "Send: opCount <x:4> count <i:1024:9999999> peer <p> comm 0x<x:12>"},
};
constexpr LineSpec kAscendTrace[] = {
    {kRank, kMind, D, kFixed,
     "HCCL|[hccl_impl.cc:455][<tid>]AllReduce in tag[AllReduce_hccl_world_group_<i:1:9>] "
     "count[<i:1024:9999999>] dataType[4] streamId[<i:1:90>]"},
    {kRank, kMind, D, kFixed,
     "RUNTIME|[engine.cc:211]<tid> task submit device_id=<l>, stream_id=<i:1:90>, task_id=<i:1:60000>, "
     "type=3"},
    {kRank, kMind, D, kFixed,
     "GE|[graph_manager.cc:880]<tid> run graph async cost <i:200:90000> us, graph_id=<i:1:9>"},
};
constexpr LineSpec kTpuTrace[] = {
    {kRank, kGlog, D, kFixed,
     "tpu_executor.cc:301] enqueue program jit_train_step launch_id <i:1000:9999999> core <l>"},
    {kRank, kGlog, D, kFixed,
     "array.cc:120] transfer_guard: host_to_device <i:1024:9999999> bytes buffer <x:8>"},
};

}  // namespace

Lines launcher_lines(Launcher launcher) {
  switch (launcher) {
    case Launcher::kTorchrun:
      return kTorchrun;
    case Launcher::kSlurm:
      return kSlurm;
    case Launcher::kMpirun:
      return kMpirun;
    case Launcher::kKubernetes:
      return kKubernetes;
  }
  return kSlurm;
}

Lines accel_init_lines(Accel accel) {
  if (accel == Accel::kAscend) return kAscendInit;
  if (accel == Accel::kTpu) return kTpuInit;
  return kNvidiaInit;
}

Lines common_init_lines() { return kCommonInit; }

Lines monitor_lines(Accel accel) {
  if (accel == Accel::kAscend) return kAscendMonitor;
  if (accel == Accel::kTpu) return kTpuMonitor;
  return kNvidiaMonitor;
}

Lines kernel_boot_lines() { return kKernelBoot; }

Lines deep_trace_lines(Accel accel) {
  if (accel == Accel::kAscend) return kAscendTrace;
  if (accel == Accel::kTpu) return kTpuTrace;
  return kNvidiaTrace;
}

}  // namespace culprit::sim
