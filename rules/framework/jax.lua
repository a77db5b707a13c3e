-- JAX, XLA, TPU runtimes and slices; TensorFlow.

local function xla(row)
  rule {
    id = "framework." .. row.id, engine = 1, title = row.title, category = row.category or "framework",
    component = row.component or "framework", severity = row.severity or "fatal", role = row.role,
    general = row.general, says = row.says, symptom = row.symptom, window = row.window,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

xla {
  id = "tpu.chip", title = "TPU chip or its driver failed", category = "hardware", component = "gpu",
  action = "isolate",
  regex = { [[\bSLICE_FAILURE_(?:CHIP\w*|HW\w*|HARDWARE\w*|DRIVER\w*)\b]],
    [[your job hit a bad TPU hardware]],
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
  id = "tpu.link", title = "Link between TPU chips failed", category = "hardware", component = "network",
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
    [[The task with address \S+ missed \d+ health checks]],
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
xla {
  id = "jax.heartbeat", title = "JAX's coordinator lost a process", role = "cascade", category = "unknown",
  component = "unknown", severity = "error", action = "none",
  regex = { [[(?i)# of tasks that reached the barrier: (?P<reached>\d+/\d+)]],
    [[Terminating process because the (?:JAX distributed service|coordinator) detected fatal errors]],
    [[The following tasks are unhealthy \(stopped sending heartbeats\)(?::\s*\S*/task:(?P<worker>\d+))?]],
    [[tasks? (?:have|has) (?:not )?(?:failed to )?heartbeat(?:s|ed)?.{0,40}timed? ?out]],
    [[DEADLINE_EXCEEDED: Barrier timed out]],
    [[(?:CoordinationService|coordination_service\S*).*(?:error|failed|timed out|Timed out)]],
    [[UNAVAILABLE: (?:Socket closed|failed to connect to all addresses|Connection reset)]] },
  remedy = "Look at the process that is named as missing.",
  hit = { "Terminating process because the JAX distributed service detected fatal errors.",
    "DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: PjRT_Client_Connect" },
  miss = { "JAX distributed initialized with 64 processes" },
}
-- A barrier's message goes on in further lines: tasks that did not come are named there. (They are fatal so
-- that they lead the first line, which names none.)
local task = [[/job:\w+/(?:replica:\d+/)?task:]]
xla {
  id = "jax.barrier", title = "JAX's processes wait for one that did not come", role = "cascade",
  category = "unknown", component = "unknown", symptom = "hang", severity = "fatal", action = "check",
  regex = { [[Some timed out task names:\s*]] .. task .. [[(?P<worker>\d+)\b]],
    [[(?i)barrier .{0,80}timed out.{0,200}(?:tasks? |task names?:? ?\[?)(?:that )?(?:did not|have not|no]] ..
      [[t).{0,30}?]] ..
      task .. [[(?P<worker2>\d+)\b]] },
  remedy = "Look at the process that is named as missing: it ended, is late, or was never started.",
  hit = { "Some timed out task names: " ..
    "/job:jax_worker/replica:0/task:1" },
  miss = { "The first task at the barrier: /job:jax_worker/replica:0/task:0" },
}
xla {
  id = "jax.barrier_task", title = "JAX process did not come to the barrier", role = "cascade",
  category = "unknown", component = "unknown", symptom = "hang", severity = "fatal", action = "check",
  window = { by = "job", span = "10s", after = "framework.jax.barrier_names" },
  regex = { [[^]] .. task .. [[(?P<worker>\d+)\s*$]] },
  remedy = "Look at that process: it ended, is late, or was never started.",
  hit = { "Some timed out task names:\n/job:jax_worker/replica:0/task:1" },
  miss = { "The first task at the barrier:\n/job:jax_worker/replica:0/task:0" },
}
xla {
  id = "jax.barrier_names", title = "List of JAX's missing processes", category = "unknown",
    component = "unknown",
  severity = "info", action = "none", regex = { [[Some timed out task names:]] },
  remedy = "Read the next lines.", hit = { "Some timed out task names:" }, miss = { "task names" },
}
xla {
  id = "jax.mismatch", title = "Processes run different JAX programs", category = "user",
  component = "user_code", action = "fix",
  regex = { [[does not match (?:across|the) (?:all )?(?:hosts|processes).*(?:program|fingerprint|hlo)]],
    [[(?i)program fingerprint.{0,40}mismatch]], [[An unexpected leader|assert_equal.*across hosts]] },
  remedy = "Make control flow and shapes the same on all processes.",
  hit = { "XlaRuntimeError: INVALID_ARGUMENT: program fingerprint mismatch between workers" },
  miss = { "fingerprint 5f3a" },
}
xla {
  id = "jax.usage", title = "Program does what JAX does not allow", category = "user",
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
  id = "jax.plugin", title = "JAX, jaxlib and the device plugin do not fit", category = "user",
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
  id = "xla.compile", title = "XLA failed to compile the program", severity = "error",
  regex = { [[(?:XlaRuntimeError|JaxRuntimeError): (?:INTERNAL|UNIMPLEMENTED): ]],
    [[ptxas (?:fatal|error)\s*:]], [[Mosaic failed to compile TPU kernel]], [[RET_CHECK failure \(]],
    [[HloVerifier|Binary op \w+ with incompatible shapes]] },
  except = { [[CUDA_ERROR_|NCCL|out of memory|halted]] }, says = "origin",
  remedy = "Try another version or without the kernel named.", action = "mitigate",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Mosaic failed to compile TPU kernel: " ..
      "unsupported shape" }, miss = { "Compiling train_step took 41 s" },
}
xla {
  id = "tensorflow.error", title = "TensorFlow operation failed on its input", category = "user",
  component = "user_code", says = "origin", action = "fix",
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
  id = "tpu.vmem", title = "Kernel needs more of the TPU's vector memory than there is", category = "user",
  component = "user_config", action = "fix",
  regex = { [[Ran out of memory in memory space (?P<space>vmem|smem)]] },
  remedy = "Smaller block sizes in the kernel, or another attention implementation.",
  hit = { "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space vmem. " ..
      "Used " ..
      "16.5M of 16.0M vmem." },
  miss = { "memory space vmem: 2.1M used" },
}
xla {
  id = "jax.coordinator", title = "JAX was started without the addresses and numbers of its processes",
  category = "user", component = "user_config", symptom = "launch_failure", action = "fix",
  regex = { [[ValueError: (?:coordinator_address|num_processes|process_id|Number of ]] ..
      [[processes)\b.*(?:must|should)]],
    [[jax\.distributed\.initialize\(?\)? (?:must be called|should only be called)]] },
  remedy = "Give coordinator address, number of processes and process id on every host, before any JAX call.",
  hit = { "ValueError: coordinator_address should be defined." },
  miss = { "jax.distributed.initialize done" },
}
