-- CANN, the NPU's runtime: error codes of its parts (EE runtime, EL driver, EH API, E1 to E4 graph and
-- operators, EZ operators, EK profiling),
-- return codes (107xxx caller, 207xxx resources, 5070xx device), and lines that name the cause. Inner errors
-- (x9999) give way to any of them.

local function cann(row)
  rule {
    id = "ascend.cann." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category,
      component = row.component,
    severity = row.severity or "fatal", action = row.action or (row.category == "user" and "fix" or "check"),
      role = row.role, general = row.general,
    symptom = row.symptom, source = { "log" }, remedy = row.remedy, match = { regex = row.regex,
      except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

local codes = {
  { "EE1001", "NPU runtime was given an invalid argument", "user", "user_config",
    "Check the device id and the argument in the line." },
  { "EE1002", "NPU stream did not finish in time", "unknown", "cuda_runtime",
    "Find the operator or peer that the stream waits for.", role = "cascade", restart = "unknown" },
  { "EE1003", "NPU runtime call not allowed here", "user", "user_code",
    "Correct the call that the line names." },
  -- (EL0001: below.)
  { "EL0003", "NPU driver was given an invalid argument", "user", "user_config",
    "Check the value in the line." },
  { "EL0004", "NPU memory is used up", "user", "gpu_memory",
    "Lower batch or model per NPU; look for other processes on it.", restart = { "never", "same" } },
  { "EL0005", "NPU resource is busy", "platform", "driver",
    "End left-over processes on the NPU or reset it.", restart = "same" },
  { "EK0001", "Path or value for the profiler is invalid", "user", "user_config",
    "Use a plain ASCII path that exists." },
  { "E30003", "Too many processes run on the NPU", "user", "user_config", "Start fewer processes per NPU." },
  { "E30008", "Operator on the NPU's CPU timed out, often waiting for data", "user", "framework",
    "Check the data pipeline: the device waits for its next batch.", restart = "unknown" },
  { "E39999", "NPU's CPU operator failed", "user", "framework",
    "Check the data the operator got and how many batches the data set holds.", general = true,
    restart = "unknown" },
  { "EB0000", "Operator cannot be compiled for this shape", "framework", "framework",
    "Change the shape or update CANN; report it." },
  { "EZ9999", "NPU operator failed", "framework", "framework",
    "Read the operator's name in the next lines; check its inputs, then report it.", general = true,
    restart = "same" },
  { "EE9999", "NPU runtime inner error", "framework", "framework", "Read the lines after it for the cause.",
    general = true, severity = "error", restart = "unknown" },
  { "EH9999", "NPU API inner error", "framework", "framework", "Read the lines after it for the cause.",
    general = true, severity = "error", restart = "unknown" },
  { "EL9999", "NPU driver inner error", "platform", "driver",
    "Read the lines after it; reset the NPU if it returns.", general = true, severity = "error",
    restart = "same" },
  { "E19999", "NPU graph engine inner error", "framework", "framework",
    "Read the lines after it for the cause.", general = true, severity = "error", restart = "unknown" },
  { "E29999", "NPU fusion engine inner error", "framework", "framework",
    "Read the lines after it for the cause.", general = true, severity = "error", restart = "unknown" },
  { "EE4002", "NPU stream did not finish in time", "framework", "framework",
    "Find the operator or peer that the stream waits for.", role = "cascade", restart = "unknown" },
  { "EZ9903", "Operator could not be run: runtime or memory", "framework", "framework",
    "Read the lines after it for the cause; look for NPU memory that is used up.", general = true,
      severity = "error", restart = "unknown" },
  { "E89999", "NPU operator development error", "framework", "framework",
    "Read the lines after it for the cause.",
    general = true, severity = "error", restart = "unknown" },
  { "E40021", "Operator could not be compiled", "framework", "framework",
    "Look at the compiler's lines; check shapes and the operator package." },
}
for _, row in ipairs(codes) do
  cann {
    id = string.lower(row[1]), restart = row.restart, title = row[2], category = row[3],
      component = row[4], remedy = row[5], role = row.role, general = row.general,
    severity = row.severity, regex = { [[\b]] .. row[1] .. [=[(?:[:)\]]|  )]=] },
    hit = { row[1] .. ": [PID: 775] 2025-02-16-12:18:25.258.321 text",
      row[1] .. "  Task execute failed, base info: device_id=0" },
    miss = { "see the page on " .. row[1] .. " for more", row[1] .. "2: text" },
  }
end

-- Before CANN 8.5 this code was an argument that the driver does not take; since then the NPU itself is gone.
cann {
  id = "el0001", restart = "elsewhere",
  title = "NPU is absent or abnormal for its driver", category = "hardware", component = "gpu",
  general = true,
  regex = { [=[\bDevice_Absent/Abnormal\(EL0001\)]=], [[\bEL0001: .*\bDevice (?:not found|does not exist]] ..
    [[|is abnormal)]] },
  remedy = "Look for a lost heartbeat or event code of the NPU in the next lines and in npu-smi; reset " ..
    "it, and " ..
    "replace the board if it returns.",
  hit = { "[PID: 389] 2026-05-01-10:59:14.702.326 Device_Absent/Abnormal(EL0001): Device not found or " ..
    "invalid." },
  miss = { "EL0001: [PID: 775] 2025-02-16-12:18:25.258.321 The argument is invalid. Reason: devId=9" },
}
cann {
  id = "el0001_argument", title = "NPU driver was given an invalid argument", category = "user",
  component = "user_config", regex = { [=[\bEL0001(?:[:\]]|  )]=] },
  except = { [[Device (?:not found|does not exist|is abnormal)]] }, remedy = "Check the value in the line.",
  hit = { "EL0001: [PID: 775] 2025-02-16-12:18:25.258.321 The argument is invalid. Reason: devId=9" },
  miss = { "Device_Absent/Abnormal(EL0001): Device not found or invalid." },
}

-- Families of codes where the digits only say which check failed.
cann {
  id = "operator_input", title = "Operator was built with a parameter it does not support", category = "user",
    component = "framework",
  regex = { [['errCode': '(?P<code>E[68]\d{4})']], [[\bE6[0-3]\d{3}: ]], [[\bE8[0-3]\d{3}: ]],
    [[\bEZ[1-3]\d{3}: ]] },
  remedy = "Change shape, type or attribute of the operator that the line names.",
  hit = { "RuntimeError: ({'errCode': 'E80012', 'op_name': 'reduce_sum_d', 'param_name': 'x'}",
    "EZ3002: Optype [Foo] of Ops kernel is unsupported" },
  miss = { "EZ9999: Inner Error!" },
}
cann {
  id = "driver", restart = "same",
  title = "NPU driver or device did not do what the runtime asked", category = "platform",
    component = "driver", general = true,
  regex = { [=[reason=\[driver error:(?P<what>[^\]]+)\]]=],
    [[tsd client wait response fail]], [[Failed to obtain the device ID]] },
  remedy = "Check npu-smi, the driver's version and log, and that the container may use the devices.",
  hit = { "rtGetDevMsg execute failed, reason=[driver error:internal error]",
    "tsd client wait response fail, device response code[1]" },
  miss = { "driver version 24.1.0" },
}
cann {
  id = "graph_input", title = "Graph or model settings are invalid", category = "user",
    component = "user_config",
  regex = { [[\bE10\d{3}: ]], [[\bEH000\d: ]] },
  remedy = "Correct the option or input that the line names.",
  hit = { "E10001: Value [x] for parameter [soc_version] is invalid",
    "EH0001: Value 9 for deviceId is invalid" }, miss = { "E19999: Inner Error!" },
}
cann {
  id = "no_kernel", title = "Operator package of CANN is missing or lacks this operator",
    category = "platform", component = "dependency", action = "fix",
  regex = { [[Cannot find bin(?:ary)? (?:of|for) op]],
    [[[Cc]an(?:not|'t| not) find (?:the )?(?:OpAdapter|kernel) (?:for|of|by)]],
    [[environment variable \S*OPP_PATH\S* is (?:invalid|not set)]],
    [[There is no valid so about OpsKernelInfoStore]],
      [[ASCEND_(?:HOME|OPP)_PATH environment variable is not set]],
      [[Please check that the cann package is installed]] },
  remedy = "Install the kernels package of the CANN version and chip in use, and source its set_env.sh.",
  hit = { "EZ9999: [PID: 775] Cannot find bin of op Range, integral key 0/1/|int64/ND/",
    "Please check that the cann package is installed. Please run 'source set_env.sh' in the CANN " ..
      "installation path." },
  miss = { "found bin of op Range" },
}
cann {
  id = "library", title = "CANN's libraries are not found", category = "user", component = "dependency",
  regex = { [[(?P<library>lib(?:hccl|ascendcl|ge_runner|acl_\w+|runtime|opapi|nnopbase)\.so[\w.]*): ]] ..
    [[cannot open shared object file]],
    [[libtorch_npu\.so: (?:cannot open|undefined symbol)]] },
  remedy = "Install CANN and source its set_env.sh; take the torch_npu that fits torch and CANN.",
  hit = { "ImportError: libhccl.so: cannot open shared object file: No such file or directory" },
    miss = { "libhccl.so loaded" },
}
cann {
  id = "getnext", restart = "unknown", title = "Device waited for a batch that did not come",
  category = "user", component = "framework", symptom = "hang",
  regex = { [[kernel_name=GetNext]], [[fault op_name=aicpu_getnext]], [[(?i)For the GetNext operator.*check]],
    [[rtMemQueueEnQueueBuff execute failed]] },
  remedy = "Check the data pipeline's speed and the number of batches against the number of steps.",
  hit = { "Aicpu kernel execute failed, device_id=0, stream_id=116, fault so_name=libaicpu_kernels.so, " ..
    "fault kernel_name=GetNext, fault op_name=" },
  miss = { "takes more than 25 seconds to fetch a batch, which might result `GetNext` timeout problem" },
}
cann {
  id = "aicore", restart = "same",
  title = "Operator failed on the AI core", category = "framework", component = "framework",
    severity = "error", general = true,
  regex = { [[Aicore kernel execute failed]], [[fftsplus (?:task|aivector|aicore) .*(?:error|failed)]],
    [[AICORE Kernel task happen error]], [[there is an? (?:fftsplus )?(?:aivec|aicore|aicpu)\w* error]] },
  remedy = "Note the kernel's name: check its inputs; suspect the NPU only if one device repeats it.",
  hit = { "Aicore kernel execute failed, device_id=2, stream_id=4, report_stream_id=4, task_id=9, " ..
    "flip_num=0, fault kernel_name=Add_1" },
    miss = { "Aicore kernel registered" },
}
cann {
  id = "memory", restart = { "never", "same" },
  title = "NPU memory is used up", category = "user", component = "gpu_memory",
  regex = { [[NPU out of memory]], [[Failed to alloc memory for device]], [[halMemAlloc failed]],
    [[DevMemAllocHugePageManaged failed]],
    [[Out of Memory!+ .*Request memory size]], [[rtMalloc execute failed.*memory]] },
  remedy = "Lower batch or model per NPU; look for other processes on it (npu-smi info).",
  hit = { "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)",
    "[driver interface] halMemAlloc failed: device_id=6, size=32212254720, type=2, drvRetCode=6!" },
  miss = { "CUDA out of memory. Tried to allocate 2.00 GiB" },
}

-- Return codes, as "error code is N", "ErrCode=N", "ret[N]" or "retCode: N".
local returns = {
  [107001] = { "device id does not exist", "user", "user_config" },
    [107002] = { "no context: set the device first", "user", "user_code" },
  [107003] = { "stream of another context", "user", "user_code" },
  [107019] = { "end of the sequence", "user", "user_data", "error" }, [107020] = { "task timed out",
    "framework", "framework", "error", "cascade", restart = "unknown" },
  [107022] = { "task was aborted", "framework", "framework", "error", "cascade", restart = "same" },
  [207001] = { "device memory used up", "user", "gpu_memory", restart = { "never", "same" } },
  [207003] = { "resource limit reached", "user",
    "framework" },
  [507008] = { "channel to the device broke", "platform", "driver", "error", restart = "elsewhere" },
    [507010] = { "task scheduler lost its heartbeat", "hardware", "gpu", restart = "elsewhere" },
  [507011] = { "model failed on the device", "framework", "framework", "error", "cascade",
    restart = "unknown" },
    [507014] = { "AI core timed out", "framework", "framework", "error", restart = "same" },
  [507015] = { "AI core raised an exception", "framework", "framework", "error", restart = "same" },
    [507017] = { "device CPU timed out", "framework", "framework", "error", restart = "unknown" },
  [507018] = { "device CPU raised an exception", "framework", "framework", "error", restart = "unknown" },
    [507033] = { "device could not be opened", "platform", "driver", restart = "elsewhere" },
  [507034] = { "vector core timed out", "framework", "framework", "error", restart = "same" },
    [507035] = { "vector core raised an exception", "framework", "framework", "error", restart = "same" },
  [507046] = { "stream timed out", "platform", "nccl_comm", "error", "cascade", restart = "unknown" },
    [507048] = { "internal task timed out", "platform", "nccl_comm", "error", "cascade",
      restart = "unknown" },
  [507053] = { "device memory error", "hardware", "gpu_memory", restart = "elsewhere" },
    [507054] = { "multi-bit error in device memory", "hardware", "gpu_memory", restart = "elsewhere" },
  [507055] = { "device memory is suspect", "hardware", "gpu_memory", restart = "elsewhere" },
    [507056] = { "link between NPUs failed", "hardware", "nvlink", restart = "elsewhere" },
  [507057] = { "memory of a peer NPU is suspect", "hardware", "gpu_memory", "error", "cascade",
    restart = "same" },
  [507899] = { "driver inner error", "platform", "driver", "error", restart = "same" },
    [507904] = { "collective failed after its retries", "hardware", "network", "error", "cascade",
      restart = "same" },
}
for number, row in pairs(returns) do
  cann {
    id = "ret." .. number, restart = row.restart, title = "NPU call failed: " .. row[1], category = row[2],
      component = row[3], severity = row[4], role = row[5],
        general = not row[5],  -- an exception on its line says less than a cascade
    remedy = "Read the Ascend error message next to it; look the code up in CANN's list.",
    regex = { [[(?:error code(?: is|:|=)|ErrCode=|[Rr]et[Cc]ode(?:=|: ?)|\bret(?:=|\[|: ?)|runtime resul]] ..
      [[t(?:=| ]] ..
      [[?= ?)) ?]] .. number .. [[\b]] },
    hit = { "RuntimeError: copy_between_host_and_device: NPU function error: aclrtSynchronizeStream, " ..
      "error code is " .. number,
      "rtSetDevice failed, ret[" .. number .. "]" },
    miss = { "step " .. number .. " done", "error code is 1" .. number },
  }
end
