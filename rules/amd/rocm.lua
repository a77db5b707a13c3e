-- AMD GPUs: the amdgpu driver in the kernel's log, ROCm's libraries.

local function rocm(row)
  rule {
    id = "amd." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
    component = row.component or "gpu", severity = row.severity or "fatal", general = row.general,
    symptom = row.symptom, source = { "log", "kernel" }, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "isolate", examples = { hit = row.hit, miss = row.miss },
  }
end

-- Soft recovery ends one submission; a reset of the GPU ends the job. A program's endless kernel or wild
-- write
-- does it as well as a broken card.
rocm {
  id = "ring_timeout", restart = "same",
  title = "AMD GPU stopped processing its queue", symptom = "hang", severity = "error",
  category = "platform", component = "driver", action = "check",
  regex = { [[(?:amdgpu\b|\[drm\]).*\bring (?P<ring>\S+) timeout, signaled seq=]],
    [[amdgpu (?P<pci>[0-9a-f:.]+): amdgpu: GPU reset begin!]] },
  except = { [[soft recovered]] },
  remedy = "Read the process named below it; if other programs show it on this card too, have it checked.",
  hit = { "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=81, emitted " ..
      "seq=83", "amdgpu 0000:83:00.0: amdgpu: GPU reset begin!" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: ring gfx uses VM inv eng 0 on hub 0",
    "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft recovered" },
}
rocm {
  id = "hw_exception", restart = "same",
  title = "AMD GPU hangs, the runtime ended the program", category = "unknown",
  action = "check",
  regex = { [[HW Exception by GPU node-(?P<agent>\d+) \(Agent handle: \S+\) reason ?: ?GPU Hang]] },
  remedy = "Read amdgpu's lines in the kernel log: a reset of one card alone in job after job is the " ..
    "card, " ..
    "anything else the program.",
  hit = { "HW Exception by GPU node-9 (Agent handle: 0x5581d0c0) reason :GPU Hang" },
  miss = { "GPU node-9 (Agent handle: 0x5581d0c0) is ready" },
}
-- umc is the memory's controller. Newer drivers name the socket, count new errors apart from all so far, and
-- log 0 or "no" where none was found.
rocm {
  id = "ras", title = "AMD GPU reports an uncorrectable memory error", component = "gpu_memory",
  regex = { [[amdgpu\b.*\b(?P<count>[1-9]\d*) (?:new )?uncorrectable hardware errors detected in ]] ..
      [[(?P<block>[Uu][Mm][Cc]) block]] },
  remedy = "Take the host out, reset the GPU; replace it if it happens again.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: socket: 0 2 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: {3} socket: 0, die: 1, 4 new uncorrectable hardware errors detected " ..
      "in umc " ..
      "block" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: 0 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: socket: 0 0 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: no uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: 7 correctable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: 2 uncorrectable hardware errors detected in gfx block" },
}
rocm {
  id = "ras_block", title = "AMD GPU reports an uncorrectable error in one of its blocks",
  regex = { [[amdgpu\b.*\b(?P<count>[1-9]\d*) (?:new )?uncorrectable hardware errors detected in ]] ..
      [[(?P<block>\w+) block]], [[amdgpu\b.*ERREVENT_ATHUB_INTERRUPT]] },
  except = { [[(?i)\bumc block]] },
  remedy = "Take the host out, reset the GPU; replace it if it happens again.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: socket: 0 2 uncorrectable hardware errors detected in gfx block" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: 2 uncorrectable hardware errors detected in umc block",
    "amdgpu 0000:83:00.0: amdgpu: socket: 0 0 uncorrectable hardware errors detected in gfx block" },
}
rocm {
  id = "reset_failed", title = "AMD GPU could not be reset or started",
  regex = { [[amdgpu\b.*GPU reset(?:\(\d+\))? failed]], [[amdgpu \S+: (?:amdgpu: )?Fatal error during ]] ..
      [[GPU init]],
    [[amdgpu\b.*hw_init of IP block <\w+> failed -\d+]] },
  remedy = "Power-cycle the host; replace the card if it still fails.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: Fatal error during GPU init" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: GPU reset(2) succeeded!" },
}
rocm {
  id = "driver", title = "ROCm's kernel driver is not loaded or not accessible", category = "platform",
  component = "driver", symptom = "launch_failure", action = "fix",
  regex = { [[ROCk module is NOT loaded]], [[Unable to open /dev/kfd read-write: (?P<what>.*)]],
    [[hsa_init(?:\(\))? failed|Failed to initialize HSA|HSA_STATUS_ERROR_OUT_OF_RESOURCES\b]],
    [[hipErrorNoDevice\b]] },
  except = { [[Available Free mem]] },
  remedy = "Load amdgpu, pass /dev/kfd and /dev/dri into the container, add the user to render and video.",
  hit = { "ROCk module is NOT loaded, possibly no GPU devices",
    "Unable to open /dev/kfd read-write: Permission denied" },
  miss = { "ROCk module version 6.7.0 is loaded" },
}
rocm {
  id = "library", restart = "never", title = "ROCm library lacks its kernels for this GPU", category = "user",
  component = "dependency", action = "fix",
  regex = { [[rocBLAS error: Cannot read (?P<file>\S+)]], [[hipBLASLt error: Cannot read (?P<file>\S+)]],
    [[MIOpen(?:\(HIP\))?: Error .*(?:no suitable|not found|Cannot)]],
    [[rocBLAS error: Could not (?:load|initialize) (?P<what>.*)]] },
  remedy = "Install the ROCm build that names this GPU's architecture, in torch's version.",
  hit = { "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: No such file or " ..
      "directory for GPU arch : gfx1103" },
  miss = { "rocBLAS version 4.1.0" },
}
-- The rest of amdgpu's lines. `pci` as in "amdgpu 0000:83:00.0: amdgpu: ...".
local gpu = [[amdgpu (?P<pci>[0-9a-f]{4}:[0-9a-f:.]+): (?:amdgpu: )?]]
rocm {
  id = "lost", title = "AMD GPU is lost to its driver",
  regex = { gpu .. [[device lost from bus]], gpu .. [[.*(?P<what>(?:GPU|device) (?:is )?(?:lost|not (?:r]] ..
    [[esponding|accessible)).*)]],
    gpu .. [[.*(?P<what>SMU is in hanged state)]], gpu .. [[(?P<what>failed to (?:suspend|resume) displa]] ..
      [[y audio)]] },
  except = { [[display audio]], [[VRAM is lost]] },
  remedy = "Power-cycle the host; reseat or replace the card if it is lost again.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: device lost from bus!" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: VRAM is lost due to GPU reset!" },
}
rocm {
  id = "bad_memory", title = "AMD GPU has too many bad memory pages", component = "gpu_memory",
  regex = { gpu .. [[.*(?P<what>RAS records:\d+ exceed threshold:\d+)]],
    gpu .. [[.*(?P<what>Bad page(?:s| number)?\b.*(?:exceeds?|reached) .*threshold.*)]],
    gpu .. [[.*(?P<what>GPU will not be initialized due to this GPU has bad memory)]] },
  remedy = "Replace the card: its spare memory is used up.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: RAS records:128 exceed threshold:128, GPU will not be " ..
    "initialized due to " ..
      "this GPU has bad memory" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: RAS records:2 within threshold:128" },
}
rocm {
  id = "firmware", title = "Controller of an AMD GPU does not answer its driver", severity = "error",
    action = "check",
  general = true,
  regex = { gpu .. [[.*(?P<what>MES failed to respond to msg=\w+)]],
    [[amdgpu: (?P<what>MES might be in unrecoverable state)]],
    gpu .. [[.*(?P<what>SMU: I'm not done with your previous command)]],
      [[amdgpu: (?P<what>failed to remove hardware queue from MES)]],
    [[amdgpu\b.*(?P<what>\*ERROR\* PSP load \w+ failed)]], [[amdgpu\b.*(?P<what>[Qq]ueue preemption time]] ..
      [[ ?out)]],
    [[amdgpu\b.*(?P<what>[Ff]ailed to (?:evict queue|quiesce KFD).*)]] },
  remedy = "Reset the GPU or reboot the host; update driver and firmware if it recurs.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: MES failed to respond to msg=REMOVE_QUEUE",
    "amdgpu: cp queue preemption time out", "amdgpu 0000:83:00.0: amdgpu: SMU: I'm not done with your " ..
      "previous " ..
      "command: SMN_C2PMSG_66:0x00000012 SMN_C2PMSG_82:0x00000000" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: SMU is initialized successfully!" },
}
rocm {
  id = "xgmi", title = "Link between AMD GPUs failed", component = "nvlink",
  regex = { [[(?i)amdgpu\b.*\bxgmi\b.*(?P<what>link \d+ (?:is )?down|(?:WAFL|link) error.*|training fail]] ..
    [[ed.*)]],
    [[amdgpu\b.*\b(?P<count>[1-9]\d*) (?:new )?uncorrectable hardware errors detected in xgmi]] },
  except = { [[xgmi_wafl block]] },
  remedy = "Drain the host and reset all its GPUs; check the baseboard if the link fails again.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: [xgmi] link 3 is down" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: XGMI: Set topology for node 0" },
}
rocm {
  id = "page_fault", restart = "same", title = "Program used an address that is not mapped on an AMD GPU",
    category = "framework",
  component = "cuda_runtime", severity = "error", action = "check", general = true,
  regex = { gpu .. [[\[(?:gfx|mm)hub\d*\] .*page fault \(src_id:.*process (?P<program>\S+) pid (?P<pid>\d+)]],
    gpu .. [[\[(?:gfx|mm)hub\d*\] .*page fault]],
    gpu .. [=[.*\b(?:GC)?VM_L2_PROTECTION_FAULT_STATUS: ?0x0*[1-9a-fA-F]]=] },
  except = { [[(?:, | )process +pid 0\b]] },
  remedy = "Find the kernel (AMD_SERIALIZE_KERNEL=3, HIP_LAUNCH_BLOCKING=1); suspect the card only if " ..
    "it alone " ..
    "repeats it.",
  hit = { "amdgpu 0000:83:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 " ..
    "pasid:32771, for " ..
      "process python pid 4711 thread python pid 4711)" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: [gfxhub0] retry is enabled" },
}
rocm {
  id = "hsa", restart = "same", title = "ROCm's runtime ended the program: <status>", category = "framework",
    component = "cuda_runtime",
  severity = "error", action = "check", general = true,
  regex = { [[\b(?P<status>HSA_STATUS_ERROR_(?:ILLEGAL_INSTRUCTION|INVALID_ISA|MEMORY_FAULT|INVALID_PACK]] ..
    [[ET_FORMAT|]] ..
    [[INCOMPATIBLE_ARGUMENTS|FATAL))\b]] },
  remedy = "Check that the build names this GPU's architecture; find the kernel with AMD_SERIALIZE_KERNEL=3.",
  hit = { "HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION: The agent attempted to execute an illegal shader " ..
    "instruction. code: 0x2a" },
  miss = { "HSA_STATUS_SUCCESS" },
}
rocm {
  id = "memory", restart = { "never", "same" },
  title = "AMD GPU memory is used up", category = "user", component = "gpu_memory",
    action = "fix",
  regex = { [[HSA_STATUS_ERROR_OUT_OF_RESOURCES: .*(?P<free>Available Free mem : \d+ \w+)]],
    [[\bhipErrorOutOfMemory\b]], [[HIPBLAS_STATUS_ALLOC_FAILED]] },
  remedy = "Smaller batch or model per GPU; look for other processes on it (rocm-smi --showpids).",
  hit = { "Callback: Queue 0x7f0a aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime " ..
    "failed to " ..
      "allocate the necessary resources. Available Free mem : 0 MB Code: 0x1008",
    "RuntimeError: CUDA error: HIPBLAS_STATUS_ALLOC_FAILED when calling `hipblasCreate(handle)`" },
  miss = { "HSA_STATUS_ERROR_OUT_OF_RESOURCES" },
}
rocm {
  id = "atomics", title = "AMD GPU is left out: its PCIe slot lacks what it needs", category = "platform",
  component = "pcie", symptom = "launch_failure", severity = "error", action = "check",
  regex = { [[kfd kfd: amdgpu: skipped device (?P<device>[0-9a-f:]+), (?P<what>PCI rejects atomics.*)]] },
  remedy = "Use a slot of the processor that passes PCIe atomics on; check IOMMU and the virtual " ..
    "machine's bus.",
  hit = { "kfd kfd: amdgpu: skipped device 1002:73df, PCI rejects atomics 730<0" },
  miss = { "kfd kfd: amdgpu: added device 1002:740f" },
}
rocm {
  id = "miopen", restart = "never", title = "MIOpen could not build or find a kernel", category = "framework",
    component = "dependency",
  severity = "error", action = "check",
  regex = { [[MIOpen(?:\(HIP\))?: Error (?P<what>.*)]], [[MIOpen Error: (?P<what>.*)]],
    [[\bHIPRTC_ERROR_(?P<code>\w+)]], [[rocBLAS error: (?P<what>hipErrorSharedObjectInitFailed)]] },
  except = { [[no suitable|not found|Cannot read]] },
  remedy = "Clear ~/.cache/miopen and ~/.config/miopen; install the ROCm that torch was built for.",
  hit = { "MIOpen(HIP): Error [Compile] 'hiprtcCompileProgram(prog.get(), c_options.size(), " ..
    "c_options.data())' " ..
      "naive_conv.cpp: HIPRTC_ERROR_COMPILATION (6)",
    "MIOpen Error: /MIOpen/src/ocl/convolutionocl.cpp:519: No suitable algorithm was found to execute " ..
      "the convolution" },
  miss = { "MIOpen(HIP): Warning [SQLiteBase] Missing system database file: gfx90a68.kdb" },
}
