-- AMD GPUs: the amdgpu driver in the kernel's log, ROCm's libraries.

local function rocm(row)
  rule {
    id = "amd." .. row.id, engine = 1, title = row.title, category = row.category or "hardware",
    component = row.component or "gpu", severity = row.severity or "fatal", general = row.general,
    symptom = row.symptom, source = { "log", "kernel" }, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "isolate", examples = { hit = row.hit, miss = row.miss },
  }
end

-- Soft recovery ends one submission; a reset of the GPU ends the job. A program's endless kernel or wild
-- write
-- does it as well as a broken card.
rocm {
  id = "ring_timeout", title = "AMD GPU stopped processing its queue", symptom = "hang", severity = "error",
  category = "unknown", action = "check",
  regex = { [[amdgpu\b.*\bring (?P<ring>\S+) timeout, signaled seq=]],
    [[amdgpu (?P<pci>[0-9a-f:.]+): amdgpu: GPU reset begin!]] },
  except = { [[soft recovered]] },
  remedy = "Read the process named below it; if other programs show it on this card too, have it checked.",
  hit = { "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=81, emitted " ..
      "seq=83", "amdgpu 0000:83:00.0: amdgpu: GPU reset begin!" },
  miss = { "amdgpu 0000:83:00.0: amdgpu: ring gfx uses VM inv eng 0 on hub 0",
    "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, but soft recovered" },
}
rocm {
  id = "hw_exception", title = "AMD GPU hangs, the runtime ended the program", category = "unknown",
  action = "check",
  regex = { [[HW Exception by GPU node-(?P<node>\d+) \(Agent handle: \S+\) reason ?: ?GPU Hang]] },
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
    [[hsa_init(?:\(\))? failed|Failed to initialize HSA|HSA_STATUS_ERROR_OUT_OF_RESOURCES]],
    [[hipErrorNoDevice\b]] },
  remedy = "Load amdgpu, pass /dev/kfd and /dev/dri into the container, add the user to render and video.",
  hit = { "ROCk module is NOT loaded, possibly no GPU devices",
    "Unable to open /dev/kfd read-write: Permission denied" },
  miss = { "ROCk module version 6.7.0 is loaded" },
}
rocm {
  id = "library", title = "ROCm library lacks its kernels for this GPU", category = "user",
  component = "dependency", action = "fix",
  regex = { [[rocBLAS error: Cannot read (?P<file>\S+)]], [[hipBLASLt error: Cannot read (?P<file>\S+)]],
    [[MIOpen(?:\(HIP\))?: Error .*(?:no suitable|not found|Cannot)]],
    [[rocBLAS error: Could not (?:load|initialize) (?P<what>.*)]] },
  remedy = "Install the ROCm build that names this GPU's architecture, in torch's version.",
  hit = { "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat: No such file or " ..
      "directory for GPU arch : gfx1103" },
  miss = { "rocBLAS version 4.1.0" },
}
