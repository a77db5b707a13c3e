-- GPU memory: what nvidia-smi, DCGM and health checks of clusters say about uncorrectable errors and remapped
-- rows.
-- (What a CUDA call says about it is in rules/cuda.)
-- Counters without a limit (corrected errors, aggregate counts of the past) are no fault and have no rule.

local function gpu_memory(row)
  rule {
    id = "nvidia.ecc." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = "hardware",
      component = "gpu_memory",
    severity = row.severity or "fatal", action = row.action or "isolate", general = row.general,
      role = row.role,
    source = { "log", "kernel" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

gpu_memory {
  id = "dbe", title = "Double-bit ECC error in GPU memory",
  regex = { [[Detected [1-9]\d* volatile double-bit ECC error]],
    [[double-bit ECC error has occ?ur+ed on GPU]],
    [[(?i)NVRM:(?: Xid \((?:PCI:)?(?P<pci>[0-9a-f:.]+))?.*uncorrectable (?:double bit|ECC|DRAM|SRAM) error]],
    [[CUDA APIs have indicated that a double-bit ECC]], [[together with a DBE were detected on GPU]] },
  remedy = "Drain the host, reset the GPU; replace it if the error comes back.",
  hit = { "Detected 3 volatile double-bit ECC error(s) in GPU 5.",
    "Pending page retirements together with a DBE were detected on GPU 2." },
  miss = { "Detected 0 volatile double-bit ECC error(s) in GPU 5.",
    "More than 10 single-bit ECC error(s) detected in GPU 1 Volatile SBEs: 12" },
}
gpu_memory {
  id = "uncorrectable", title = "Health check counts uncorrectable GPU memory errors", severity = "error",
  regex = { [[(?i)(?:SRAM|DRAM|GPU memory|HBM)\W{1,3}uncorrect(?:able|ed)\b.{0,40}(?:error|]] ..
    [[count).{0,40}(?:detected|exceed)]],
    [[(?i)detected .{0,30}(?:SRAM|DRAM|HBM|GPU memory|ECC) uncorrect(?:able|ed) (?:ecc )?error]],
    [[(?i)uncorrect(?:able|ed) (?:ecc |memory )errors? (?:were |was )?(?:found|detected) (?:on|in|for) ]] ..
      [[GPU]] },
  remedy = "Drain the host and reset the GPU; ask for a replacement if the volatile count grows again.",
  hit = { "check_gpu_ecc: GPU id 3: SRAM Uncorrectable ECC error count detected, (0,1)",
    "Warning: Detected a GPU SRAM uncorrectable error for the volatile counter for GPU ID 5" },
  miss = { "SRAM Uncorrectable : 0", "no uncorrectable errors", "DRAM Correctable : 12" },
}
gpu_memory {
  id = "remap_failed", title = "A bad GPU memory row could not be remapped",
  regex = { [[(?i)row[ -]?remap(?:ping|per)?s? (?:has |have )?(?:failed|failure|error)\b]],
    [[(?i)Remapping Failure Occurred\s*:\s*Yes]],
    [[(?i)remap(?:ping)? failure (?:occurred|detected)(?:[:=] ?(?:yes|true|1))?$]] },
  except = [[(?i)(?:failure|failed|error)s?\W+(?:0|no|false|none)\b]],
  remedy = "Replace the GPU: no spare row is left for the damaged memory.",
  hit = { "GPU 4 had uncorrectable memory errors and row remapping failed.",
    "        Remapping Failure Occurred            : Yes",
    "Detected a GPU row remap Error for GPU ID 7, please offline this node" },
  miss = { "        Remapping Failure Occurred            : No", "row remap failure: 0" },
}
gpu_memory {
  id = "remap_pending", title = "GPU memory row waits for a reset to be remapped", severity = "warning",
    action = "check",
  regex = { [[(?i)pending row[ -]?remap]], [[(?i)row[ -]?remap(?:ping|per)?s? (?:is |are )?pending]],
    [[(?i)New row (?:\(0x[0-9a-f]+\) )?marked for remapping]] },
  except = { [[(?i)pending row[ -]?remap\w*\W+(?:0|no|false|none)\b]], [[(?i)no pending]] },
  remedy = "Reset the GPU or reboot the host at the next chance, before the next long job.",
  hit = { "GPU 3 had memory errors and row remappings are pending",
    "Warning: Detected a GPU pending row remap for GPU ID 7" },
  miss = { "Pending row remap: No", "Remapped Rows: Correctable Error : 1" },
}
gpu_memory {
  id = "pages", title = "GPU memory pages are being retired", severity = "error", action = "check",
  regex = { [[(?i)(?:a pending retired page has been detected|\d or more retired pages have been ]] ..
    [[detected|excess of \d+ retired pages)]] },
  remedy = "Reset the GPU when it is free; replace it once the number of retired pages reaches the " ..
    "vendor's limit.",
  hit = { "A pending retired page has been detected in GPU 1.",
    "64 or more retired pages have been detected in GPU 0. " },
  miss = { "Retired Pages: Double Bit ECC : 0" },
}
gpu_memory {
  id = "uncontained", title = "GPU memory error spread beyond one process",
  regex = { [[GPU had an uncontained error]], [[CUDA_ERROR_CONTAINED|cudaErrorContained\b]] },
  remedy = "Drain the host and reset the GPU.",
  hit = { "GPU had an uncontained error (XID 95)" }, miss = { "GPU had a clean run" },
}
gpu_memory {
  id = "mismatch", title = "GPU memory returned other data than was written",
  regex = { [[memory mismatch was detected on GPU \d]], [[Found [1-9]\d* faulty memory elements on GPU]],
    [[miscompare failure in the L1 cache]] },
  remedy = "Isolate the host at once and distrust what this GPU computed; roll back to a checkpoint " ..
    "before it.",
  hit = { "A memory mismatch was detected on GPU 2, but no error was reported by CUDA or NVML.",
    "Found 3 faulty memory elements on GPU 0" },
  miss = { "Found 0 faulty memory elements on GPU 0" },
}
gpu_memory {
  id = "remapped", title = "GPU memory rows were remapped", severity = "warning", action = "check",
  regex = { [[had uncorrectable memory errors and \d+ rows were remapped]] },
  remedy = "Nothing now; replace the GPU when rows keep being remapped.",
  hit = { "GPU 1 had uncorrectable memory errors and 2 rows were remapped" },
  miss = { "GPU 1 had uncorrectable memory errors and row remapping failed." },
}
