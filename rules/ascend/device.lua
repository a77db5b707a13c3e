-- Ascend NPU devices: the event codes that driver, npu-smi, plog and the device plugin print. The upper half
-- of a code
-- names the unit, the lower half the kind of fault, so most rules come from the two tables below.

-- unit code -> name, component, the kinds it reports
local units = {
  ["80C7"] = { "task scheduler", "gpu", { "8008" } },
  ["80FA"] = { "task scheduler", "gpu", { "4E00" } },
  ["812E"] = { "task scheduler firmware", "gpu", { "4E00" } },
  ["80FB"] = { "scheduler CPU", "gpu", { "8005", "8000" } },
  ["80F7"] = { "hardware scheduler", "gpu", { "8008", "8003", "8009" } },
  ["80C9"] = { "AI core", "gpu", { "8000", "8001", "8002", "8003", "8008", "8009", "800A" } },
  ["80CB"] = { "vector core", "gpu", { "8000", "8001", "8002", "8008", "8009", "800A" } },
  ["80A1"] = { "control CPU", "gpu", { "8005", "8008" } },
  ["80A3"] = { "L3 data cache", "gpu", { "8003", "8008" } },
  ["80A5"] = { "L3 tag cache", "gpu", { "8003", "8008" } },
  ["80A8"] = { "chip bus", "gpu", { "4E00" } },
  ["80AD"] = { "interrupt controller", "gpu", { "8009" } },
  ["80B1"] = { "memory node", "gpu", { "8009" } },
  ["80B5"] = { "I/O bridge", "gpu", { "8000" } },
  ["80B7"] = { "system cache", "gpu", { "8000", "8005", "8009" } },
  ["80CD"] = { "L2 buffer", "gpu_memory", { "8003", "8008" } },
  ["80CF"] = { "copy engine", "gpu", { "8000", "8003", "8008", "8009" } },
  ["80E1"] = { "HBM controller", "gpu_memory", { "8000", "8005", "8008", "800A" } },
  ["80F3"] = { "HBM agent", "gpu_memory", { "8000", "8003", "8008", "8009" } },
  ["80DF"] = { "DDR controller", "gpu_memory", { "8000", "8008", "8009", "800A" } },
  ["80F1"] = { "DDR agent", "gpu_memory", { "8000", "8008" } },
  ["80E2"] = { "power manager", "gpu", { "4E00" } },
  ["80E3"] = { "power manager", "gpu", { "8008", "8009" } },
  ["80E4"] = { "security module", "gpu", { "4E00" } },
  ["80E5"] = { "security module", "gpu", { "8008" } },
  ["80E7"] = { "trusted environment", "gpu", { "8000", "8008" } },
  ["81A4"] = { "management unit", "gpu", { "4E00" } },
  ["80B9"] = { "PCIe", "pcie", { "8000", "8008" } },
  ["8107"] = { "network port", "network", { "8603", "8605", "8008", "800D" } },
  ["80BD"] = { "network adapter", "network", { "8000", "8003", "8008", "8009" } },
  ["80BB"] = { "RoCE engine", "network", { "8000", "8003", "8008", "8009", "800A" } },
  ["81AB"] = { "HCCS network engine", "nvlink", { "8000", "8008" } },
  ["81AD"] = { "HCCS network port", "nvlink", { "8605" } },
  ["81A3"] = { "HCCS port", "nvlink", { "8605" } },
  ["819B"] = { "HCCS link", "nvlink", { "8003" } },
  ["81AE"] = { "UB engine", "nvlink", { "4E00" } },
  ["81AF"] = { "UB engine", "nvlink", { "8000", "8004", "8008", "8009" } },
  ["81B1"] = { "UB port", "nvlink", { "8603", "8605", "8008", "800D" } },
  ["81B3"] = { "collective unit", "gpu", { "8000", "8004", "8008", "8009" } },
  ["8131"] = { "random-number unit", "gpu", { "8008" } },
  ["80D3"] = { "JPEG decoder", "gpu", { "8001", "8009" } },
  ["80D5"] = { "JPEG encoder", "gpu", { "8000", "8001", "8009" } },
  ["80D9"] = { "video decoder", "gpu", { "8008" } },
  ["80DB"] = { "video encoder", "gpu", { "8000", "800A" } },
  ["80DD"] = { "vision unit", "gpu", { "8000", "8001", "8003", "8008" } },
  -- dispatchers and bus agents, the chip's inner roads
  ["8133"] = { "scheduler dispatch", "gpu", { "8002", "8004", "8008" } },
  ["813B"] = { "AI core dispatch", "gpu", { "8002", "8004", "8008" } },
  ["8147"] = { "media dispatch", "gpu", { "8002", "8004", "8008" } },
  ["8157"] = { "always-on dispatch", "gpu", { "8002", "8008" } },
  ["815F"] = { "peripheral dispatch", "gpu", { "8002", "8004", "8008" } },
  ["816F"] = { "I/O dispatch", "gpu", { "8002", "8004" } },
  ["8193"] = { "random-number dispatch", "gpu", { "8002", "8008" } },
  ["8195"] = { "network dispatch", "network", { "8002", "8008" } },
  ["8197"] = { "PCIe dispatch", "pcie", { "8002", "8008" } },
  ["81B5"] = { "UB dispatch", "nvlink", { "8002", "8004" } },
  ["8135"] = { "scheduler bus agent", "gpu", { "8009" } },
  ["813D"] = { "AI core bus agent", "gpu", { "8009" } },
  ["8149"] = { "media bus agent", "gpu", { "8009" } },
  ["8161"] = { "peripheral bus agent", "gpu", { "8009" } },
  ["8171"] = { "I/O bus agent", "gpu", { "8009" } },
  ["81B7"] = { "UB bus agent", "nvlink", { "8005" } },
}

local replace = "Take the NPU out of service and reset it; have the board replaced if the event returns."
local cable = "Check optical module, cable and switch port of this NPU (hccn_tool -optical, -link, -lldp)."
local kinds = {
  ["8000"] = { "fault", "fatal", replace },
  ["8001"] = { "could not be reset", "fatal", replace },
  ["8002"] = { "got wrong input", "error", replace },
  ["8003"] = { "is configured wrongly by its software", "error", "Update driver and firmware; reset the NPU.",
    "platform" },
  ["8004"] = { "is configured wrongly by its software", "error", "Update driver and firmware; reset the NPU.",
    "platform" },
  ["8005"] = { "parity error", "fatal", replace },
  ["8008"] = { "multi-bit ECC error", "fatal", replace },
  ["8009"] = { "bus error", "error",
    "Restart the job; reset the NPU if it returns, and look for an operator that reaches out of its " ..
      "memory." },
  ["800A"] = { "timeout", "error", replace },
  ["800D"] = { "port abnormal", "fatal", cable },
  ["8603"] = { "link went down", "fatal", cable },
  ["8605"] = { "lost part of its lanes", "error", cable },
  ["4E00"] = { "heartbeat lost", "fatal",
    "Reset the NPU or reboot the host; update firmware if it returns." },
}

local function event(code, row)
  local low = string.lower(code)
  rule {
    id = "ascend.event." .. low, engine = 1, restart = row.restart or "elsewhere",
    title = "NPU " .. row.title, source = { "log", "kernel" },
    category = row.category or "hardware", component = row.component, severity = row.severity,
      remedy = row.remedy,
    action = row.action or (row.severity == "fatal" and "isolate" or row.severity == "error" and "check" or
      "none"),
    match = { regex = { [[(?i)\bevent[ _]?id(?:=|: *\[?)0x]] .. low .. [[\b]],
      [[(?i)fault ?codes?\W{1,5}(?:0x)?]] .. low .. [[\b]] } },
    examples = {
      hit = { "[ERROR] devmng: Node Type=0x70; Event id=0x" .. low .. " reported",
        "fault event_id:  [0x" .. low .. "]", "faultCode:0x" .. code },
      miss = { "Event id=0x" .. low .. "7 reported", "event_id: [0x00000000]" },
    },
  }
end

for unit, row in pairs(units) do
  for _, kind in ipairs(row[3]) do
    local what = kinds[kind]
    event(unit .. kind, { title = row[1] .. ": " .. what[1], component = row[2], severity = what[2],
      remedy = what[3], category = what[4], restart = what[4] == "platform" and "same" or nil })
  end
end

-- Codes that follow no scheme.
local cool = "Check cooling of the host; the NPU slows down or stops."
local others = {
  ["80E18400"] = { "HBM: a process met a multi-bit ECC error", "gpu_memory", "fatal", replace },
  ["80E01801"] = { "HBM: multi-bit ECC error", "gpu_memory", "fatal", replace },
  ["80E01809"] = { "HBM: multi-bit ECC error found by the patrol", "gpu_memory", "error", replace },
  ["80E18401"] = { "HBM: many rows of one stack are isolated", "gpu_memory", "error", replace },
  ["80E18402"] = { "HBM: as many rows are isolated as can be", "gpu_memory", "fatal", replace },
  ["80E18404"] = { "HBM: storm of uncorrectable errors", "gpu_memory", "fatal", replace },
  ["80DE1801"] = { "DDR: multi-bit ECC error", "gpu_memory", "fatal", replace },
  ["80DE1803"] = { "DDR: uncorrectable error found by the patrol", "gpu_memory", "error", replace },
  ["80DF8400"] = { "DDR: a process met a multi-bit ECC error", "gpu_memory", "fatal", replace },
  ["80DF8402"] = { "DDR: as many addresses are isolated as can be", "gpu_memory", "fatal", replace },
  ["80F2180D"] = { "HBM agent: mirror error", "gpu_memory", "fatal", replace },
  ["80E0020B"] = { "HBM: fatal temperature", "gpu", "fatal", cool },
  ["80E00209"] = { "HBM: high temperature", "gpu", "warning", cool },
  ["80E20207"] = { "chip: high temperature", "gpu", "warning", cool },
  ["80DE0207"] = { "DDR: high temperature", "gpu", "warning", cool },
  ["80E21007"] = { "main supply: overcurrent", "gpu", "error", replace },
  ["80E21008"] = { "overcurrent control abnormal", "gpu", "error", replace },
  ["80E2120D"] = { "power bus alert", "gpu", "error", replace },
  ["80E39200"] = { "temperature sensor fault", "gpu", "error", replace },
  ["80E3A201"] = { "voltage control fault", "gpu", "error", replace },
  ["80E3A202"] = { "frequency control fault", "gpu", "error", replace },
  ["80E3A203"] = { "current sensor fault", "gpu", "error", replace },
  ["80E3A207"] = { "power manager: event report fault", "gpu", "error", replace },
  ["80818C00"] = { "computes wrong results in a self test", "gpu", "fatal",
    "Isolate the NPU at once; distrust results since its last good test and roll back." },
  ["80818C05"] = { "computes wrong results (high risk)", "gpu", "fatal",
    "Isolate the NPU at once; distrust results since its last good test and roll back." },
  ["80818C06"] = { "may compute wrong results (low risk)", "gpu", "error",
    "Run the vendor's stress test on this NPU before the next long job." },
  ["80F7860C"] = { "hardware scheduler: channel fault", "gpu", "fatal", replace },
  ["80F78C02"] = { "hardware scheduler: queue stuck", "gpu", "error", replace },
  ["80F78C03"] = { "hardware scheduler: queue deadlock", "gpu", "error", replace },
  ["80F78C04"] = { "hardware scheduler: copy channel deadlock", "gpu", "error", replace },
  ["80DD8007"] = { "vision unit: uncorrectable bit error", "gpu", "error", replace },
  ["80E58E02"] = { "security module: cipher fault", "gpu", "error", replace },
  ["80E58E03"] = { "security module: key fault", "gpu", "error", replace },
  ["80E58E05"] = { "security module: attack detected", "gpu", "error", replace },
  ["40F84E00"] = { "heartbeat between board and host lost", "gpu", "fatal",
    "Power-cycle the host; reseat or replace the board." },
  ["8C2FA001"] = { "system memory nearly used up", "host_memory", "error",
    "Find the process that uses the device's system memory.", "user", restart = "same" },
  ["8C2FA009"] = { "chip start-up finished", "gpu", "info", "None.", restart = "same" },
  ["8C204E00"] = { "task scheduler daemon does not answer", "driver", "error",
    "Reset the NPU or reboot the host.", "platform" },
  ["8C124E00"] = { "host-device channel daemon does not answer", "driver", "error",
    "Reset the NPU or reboot the host.", "platform" },
  ["8C1FA006"] = { "communication process left resources behind", "driver", "error",
    "Reset the NPU before the next job.", "platform" },
}
for code, row in pairs(others) do
  event(code, { title = row[1], component = row[2], severity = row[3], remedy = row[4], category = row[5],
    restart = row.restart })
end
-- Daemons on the device that restart by themselves, or whose left-overs the next reset clears.
for _, code in ipairs({ "8C084E00", "8C064E00", "8C03A000", "8C104E00", "8C0C4E00", "8C0E4E00", "8C0A4E00",
  "8C044E00", "8C464E00",
  "8C19A005", "8C1DA005", "8C17A005" }) do
  event(code, { title = "service process fault", component = "driver", category = "platform",
    severity = "warning", restart = "same",
    remedy = "Reset the NPU at the next chance if it repeats.", action = "check" })
end
