-- NVIDIA/Mellanox adapters (mlx4, mlx5): health, firmware, command interface, ports, modules.

local function adapter(row)
  rule {
    id = "network.mlx5." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = row.component or "network",
    severity = row.severity or "fatal", action = row.action or "isolate", general = row.general,
      role = row.role, symptom = row.symptom, recovery = row.recovery,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

adapter {
  id = "health", title = "Network adapter's firmware stopped",
  regex = { [[mlx5_core (?P<pci>\S+):? .*(?:device's health compromised|Health issue observed|health ]] ..
    [[recovery flow aborted|Fatal error \d+ detected)]],
    [[mlx5_core (?P<pci>\S+):? .*(?:handling bad device here|print_health_info.*(?:firmware internal ]] ..
      [[error|unrecoverable hardware error|PCI error))]],
    [[mlx4_core (?P<pci>\S+):? .*(?:Internal error detected|device is going to be reset)]] },
  remedy = "Drain the host; reboot it, update the adapter's firmware, replace the adapter if it stops again.",
  hit = { "mlx5_core 0000:d2:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
    "mlx5_core 0000:0d:00.0: print_health_info:431:(pid 0): Health issue observed, firmware internal " ..
      "error, severity(3) ERROR:" },
  miss = { "mlx5_core 0000:d2:00.0: firmware version: 28.39.1002" },
}
adapter {
  id = "command", title = "Network adapter does not answer the driver's commands",
  regex = { [[mlx5_core (?P<pci>\S+):? .*(?:wait_func|cmd_exec|mlx5_cmd\w*)\S* .*\btimeout\b]],
    [[mlx5_core (?P<pci>\S+):? .*timeout\. Will cause a leak of a command resource]],
    [[mlx4_core (?P<pci>\S+):? .*command 0x\w+ (?:timed out|failed: fw status)]] },
  remedy = "Reboot the host; update or replace the adapter if it repeats.",
  hit = { "mlx5_core 0000:5c:00.0: wait_func:1137:(pid 967): 2RST_QP(0x50a) timeout. Will cause a leak of " ..
    "a command resource" },
  miss = { "mlx5_core 0000:5c:00.0: Rate limit: 127 rates are supported, range: 0Mbps to 97656Mbps" },
}
adapter {
  id = "reset", title = "Network adapter was reset after an error", severity = "error",
  regex = { [[mlx5_core (?P<pci>\S+):? .*(?:mlx5_pci_err_detected|mlx5_error_sw_reset|]] ..
    [[mlx5_fw_fatal_reporter_err_work|mlx5_health_try_recover|enter_error_state)]],
    [[mlx5_core (?P<pci>\S+):? .*(?:sync reset (?:abort|failed)|health_recover)]] },
  remedy = "Drain the host; the PCIe errors or firmware asserts before the line name the reason.",
  hit = { "mlx5_core 0000:5c:00.0: mlx5_pci_err_detected Device state = 1 health sensors: 1 pci_status: " ..
    "1. Enter, pci channel state = 2" },
  miss = { "mlx5_core 0000:5c:00.0: mlx5_pcie_event:301:(pid 88): PCIe slot advertised sufficient power " ..
    "(75W)." },
}
adapter {
  id = "load", title = "Network adapter did not start",
  regex = { [[mlx5_core (?P<pci>\S+):? .*(?:in (?:pre-)?initializing state, aborting|mlx5_load_one ]] ..
    [[failed|mlx5_init_one failed|probe_one.*failed|Failed initializing|Firmware over \d+ MS)]],
    [[mlx5_core: probe of (?P<pci>\S+) failed with error]] },
  remedy = "Power-cycle the host; reflash or replace the adapter.",
  hit = { "mlx5_core 0000:5c:00.0: mlx5_function_setup:1144:(pid 511): Firmware over 120000 MS in " ..
    "pre-initializing state, aborting",
    "mlx5_core: probe of 0000:5c:00.0 failed with error -110" },
  miss = { "mlx5_core 0000:5c:00.0: enabling device (0000 -> 0002)" },
}
adapter {
  id = "module", title = "Cable or transceiver of an adapter failed", severity = "error",
  regex = { [[mlx5_core (?P<pci>\S+):? .*Port module event\[error\]: module \d+, ]],
    [[mlx5_core (?P<pci>\S+):? .*Port module event: module \d+, Cable error]] },
  remedy = "Replace or reseat the cable or transceiver of this port.",
  hit = { "mlx5_core 0000:5c:00.0: mlx5_port_module_event:1131:(pid 0): Port module event[error]: module " ..
    "0, Cable error, High Temperature" },
  miss = { "mlx5_core 0000:5c:00.0: Port module event: module 0, Cable plugged" },
}
-- An unplugged port may simply be unused: it matters only if a job lost its link too.
adapter {
  id = "unplugged", title = "Cable of an adapter was unplugged", severity = "warning", action = "check",
  regex = { [[mlx5_core (?P<pci>\S+):? .*Port module event: module \d+, Cable unplugged]] },
  remedy = "Plug the cable back in if this port is used.",
  hit = { "mlx5_core 0000:5c:00.1: Port module event: module 1, Cable unplugged" },
    miss = { "mlx5_core 0000:5c:00.1: Port module event: module 1, Cable plugged" },
}
adapter {
  id = "link_down", title = "Port of an adapter lost its link", severity = "error", action = "check",
  -- NCCL's retries last longer: see network.ethernet.link_down.
  recovery = { rule = "network.ethernet.link_up", same = "nic", within = "7s" },
  regex = { [[mlx5_core (?P<pci>\S+):? (?P<nic>[\w.]+): (?:Port: \d+ )?Link (?:down|DOWN)]],
    [[mlx5_core (?P<pci>\S+):? .*mlx5_query_port\w* .*\bdown\b]], [[mlx4_en: (?P<nic>\w+): Link Down]] },
  remedy = "Check cable, transceiver and switch port; isolate the host if the link flaps.",
  hit = { "mlx5_core 0000:5c:00.0 eth2: Link down", "mlx5_core 0000:5c:00.0 ibp92s0: Link down" },
    miss = { "mlx5_core 0000:5c:00.0 eth2: Link up" },
}
adapter {
  id = "tx_timeout", title = "Adapter does not send any more", severity = "error", action = "check",
  regex = { [[mlx5_core (?P<pci>\S+):? (?P<nic>\w+): (?:TX timeout (?:detected|on queue)|]] ..
    [[mlx5e_tx_timeout)]] },
  remedy = "Reset or reboot; update firmware if it repeats.",
  hit = { "mlx5_core 0000:5c:00.0 eth2: TX timeout detected" },
    miss = { "mlx5_core 0000:5c:00.0 eth2: Link up" },
}
adapter {
  id = "hot", title = "Network adapter is too hot", severity = "error", action = "check",
  regex = { [[mlx5_core (?P<pci>\S+):? .*High temperature on sensors with bit set]],
    [[mlx5_core (?P<pci>\S+):? .*temp_warn]] },
  remedy = "Check airflow and transceiver temperature of this host.",
  hit = { "mlx5_core 0000:5c:00.0: temp_warn:151:(pid 0): High temperature on sensors with bit set 0 1" },
    miss = { "mlx5_core 0000:5c:00.0: hwmon registered" },
}
-- Vendors call this one benign on many boards: the slot does not announce its power.
adapter {
  id = "slot_power", restart = "same",
  title = "Slot announces less power than the adapter wants", severity = "info",
    action = "none",
  regex = { [[Detected insufficient power on the PCIe slot]] },
  remedy = "None, unless this adapter is slower than its peers.",
  hit = { "mlx5_core 0000:5c:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the " ..
    "PCIe slot (27W)." },
  miss = { "mlx5_core 0000:5c:00.0: PCIe slot advertised sufficient power (75W)." },
}
adapter {
  id = "cqe", restart = "same",
  title = "Adapter reports a failed RDMA work request", severity = "error", action = "check",
    role = "cascade",
  regex = { [[mlx5: \S+: got completion with error]], [[mlx5_ib\S* .*(?:dump_cqe|WC error)]],
    [[infiniband mlx5_\d+: (?:dump_cqe|.*WC error: \d+)]] },
  remedy = "Find the peer of this connection; it left or its link failed.",
  hit = { "mlx5: node-17: got completion with error:",
    "infiniband mlx5_2: dump_cqe:276:(pid 0): dump error cqe" },
    miss = { "mlx5_ib: Mellanox Connect-IB Infiniband driver v5.0-0" },
}
