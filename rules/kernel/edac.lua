-- Host memory as the EDAC drivers and rasdaemon see it: CE is corrected, UE is not.

local function memory(row)
  rule {
    id = "kernel.edac." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = "hardware",
      component = "host_memory",
    severity = row.severity, action = row.action, source = { "kernel", "log" }, remedy = row.remedy,
    general = row.general, says = row.says, window = row.window, when = row.when,
    match = { regex = row.regex, except = row.except }, examples = { hit = row.hit, miss = row.miss },
  }
end

-- The module as all drivers of the kernel's EDAC core print it: "on LABEL (channel:0 slot:1 ...)". Drivers of
-- firmware (GHES) have labels with blanks.
local module = [[(?:\s.*?)?\bon (?P<module>\S[^(]*?) ?\(]]

memory {
  id = "ue", title = "Uncorrectable error in host memory", severity = "fatal", action = "isolate",
  regex = { [[EDAC (?:\w+ )?MC#?\d+: (?:[1-9]\d* )?UE]] .. module,
    [[EDAC (?:\w+ )?MC#?\d+: (?:[1-9]\d* )?UE\b.*\blabels? "(?P<module>[^"]+)"]],
    [[EDAC (?:\w+ )?MC#?\d+: (?:[1-9]\d* )?UE\b]], [[EDAC \w+: .*UNCORRECTED]],
    -- rasdaemon: its log, its table of events, its summary.
    [[\bmc_event: .*\b[1-9]\d* (?:Uncorrected|Fatal)(?: error)?s?: .* on (?P<module>\S[^(]*?) ?\(]],
    [[\d [1-9]\d* (?:Uncorrected|Fatal) error\(s\): .* at (?P<module>\S.*?) location: ]],
    [[(?:Uncorrected|Fatal) on DIMM Label\(s\): '(?P<module>[^']*)' location: \S+ errors: [1-9]\d*]],
    [[\b[Uu]ncorrected (?:\w+ )?memory error count exceeded threshold: (?P<rate>[1-9]\d* in \w+)]],
    [[\bmce_record\b.*\bbank=(?P<bank>\w+), .*\bUncorrected error\b.*\bMEMORY CONTROLLER (?P<channel>\w+)]],
    [[(?i)\bECC error detected in (?P<module>DIMM slot \w+), uncorrectable]],
    [[(?i)(?P<module>\w*(?:DIMM|DDR\d)\w*)\b.{0,30}\bsensor\b.{0,30}\bUncorrectable ECC]],
    -- The error type of a memory section that the firmware (CPER) reports.
    [[\[Hardware Error\]: +error_type: \d+, (?P<type>multi-bit ECC|multi-symbol chipkill ECC|]] ..
      [[parity error|scrub uncorrected error)]],
    -- Intel's bank of a memory controller with an uncorrected error (MCACOD 0000 0000 1MMM CCCC).
    [[\bSTATUS [bf][0-9a-f]{11}[01]0[89a-f][0-9a-f]\b MCGSTATUS]],
    [[Machine Check Exception: [0-9a-f]+ (?P<bank>Bank \d+): [bf][0-9a-f]{11}[01]0[89a-f][0-9a-f]\b]] },
  remedy = "Drain the host and replace the module the line names.",
  hit = { "EDAC MC0: 1 UE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0",
    "EDAC i10nm MC3: 1 UE memory scrubbing error",
    "EDAC MC1: 1 UE multi-bit ECC on P1_DIMM_C1 (node:1 card:2 module:0 rank:0 page:0x1c0 offset:0x40 " ..
      "grain:1 - APEI location: node:1 card:2)",
    "rasdaemon: kworker/0:1-88 [000] 0.1: mc_event: 2026-01-02 03:04:05 +0000 1 Uncorrected error: " ..
      "memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0 (mc: 1 location: 0:0:-1 address: 0x1c0 grain: 32)",
    "7 2026-01-02 03:04:05 +0000 1 Uncorrected error(s): memory read error at CPU_SrcID#1_MC#0_Chan#0_" ..
      "DIMM#0 location: 1:0:0:-1, addr 7344128, grain 32, syndrome 0",
    "\tUncorrected on DIMM Label(s): 'DIMM_B2' location: 0:1:1:-1 errors: 2",
    "{1}[Hardware Error]:   error_type: 3, multi-bit ECC",
    "mce: [Hardware Error]: CPU 3: Machine Check Exception: 5 Bank 7: be00000001010090" },
  miss = { "EDAC MC0: 1 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0)",
    "EDAC MC0: 0 UE on any memory (channel:0)", "\tUncorrected on DIMM Label(s): 'DIMM_B2' location: " ..
      "0:1:1:-1 errors: 0",
    "\tCorrected on DIMM Label(s): 'DIMM_B2' location: 0:1:1:-1 errors: 2",
    "{1}[Hardware Error]:   error_type: 2, single-bit ECC",
    "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400" },
}
-- A job does not end of corrected errors. A module that has them again and again, or many at once, is a
-- notice.
local ce = { [[EDAC (?:\w+ )?MC#?\d+: (?:(?P<count>\d+) )?CE]] .. module,
  [[\bmc_event: .*?\b(?P<count>\d+) Corrected errors?: .* on (?P<module>\S[^(]*?) ?\(]],
  [[\d (?P<count>[1-9]\d*) Corrected error\(s\): .* at (?P<module>\S.*?) location: ]] }
local swap = "Plan to replace this module when they come again: they often go before uncorrectable ones."
memory {
  id = "ce", title = "Memory module had corrected errors: <module>", severity = "warning", says = "notice",
  action = "check",
  regex = { ce[1], ce[2], ce[3], [[EDAC (?:\w+ )?MC#?\d+: (?:\d+ )?CE\b]],
    [[Corrected on DIMM Label\(s\): '(?P<module>[^']*)' location: \S+ errors: [1-9]\d*]],
    [[\berror: Corrected error, .*\b(?P<module>memory_channel=\d+(?:, ?csrow=\d+)?)]],
    [[Memory (?P<module>#0x[0-9a-f]+ \| Correctable ECC(?: \([^)]*\))?) \| Asserted]],
    [=[CECC\w*MemErr\w*\[(?P<module>[^\]]+)\]\) ALERT]=] },
  remedy = swap,
  hit = { "EDAC MC1: 3 CE memory read error on CPU_SrcID#1_MC#0_Chan#0_DIMM#0",
    "EDAC MC0: 4 CE error on CPU#0Channel#2_DIMM#0 (channel:2 slot:0 page:0x0 offset:0x0 grain:8)",
    "EDAC MC0: CE page 0x0, offset 0x0, grain 0, syndrome 0x0, row 2, channel 0, label \"\": amd64_edac",
    "\tCorrected on DIMM Label(s): 'DIMM_A1' location: 1:0:0:0 errors: 42",
    "7 2026-01-02 03:04:05 +0000 2 Corrected error(s): memory read error at " ..
      "CPU_SrcID#1_MC#0_Chan#0_DIMM#0 " ..
      "location: 1:0:0:-1, addr 7344128, grain 32, syndrome 0",
    "  2c | 11/21/2026 | 02:12:01 | Memory #0x53 | Correctable ECC | Asserted" },
  miss = { "EDAC MC: Ver: 3.0.0", "\tCorrected on DIMM Label(s): 'DIMM_A1' location: 1:0:0:0 errors: 0" },
}
memory {
  id = "ce_burst", title = "Memory module <module> has many corrected errors at once", severity = "warning",
  says = "notice", action = "check", regex = ce, when = function(event)
    local count = text.number(event.count or "")
    return count ~= nil and count >= 100
  end,
  remedy = swap,
  hit = { "EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 " ..
    "page:0x2031c14 offset:0x940 grain:32 syndrome:0x0 -  OVERFLOW area:DRAM err_code:0001:0091)" },
  miss = { "EDAC MC1: 1 CE memory scrubbing error on CPU_SrcID#1_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 " ..
    "page:0xee30a0 offset:0x0 grain:32)" },
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
-- A threshold that the host's own software set: it asks for the replacement, and names the module.
memory {
  id = "threshold", title = "Memory module has more corrected errors than its host tolerates",
  severity = "error", action = "check", general = true,
  regex = { [[\b[Cc]orrected (?:\w+ )?memory error count exceeded threshold: (?P<rate>\d+ in \w+)]],
    [[[Mm]emory error count \d+ exceeded threshold: (?P<rate>\d+ in \w+)]] },
  remedy = "Plan to replace the module that the next lines locate; the host still runs.",
  hit = { "mcelog: corrected DIMM memory error count exceeded threshold: 10 in 24h",
    "mcelog: Fallback Socket memory error count 5217 exceeded threshold: 31046 in 24h" },
  miss = { "mcelog: corrected DIMM memory error count: 2",
    "mcelog: Uncorrected DIMM memory error count exceeded threshold: 1 in 24h" },
}
memory {
  id = "dimm_lost", title = "Host lost a memory module", severity = "error", action = "isolate",
  regex = { [[(?i)(?P<module>DIMM ?[\w#-]+).{0,40}(?:disabled|failed training|mapped out|]] ..
    [[configuration error.*assert)]],
    [[(?i)check_hw_(?:physmem|mem)\S*: .*(?:less|only|expected)]],
    [[(?i)Reason=(?P<what>Low RealMemory(?: \([^)]*\))?)]],
    [[error: Node (?P<host>\S+) has low real_memory size \((?P<sizes>\d+ < \d+)\)]] },
  remedy = "Drain the host and reseat or replace the module.",
  hit = { "DIMM A3 disabled due to failed training",
    "nhc: Health check failed: check_hw_physmem: Actual RAM size (1031 GB) less than expected",
    "slurmctld: error: Node n7 has low real_memory size (515703 < 1031000)",
    "Reason=Low RealMemory (reported:515703 < 100.00% of configured:1031000)" },
  miss = { "DIMM A3 32 GB 4800 MT/s" },
}
