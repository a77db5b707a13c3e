-- What a host's management controller (BMC) logs about its own parts, in IPMI's words: lines of ipmitool sel,
-- ipmievd and health checks. Power supplies are in rules/kernel/mce.lua, memory modules in edac.lua.

local function part(row)
  rule {
    id = "kernel.bmc." .. row.id, engine = 1, title = row.title, category = "hardware",
    component = row.component, severity = row.severity or "error", action = row.action or "check",
    symptom = row.symptom or "crash", source = { "kernel", "log" },
    match = { regex = row.regex, except = { [[(?i)\bdeassert]] } }, remedy = row.remedy,
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
