-- NVSwitch errors (SXid). The kernel line, the fabric manager's line and DCGM's carry the same number.
-- The class decides: an always-fatal error takes the whole fabric down, a port-fatal one the jobs on that
-- port,
-- the others are logged and survived. The line's own word wins over the class where it is there.

local classes = {
  { name = "fabric", severity = "fatal", action = "isolate", word = "Fatal",
    remedy = "Drain the host; reset all GPUs and NVSwitches, replace the baseboard if it returns.",
    numbers = {
      [10003] = "unhandled host interrupt", [12020] = "egress sequence number wrong",
      [22003] = "link micro-controller halted", [22011] = "link micro-controller external error",
      [23001] = "ingress buffer overflow", [23002] = "ingress buffer underflow",
        [23003] = "egress credit overflow",
      [23004] = "egress credit underflow", [23005] = "ingress burst error", [23006] = "ingress sticky error",
      [23007] = "gaps at ingress", [23008] = "packet for a destination that does not exist",
        [23009] = "ingress parity error",
      [23010] = "ingress buffer overflow", [23011] = "ingress buffer underflow",
        [23012] = "egress credit overflow",
      [23013] = "egress credit underflow", [23014] = "ingress burst error", [23015] = "ingress sticky error",
      [23016] = "gaps at ingress", [23017] = "ingress credit parity error",
    } },
  { name = "port", severity = "fatal", action = "isolate", word = "Fatal",
    remedy = "Drain the host; reset the GPUs on this port and check the link; inspect the hardware if it " ..
      "returns.",
    numbers = {
      [11001] = "ingress command invalid", [11009] = "ingress channel set invalid",
        [11013] = "ingress header corrupt",
      [11018] = "routing table corrupt", [11019] = "routing lane table corrupt",
        [11020] = "ingress control parity",
      [12001] = "egress crossbar overflow", [12002] = "egress route wrong",
        [12022] = "egress input memory corrupt",
      [12024] = "egress output memory corrupt", [12025] = "egress credit overflow",
        [12026] = "egress request id wrong",
      [12027] = "egress response id wrong", [12031] = "egress credit parity",
        [12032] = "egress flit type wrong",
      [14017] = "multicast timeout", [15001] = "route buffer over- or underflow",
        [15006] = "route credit over- or underflow",
      [15009] = "route table corrupt", [15010] = "route parity", [15012] = "route input corrupt",
        [15013] = "route credit parity",
      [19047] = "header memory corrupt", [19048] = "data memory corrupt", [19054] = "header memory corrupt",
      [19056] = "data memory 0 corrupt", [19058] = "data memory 1 corrupt",
        [19060] = "request header memory corrupt",
      [19061] = "request data memory corrupt", [19063] = "response header memory corrupt",
        [19064] = "response data memory corrupt",
      [19066] = "common header memory corrupt", [19067] = "common data memory corrupt",
        [19069] = "response header memory corrupt",
      [19070] = "response data memory corrupt", [20034] = "link fell out of training",
        [22012] = "link went away",
      [24004] = "request tracking memory corrupt", [24005] = "request tracking memory corrupt",
      [24006] = "request tracking memory corrupt", [24007] = "request was never answered",
    } },
  -- Logged as survived, but the catalogue asks for a reset or reboot of the host all the same.
  { name = "serious", severity = "error", action = "check", word = "Non-fatal",
    remedy = "Check fabric partitions and guests, then reset the GPUs and NVSwitches of this host when it " ..
      "is free.",
    numbers = { [11004] = "access to a route that is not allowed",
      [12028] = "privileged request refused at egress",
      [19084] = "heartbeat of the accumulation unit lost" } },
  { name = "noise", severity = "warning", action = "none", restart = "same", word = "Non-fatal",
    remedy = "None; watch the count of this link.",
    numbers = {
      [10001] = "host access error", [10002] = "host access timeout", [10004] = "switch too hot",
        [10005] = "switch cooled down",
      [11012] = "corrected bit", [11021] = "corrected bit", [11022] = "corrected bit",
        [11023] = "corrected bit",
      [12021] = "corrected bit", [12023] = "corrected bit", [12030] = "egress control parity",
        [15008] = "corrected bit",
      [15011] = "corrected bit", [19049] = "corrected bit", [19055] = "corrected bit",
        [19057] = "corrected bit",
      [19059] = "corrected bit", [19062] = "corrected bit", [19065] = "corrected bit",
        [19068] = "corrected bit",
      [19071] = "corrected bit", [20001] = "packet sent again", [20009] = "short error rate",
        [20012] = "link inconsistent",
      [22013] = "link request interrupt", [24001] = "corrected bit", [24002] = "corrected bit",
        [24003] = "corrected bit",
    } },
}

for _, class in ipairs(classes) do
  for number, what in pairs(class.numbers) do
    rule {
      id = "nvidia.sxid." .. number, engine = 1, restart = class.restart or "elsewhere",
      title = "NVSwitch: " .. what, source = { "kernel", "log" },
      category = "hardware", component = "nvlink", severity = class.severity, action = class.action,
        remedy = class.remedy,
      match = { regex = {
        [[SXid \(PCI:(?P<pci>[0-9A-Fa-f:.]+)\): ]] .. number .. [[\b]],
        [[NVSwitch (?:non-)?fatal error ]] .. number .. [[ on(?:.* pci bus id (?P<pci2>[0-9A-Fa-f:.]+))?]],
        [[fatal NvSwitch SXID ]] .. number .. [[\b]],
      } },
      examples = {
        hit = { "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): " .. number .. ", " .. class.word .. ", Link 46",
          "[ERROR] [tid 12] detected NVSwitch fatal error " .. number .. " on fid 0 on NVSwitch pci bus " ..
            "id 00000000:86:00.0 port 6" },
        miss = { "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 9" .. number .. ", Link 46",
          "nvidia-nvswitch3: open (major=511)" },
      },
    }
  end
end

rule {
  id = "nvidia.sxid.fatal", restart = "elsewhere", engine = 1, title = "Fatal NVSwitch error", general = true,
  category = "hardware", component = "nvlink", severity = "fatal", action = "isolate",
  match = { regex = {
    [[SXid \(PCI:(?P<pci>[0-9A-Fa-f:.]+)\): \d+, Fatal\b]], [[detected NVSwitch fatal error \d+]],
    [[Detected fatal (?:errors on NvSwitch|NvSwitch SXID)]],
  } },
  remedy = "Drain the host; reset all GPUs and NVSwitches and look the number up in the fabric manager's " ..
    "guide.",
  examples = {
    hit = { "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28007, Fatal, Link 12 MC TS timeout",
      "Detected fatal errors on NvSwitch 3 link 12" },
    miss = { "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46 MC TS crumbstore MCTO " ..
      "(First)" },
  },
}
rule {
  id = "nvidia.sxid.nonfatal", restart = "elsewhere",
  engine = 1, title = "NVSwitch error that was survived", general = true,
  category = "hardware", component = "nvlink", severity = "warning", action = "check",
  match = { regex = { [[SXid \(PCI:(?P<pci>[0-9A-Fa-f:.]+)\): \d+, Non-fatal\b]],
    [[detected NVSwitch non-fatal error \d+]],
    [[Detected nonfatal errors on NvSwitch]] } },
  remedy = "Watch the count of this link.",
  examples = { hit = { "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28006, Non-fatal, Link 46" },
    miss = { "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 28007, Fatal, Link 12" } },
}
