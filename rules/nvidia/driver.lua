-- The NVIDIA driver, nvidia-smi, DCGM and the GPU as a device: lost, not initialised, wrong version, too hot,
-- too slow.

local function device(row)
  rule {
    id = "nvidia." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = row.component or "gpu",
    severity = row.severity or "fatal", action = row.action or "isolate", role = row.role,
      general = row.general,
    symptom = row.symptom, blames = row.blames, source = { "log", "kernel" }, remedy = row.remedy,
    match = { regex = row.regex, except = row.except }, examples = { hit = row.hit, miss = row.miss },
  }
end

-- The card is gone.
device {
  id = "gpu_lost", title = "GPU is lost to the driver", general = true,  -- its Xid says the same
  regex = { [[(?i)Unable to determine the device handle for GPU ?(?:\d{1,3}: ?)?(?P<pci>\S*): ]] ..
    [[(?:Unknown Error|GPU is lost|Not Found)]],
    [[GPU is lost\.?(?: +Reboot|"|'|$)]], [[\bnvml(?:\.Device (?P<index>\d+))?: (?:nvml: )?GPU is lost]],
    [[\b(?:NVML_)?ERROR_GPU_IS_LOST|nvmlErrorGpuIsLost]],
      [[NVRM: GPU (?:at )?(?:PCI:)?(?P<pci2>[0-9A-Fa-f:.]+)\S* (?:is lost|has fallen off(?: the bus|\s*$))]],
    [[GPU \S* ?has fallen off the bus]],
    -- Older drivers wrap the message: its end is a line of its own.
    [[NVRM: fallen off the bus and is not responding to commands]],
    [[NVRM: .*\bNV_ERR_GPU_IS_LOST\b]], [[(?i)Failed to get (?:device )?handle .{0,40}GPU is lost]] },
  remedy = "Isolate the host; power-cycle it, reseat or replace the GPU if it is lost again.",
  hit = { "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
    "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.  Reboot the system to " ..
      "recover this GPU",
    "NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.",
    "NVRM: GPU at PCI:0000:65:00 has fallen off\nNVRM: the bus",
    "NVRM: (PCI ID: 10de:2204) installed in this system has\nNVRM: fallen off the bus and is not " ..
      "responding to commands." },
  miss = { "GPU 0000:65:00.0: GPU-6d1c UUID", "The packet is lost",
    "NVRM: GPU at PCI:0000:65:00: GPU-11112222-3333-4444-5555-666677778888" },
}
device {
  id = "reset_required", title = "GPU does not work until it is reset",
  regex = { [=[NVRM: (?:GPU(?P<gpu>\d+) )?.*\[NV_ERR_RESET_REQUIRED\]]=], [[NVML_ERROR_RESET_REQUIRED]],
    [[(?i)Unable to determine the device handle for (?P<pci>GPU ?\S*): GPU requires reset]],
    [[(?i)\bGPU(?:-[0-9a-f-]+| \S+)? requires (?:a )?reset\b]] },
  except = { [[(?i)\b(?:if|when|whether) .{0,40}GPU requires]] },
  remedy = "Drain the host and reset the GPU (nvidia-smi -r) or reboot; the driver's lines before this " ..
    "one " ..
    "name the fault. Replace the card if it comes back.",
  hit = { "NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] " ..
      "(0x00000062) returned from status @ kernel_channel.c:2827",
    "Unable to determine the device handle for GPU0000:3B:00.0: GPU requires reset" },
  miss = { "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)",
    "if a GPU requires reset, drain the host first" },
}
device {
  id = "rm_init", title = "Driver could not initialise the GPU",
  regex = { [[NVRM: GPU (?P<pci>[0-9A-Fa-f:.]+): (?:RmInitAdapter|rm_init_adapter)[^!]*failed]],
    [[NVRM:.*(?:RmInitAdapter|rm_init_adapter)[^!]*failed]], [[RmInitAdapter failed!]],
    [[NVRM: The NVIDIA probe routine failed for \d+ device]] },
  remedy = "Power-cycle the host; check power and seating of the card, replace it if it still fails.",
  hit = { "NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x26:0x65:1239)",
    "NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 0" },
  miss = { "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64" },
}
-- The steps of that start name no card; the line that follows does.
device {
  id = "rm_init_step", title = "Driver could not initialise a GPU", general = true,
  regex = { [[NVRM:.*Cannot initialize GSP firmware RM]], [[NVRM:.*failed to wait for GFW.?(?:BOOT|boot)]],
    [[NVRM:.*(?:kgspInitRm|kgspBootstrap|kgspWaitForRmInitDone)\w*: .*(?:failed|unexpected|timed? ?out)]] },
  remedy = "Power-cycle the host; check power and seating of the card, replace it if it still fails.",
  hit = { "NVRM: RmInitAdapter: Cannot initialize GSP firmware RM",
    "NVRM: gpuWaitForGfwBootComplete_TU102: failed to wait for GFW_BOOT: (progress 0x3)" },
  miss = { "NVRM: GSP firmware version 550.54.15 loaded" },
}
device {
  id = "no_devices", title = "nvidia-smi finds no GPU", component = "driver", category = "platform",
    severity = "error", action = "check", general = true,
  regex = { [[^No devices were found$]] },
  remedy = "Check that the job was given GPUs (CUDA_VISIBLE_DEVICES, --gres), then the kernel log for a " ..
    "card that did not start.",
  hit = { "No devices were found" },
    miss = { "No devices were found in the configuration file, using default" },
}
device {
  id = "count", title = "Host has fewer GPUs than it should", severity = "error",
  regex = { [[number of devices NVML returns is different than the number of devices in /dev]],
    [[(?i)(?:check_nv|check_gpu_count|gpu count|num(?:ber)? of gpus).{0,40}(?:expected|should be) (?:gpu ]] ..
      [[count )?:?\s?\d+.{0,30}(?:found|got|only|but|detected) ?:?\d+]] },
  remedy = "Drain the host; look for a fallen or uninitialised GPU in its kernel log.",
  hit = { "check_gpu_count: number of GPUs expected 8 but found 7",
    "The number of devices NVML returns is different than the number of devices in /dev." },
  miss = { "number of GPUs: 8" },
}

-- Driver installation and versions.
device {
  id = "taken", title = "Another kernel driver holds NVIDIA GPUs: nouveau or the like", category = "platform",
    component = "driver", action = "fix",
  regex = { [[NVRM: The NVIDIA probe routine was not called for \d+ device]],
    [[NVRM: nouveau, rivafb, nvidiafb or rivatv]] },
  remedy = "Unload or blacklist the other driver (nouveau, nvidiafb, vfio-pci) and load the NVIDIA driver " ..
    "again; reboot the host if it stays bound.",
  hit = { "NVRM: The NVIDIA probe routine was not called for 3 device(s).",
    "NVRM: nouveau, rivafb, nvidiafb or rivatv" },
  miss = { "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15" },
}
device {
  id = "none_probed", title = "NVIDIA driver found no GPU that it can run", component = "driver",
    category = "platform", general = true, severity = "error", action = "check",
  regex = { [[NVRM: No NVIDIA (?:graphics adapter|devices|GPU)s? (?:probed|found)]],
    [[NVRM: None of the NVIDIA (?:graphics adapters|devices) were (?:initialized|probed)]] },
  remedy = "Read the NVRM lines around it: another driver that holds the card, a card that the driver " ..
    "does not support, or one that does not start.",
  hit = { "NVRM: No NVIDIA graphics adapter probed!", "NVRM: None of the NVIDIA devices were initialized." },
  miss = { "nvidia-nvlink: Nvlink Core is being initialized, major device number 239" },
}
device {
  id = "nvml_library", title = "NVIDIA's management library is not there: container without the GPU runtime",
    category = "platform", component = "driver", action = "fix",
  regex = { [[could not load NVML library]],
    [[(?i)\bNVML\b.{0,40}\b(?:ERROR_LIBRARY_NOT_FOUND|(?:shared )?library not found)]],
    [[\bNVMLError_LibraryNotFound\b]], [[failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND]],
    [[Incompatible (?:platform|strategy) detected:? "?(?P<what>\w+)]] },
  except = { [[(?i)\b(?:ignor|skip|warn|fall(?:ing)? back|without gpu|disabled)]] },
  remedy = "Make nvidia the container runtime of this node (nvidia-ctk runtime configure), or install the " ..
    "driver; keep the pod off nodes without GPUs.",
  hit = { "Failed to initialize NVML: could not load NVML library.",
    "pynvml.NVMLError_LibraryNotFound: NVML Shared Library Not Found",
    "failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND" },
  miss = { "Loading NVML", "NVML shared library not found, GPU metrics are disabled" },
}
device {
  id = "version_mismatch", title = "Driver library and kernel module are of different versions",
    category = "platform", component = "driver", action = "fix",
  regex = { [[Driver/library version mismatch]], [[NVRM: API mismatch: the client]],
    [[cudaErrorSystemDriverMismatch|CUDA_ERROR_SYSTEM_DRIVER_MISMATCH]],
    [[unsupported display driver / cuda driver combination]] },
  remedy = "Reload the kernel modules or reboot the host after the driver update; see that containers " ..
    "mount the host's driver libraries.",
  hit = { "Failed to initialize NVML: Driver/library version mismatch",
    "NVRM: API mismatch: the client has the version 535.161.07, but" },
  miss = { "Driver Version: 535.161.07   CUDA Version: 12.2" },
}
device {
  id = "no_driver", title = "NVIDIA driver is not loaded", category = "platform", component = "driver",
    action = "fix",
  regex = { [[couldn't communicate with the NVIDIA driver]], [[Failed to initialize NVML: Driver Not Loaded]],
    [[Found no NVIDIA driver on your system]],
    [[(?:modprobe: ERROR|insmod: ERROR): could not insert (?:module )?'?nvidia]],
      [[nvidia-container-cli: initialization error: (?:nvml error: driver not loaded|load library failed)]],
    [[nvidia: (?:version magic|disagrees about version of symbol)]] },
  remedy = "Install or rebuild the driver for the running kernel and load it; in a container use the " ..
    "NVIDIA runtime.",
  hit = { "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that " ..
    "the latest NVIDIA driver is installed and running.",
    "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU" },
  miss = { "nvidia: loading out-of-tree module taints kernel." },
}
device {
  id = "nvml_unknown", restart = "same",
  title = "Container lost its access to the GPUs", category = "platform",
    component = "driver", action = "fix", severity = "error",
  regex = { [[Failed to initialize NVML: (?:Unknown Error|Insufficient Permissions)]] },
  remedy = "Restart the container; a reload of systemd drops its device rules unless the runtime passes " ..
    "the devices explicitly.",
  hit = { "Failed to initialize NVML: Unknown Error" },
    miss = { "Failed to initialize NVML: Driver/library version mismatch" },
}
device {
  id = "smi_hung", title = "nvidia-smi hangs in the driver", component = "driver", symptom = "hang",
    severity = "error",
  regex = { [[task (?:nvidia-smi|nvidia-persiste|nv-hostengine|dcgm-exporter|nvidia-device-p)\S*:\d+ ]] ..
    [[blocked for more than \d+ seconds]],
    [[(?i)nvidia-smi.{0,40}(?:timed out|hung|did not (?:respond|return)|no response)]] },
  remedy = "Reboot the host: the driver waits for a GPU or its system processor that does not answer.",
  hit = { "INFO: task nvidia-smi:40211 blocked for more than 120 seconds.",
    "nhc: check_cmd: 'nvidia-smi' timed out after 30 seconds" },
  miss = { "nvidia-smi: 8 GPUs" },
}
device {
  id = "gsp", title = "Driver's calls to the GPU system processor fail", severity = "error", general = true,
    action = "check",
  regex = { [[NVRM:.*(?:Timeout (?:after \d+s of )?waiting for RPC (?:response )?from GSP|waiting for ]] ..
    [[RPC response from GPU\d+ GSP)]],
    [[NVRM:.*rpcRmApi\w+_GSP: .*failed]],
      [[NVRM:.*GSP (?:firmware )?(?:RM )?(?:heartbeat|crashed|has crashed)]],
    [[NVRM: (?P<gpu>GPU\d+) _?kgsp\w*(?:HeartbeatTimedOut|LogRpcTimeout): .*(?:[Tt]imed out|Timeout)]] },
  remedy = "Reset the GPU or reboot the host; update driver and firmware if it recurs.",
  hit = { "NVRM: _issueRpcAndWait: rpcSendMessage failed; Timeout after 45s of waiting for RPC response " ..
    "from GPU2 GSP! Expected function 76",
    "NVRM: GPU0 rpcRmApiControl_GSP: GspRmControl failed: hClient=0xc1d0" },
  miss = { "NVRM: GSP firmware version 550.54.15 loaded" },
}
device {
  id = "peermem", restart = "same", title = "GPUDirect memory module met a context that was already gone",
    category = "framework", component = "driver",
  severity = "warning", action = "none",
  regex = { [[nvidia-peermem .*ERROR detected invalid context]] },
  remedy = "None: seen when a process with GPUDirect buffers ends.",
  hit = { "nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further " ..
    "processing" },
  miss = { "nvidia-peermem: loading" },
}
device {
  id = "peermem_missing", title = "GPUDirect RDMA module is missing", category = "platform",
    component = "driver", severity = "warning", action = "check", symptom = "slowdown",
  regex = { [[(?i)(?:nvidia.peermem|nv_peer_mem)\b.{0,40}(?:not (?:loaded|found|running)|Invalid ]] ..
    [[argument|failed to load)]] },
  remedy = "Load nvidia-peermem on this host; without it traffic goes through host memory.",
  hit = { "modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument",
    "nhc: nv_peer_mem is not loaded" },
  miss = { "nvidia-peermem loaded" },
}

-- Heat, power, clocks, bandwidth.
device {
  id = "thermal", title = "GPU slows down because it is too hot", symptom = "slowdown", severity = "error",
    action = "check",
  regex = { [[Detected clock throttling due to thermal violation in GPU]],
    [[(?i)\b(?:HW|SW) Thermal Slowdown\s*:\s*Active]],
    [[There were thermal violations totaling]],
      [[NVRM:.*GPU.*(?:has reached|exceeded).*(?:temperature|thermal)]],
    [[Temperature \d+ of GPU \d+ exceeded]] },
  remedy = "Check cooling, fans and inlet temperature of this host.",
  hit = { "        HW Thermal Slowdown               : Active",
    "Detected clock throttling due to thermal violation in GPU 4." },
  miss = { "        HW Thermal Slowdown               : Not Active",
    "        SW Power Cap                      : Active" },
}
-- A software power cap is how a GPU under load runs; only the hardware's brake is a fault.
device {
  id = "power_brake", title = "GPU slows down on a power brake", symptom = "slowdown", severity = "error",
    action = "check",
  regex = { [[(?i)HW Power Brake Slowdown\s*:\s*Active]], [[(?i)\bHW Slowdown\s*:\s*Active]],
    [[Detected clock throttling due to power violation in GPU]] },
  remedy = "Check the power supplies and the power capping of this host.",
  hit = { "        HW Power Brake Slowdown           : Active" },
    miss = { "        HW Power Brake Slowdown           : Not Active" },
}
device {
  id = "pcie_width", title = "GPU runs on a narrow or slow PCIe link", component = "pcie",
    symptom = "slowdown", severity = "error", action = "check",
  regex = { [[GPU \d+ is running at PCI link (?:width|generation) \d+X?, which is below]],
    [[Detected more than \d+ PCIe replays per minute for GPU]],
    [[host-side PCIe replay violation]] },
  remedy = "Reseat the GPU and riser; check the slot's settings.",
  hit = { "GPU 2 is running at PCI link width 8X, which is below the minimum allowed link generation of 16" },
  miss = { "GPU 2 is running at PCI link width 16X" },
}
device {
  id = "bandwidth", title = "GPU bandwidth is below what is expected", symptom = "slowdown",
    severity = "error", action = "check",
  regex = { [[did not exceed minimum required bandwidth of]], [[only achieved a memory bandwidth of]],
    [[(?i)Health check failed:.{0,60}Bandwidth is low on device \d+]],
      [[(?i)BUS BW \(expected >=? ?[\d.]+ GB/s, but measured]] },
  remedy = "Isolate the host from jobs; check PCIe link width, NUMA binding and ECC of the named device.",
  hit = { "Bandwidth of GPU 1 in direction d2h of 7.20 did not exceed minimum required bandwidth of 12.00.",
    "nhc: Health check failed: Bandwidth is low on device 1. Reported bandwidth is 7 GB/s." },
  miss = { "BUS BW expected >=40.0 GB/s, measured 45 GB/s: passed" },
}
device {
  id = "inforom", title = "GPU InfoROM is corrupt", severity = "error", action = "check",
  regex = { [[corrupt InfoROM has been detected]], [[infoROM is corrupted at gpu]] },
  remedy = "Reflash or replace the card; its error counters cannot be trusted.",
  hit = { "WARNING: infoROM is corrupted at gpu 0000:3B:00.0" },
    miss = { "InfoROM Version: G520.0200.00.05" },
}
device {
  id = "health_xid", title = "Health check reports Xid errors of a GPU", severity = "error", general = true,
    action = "check",
  regex = { [[(?i)GPU X[iI][dD] errors? detected]], [[Detected XID (?P<xid>\d+) for GPU (?P<gpu>\d+)]] },
  remedy = "Look the number up; drain the host if it stands for hardware.",
  hit = { "ERROR: nhc: Health check failed: check_gpu_xid: GPU Xid errors detected: [ 3606.8]" },
    miss = { "No GPU Xid errors were detected" },
}
