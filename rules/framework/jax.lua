-- JAX, XLA, TPU runtimes and slices; TensorFlow.

-- A process of a JAX job, as its coordination service names it; the number follows.
local task = [[/job:\w+/(?:replica:\d+/)?task:]]

local function xla(row)
  rule {
    id = "framework." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "framework",
    component = row.component or "framework", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom, window = row.window, observes = row.observes,
    reads = row.reads,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

xla {
  id = "tpu.chip", restart = "elsewhere",
  title = "TPU chip or its driver failed", category = "hardware", component = "gpu",
  action = "isolate",
  regex = { [[\bSLICE_FAILURE_(?:CHIP\w*|HW\w*|HARDWARE\w*|DRIVER\w*)\b]],
    [[your job hit a bad TPU hardware]],
    [=[!!!! FATAL ERROR !!!! for \[(?P<device>/dev/accel\d+ [^\]]*)\]]=],
    [=[\[Physical location: (?P<device>tpu[^\]]+)\] .*error has occurred, all pending programs will fail]=],
    [[(?i)TPU (?:chip|core) .{0,40}(?:halted unexpectedly|hardware (?:error|failure))]],
    [[Accelerator device halted prematurely]],
    [[(?i)uncorrectable (?:HBM|ECC) error.*(?:TPU|chip|accel)]],
    [[\bTPU worker .*(?:unhealthy|UNHEALTHY_(?:TPU|MAINTENANCE))]] },
  remedy = "Take that worker out and repair the slice; if other workers show it too, suspect the program.",
  hit = { "Detected failure SLICE_FAILURE_CHIP_DRIVER_ERROR in session e6c8; Start failure handling",
    "INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device check-failure." },
  miss = { "TPU chip 0 initialised" },
}
xla {
  id = "tpu.link", restart = "elsewhere",
  title = "Link between TPU chips failed", category = "hardware", component = "network",
  action = "isolate",
  regex = { [[\bSLICE_FAILURE_(?:ICI|NETWORK|LINK)\w*]],
    [[(?i)\bICI\b.{0,60}(?:link (?:down|failure|error)|unhealthy|training failed)]] },
  remedy = "Repair or recreate the slice.",
  hit = { "SLICE_FAILURE_ICI_ERROR in session 1; ICI link down on chip 3" }, miss = { "ICI network built" },
}
xla {
  id = "tpu.slice", title = "A worker of the TPU slice stopped answering", category = "unknown",
  component = "unknown", role = "cascade", severity = "error",
  regex = { [[\bSLICE_FAILURE_(?:SW\w*|WORKER\w*|UNKNOWN|INIT\w*|GRACEFUL\w*)\b]],
    [[The task with address (?P<lost_host>[\w.-]+)(?::\d+)? missed \d+ health checks]],
    [[(?i)megascale.{0,80}(?:error|timed? ?out|unreachable)]] },
  except = { [[Megascale (?:hang detected|detects a hang)]] },
  remedy = "Look at the log of the worker that is missing.",
  hit = { "The task with address tpu-job-38:8471 missed 1 health checks." },
  miss = { "Megascale hang detection enabled" },
}
xla {
  id = "tpu.device", title = "TPU cannot be opened: its device is held or missing", category = "platform",
  component = "gpu", symptom = "launch_failure",
  regex = { [[(?i)(?:Couldn't|Failed to|cannot) open iommu group (?P<path>/dev/vfio/\d+)]],
    [[TPU initialization failed: (?P<what>.*)]],
    [[(?i)open\((?P<path2>/dev/(?:vfio/\d+|accel\d+))\): (?P<what2>Device or resource busy|No such file|]] ..
      [[Permission denied|Operation not permitted)]],
    [[(?i)Failed to open (?P<path3>/dev/(?:vfio/\d+|accel\d+))]],
    [[No ba16c7433 device found]], [[Failed to get TPU metadata \((?P<key>[\w-]+)\)]] },
  remedy = "End what still holds the device (lsof on it), or recreate the TPU VM after a preemption; in a " ..
    "container pass the device and run it privileged.",
  hit = { "jax.errors.JaxRuntimeError: UNKNOWN: TPU initialization failed: open(/dev/vfio/0): Device or " ..
      "resource busy: Device or resource busy; Couldn't open iommu group /dev/vfio/0",
    "Failed to open /dev/accel0" },
  miss = { "TPU initialization succeeded: /dev/vfio/0" },
}
xla {
  id = "tpu.busy", title = "TPU is in use by another process", category = "user", component = "gpu",
  symptom = "launch_failure", action = "fix",
  regex = { [[The TPU is already in use by (?:another )?process]], [[libtpu\S* .*already in use]],
    [[(?i)(?:remove|delete|found|exists|held).*/tmp/libtpu_lockfile]],
    [[/tmp/libtpu_lockfile.*(?:exists|held)]],
    [[RuntimeError: Unable to initialize backend 'tpu': .*(?:ABORTED|already in use|No such device)]] },
  remedy = "End the other process; remove a stale lock file.",
  hit = { "RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by " ..
      "process with pid 4021." }, miss = { "Unable to initialize backend 'tpu_driver': NOT_FOUND" },
}
-- What the coordinator says of a meeting of tasks: the barrier, how many came, and the names of those who did
-- not. Line ends may be written out.
local names = [[(?P<absent_tasks>(?:(?:\s|\\n)*/job:\w+/(?:replica:\d+/)?task:\d+)*)]]
local coordinator = {
  [[Barrier (?P<meets>timed (?P<tasks>out))]],
  [[Barrier timed out.*?Id: (?P<barrier>[^ \n\\]+?)(?:::[^ \n\\:]*)?\.*(?:[ \n\\]|$)]],
  [[Barrier timed out.*?Barrier_id: (?P<barrier>[^ \n\\]+?)(?:::[^ \n\\:]*)?\.*(?:[ \n\\]|$)]],
  [[Barrier timed out.*?(?:Id|Barrier_id): \S*(?P<starts>PjRT_Client_Connect|]] ..
    [[Wait_for_all_tasks_to_register)]],
  [[(?P<tasks>tasks) that reached the barrier: (?P<came>\d+)/(?P<all>\d+)]],
  [[imed out (?P<tasks>task) names:]] .. names,
  [[(?P<lost>\((?P<tasks>stopped) sending heartbeats\)):?]] .. names,
  [[^\s*(?P<absent_tasks>/job:\w+/(?:replica:\d+/)?(?P<tasks>task):\d+)\s*$]],
}
xla {
  id = "jax.heartbeat", title = "JAX's coordinator lost a process", role = "cascade", category = "unknown",
  component = "unknown", severity = "error", action = "none", observes = "meeting",
  reads = coordinator,
  regex = { [[(?i)# of tasks that reached the barrier: (?P<reached>\d+/\d+)]],
    [[Terminating process because the (?:JAX distributed service|coordinator) detected fatal errors]],
    [[The following tasks are unhealthy \(stopped sending heartbeats\)]],
    [[tasks? (?:have|has) (?:not )?(?:failed to )?heartbeat(?:s|ed)?.{0,40}timed? ?out]],
    [[(?:CoordinationService|coordination_service\S*).*(?:error|failed|timed out|Timed out)]],
    [[UNAVAILABLE: (?:Socket closed|failed to connect to all addresses|Connection reset)]] },
  except = { [[Barrier timed out\. ?(?:Barrier_id|Id): ]] },
  remedy = "Look at the process that is named as missing.",
  hit = { "Terminating process because the JAX distributed service detected fatal errors." },
  miss = { "JAX distributed initialized with 64 processes" },
}
xla {
  id = "jax.barrier", restart = "unknown",
  title = "Not all JAX processes came to a barrier", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", symptom = "hang", observes = "meeting",
  reads = coordinator,
  regex = { [[DEADLINE_EXCEEDED: Barrier timed out]], [[Barrier timed out\. ?(?:Barrier_id|Id): ]] },
  remedy = "Look at the processes that the next lines list.",
  hit = { "DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect" },
  miss = { "Barrier passed. Id: PjRT_Client_Connect" },
}
-- The next lines of both: how many came, and names. The report's hang joins them.
rule {
  id = "framework.meeting.tasks", restart = "unknown",
  engine = 1, title = "JAX's coordinator lists processes",
  category = "unknown", component = "unknown", severity = "info", symptom = "hang", action = "none",
  observes = "members", reads = coordinator,
  match = { regex = { [[# of tasks that reached the barrier: \d+/\d]], [[imed out task names:]],
    [[^\s*/job:\w+/replica:\d+/task:\d+\s*$]] } },
  remedy = "Look at the processes that are listed.",
  examples = { hit = { "# of tasks that reached the barrier: 7/8.", "/job:jax_worker/replica:0/task:5" },
    miss = { "connected /job:jax_worker/replica:0/task:5" } },
}
xla {
  id = "jax.mismatch", restart = "never", title = "Processes run different JAX programs", category = "user",
  component = "user_code", action = "fix",
  regex = { [[does not match (?:across|the) (?:all )?(?:hosts|processes).*(?:program|fingerprint|hlo)]],
    [[sync_global_devices name mismatch \('(?P<name>[^']+)'\)]],
    [[(?i)program fingerprint.{0,40}mismatch]], [[An unexpected leader|assert_equal.*across hosts]] },
  remedy = "Make control flow and shapes the same on all processes.",
  hit = { "XlaRuntimeError: INVALID_ARGUMENT: program fingerprint mismatch between workers" },
  miss = { "fingerprint 5f3a" },
}
xla {
  id = "jax.usage", restart = "never", title = "Program does what JAX does not allow", category = "user",
  component = "user_code", action = "fix",
  regex = { [[jax\.errors\.(?:Tracer\w+|ConcretizationTypeError|UnexpectedTracerError|]] ..
      [[NonConcreteBooleanIndexError|KeyReuseError|JaxRuntimeError: INVALID_ARGUMENT)]],
    [[One of (?:pjit|jit) (?:arguments|outputs)'? .*was given the sharding of]],
    [[Incompatible shapes for broadcasting: ]] },
  remedy = "Correct the line that the traceback names.",
  hit = { "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with " ..
      "shape bool[]." }, miss = { "jax.errors module" },
}
xla {
  id = "jax.plugin", restart = "never",
  title = "JAX, jaxlib and the device plugin do not fit", category = "user",
  component = "dependency", symptom = "launch_failure", action = "fix",
  regex = { [[jaxlib version \S+ is newer than and incompatible with jax version]],
    [[jaxlib \S+ requires|This version of jaxlib was built using]],
    [[RuntimeError: Unable to initialize backend '(?:cuda|gpu|rocm)': (?:FAILED_PRECONDITION|INTERNAL)]],
    [[Unable to load (?:cuDNN|cuSOLVER|cuBLAS|cuSPARSE|CUDA)\. Is it installed\?]] },
  remedy = "Install jax, jaxlib and plugin in one version.",
  hit = { "RuntimeError: jaxlib version 0.4.30 is newer than and incompatible with jax version 0.4.20." },
  miss = { "No GPU/TPU found, falling back to CPU." },
}
xla {
  id = "xla.compile", restart = "never", title = "XLA failed to compile the program", severity = "error",
  regex = { [[(?:XlaRuntimeError|JaxRuntimeError): (?:INTERNAL|UNIMPLEMENTED): ]],
    [[ptxas (?:fatal|error)\s*:]], [[Mosaic failed to compile TPU kernel]], [[RET_CHECK failure \(]],
    [[HloVerifier|Binary op \w+ with incompatible shapes]] },
  except = { [[CUDA_ERROR_|NCCL|out of memory|halted]] }, general = true,
  remedy = "Try another version or without the kernel named.", action = "mitigate",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Mosaic failed to compile TPU kernel: " ..
      "unsupported shape" }, miss = { "Compiling train_step took 41 s" },
}
xla {
  id = "tensorflow.error", restart = "never",
  title = "TensorFlow operation failed on its input", category = "user",
  component = "user_code", general = true, action = "fix",
  regex = { [[tensorflow\.python\.framework\.errors_impl\.(?P<kind>InvalidArgumentError|NotFoundError|]] ..
      [[FailedPreconditionError|UnimplementedError|OutOfRangeError|InternalError): ]],
    [[errors_impl\.InvalidArgumentError: Graph execution error]] },
  remedy = "Read the node named below it.",
  hit = { "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:" },
  miss = { "tensorflow/core/framework/op_kernel.cc:1676] OpKernel ('op: \"TPURoundRobin\"') for unknown op" },
}
xla {
  id = "tensorflow.peer", title = "TensorFlow worker is gone", role = "cascade", category = "unknown",
  component = "unknown", severity = "error", action = "none",
  regex = { [[errors_impl\.(?:UnavailableError|AbortedError|CancelledError|DeadlineExceededError): ]],
    [[RPC failed with status = "UNAVAILABLE: Socket closed"]],
    [[Session master .* lost|Collective ops is aborted by]],
    [[(?:Aborting \w+ with|CollectiveExecutor::StartAbort) (?:Unavailable|UNAVAILABLE)]] },
  remedy = "Find out which worker ended first.",
  hit = { "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: " ..
      "failed to connect to all addresses",
    "E ring_alg.cc:283] Aborting RingGather with Unavailable: Connection reset by peer" },
    miss = { "Started server with target: grpc://localhost:2222" },
}
xla {
  id = "tpu.hbm", restart = { "never", "same" },
  title = "TPU memory is used up", category = "user", component = "gpu_memory",
    action = "fix",
  regex = { [[Ran out of memory in memory space hbm\. (?P<used>Used \S+ of \S+ hbm)]],
    [[(?P<used>Used \S+ of \S+ hbm)\. Exceeded hbm capacity]], [[Ran out of memory in memory space hbm]],
    [[RESOURCE_EXHAUSTED: .*Attempting to (?:reserve|allocate) (?P<size>[\d.]+[KMGT]i?B?)\b.*That was no]] ..
      [[t possible]] },
  remedy = "Smaller batch per chip, recomputation, or more sharding of parameters and activations.",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. " ..
    "Ran out of " ..
      "memory in memory space hbm. Used 18.31G of 15.75G hbm. Exceeded hbm capacity by 2.56G.",
    "RESOURCE_EXHAUSTED: Error loading program 'jit_step': Attempting to reserve 1.95G at the bottom of " ..
      "memory. " ..
      "That was not possible. There are 1.20G free, 0B reserved, and 1.10G reservable." },
  miss = { "Used 12.31G of 15.75G hbm by the program" },
}
xla {
  id = "tpu.hosts", restart = "unknown",
  title = "TPU waits for the other hosts of its slice to start the program",
    category = "user",
  component = "user_config", symptom = "launch_failure", severity = "error", action = "fix",
  regex = { [[Did you run your code on all TPU hosts\?]], [[Failed to get global TPU topology]],
    [[(?i)expected (?P<want>\d+) worker addresses, got (?P<got>\d+)]] },
  remedy = "Start the program on all hosts of the slice (--worker=all) at the same time; a host whose " ..
    "process " ..
    "ended keeps the others waiting.",
  hit = { "TPU backend initialization is taking more than 60.0 seconds. Did you run your code on all " ..
    "TPU hosts? See " ..
      "https://jax.readthedocs.io/en/latest/multi_process.html for more information.",
    "RuntimeError: Unable to initialize backend 'tpu': INTERNAL: Failed to get global TPU topology. (set " ..
      "JAX_PLATFORMS='' to automatically choose an available backend)" },
  miss = { "TPU backend initialised on 16 hosts" },
}
xla {
  id = "tpu.backend", restart = "elsewhere",
  title = "JAX finds no TPU", category = "platform", component = "driver",
  symptom = "launch_failure", general = true,
  regex = { [[Unable to initialize backend 'tpu': (?P<what>.*)]],
    [[(?P<library>libtpu\.so): cannot open shared object file]], [[(?P<what>No TPU Platform available)]],
    [[(?P<what>Failed to find TPU metadata.*)]], [[(?P<what>libtpu\.so not found)]] },
  except = { [[backend 'tpu_driver']], [[(?i)falling back to cpu|INFO]] },
  remedy = "Install the libtpu that jax asks for (jax[tpu]); check that this is a TPU VM, and that no " ..
    "other process " ..
    "holds the chips.",
  hit = { "RuntimeError: Unable to initialize backend 'tpu': UNAVAILABLE: No TPU Platform available." },
  miss = { "Unable to initialize backend 'tpu_driver': NOT_FOUND: Unable to find driver in registry" },
}
xla {
  id = "tpu.halted", title = "Program on the TPU stopped: a chip or another host ended it",
    category = "unknown",
  component = "gpu", severity = "error", general = true,
  regex = { [[The program continuator has halted unexpectedly]], [[\bcore(?:s)? halted unexpectedly\b]],
    [[halted unexpectedly at tag:pc (?P<place>\S+)]] },
  remedy = "Look at the other hosts first: one that was killed or preempted halts its peers. One host " ..
    "in run " ..
    "after run is its chip.",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: The program continuator has " ..
    "halted unexpectedly." },
  miss = { "program continuator started" },
}
xla {
  id = "tpu.capacity", restart = "later",
  title = "Cloud has no capacity for the accelerators asked for", category = "platform",
  component = "platform",
  symptom = "launch_failure", action = "retry",
  regex = { [[(?i)There is no more capacity in the zone "?(?P<zone>[\w-]+)]],
    [[\bZONE_RESOURCE_POOL_EXHAUSTED\w*]],
    [[does not have enough resources available to fulfill the request]], [[\bInsufficientInstanceCapacity\b]],
    [[(?i)\b(?:stockout|out of capacity)\b.{0,60}\b(?:zone|region|instance)]],
      [[\b(?:AllocationFailed|SkuNotAvailable|ZonalAllocationFailed)\b]] },
  remedy = "Try again, another zone or type, or a reservation.",
  hit = { "ERROR: (gcloud.compute.tpus.tpu-vm.create) There is no more capacity in the zone " ..
    "\"us-central2-b\"; you can " ..
      "try in another zone",
    "An error occurred (InsufficientInstanceCapacity) when calling the RunInstances operation" },
  miss = { "capacity reservation r-1 is used" },
}
xla {
  id = "tpu.quota", restart = "never",
  title = "Quota of the account is used up", category = "user", component = "user_config",
  symptom = "launch_failure", action = "fix",
  regex = { [[(?i)\bQuota limit '(?P<limit>\w+)' has been exceeded]], [[\bQuota '(?P<limit>\w+)' exceeded]],
    [[\b(?P<limit>VcpuLimitExceeded|InstanceLimitExceeded|QuotaExceeded)\b]] },
  remedy = "Ask for a higher quota, or use less.",
  hit = { "Quota limit 'TPUV4CoresPerProjectPerZone' has been exceeded. Limit: 32 in zone us-central2-b." },
  miss = { "Quota limit 'CPUS' is 2400" },
}
xla {
  id = "tpu.state", title = "TPU was preempted or is under maintenance: <state>", category = "platform",
  component = "platform", severity = "error",
    action = "retry",
  regex = { [[\bTPU\b.{0,60}\b(?:state|is|health)\b.{0,20}\b(?P<state>PREEMPTED|TERMINATED|UNHEALTHY_MAI]] ..
    [[NTENANCE|SUSPENDED)\b]],
    [[\b(?P<state>UNHEALTHY_MAINTENANCE)\b]] },
  remedy = "Recreate the TPU and go on from the last checkpoint.",
  hit = { "ERROR: (gcloud.alpha.compute.tpus.tpu-vm.ssh) TPU instance is in state PREEMPTED",
    "TPU vm is unhealthy: UNHEALTHY_MAINTENANCE" },
  miss = { "TPU is in state READY" },
}
xla {
  id = "jax.restarted", title = "JAX process was started again while the others went on", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "check",
  regex = { task .. [[(?P<worker>\d+) unexpectedly tried to connect with a different incarnation]],
    [[Unexpected task registered with task_name=]] .. task .. [[(?P<worker2>\d+)]] },
  remedy = "Find out why that process ended before; start all processes together.",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: ABORTED: /job:jax_worker/replica:0/task:3 unexpectedly " ..
    "tried to " ..
    "connect with a different incarnation. It has likely restarted." },
  miss = { "/job:jax_worker/replica:0/task:3 has connected" },
}
xla {
  id = "jax.lost_task", title = "JAX process stopped sending heartbeats", role = "cascade",
    category = "unknown",
  component = "unknown", severity = "fatal", action = "check",
  regex = { [[Task ]] .. task .. [[(?P<worker>\d+) (?:heartbeat timeout|has been set to ERROR)]],
    [[\(stopped sending heartbeats\):?\s*\S*/task:(?P<worker>\d+)]],
    [[Barrier failed because a task is in error\..*?Task: ]] .. task .. [[(?P<worker>\d+)]] },
  remedy = "Look at that process: killed, preempted, out of memory, or its host is gone.",
  hit = { "Task /job:jax_worker/replica:0/task:5 has been set to ERROR in coordination service: " ..
    "UNAVAILABLE: Task " ..
      "/job:jax_worker/replica:0/task:5 heartbeat timeout.",
    "jax.errors.JaxRuntimeError: UNAVAILABLE: The following tasks are unhealthy (stopped sending " ..
      "heartbeats): " ..
      "/job:jax_worker/replica:0/task:7" },
  miss = { "Task /job:jax_worker/replica:0/task:5 has connected" },
}
xla {
  id = "jax.nccl_missing", restart = "never", title = "JAX does not find the NCCL library", category = "user",
  component = "dependency", action = "fix",
  regex = { [[Unable to load NCCL library]], 
    [[(?:dlopen|load) .{0,40}libnccl\.so\S*.{0,40}(?:failed|cannot open)]] },
  remedy = "Install nvidia-nccl of the installed CUDA into this environment, or put it on the library path.",
  hit = { "NCCL operation ncclGetUniqueId(&id) failed: Unable to load NCCL library. Multi-GPU collectives " ..
    "will not work.;" },
  miss = { "NCCL version 2.21.5+cuda12.4" },
}
xla {
  id = "jax.nccl", restart = "unknown",
  title = "NCCL failed under JAX", category = "platform", component = "nccl_comm",
  severity = "fatal", general = true,
  regex = { [[NCCL operation (?P<call>\w+)\S* failed: (?P<what>[^.(]+)]],
    [[(?i)Failed to initialize NCCL communicator.*?: (?P<what>.*)]] },
  except = { [[remote process exited]] },
  remedy = "Read what follows \"Last NCCL warning\"; set NCCL_DEBUG=WARN for the reason.",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: NCCL operation ncclCommInitRankConfig " ..
    "failed: unhandled " ..
    "system error (run with NCCL_DEBUG=INFO for details). Last NCCL warning(error) log entry (may be " ..
      "unrelated) ''." },
  miss = { "NCCL operation ncclGroupEnd() failed: remote process exited or there was a network error" },
}
xla {
  id = "jax.proxy", title = "JAX lost its connection to the devices' proxy", role = "cascade",
    category = "unknown",
  component = "network", severity = "error",
  regex = { [[Connection to IFRT proxy server was terminated]], [[DEADLINE_EXCEEDED: Connection timed out]] },
  remedy = "Look at the proxy's log and at the hosts of the devices.",
  hit = { "UNAVAILABLE: Connection to IFRT proxy server was terminated: UNAVAILABLE: Connection closed" },
  miss = { "Connected to IFRT proxy server" },
}
xla {
  id = "tpu.vmem", restart = "never",
  title = "Compiled kernel needs more of the TPU's <space> than there is", action = "fix",
  regex = { [[Ran out of memory in memory space (?P<space>vmem|smem)]] },
  remedy = "Smaller block sizes in the kernel, or another attention implementation.",
  hit = { "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. " ..
      "Used " ..
      "16.5M of 16.0M vmem." },
  miss = { "memory space vmem: 2.1M used" },
}
xla {
  id = "jax.coordinator", restart = "never",
  title = "JAX was started without the addresses and numbers of its processes",
  category = "user", component = "user_config", symptom = "launch_failure", action = "fix",
  regex = { [[ValueError: (?:coordinator_address|num_processes|process_id|Number of ]] ..
      [[processes)\b.*(?:must|should)]],
    [[jax\.distributed\.initialize\(?\)? (?:must be called|should only be called)]] },
  remedy = "Give coordinator address, number of processes and process id on every host, before any JAX call.",
  hit = { "ValueError: coordinator_address should be defined." },
  miss = { "jax.distributed.initialize done" },
}
