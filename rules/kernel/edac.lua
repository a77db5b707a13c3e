-- Host memory as the EDAC drivers and rasdaemon see it: CE is corrected, UE is not.

local function memory(row)
  rule {
    id = "kernel.edac." .. row.id, engine = 1, title = row.title, category = "hardware",
      component = "host_memory",
    severity = row.severity, action = row.action, source = { "kernel", "log" }, remedy = row.remedy,
    match = { regex = row.regex, except = row.except }, examples = { hit = row.hit, miss = row.miss },
  }
end

memory {
  id = "ue", title = "Uncorrectable error in host memory", severity = "fatal", action = "isolate",
  regex = { [[EDAC (?:\w+ )?MC\d+: (?:\d+ )?UE\b]], [[EDAC \w+: .*UNCORRECTED]],
    [[rasdaemon: .*mc_event: .*\bUncorrected error]],
    [[(?i)Uncorrect(?:able|ed) (?:memory )?ECC\b.{0,60}(?:DIMM|assert|memory)]] },
  except = { [[(?i)(?:errors?|count)\W+0\b]] },
  remedy = "Drain the host and replace the module the line names.",
  hit = { "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0",
    "EDAC i10nm MC3: 1 UE memory scrubbing error",
    "ipmi: Memory #0x4f | Uncorrectable ECC | DIMM B2 | Asserted" },
  miss = { "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0" },
}
memory {
  id = "ce", title = "Corrected errors in host memory", severity = "warning", action = "check",
  regex = { [[EDAC (?:\w+ )?MC\d+: (?:\d+ )?CE\b]], [[rasdaemon: .*mc_event: .*\bCorrected error]] },
  remedy = "None for a few; plan to replace the module when the rate grows.",
  hit = { "EDAC MC1: 3 CE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0" },
    miss = { "EDAC MC: Ver: 3.0.0" },
}
memory {
  id = "offline", title = "Kernel takes damaged memory pages out of use", severity = "warning",
    action = "check",
  regex = { [[Soft offlining pfn 0x]],
    [[Memory failure: 0x[0-9a-f]+: recovery action for .*: (?:Recovered|Delayed)]],
    [[Memory failure: 0x[0-9a-f]+: (?:page )?(?:still referenced|already hardware poisoned)]] },
  remedy = "Plan to replace the module.",
  hit = { "Soft offlining pfn 0x1c0f2f2 at process virtual address 0x7f02" },
    miss = { "Offlined Pages 32768" },
}
memory {
  id = "offline_failed", title = "Damaged memory page could not be taken out of use", severity = "error",
    action = "isolate",
  regex = { [[Memory failure: 0x[0-9a-f]+: recovery action for .*: (?:Failed|Ignored)]] },
  remedy = "Drain the host; the damaged page is still in use.",
  hit = { "Memory failure: 0x2c3f1a: recovery action for reserved kernel page: Failed" },
  miss = { "Memory failure: 0x2c3f1a: recovery action for clean LRU page: Recovered" },
}
memory {
  id = "dimm_lost", title = "Host lost a memory module", severity = "error", action = "isolate",
  regex = { [[(?i)DIMM ?\S+.{0,40}(?:disabled|failed training|mapped out|configuration error.*assert)]],
    [[(?i)check_hw_(?:physmem|mem)\S*: .*(?:less|only|expected)]] },
  remedy = "Drain the host and reseat or replace the module.",
  hit = { "DIMM A3 disabled due to failed training",
    "nhc: Health check failed: check_hw_physmem: Actual RAM size (1031 GB) less than expected" },
  miss = { "DIMM A3 32 GB 4800 MT/s" },
}
