-- NVLink and the fabric between GPUs: driver, DCGM, nvidia-smi, fabric manager, IMEX.

local function link(row)
  rule {
    id = "nvidia.nvlink." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = "nvlink",
    severity = row.severity or "fatal", action = row.action or "isolate", role = row.role,
      general = row.general,
    symptom = row.symptom, source = { "log", "kernel" }, remedy = row.remedy,
    match = { regex = row.regex, except = row.except }, examples = { hit = row.hit, miss = row.miss },
  }
end

link {
  id = "down", title = "NVLink is down",
  regex = { [[(?i)GPU \d+'s NvLink link \d+ is currently down]],
    [[(?i)NvLink (?:port )?\d+ is (?:currently )?down]],
    [[NVRM: .*\bNVLink\b.*\b(?:Link|link) \d+ .*(?:is down|went down)]],
      [[Only \d+ NvLinks are up out of the expected \d+]] },
  remedy = "Drain the host; reset its GPUs, reseat or replace the board whose link stays down.",
  hit = { "GPU 3's NvLink link 11 is currently down",
    "NvSwitch physical ID 8's NvLink port 61 is currently down.",
    "NvSwitch 0 - Only 60 NvLinks are up out of the expected 64" },
  miss = { "GPU 3: 18 NvLinks are up", "Link 0: 26.562 GB/s" },
}
link {
  id = "errors", title = "NVLink error counters grow", severity = "error", action = "check",
  regex = { [[(?i)Detected [1-9]\d* .{1,60} NvLink errors on GPU]],
    [[NvLink errors found occ?uring per second on GPU]],
    [[(?i)check_gpu_nvlink|nvlink.{0,20}(?:CRC|replay|recovery) (?:error )?count.{0,30}exceed]],
    [[NVRM:.*knvlink\w*.*(?:[Ff]atal|[Ff]ailed to train)]] },
  remedy = "Run the fabric diagnostics on this host; replace the link's board if the counters go on growing.",
  hit = { "Detected 120 CRC NvLink errors on GPU 2's NVLink which exceeds threshold of 100",
    "512.0 CRC NvLink errors found occuring per second on GPU 1, exceeding the limit of 100 per second." },
  miss = { "Detected 0 CRC NvLink errors on GPU 2's NVLink" },
}
link {
  id = "cuda", title = "CUDA met an uncorrectable NVLink error",
  regex = { [[(?i)uncorrectable NVLink error detected during the execution]],
    [[cudaErrorNvlinkUncorrectable|CUDA_ERROR_NVLINK_UNCORRECTABLE]] },
  remedy = "Drain the host and reset its GPUs; look for Xid 74 or 144 to 150 in the kernel log.",
  hit = { "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution" },
  miss = { "NVLINK: no errors detected during the execution" },
}
link {
  id = "fabric_manager", title = "Fabric manager is not running or does not fit the driver",
    category = "platform", component = "driver", action = "fix", severity = "error",
  regex = { [[NVIDIA GPU driver interface version (?P<interface>\S+) don't match with driver version ]] ..
      [[(?P<driver>\S+)]],
    [=[nv-fabricmanager\b.{0,120}\(code=exited, status=[1-9]]=],
    [[(?i)fabric ?manager.{0,80}(?:version .{0,60}(?:mismatch|does(?:n't| not) match)|failed to ]] ..
    [[start|not running|Failed with result)]],
    [[(?i)nvidia-fabricmanager(?:\.service|\.sh)?: (?:Main process exited, code=(?:exited, status=[1-9]|]] ..
      [[killed|dumped)|Failed with result|Failed)]],
    [[(?i)Failed to start .{0,20}fabric ?manager]],
      [[request to query NVSwitch device information from NVSwitch driver failed]] },
  remedy = "Install the fabric manager of the driver's version, start it, then restart the job.",
  hit = { "systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.",
    "systemd[1]: Failed to start NVIDIA fabric manager service.",
    "    Process: 4411 ExecStart=/usr/bin/nv-fabricmanager -c /etc/fm.cfg (code=exited, status=1/FAILURE)",
    "fabric manager NVIDIA GPU driver interface version 550.54 don't match with driver version 550.90: " ..
      "version mismatch" },
  miss = { "systemd[1]: Started NVIDIA fabric manager service.",
    "Connected to 1 node. Fabric Manager started" },
}
link {
  id = "not_initialized", title = "GPU fabric was not initialised when CUDA started", category = "platform",
    action = "fix",
  regex = { [[(?i)CUDA error(?: code)?[:=]? *(?:\d+ *)?:? *system not yet initialized]],
    [[cudaErrorSystemNotReady|CUDA_ERROR_SYSTEM_NOT_READY]],
    [[system not yet initialized]], [[Cuda failure 802\b]] },
  remedy = "Start nvidia-fabricmanager (NVSwitch hosts) and wait until nvidia-smi shows the fabric as " ..
    "completed.",
  hit = { "RuntimeError: Unexpected error from cudaGetDeviceCount(): Error 802: system not yet initialized" },
  miss = { "system initialized" },
}
link {
  id = "training", title = "NVLink training failed",
  regex = { [[(?i)(?:NVLink|NVSwitch|GPU fabric)\b.{0,60}\btraining failed]],
    [[(?i)failed to train (?:the )?(?:nv)?links?\b]],
    [[(?i)NVLink (?:inband|ALI) .{0,40}fail]] },
  remedy = "Reset all GPUs and NVSwitches of the host; inspect the hardware if training fails again.",
  hit = { "[ERROR] NVLink connection training failed between NVSwitch 2 port 33 and GPU 5",
    "Fabric manager: failed to train links" },
  miss = { "model training failed", "All NVLinks trained successfully" },
}
link {
  id = "imex", restart = "never",
  title = "Access to the multi-node NVLink channels is denied", category = "platform",
    action = "fix",
  regex = { [[Cuda failure (?:'operation not permitted'|800\b)]],
    [[(?i)nvidia-imex\S*: .{0,40}(?:failed|error|exited)]],
    [[(?i)\bIMEX\b.{0,60}(?:not (?:running|ready|available)|domain .{0,20}(?:DOWN|DEGRADED)|permission|]] ..
      [[fail(?:ed|ure))]] },
  remedy = "Give the job its IMEX channel (/dev/nvidia-caps-imex-channels) and see that nvidia-imex runs " ..
    "on every node of the domain.",
  hit = { "transport/p2p.cc:275 NCCL WARN Cuda failure 800 'operation not permitted'",
    "nvidia-imex[811]: failed to connect to peer node 3" },
  miss = { "NCCL INFO MNNVL busId 0x1901000 fabric UUID 0.0 cliqueId 0x0 state 3 healthMask 0x0",
    "IMEX domain: UP" },
}
link {
  id = "p2p", title = "GPU to GPU copies fail", severity = "error", action = "check",
  regex = { [[GPU \d+ was unsuccessfully written to in a peer-to-peer test]],
    [[GPU \d+ unsuccessfully wrote data in a peer-to-peer test]] },
  remedy = "Isolate the host; check IOMMU and ACS settings, then the link.",
  hit = { "GPU 3 was unsuccessfully written to in a peer-to-peer test: p2p" },
    miss = { "peer-to-peer test passed" },
}
