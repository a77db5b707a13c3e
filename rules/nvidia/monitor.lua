-- Health monitors of NVIDIA GPUs: DCGM's error codes, the checks of NVSentinel and of node health scripts,
-- monitors that get no answer themselves. (The texts of DCGM's errors: ecc.lua, nvlink.lua, driver.lua; Xids
-- in the words of monitors: xid.lua.)

local function monitor(row)
  rule {
    id = "nvidia.monitor." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
    component = row.component or "gpu", severity = row.severity or "error", says = row.says, role = row.role,
    symptom = row.symptom, blames = row.blames, source = { "log", "kernel" },
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "check",
    examples = { hit = row.hit, miss = row.miss },
  }
end

local drain = "Drain the host, reset the GPU and run the vendor's diagnostics; replace the card " ..
  "if it comes back."
local fabric = "Drain the host; check the fabric manager and its log, then links, baseboard and switches."
local slot = "Drain the host; reseat GPU and riser, check the link's width, generation and replays."
local software = "Check driver, its libraries and services on this host."

-- DCGM's codes: name behind DCGM_FR_, title, component, remedy; severity and category where they differ.
local codes = {
  { "VOLATILE_DBE_DETECTED|DBE_(?:THRESHOLD_)?VIOLATION|CUDA_DBE", "double-bit ECC error", "gpu_memory",
    drain, "fatal" },
  { "RETIRED_PAGES(?:_DBE)?_LIMIT|DBE_PENDING_PAGE_RETIREMENTS", "too many retired memory pages",
    "gpu_memory", drain },
  { "ROW_REMAP_FAILURE", "a bad memory row could not be remapped", "gpu_memory", drain, "fatal" },
  { "UNCONTAINED_ERROR", "memory error that was not contained", "gpu_memory", drain, "fatal" },
  { "FAULTY_MEMORY|MEMORY_MISMATCH|NAN_VALUE|L1TAG_MISCOMPARE", "memory returned wrong data", "gpu_memory",
    drain, "fatal" },
  { "UNCORRECTABLE_ROW_REMAP|PENDING_(?:ROW_REMAP|PAGE_RETIREMENTS)|ECC_PENDING|VOLATILE_SBE_DETECTED|" ..
      "SBE_(?:THRESHOLD_)?VIOLATION", "memory repairs wait for a reset", "gpu_memory", drain, "warning" },
  { "NVLINK_DOWN|GPU_EXPECTED_NVLINKS_UP", "NVLink is down", "nvlink", fabric },
  { "NVLINK_(?:ERROR_CRITICAL|ERROR_THRESHOLD|CRC_ERROR_THRESHOLD|EFFECTIVE_BER_THRESHOLD|" ..
      "SYMBOL_BER_THRESHOLD)", "NVLink has errors", "nvlink", fabric },
  { "NVSWITCH_(?:FATAL_ERROR|DOWN|NVLINK_DOWN|EXPECTED_NVLINKS_UP)|SXID_ERROR", "NVSwitch failed", "nvlink",
    fabric },
  { "CUDA_FM_NOT_INITIALIZED|FABRIC_PROBE_STATE|IMEX_UNHEALTHY", "GPU fabric is not ready", "nvlink", fabric,
    "error", "platform" },
  { "PCI_REPLAY_RATE|PCIE_(?:H_)?REPLAY_(?:THRESHOLD_)?VIOLATION|PCIE_GENERATION|PCIE_WIDTH|LOW_BANDWIDTH|" ..
      "HIGH_LATENCY", "PCIe link is slow or has errors", "pcie", slot },
  { "CORRUPT_INFOROM", "InfoROM is corrupt", "gpu", "Reflash the InfoROM or replace the card." },
  { "CLOCK_THROTTLE_THERMAL|THERMAL_VIOLATIONS(?:_TS)?|TEMP_VIOLATION|THROTTLING_VIOLATION", "GPU is too hot",
    "gpu", "Check cooling, fans and inlet temperature of this host." },
  { "POWER_UNREADABLE|BROKEN_P2P_\\w+_DEVICE|STRESS_LEVEL|TARGET_POWER|GFLOPS_THRESHOLD_VIOLATION",
    "GPU failed its check", "gpu", drain },
  { "DEVICE_COUNT_MISMATCH", "host has fewer GPUs than it should", "gpu", drain },
  { "NVML_API|NVML_LIB_BAD|CANNOT_OPEN_LIB|DENYLISTED_DRIVER|HOSTENGINE_CONN|DCGM_API|CUDA_API|CUDA_CONTEXT",
    "driver or its libraries do not answer", "driver", software, "error", "platform" },
  { "XID_ERROR", "GPU raised an Xid", "gpu",
    "Read the Xid in the kernel's log of that host: it says what to do.", restart = "same" },
}
for number, row in ipairs(codes) do
  local first = text.match(row[1], [[^(\w+)]])
  local sample = ({ RETIRED_PAGES = "RETIRED_PAGES_LIMIT", NVLINK_ = "NVLINK_ERROR_CRITICAL",
    NVSWITCH_ = "NVSWITCH_DOWN" })[first] or first
  monitor {
    id = "dcgm_" .. number, restart = row.restart, title = "Health check of a GPU failed, " .. row[2],
    component = row[3], category = row[6], severity = row[5], blames = "host",
    regex = { [[(?i:\b(?:error[ _]?)?codes?|\breason|]] ..
      [[\berror)[^\w\s]{0,3}\s?[^\w\s]{0,2}(?P<code>DCGM_FR_(?:]] .. row[1] ..
        [[))\b(?:.{0,60}?\bGPU[: _]{1,2}(?P<gpu>\d+))?]] },
    remedy = row[4], hit = { "ErrorCode:DCGM_FR_" .. sample .. " GPU:4 PCI:0000:5e:00 state" },
    miss = { "DCGM_FR_" .. sample .. ": COMPONENT_RESET", "DCGM_FR_OK" },
  }
end

-- Checks of NVSentinel, as a node's condition and as the name in front of an event's text.
local watches = {
  { "Mem", "gpu_memory", drain }, { "Nvlink", "nvlink", fabric },
  { "Nvswitch(?:Fatal|NonFatal)?", "nvlink", fabric }, { "Pcie", "pcie", slot },
  { "(?:Sm|Mcu|Pmu|Inforom|Thermal|Power|CpuSet|All)", "gpu", drain },
  { "Driver", "driver", software, "platform" },
}
for number, row in ipairs(watches) do
  local name = text.match(row[1], [[^(\w+)]]) or "Sm"
  monitor {
    id = "watch_" .. number, title = "Health monitor reports the host as unhealthy: <check>", says = "origin",
    component = row[2], category = row[4], blames = "host",
    regex = { [[\b(?P<check>Gpu]] .. row[1] .. [[Watch)IsNotHealthy\b]] ..
      [[(?:\s+(?P<host>[a-z][\w.-]*\d[\w.-]*))?]],
      [[\bGPU (?P<check>Gpu]] .. row[1] ..
      [[Watch): \S]] },
    remedy = row[3], hit = { "Warning  Gpu" .. name .. "WatchIsNotHealthy  gpu-node-7  ErrorCode: unknown" },
    miss = { "Gpu" .. name .. "WatchIsHealthy" },
  }
end

monitor {
  id = "hostengine", restart = "same", title = "DCGM's service on the host does not answer", role = "cascade",
  category = "platform", component = "driver", blames = "host",
  regex = { [[[Cc]ould not connect to the host engine\b]], [[DCGM_FR_HOSTENGINE_CONN]],
    [[unable to establish a connection to the specified host: (?P<host>\S+)]],
    [[connection to the host engine is not valid any longer]], [[\bDCGM_ST_CONNECTION_NOT_VALID\b]],
    [[\bGpuDcgm(?:ConnectivityFailure|Unresponsive)(?:IsNotHealthy| published|: \S)]],
    [[\bDCGM_(?:PROBE_HANG|CONNECTIVITY_ERROR)\b]],
    [[\bdcgm_health_check has not returned after (?P<seconds>[\d.]+)s]],
    [[(?i)\b(?:dcgmi|dcgm|nv-hostengine)\b.{0,40}\b(?:timed out|did not (?:answer|respond|return)|hung)\b]] },
  remedy = "Restart nv-hostengine; if it hangs again, a GPU or the driver of this host does: see the " ..
    "kernel's log.",
  hit = { "Error: unable to establish a connection to the specified host: localhost",
    "dcgm_health_check has not returned after 61.2s (deadline 60.0s)",
    "  -> GpuDcgmConnectivityFailure published", "nhc: dcgmi health -c timed out" },
  miss = { "dcgm_health_check returned after 0.2s", "GpuDcgmConnectivityFailureIsHealthy" },
}
monitor {
  id = "count", title = "Host has fewer GPUs than it should",
  regex = { [[(?i)\bexpected (?P<expected>\d+) gpus?\b.{0,20}\b(?:found|got|only|but|see|detected|]] ..
    [[saw)\b.{0,12}?(?P<found>\d+)]],
    [[(?i)\bonly (?P<found>\d+) (?:of|out of) (?P<expected>\d+) gpus? (?:is|are|were)\b]],
    [[(?i)\bgpu count mismatch\b.{0,40}?(?P<found>\d+).{0,20}?(?P<expected>\d+)]] },
  except = [[(?i)user|request|assert|Error: |config]],
  remedy = "Drain the host; look for a fallen or uninitialised GPU in its kernel log.",
  hit = { "check_gpus: expected 8 GPUs, found 7", "only 7 of 8 GPUs are visible" },
  miss = { "AssertionError: expected 8 GPUs, got 4", "expected 8 GPUs" },
}
monitor {
  id = "nhc_gpu", title = "Host failed its GPU health check: <check>",
  regex = { [[Health check failed: +(?P<check>check_(?:nv|gpu|cuda|dcgm|hw_gpu)\w*)]] },
  except = [[Xid|(?i)low]],
  remedy = "Run nvidia-smi and DCGM's diagnostics on this host before it takes jobs again.",
  hit = { "ERROR:  nhc:  Health check failed:  check_nvsmi_healthmon:  nvidia-smi exited with 15" },
  miss = { "nhc: Health check failed: check_ps_service: sshd not running" },
}
monitor {
  id = "ports", title = "Host has fewer active InfiniBand ports than it should", component = "network",
  regex = { [[(?i)not enough LinkUp ports, only (?P<up>\d+) LinkUp out of (?P<all>\d+)]],
    [[Health check failed: +(?P<check>check_(?:hw_)?ib\w*)]],
    [[(?i)\bcheck_ib\w*: .{0,80}\b(?:not found|down|polling|not active|inactive)\b]] },
  except = [[(?i)\b0 ports]],
  remedy = "Check cable, port and switch of the ports that are down.",
  hit = { "reason: not enough LinkUp ports, only 7 LinkUp out of 8, expected at least 8 ports",
    "nhc: Health check failed: check_hw_ib: No IB port mlx5_2:1 is ACTIVE (LinkUp 400 Gb/sec)." },
  miss = { "check_ib: ok" },
}
monitor {
  id = "hang", title = "Health monitor sees a GPU that hangs: <gpu>", component = "gpu", symptom = "hang",
  regex = { [[\bGPU ?[Hh]ang(?:s|ing)? (?:was |is )?(?:detected|found|suspected) (?:on|in|]] ..
    [[for) (?:devices? )?(?P<gpu>\S+)]] },
  except = [[amdgpu|radeon|i915|HIP|ROC]], category = "unknown",
  remedy = "Look at the stacks of the ranks on these GPUs and at the kernel's log of the host.",
  hit = { "event=GPUHang GPU hang detected on devices GPU-1111,GPU-2222" },
  miss = { "amdgpu: GPU hang detected on ring gfx" },
}
monitor {
  id = "fabric", title = "Fabric manager of the NVLink switches does not work", category = "platform",
  component = "nvlink", severity = "fatal",
  regex = { [[(?i)\b(?:nvidia-|nv-)?fabric ?manager(?:\.service)?\b.{0,20} is (?:not (?:active|]] ..
    [[running)|inactive|failed|dead)\b]],
    [[(?i)\b(?:nv-)?fabricmanager\b.{0,20}: .{0,60}\b(?:failed|error|degraded)\b]] },
  except = [[(?i)\bno (?:error|fail)|not required|not needed|not installed]],
  remedy = "Start nvidia-fabricmanager in the driver's version; read its log for the switch or link " ..
    "that failed.",
  hit = { "check: nvidia-fabricmanager is not active",
    "nv-fabricmanager: failed to initialize NVSwitch fabric: NVSwitch 3 is in degraded mode" },
  miss = { "nvidia-fabricmanager is active", "fabric manager is not needed on this host" },
}
monitor {
  id = "unhealthy", title = "Device plugin took a GPU out of service: <gpu>", says = "origin",
    blames = "host",
  regex = { [[\bdevice marked unhealthy: (?P<gpu>\S+)]], [[marking device (?P<gpu>\S+ )?as unhealthy\b]] },
  remedy = "Look for the Xid before it in the kernel's log of this host.",
  hit = { "'nvidia.com/gpu' device marked unhealthy: GPU-9d3c0a11" },
  miss = { "device marked healthy: GPU-9d3c0a11" },
}
monitor {
  id = "unsupported", title = "Driver does not support this GPU or its PCI resources", category = "platform",
  component = "driver", severity = "fatal", action = "fix",
  regex = { [[NVRM: The NVIDIA GPU (?P<pci>\S+).{0,40}installed in this system is\b]],
    [[NVRM: The NVIDIA GPU .*installed in this (?:system|vGPU host system) is not supported]],
    [[NVRM: This PCI I/O region assigned to your NVIDIA device is invalid]] },
  remedy = "Install the driver for this GPU (open or proprietary modules); set above-4G decoding and BAR " ..
    "sizes in the firmware.",
  hit = { "NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:2330) installed in this system is not " ..
    "supported " ..
    "by open nvidia.ko", "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:" },
  miss = { "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64" },
}
