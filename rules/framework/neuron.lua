-- AWS Neuron: driver, runtime (NRT, TDRV), compiler (neuronx-cc), torch-neuronx.

local function neuron(row)
  rule {
    id = "framework.neuron." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "platform",
    component = row.component or "driver", severity = row.severity or "fatal", role = row.role,
    general = row.general,
    symptom = row.symptom, match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

neuron {
  id = "cores_taken", title = "NeuronCores are held by another process", symptom = "launch_failure",
  regex = { [[NeuronCore\(s\) not available]], [[\bNRT_RESOURCE\b.*[Cc]ore]],
    [[Cannot assign a device for operation .*(?:XLA_(?:TPU|CPU|GPU)|NEURON)]],
    [[nrt_allocate_neuron_cores .*(?:busy|in use)]] },
  remedy = "End left-over processes (neuron-ls), or reload the driver.",
  hit = { "ERROR NRT:nrt_allocate_neuron_cores NeuronCore(s) not available - Requested:nc1-nc1 Available:0" },
  miss = { "NRT: allocated nc0-nc1" },
}
neuron {
  id = "device_missing", restart = "elsewhere",
  title = "Neuron device does not open: it is missing", category = "hardware",
  symptom = "launch_failure", action = "isolate",
  regex = { [[Could not open the (?P<card>nd\d+)]],
    [[(?:NRT|TDRV):\S+\s+.*(?:[Nn]o neuron device available|device nd\d+ (?:not found|is missing))]] },
  remedy = "Count the devices (neuron-ls); if some lack, replace the machine.",
  hit = { "ERROR  TDRV:tdrv_init_mla_phase1                    Could not open the nd0" },
  miss = { "TDRV: opened nd0" },
}
neuron {
  id = "engines", restart = "elsewhere",
  title = "Engines of a Neuron device were left running by an earlier process",
  regex = { [[One or more engines are running\. Please restart device]],
    [[TDRV:\w+ (?P<card>nd\d+) nc\d+ HAL init failed]],
    [[Timestamp program stop timeout \(\d+ ms\)]], [[Unexpected number of CC notifications]] },
  remedy = "Reload the driver, or stop and start the machine.",
  hit = { "ERROR TDRV:tpb_eng_init_hals_v2 CRITICAL HW ERROR: One or more engines are running. Please " ..
      "restart device by reloading driver:" }, miss = { "TDRV: engines stopped" },
}
neuron {
  id = "init", title = "Neuron runtime could not start", general = true, severity = "error",
  symptom = "launch_failure",
  regex = { [[NRT:nrt_init\s+.*(?:[Ff]ailed|error:)]],
    [[Failed to initialize devices, error:\d+]], [[nrt_init failed]],
    [[NRT_INIT_FAILED|NRT_UNINITIALIZED]], [[The PJRT plugin .*neuron.*(?:failed|error)]] },
  remedy = "Read the driver's line before it.",
  hit = { "ERROR   NRT:nrt_init                                Failed to initialize devices, error:5" },
  miss = { "NRT:nrt_init done" },
}
neuron {
  id = "memory", restart = { "never", "same" },
  title = "Model does not fit the Neuron device's memory", category = "user",
  component = "gpu_memory", action = "fix",
  regex = { [[Failed to reserve one tmpbuf memory]], [[TMPBUF pages requested exceeded the max number]],
    [[Failed to alloc(?:ate)? DEVICE memory]], [[NRT_RESOURCE\b.*memory]],
    [[(?i)failed to allocate \S+ bytes.{0,40}(?:NC|neuron|HBM|device DRAM)]],
    [[Estimated peak HBM usage .* exceeds]],
    [[\[NLA\S*\] .*exceeds.*(?:HBM|memory)]] },
  remedy = "Smaller batch or sequence; more cores in tensor parallel.",
  hit = { "ERROR  TDRV:copy_and_stage_mr                       Failed to reserve one tmpbuf memory",
    "ERROR  TDRV:dmem_alloc_internal                     Failed to alloc DEVICE memory: 1073741824, " ..
        "Out of device memory" }, miss = { "TDRV: reserved 16 pages" },
}
neuron {
  id = "exec_timeout", title = "Program on a NeuronCore did not finish in time", category = "user",
  component = "unknown", symptom = "hang", severity = "error",
  regex = { [[\(FATAL-RT-UNDEFINED-STATE\)]], [[Missing infer_status notification]], [[NRT_TIMEOUT\b]],
    [[NRT_EXEC_(?:BAD_STATUS|COMPLETED_WITH_ERR|HW_ERR\w*)]] },
  except = { [[NON-FATAL]] },
  remedy = "Find out whether another rank stopped; for long graphs raise NEURON_RT_EXEC_TIMEOUT.",
  hit = { "ERROR  TDRV:exec_consume_infer_status_notifications   (FATAL-RT-UNDEFINED-STATE) inference " ..
      "timeout (600000 ms) on Neuron Device 4 NC 1" },
  miss = { "(NON-FATAL, Ignoring) inference timeout (180000 ms) on Neuron Device 0 NC 1" },
}
neuron {
  id = "hardware", restart = "elsewhere",
  title = "Neuron device reports a hardware error", category = "hardware", component = "gpu",
  action = "isolate",
  regex = { [[(?i)neuron.{0,60}(?:uncorrectable|unrepairable) .{0,20}(?:ecc|memory|sram|hbm)]],
    [[NEURON_HW_ERR=\w+]], [[(?:NRT|TDRV):\S+\s+.*(?:SRAM|HBM|DRAM)[ _](?:uncorrectable|UE\b)]],
    [[NRT_EXEC_HW_ERR_\w+]] },
  remedy = "Stop and start the machine elsewhere; report it.",
  hit = { "kernel: [1811.9] neuron: NEURON_HW_ERR=DMA_ABORT instance-id=i-1 hostname=n3 nd-id=5 nc-id=1" },
  miss = { "neuron: nd5 reset done" },
}
neuron {
  id = "compiler", restart = "never",
  title = "Neuron compiler rejected or failed on the graph", severity = "error",
  category = "framework", component = "framework",
  regex = { [[=== BIR verification failed ===]], [[\[neuronx?-cc\]: (?:Error class|\*\*\*+|Internal)]],
    [[Expect ap datatype to be of type]], [[neuronx?-cc terminated (?:abnormally|with error)]],
    [[Compiler status (?:ERROR|FAIL)]], [[neuronx-cc failed with \d+]],
    [=[\[NCC_[A-Z]+\d+\]]=] },
  remedy = "Cast unsupported types; update the compiler; report the graph.",
  hit = { "what():  === BIR verification failed ===", "Compiler status ERROR" },
  miss = { "Compiler status PASS" },
}
neuron {
  id = "compiler_python", restart = "never",
  title = "Package that the Neuron compiler uses is too new", category = "user",
  component = "dependency", action = "fix",
  regex = { [[\[neuronx?-cc\]: Error message: +(?:module '\w+' has no attribute|No module named|]] ..
      [[cannot import name)]] },
  remedy = "Pin the package to the version that the compiler asks for.",
  hit = { "ERROR 227874 [neuronx-cc]: Error message:  module 'numpy' has no attribute 'asscalar'" },
  miss = { "[neuronx-cc]: Compilation started" },
}
neuron {
  id = "cache", title = "Compile cache lost an entry: it is shared over a file system without good locks",
  component = "storage",
  regex = { [[(?:KeyError|FileNotFoundError|OSError|BlockingIOError): .*neuron-compile-cache/]],
    [[neuron.?cc?\S*cache.*(?:lock|No such file).*(?:failed|error|Error)]] },
  remedy = "Put the cache on a local disk or in S3 (NEURON_COMPILE_CACHE_URL); compile before the job.",
  hit = { "KeyError: 'cache/neuron-compile-cache/USER_neuroncc-1.0/MODULE_72/MODULE_0_graph'" },
  miss = { "INFO: Using a cached neff at /var/tmp/neuron-compile-cache/MODULE_72/model.neff" },
}
