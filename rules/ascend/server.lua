-- Messages of Ascend hosts without NPU event codes: the driver's text, hccn_tool, and alarms of the
-- management controller.

local function host(row)
  rule {
    id = "ascend." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = row.component,
    severity = row.severity or "fatal", action = row.action or "isolate", role = row.role,
      general = row.general, symptom = row.symptom,
    source = { "log", "kernel" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

host {
  id = "heartbeat", title = "NPU lost its heartbeat to the host", component = "gpu",
  regex = { [[\b[Dd]evice\[(?P<device>\d+)\] lost heartb(?:ea|ear)t]], [[\breason=lost heartbeat\b]],
    [[[Dd]evice lost heartb(?:ea|ear)t]], [[[Dd]evice ?\d+ heart ?beat (?:lost|is lost)]],
    [[(?i)devdrv\S*.*heart ?beat .{0,30}(?:lost|timeout|abnormal)]], [[pcivnic_\w+.*device .* is dead]],
    [[devdrv_sync_non_trans_msg_send.*Device is abnormal]] },
  remedy = "Reset the NPU or power-cycle the host; replace the board if it returns.",
  hit = { "[ERROR] DRV(2211,python): Device lost heartbeat, device_id=3", "Device lost heartbeart",
    "Device[1] lost heartbeat.[FUNC:SyncTask][FILE:direct_hwts_engine.cc][LINE:407]",
    "rtDeviceSynchronizeWithTimeout execution failed, reason=lost heartbeat" },
    miss = { "device heartbeat ok" },
}
host {
  id = "link_down", title = "Network port of an NPU is down", component = "network",
  regex = { [[(?i)\bnpu\b.{0,40}(?:link(?: status)?|port)\W{1,3}(?:is )?down]], [[^ *link status: DOWN]],
    [[ra hdc message process failed ret\(-67\)]],
    [[(?i)net(?:work)? ?health(?: status)?: (?:Socket fail|Receive timeout|Unreachable|Time exceeded|]] ..
      [[Fault|Init)]] },
  remedy = "Check optical module, cable and switch port of this NPU (hccn_tool -optical, -link, -lldp).",
  hit = { "link status: DOWN", "[ERROR] HCCP(811,hccp_service.bin): ra hdc message process failed ret(-67)" },
    miss = { "link status: UP", "net health status: Success" },
}
host {
  id = "pcie_msg", title = "Host and NPU cannot exchange messages over PCIe", component = "pcie",
    severity = "error", action = "check",
  regex = { [[devdrv_\w+.*(?:Device irq not resp|no resp\b|DMA (?:timeout|channel wait timeout)|Dma copy ]] ..
    [[failed)]],
    [[hdcdrv_connect.*pcie not ready]] },
  remedy = "Reset the NPU; check the PCIe link of this slot if it returns.",
  hit = { "devdrv_dma_chan_sync_wait_query: DMA channel wait timeout",
    "devdrv_sync_non_trans_msg_chan_send: Device irq not resp" }, miss = { "devdrv_dma_chan init ok" },
}
host {
  id = "hbm_text", title = "NPU memory has uncorrectable errors", component = "gpu_memory",
  regex = { [[\b(?:HBM )?MULTI[ -]?BIT ECC ERROR\b]],
    [[(?:NPU function error: |throw |happened.*)?\bUCE ERROR\b]], [[SUSPECT MEM ERROR]],
    [[(?i)hbm (?:double|multi)[ -]bit ecc (?:error )?(?:isolated )?.{0,20}exceed]] },
  remedy = "Isolate the NPU, reset it, and restart from the last checkpoint; replace the board when rows " ..
    "keep failing.",
  hit = { "RuntimeError: NPU function error: HBM MULTI BIT ECC ERROR, error code is 507054",
    "RuntimeError: synchronize: NPU function error: UCE ERROR, error code is 507053" },
  miss = { "HBM Double Bit Error Count : 0" },
}
host {
  id = "hccs_link", title = "Link between NPUs of a host failed", component = "nvlink",
  regex = { [[HCCS LINK ERROR]],
    [[(?i)hccs .{0,40}(?:link (?:is )?(?:down|abnormal)|lane .* (?:down|fault)|health status: (?:Warning|]] ..
      [[Critical))]] },
  remedy = "Isolate the host; check the HCCS status of all its NPUs.",
  hit = { "RuntimeError: NPU function error: HCCS LINK ERROR, error code is 507056" },
    miss = { "HCCS health status: OK" },
}
host {
  id = "dcmi", title = "NPU driver interface cannot be used", category = "platform", component = "driver",
    severity = "error", action = "fix",
  regex = { [[dcmi (?:module )?(?:initialize|init) failed]], [[(?i)init devmanager failed]],
    [[cannot found valid driver lib]], [[drvGetDevNum.*(?:failed|error)]],
    [[libascend_hal\.so: cannot open shared object file]],
      [[libdrvdsmi_host\.so: cannot open shared object file]] },
  remedy = "Install or reload the NPU driver; mount it into the container.",
  hit = { "dcmi module initialize failed. ret is -8005",
    "ImportError: libascend_hal.so: cannot open shared object file: No such file or directory" },
  miss = { "dcmi version: 24.1" },
}
host {
  id = "conn_limit", restart = "same",
  title = "No session to the NPU is left", category = "platform", component = "driver",
    severity = "error", action = "check",
  regex = { [[No (?:avaliable|available) session|No session resources available]] },
  remedy = "End left-over processes on this NPU, then reset it.",
  hit = { "halHdcSessionConnectEx: No avaliable session" }, miss = { "session connected" },
}

host {
  id = "health", title = "NPU reports bad health", component = "gpu", severity = "error", action = "check",
  general = true,
  regex = { [[^\|? ?(?P<device>\d+) +\d*\w*(?:310|910|950)\w* +\| +(?P<state>Critical|Alarm|UN]] ..
    [[AVAIL|Offline)\b]],
    [[^\s*Health(?: Status)?\s+: (?P<state>Critical|Alarm|Abnormal|Fault)\b]],
    [[\b(?:npu|device|dev_id)[ =:]{1,2}(?P<device>\d+)\b.{0,20}\bhealth(?: status)?[ =:]{1,2}(?P<state>a]] ..
      [[larm|critical|abnormal|fault)]] },
  remedy = "Read its event codes (npu-smi info -t health, -t errors); reset it, and replace the board " ..
    "if they return.",
  hit = { "| 3     910B3               | Critical      | 95.1        48                0    / 0         " ..
    "    |",
    "        Health Status                  : Alarm" },
  miss = { "| 3     910B3               | OK            | 95.1        48                0    / 0        " ..
    "     |",
    "        Health Status                  : OK" },
}
host {
  id = "in_use", restart = "same",
  title = "NPU is in use by another process or container", category = "platform",
    component = "driver",
  severity = "error", action = "check",
  regex = { [[because the device is used\. ret is -8020]], [[(?i)\bnpu\b.{0,30}\b(?:is|already) (?:in us]] ..
    [[e|occupied)\b]] },
  remedy = "End the other process (npu-smi info), or pass other devices into this container.",
  hit = { "dcmi model initialized failed, because the device is used. ret is -8020" },
  miss = { "NPU 3 is free" },
}

-- Alarms of the management controller: code -> title, component, severity.
local alarms = {
  ["0000001D"] = { "uncorrectable CPU error", "cpu", "fatal" }, ["2C000031"] = { "fatal error of the server",
    "cpu", "fatal" },
  ["2C000081"] = { "CPU ECC error reset the server", "cpu", "fatal" }, ["0000001F"] = { "CPU core isolated",
    "cpu", "error" },
  ["00000021"] = { "CPU isolated", "cpu", "fatal" }, ["000000D3"] = { "CPU cache way isolated", "cpu",
    "warning" },
  ["00000003"] = { "CPU slows down from heat", "cpu", "warning" }, ["00000099"] = { "CPU voltage too low",
    "cpu", "error" },
  ["2800001F"] = { "link between CPUs abnormal", "cpu", "error" },
    ["28000049"] = { "link between CPUs degraded", "cpu", "error" },
  ["01000017"] = { "uncorrectable memory error", "host_memory", "fatal" },
    ["01000057"] = { "memory does not initialise", "host_memory", "fatal" },
  ["01000059"] = { "memory configuration wrong", "host_memory", "error" },
    ["00000089"] = { "memory voltage unreadable", "host_memory", "warning" },
  ["02000007"] = { "disk fault", "storage", "error" }, ["02000009"] = { "disk fault", "storage", "error" },
  ["0200000B"] = { "RAID array failed", "storage", "error" }, ["02000013"] = { "disk PCIe error", "storage",
    "error" },
  ["0200001F"] = { "disk fails with corrected errors", "storage", "warning" },
    ["02000027"] = { "disk status abnormal", "storage", "error" },
  ["0200002D"] = { "disk lost", "storage", "error" }, ["06000025"] = { "RAID controller lost", "storage",
    "error" },
  ["0800004B"] = { "RAID controller fault", "storage", "error" }, ["08000095"] = { "RAID controller lost",
    "storage", "error" },
  ["05000001"] = { "disk backplane without power", "storage", "error" },
    ["05000005"] = { "disk backplane voltage low", "storage", "error" },
  ["08000001"] = { "PCIe card error", "pcie", "error" }, ["0800005D"] = { "PCIe card fails its self test",
    "pcie", "error" },
  ["0800006F"] = { "PCIe card lost bandwidth", "pcie", "error" }, ["080000F3"] = { "PCIe link slowed down",
    "pcie", "error" },
  ["080000ED"] = { "PCIe card lost its heartbeat", "pcie", "error" },
    ["080000D7"] = { "PCIe card does not start", "pcie", "error" },
  ["08000003"] = { "PCIe card too hot", "pcie", "warning" }, ["0F000011"] = { "riser without power", "pcie",
    "error" },
  ["0D000001"] = { "network card PCIe error", "network", "error" }, ["0D000003"] = { "network card too hot",
    "network", "warning" },
  ["29000001"] = { "network port link down", "network", "error" }, ["2900002F"] = { "network port link down",
    "network", "error" },
  ["080000E7"] = { "network of the PCIe card abnormal", "network", "error" }, ["28000037"] = { "cable fault",
    "nvlink", "error" },
  ["28000053"] = { "cable tray abnormal", "nvlink", "error" },
    ["6200000C"] = { "switch board lost its heartbeat", "network", "fatal" },
  ["62000006"] = { "switch chip in a critical state", "network", "fatal" },
    ["24000007"] = { "CPU board lost its clock", "cpu", "fatal" },
  ["2400000D"] = { "CPU board voltage low", "cpu", "error" }, ["2400000F"] = { "CPU board voltage high",
    "cpu", "error" },
  ["120000CD"] = { "a part is missing", "cpu", "error" },
}
for code, row in pairs(alarms) do
  host {
    id = "bmc." .. string.lower(code), title = "Server alarm: " .. row[1], component = row[2],
      severity = row[3],
    action = row[3] == "fatal" and "isolate" or "check",
    regex = { [[(?i)\bcode\W{1,4}(?:0x)?]] .. code .. [[\b.*\bAsserted\b]] },
    remedy = "Read the alarm in the management controller and replace or reseat the part it names.",
    hit = { "event error code: 0x" .. code .. " level Major status Asserted" },
      miss = { "event error code: 0x" .. code .. " level Major status Deasserted" },
  }
end
