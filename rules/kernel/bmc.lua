-- What a host's management controller (BMC) logs about its own parts, in IPMI's words: lines of ipmitool sel,
-- ipmievd and health checks, and the wordings of vendors (iLO, iDRAC, XCC, UEFI). Power supplies are in
-- rules/kernel/mce.lua, what the kernel says of memory in edac.lua.

local function part(row)
  rule {
    id = "kernel.bmc." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = "hardware",
    component = row.component, severity = row.severity or "error", action = row.action or "check",
    symptom = row.symptom or "crash", source = { "kernel", "log" }, general = row.general,
    match = { regex = row.regex, except = { [[(?i)\bdeassert]], row.except } }, remedy = row.remedy,
    examples = { hit = row.hit, miss = row.miss },
  }
end

part {
  id = "processor", title = "Management controller reports a failed processor", component = "cpu",
  severity = "fatal", action = "isolate",
  regex = { [[(?i)\b(?:Processor|CPU)\s?\S*\b.{0,40}\b(?:IERR|Thermal Trip|FRB\d\S*|Uncorrectable ]] ..
    [[machine ]] ..
    [[check exception)\b.{0,40}\bassert]] },
  remedy = "Take the host out; replace the processor or the board that the record names.",
  hit = { "  3f | 11/21/2026 | 02:12:01 | Processor #0x91 | IERR | Asserted",
    "ipmievd: Processor sensor CPU1 Status Thermal Trip Asserted" },
  miss = { "  40 | 11/21/2026 | 02:19:01 | Processor #0x91 | IERR | Deasserted",
    "  41 | 11/21/2026 | 02:19:01 | Processor #0x91 | Presence detected | Asserted" },
}
part {
  id = "fan", title = "A fan of the host failed", component = "platform", symptom = "slowdown",
  regex = { [[(?i)\bFan\w* ?\S*\b.{0,40}\b(?:Lower (?:Critical|Non-recoverable) going low|Device ]] ..
    [[(?:Absent|]] ..
    [[Removed)|Redundancy Lost|Transition to (?:Critical|Non-recoverable))\b.{0,40}\bassert]] },
  remedy = "Replace the fan; the devices of this host slow down or stop when they get too hot.",
  hit = { "  12 | 11/21/2026 | 02:12:01 | Fan #0x41 | Lower Critical going low  | Asserted",
    "ipmievd: Fan sensor Fan1A Lower Critical going low  Asserted (Reading 0 < Threshold 1000 RPM)" },
  miss = { "  13 | 11/21/2026 | 02:15:01 | Fan #0x41 | Lower Critical going low  | Deasserted",
    "  14 | 11/21/2026 | 02:12:01 | Fan #0x41 | Lower Non-critical going low  | Asserted" },
}
part {
  id = "hot", title = "Host or its inlet air is too hot", component = "platform", symptom = "slowdown",
  regex = { [[(?i)\bTemp(?:erature)?\b.{0,60}\bUpper (?:Critical|Non-recoverable) going ]] ..
    [[high\b.{0,40}\bassert]] },
  remedy = "Check fans, filters and the cooling of the rack.",
  hit = { "  15 | 11/21/2026 | 02:12:01 | Temperature #0x30 | Upper Critical going high | Asserted" },
  miss = { "  16 | 11/21/2026 | 02:12:01 | Temperature #0x30 | Upper Non-critical going high | Asserted" },
}
part {
  id = "voltage", title = "A voltage of the host's board is out of range", component = "platform",
  action = "isolate",
  regex = { [[(?i)\bVoltage\b.{0,60}\b(?:(?:Lower|Upper) (?:Critical|Non-recoverable) going ]] ..
    [[(?:low|high)|State ]] ..
    [[Asserted)\b.{0,40}\bassert]] },
  remedy = "Take the host out; replace the board or the power supply that feeds it.",
  hit = { "  17 | 11/21/2026 | 02:12:01 | Voltage #0x20 | Lower Critical going low  | Asserted" },
  miss = { "  18 | 11/21/2026 | 02:12:01 | Voltage #0x20 | Lower Critical going low  | Deasserted" },
}
part {
  id = "bus", title = "Management controller reports an error of a PCIe bus or slot", component = "pcie",
  severity = "fatal", action = "isolate",
  regex = { [[(?i)\bCritical Interrupt\b.{0,60}\b(?:PCI PERR|PCI SERR|Bus Uncorrectable error|Bus Fatal ]] ..
    [[Error)\b.{0,40}\bassert]], [[(?i)\bSlot ?/ ?Connector\b.{0,40}\bFault Status\b.{0,40}\bassert]] },
  remedy = "Take the host out; reseat or replace the card, riser or IO board in this slot.",
  hit = { "  19 | 11/21/2026 | 02:12:01 | Critical Interrupt #0x8a | Bus Fatal Error | Asserted",
    "  20 | 11/21/2026 | 02:12:01 | Slot / Connector #0x62 | Fault Status | Asserted" },
  miss = { "  21 | 11/21/2026 | 02:12:01 | Critical Interrupt #0x8a | Bus Correctable error | Asserted",
    "  22 | 11/21/2026 | 02:12:01 | Slot / Connector #0x62 | Slot is powered off | Asserted" },
}
part {
  id = "drive", title = "Management controller reports a failed drive", component = "storage",
  regex = { [[(?i)\bDrive Slot\b.{0,40}\b(?:Drive Fault|Predictive Failure|In Failed ]] ..
    [[Array)\b.{0,40}\bassert]] },
  remedy = "Replace the drive in this slot.",
  hit = { "  23 | 11/21/2026 | 02:12:01 | Drive Slot / Bay #0xf0 | Drive Fault | Asserted" },
  miss = { "  24 | 11/21/2026 | 02:12:01 | Drive Slot / Bay #0xf0 | Drive Present | Asserted" },
}
part {
  id = "chassis", title = "Board, cable or cover of the chassis is at fault", component = "platform",
  regex = { [[(?i)\b(?:Cable ?/ ?Interconnect\b.{0,40}\bConfiguration Error|Module ?/ ?Board\b.{0,40}\b]] ..
    [[Transition to (?:Critical|Non-recoverable)\S*(?: from \S+(?: \S+)?)?|Physical Security\b.{0,40}\b]] ..
    [[General Chassis intrusion)\b.{0,40}\bassert]] },
  remedy = "Take the host out and have the part that the record names looked at.",
  hit = { "  25 | 11/21/2026 | 02:12:01 | Cable / Interconnect #0x51 | Configuration Error | Asserted",
    "  26 | 11/21/2026 | 02:12:01 | Physical Security #0x52 | General Chassis intrusion | Asserted" },
  miss = { "  27 | 11/21/2026 | 02:12:01 | Cable / Interconnect #0x51 | Connected | Asserted" },
}
-- A module in all vendors' words: DIMM 3, DIMM_A1, DIMMA1(CPU1), P1-DIMMC1, (Processor 2, DIMM 3), A1.
local dimm = [[(?P<module>(?:\(?(?:Processor|CPU|Slot)\W?\d+, )?(?:P\d+[-_])?(?:DIMM|Memory Module)[ _#]] ..
  [[]?\w*(?:\(\w+\))?)]]
part {
  id = "memory", title = "Management controller reports an uncorrectable memory error",
    component = "host_memory",
  severity = "fatal", action = "isolate",
  regex = {
    -- IPMI's SEL, with and without the module.
    [[(?i)\bMemory\b.{0,60}\b(?:Uncorrectable (?:ECC|memory)|Parity)\b.{0,80}?]] .. dimm ..
      [[.{0,60}\bassert]],
    [[(?i)\bMemory\b.{0,60}\b(?:Uncorrectable (?:ECC|memory)|Parity)\b.{0,120}\bassert]],
    [[(?i)\bUncorrectable ECC\b.{0,20}?]] .. dimm, [[(?i)]] .. dimm .. [[.{0,30}\bUncorrectable ECC\b]],
    -- iLO, XCC, UEFI, Supermicro.
    [[(?i)\bUncorrectable (?:memory )?error\b.{0,60}?]] .. dimm,
    [[(?i)\bUncorrectable memory error\b(?:.{0,40}(?:detected|occurred)| - The failed memory module)]],
    [[(?i)\bUncorrectable memory component found\)? \((?P<module2>[\w-]+)\)]],
    [[\bPlatformUncorrectableMem\b]], [[\bFQXSFMA0002M\b]],
    -- iDRAC.
    [[(?i)\bMulti-bit (?:memory )?errors? (?:detected )?on a memory device at (?:the )?locations?(?:\(s]] ..
      [[\))? (?P<module3>[\w, ]+)]],
    [[(?i)\buncorrectable multi-bit memory errors in .{0,60}\blocation (?P<module4>\w+)]],
    [[(?i)\bmemory errors? ha(?:s|ve) occurred on memory slot:? (?P<module5>\w+)]], [[\bUEFI0079\b]],
  },
  except = [[(?i)\b(?:no|0|zero) (?:uncorrectable|multi-bit)|\bcorrectable memory (?:error|component)|\(]] ..
    [[s\) 0\b|count\W+0\b]],
  remedy = "Take the host out and replace the module that the record names.",
  hit = { "DIMM Failure - Uncorrectable Memory Error (Processor 2, DIMM 3)",
    "  2a | 11/21/2026 | 02:12:01 | Memory #0x53 | Uncorrectable ECC | Asserted",
    "  2b | 11/21/2026 | 02:12:01 | Memory ECC Error | Uncorrectable ECC (UnCorrectable ECC |  DIMM_A1) " ..
      "| Asserted",
    "Uncorrectable ECC @ DIMMA1(CPU1) - Asserted",
    "MEM0001 Multi-bit memory errors detected on a memory device at location(s) DIMM_A1.",
    "UEFI0107: One or more memory errors have occurred on memory slot: A1.",
    "An uncorrectable error has been detected for DIMM 1 on Subsystem System Memory.",
    "Failing DIMM: DIMM location (Uncorrectable memory component found) (P1-DIMMA1)" },
  miss = { "  2c | 11/21/2026 | 02:12:01 | Memory #0x53 | Correctable ECC | Asserted",
    "  2d | 11/21/2026 | 02:12:01 | Memory #0x53 | Uncorrectable ECC | Deasserted",
    "Failing DIMM: DIMM location and Mem address (Correctable memory component found) (P2-DIMME1)",
    "No uncorrectable memory errors on DIMM 3" },
}
-- The controller asks for the replacement: its own limit of corrected errors was passed.
part {
  id = "memory_limit", title = "Memory module has more corrected errors than its host tolerates",
  component = "host_memory", general = true,
  regex = { [[(?i)\bMemory\b.{0,60}\bCorrectable (?:ECC|memory error) logging limit reached\b.{0,60}\bas]] ..
    [[sert]],
    [[(?i)\bCorrect(?:able|ed) memory error(?:s? (?:rate|threshold))? (?:has been )?exceeded\b.{0,30}?]] ..
      dimm,
    [[(?i)\b(?:Persistent )?correctable memory error (?:rate|limit|logging) (?:exceeded|reached|disabled]] ..
      [[) for .{0,60}?]] .. dimm,
    [[(?i)\bMemory Logging Limit Reached for (?P<module2>DIMM \d+)]],
    [[(?i)memory health monitor feature has detected a degradation in the DIMM installed in (?P<module3>]] ..
      [[\w+)]] },
  remedy = "Plan to replace the module that the record names; the host still runs.",
  hit = { "  2e | 11/21/2026 | 02:12:01 | Memory #0x02 | Correctable ECC logging limit reached | Asserted",
    "MEM0702 Correctable memory error rate exceeded for DIMM_A1.",
    "Corrected Memory Error threshold exceeded (Processor 1, DIMM 8)",
    "Memory Logging Limit Reached for DIMM 4 on Subsystem System Memory." },
  miss = { "  2f | 11/21/2026 | 02:12:01 | Memory #0x02 | Correctable ECC | Asserted" },
}
part {
  id = "memory_lost", title = "Firmware took a memory module out of use", component = "host_memory",
  action = "isolate",
  regex = { [[(?i)\bMemory\b.{0,60}\b(?:Memory Device Disabled|Memory Scrub Failed|Configuration error)]] ..
    [[\b.{0,60}\bassert]],
    [[(?i)\bDIMM (?:Initialization Error|Failure)\b(?: - )?(?P<module>(?:Processor|CPU)? ?\d*,? ?DIMM \w+)?]],
    [[(?i)]] .. dimm .. [[ has been (?:disabled|mapped out)\b]], [[POST Error:? 2\d\d-Memory Error]] },
  except = [[(?i)uncorrectable]],
  remedy = "Drain the host and reseat or replace the module.",
  hit = { "  30 | 11/21/2026 | 02:12:01 | Memory #0x53 | Memory Device Disabled | Asserted",
    "DIMM Initialization Error - Processor 1 DIMM 2. The identified memory module could not be properly " ..
      "trained",
    "FQXSFMA0001M: DIMM 5 has been disabled due to an error detected during POST." },
  miss = { "  31 | 11/21/2026 | 02:12:01 | Memory #0x53 | Presence Detected | Asserted",
    "DIMM Failure - Uncorrectable Memory Error (Processor 2, DIMM 3)" },
}
