// Tables: lines of the other ranks after a part of the job was lost, and of the launcher that ends the job.
#include "sim/spell.h"

namespace culprit::sim {

namespace {

using namespace spell;

constexpr ScriptLine kWatchdogNvidia[] = {
    {kAllButVictim, kTorchCpp, E, 0, 3000,
     "ProcessGroupNCCL.cpp:563] [Rank <r>] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=<seq>, OpType=ALLREDUCE, NumelIn=52428800, NumelOut=52428800, "
     "Timeout(ms)=600000) ran for <i:600001:601900> milliseconds before timing out."},
    {kSomeOthers, kTorchCpp, E, 200, 3200,
     "ProcessGroupNCCL.cpp:1537] [PG 0 Rank <r>] Timeout at NCCL work: <seq>, last enqueued NCCL work: "
     "<seq>, last completed NCCL work: <seq-1>."},
    {kAllButVictim, kTorchCpp, E, 3200, 4500,
     "ProcessGroupNCCL.cpp:577] Some NCCL operations have failed or timed out. Due to the asynchronous "
     "nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.",
     1, 0, 85},
    {kAllButVictim, kTorchCpp, E, 3600, 4900,
     "ProcessGroupNCCL.cpp:583] To avoid data inconsistency, we are taking the entire process down.", 1, 0,
     85},
    {kSomeOthers, kRaw, E, 5000, 7000,
     "terminate called after throwing an instance of 'c10::DistBackendError'\n  what():  [Rank <r>] NCCL "
     "watchdog thread terminated with exception: [Rank <r>] Watchdog caught collective operation "
     "timeout\nException raised from checkTimeout at ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:565 "
     "(most recent call first):\nframe #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 "
     "(0x<x:12> in /opt/conda/lib/python3.10/site-packages/torch/lib/libc10.so)\nframe #1: <unknown "
     "function> + 0xd<x:4> (0x<x:12> in /opt/conda/bin/../lib/libstdc++.so.6)"},
};
constexpr ScriptLine kResetNvidia[] = {
    {kNeighbours, Shape::kNccl, W, 0, 1500,
     "misc/socket.cc:538 NCCL WARN Net : Connection closed by remote peer <fh><<i:30000:60000>> ||| "
     "transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer <fip><<i:30000:60000>> with "
     "status=12 opcode=0 len=0 vendor err 129 (Recv) ||| misc/socket.cc:49 NCCL WARN socketProgress: "
     "Connection closed by remote peer <fip><<i:30000:60000>>"},
    {kNeighbours, kTorchCpp, E, 400, 2500,
     "ProcessGroupNCCL.cpp:1182] [PG 0 Rank <r>] Process group watchdog thread terminated with exception: "
     "NCCL error: remote process exited or there was a network error, NCCL version 2.20.5\nncclRemoteError: "
     "A call failed possibly due to a network error or a remote process exiting prematurely.\nLast "
     "error:\nnet_ib recv from <fip> failed"},
    {kSomeOthers, kRaw, E, 800, 3500,
     "torch.distributed.DistBackendError: NCCL error in: "
     "../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:2006, remote process exited or there was a network "
     "error, NCCL version 2.20.5 ||| RuntimeError: [<w:1,2>] is setting up NCCL communicator and retrieving "
     "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection "
     "reset by peer"},
    {kAllButVictim, kTorchCpp, W, 1500, 6000,
     "TCPStore.cpp:143] [c10d] recvValue failed on SocketImpl(fd=<i:40:90>, addr=[<h>]:<i:30000:60000>, "
     "remote=[<h0>]:<port>): failed to recv, got 0 bytes",
     1, 0, 60},
};
constexpr ScriptLine kWatchdogAscend[] = {
    {kOthers, kMind, E, 0, 3000,
     "HCCL|[task_exception_handler.cc:452][<tid>][TaskExceptionHandler][Callback]Task run failed, base "
     "information is streamID:[<i:1:90>], taskID[<i:1:60000>], taskType[Notify Wait], "
     "tag[AllReduce_hccl_world_group_<i:1:9>]"},
    {kSomeOthers, kMind, E, 30, 3100,
     "HCCL|[task_exception_handler.cc:454][<tid>][TaskExceptionHandler][Callback]Task run failed, para "
     "information is notify id:[0x<x:16>], stage:[ffffffff], remote rank:[<fr>]."},
    {kOthers, kRaw, E, 1500, 6000,
     "EI0002: The wait execution of the Notify register times out. Reason: The Notify register has not "
     "received the Notify record from remote rank. base information: [streamID:[<i:1:90>], "
     "taskID[<i:1:60000>], remote rank:[<p>]]",
     1, 0, 80},
};
constexpr ScriptLine kWatchdogTpu[] = {
    {kOtherHosts, kGlog, E, 0, 3000,
     "coordination_service_agent.cc:585] Polled an error from coordination service (this can be an error "
     "from this or another task). UNAVAILABLE: The following tasks are unhealthy (stopped sending "
     "heartbeats): /job:jax_worker/replica:0/task:<fr>"},
    {kOtherHosts, kRaw, E, 500, 4000,
     "F<i:1000:1200> client.h:77] Terminating process because the JAX distributed service detected fatal "
     "errors. This most likely indicates that another task died"},
};
constexpr ScriptLine kKilled[] = {
    {kOthers, kRaw, W, 0, 1500,
     "[rank<r>] received SIGTERM from the launcher, leaving ||| Received signal SIGTERM, closing process "
     "group",
     1, 0, 40},
};
constexpr ScriptLine kWaiting[] = {
    {kOtherHosts, kPython, I, 0, 4000,
     "rank <r> waiting at collective seq=<seq> since <i:110:420> s ||| still in all_reduce <seq>, "
     "<i:110:420> s ||| barrier of step <it> open for <i:110:420> s, ranks arrived <i:8:900>/<R>",
     2, 30000},
};

constexpr ScriptLine kTorchrunEnd[] = {
    {kOtherAgents, kElastic, W, 0, 3000, "Sending process <i:2000:90000> closing signal SIGTERM", 8, 5, 90},
    {kVictimAgent, kElastic, E, 0, 3000,
     "failed (exitcode: <exit>) local_rank: <fl> (pid: <fpid>) of binary: /opt/conda/bin/python3"},
    {kAgent, kRaw, E, 3200, 6000,
     "Traceback (most recent call last):\n  File \"/opt/conda/bin/torchrun\", line 33, in <module>\n    "
     "sys.exit(load_entry_point('torch', 'console_scripts', 'torchrun')())\n  File "
     "\"/opt/conda/lib/python3.10/site-packages/torch/distributed/launcher/api.py\", line 264, in "
     "launch_agent\n    raise "
     "ChildFailedError(\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: "
     "\n============================================================\npretrain.py "
     "FAILED\n------------------------------------------------------------\nRoot Cause (first observed "
     "failure):\n[0]:\n  time      : <nowT>\n  host      : <h>\n  rank      : <r> (local_rank: <l>)\n  "
     "exitcode  : <exit> (pid: <pid>)\n  error_file: <N/A>\n  traceback : To enable traceback see: "
     "https://pytorch.org/docs/stable/elastic/"
     "errors.html\n============================================================",
     1, 0, 70},
};
constexpr ScriptLine kSlurmEnd[] = {
    {kLauncher, kRaw, E, 0, 1500, "srun: error: <fh>: task <fr>: <sig>"},
    {kLauncher, kRaw, W, 1500, 1800, "srun: Terminating StepId=<job>.0"},
    {kLauncher, kRaw, E, 1800, 2600, "slurmstepd: error: *** STEP <job>.0 ON <h0> CANCELLED AT <nowT> ***"},
    {kLauncher, kRaw, E, 2600, 6000,
     "srun: error: <ph>: tasks 0-7: Killed ||| srun: error: <ph>: tasks <i:0:9>,<i:10:90>: Terminated", 3,
     300},
    {kLauncher, kRaw, E, 6000, 9000,
     "srun: error: Timed out waiting for job step to complete ||| srun: Force Terminated StepId=<job>.0", 1,
     0, 50},
};
constexpr ScriptLine kMpirunEnd[] = {
    {kLauncher, kRaw, E, 0, 1500,
     "--------------------------------------------------------------------------\nPrimary job  terminated "
     "normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been "
     "aborted.\n--------------------------------------------------------------------------"},
    {kLauncher, kRaw, E, 1500, 2500,
     "--------------------------------------------------------------------------\nmpirun noticed that "
     "process rank <fr> with PID <fpid> on node <fh> exited on signal 6 (Aborted). ||| mpirun detected that "
     "one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first "
     "process to do so was:\n\n  Process name: [[<i:1000:60000>,1],<fr>]\n  Exit code:    1"},
};
constexpr ScriptLine kKubernetesEnd[] = {
    {kVictimAgent, kLogfmt, E, 0, 2000,
     "\"container trainer terminated\" pod=<h> exitCode=<w:1,134,137,139> reason=Error"},
    {kOtherAgents, kLogfmt, W, 1500, 6000, "\"Stopping container trainer\" pod=<h> reason=\"job failed\"", 1,
     0, 80},
};
constexpr ScriptLine kQuietEnd[] = {
    {kAgent, kRaw, W, 0, 3000, "Received signal 15, leaving ||| SIGTERM from the operator, closing workers"},
};

}  // namespace

Script tail_script(Tail tail, Accel accel) {
  const bool ascend = accel == Accel::kAscend;
  const bool tpu = accel == Accel::kTpu;
  switch (tail) {
    case Tail::kReset:
      if (tpu) return kWatchdogTpu;
      if (ascend) return kWatchdogAscend;
      return kResetNvidia;
    case Tail::kWatchdog:
      if (tpu) return kWatchdogTpu;
      if (ascend) return kWatchdogAscend;
      return kWatchdogNvidia;
    case Tail::kKilled:
      return kKilled;
    case Tail::kWaiting:
      return kWaiting;
    case Tail::kSilent:
      return {};
  }
  return {};
}

Script end_script(Launcher launcher, bool quiet) {
  if (quiet) return kQuietEnd;
  switch (launcher) {
    case Launcher::kTorchrun:
      return kTorchrunEnd;
    case Launcher::kSlurm:
      return kSlurmEnd;
    case Launcher::kMpirun:
      return kMpirunEnd;
    case Launcher::kKubernetes:
      return kKubernetesEnd;
  }
  return {};
}

}  // namespace culprit::sim
