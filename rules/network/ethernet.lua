-- Ethernet interfaces: lost links, stuck queues, bonds. Virtual interfaces of containers come and go and are
-- left alone.

-- Names of real interfaces and bonds; veth, cali, docker, br-, tap, lo are not among them.
local nic = [[(?P<nic>\b(?:eth|en[opsxP]|em|bond|team|hsn|ens|rdma|p\d+p|slot|roce|np)\w*)]]

-- A line of the kernel at a second, for examples.
local function at(second, text)
  return string.format("Nov 21 02:12:%02d node-3 kernel: %s\n", second, text)
end
local down, up = "mlx5_core 0000:5c:00.0 eth2: Link down", "mlx5_core 0000:5c:00.0 eth2: Link up"

local function ethernet(row)
  rule {
    id = "network.ethernet." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = "network",
    severity = row.severity or "error", action = row.action or "check", general = row.general,
      role = row.role, symptom = row.symptom,
    window = row.window, recovery = row.recovery, when = row.when, source = { "kernel", "log" },
      remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

-- RDMA retries 7 times: for 7.5 s with NCCL_IB_TIMEOUT=18 (the default until NCCL 2.22), for 30 s with 20.
local retries = "7s"

ethernet {
  id = "link_up", restart = "same",
  title = "A network interface has its link again", severity = "info", action = "none",
  regex = { nic .. [[(?: \S+)?: (?:NIC )?[Ll]ink (?:is )?[Uu]p\b]],
    [[(?P<nic>\bib\w+): [Ll]ink (?:is )?[Uu]p\b]], nic .. [[: [Gg]ained carrier]] },
  remedy = "None.",
  hit = { "ixgbe 0000:81:00.0 eth4: NIC Link is Up 10 Gbps, Flow Control: RX/TX",
    "mlx5_core 0000:5c:00.0 eth2: Link up", "systemd-networkd[911]: ens5f0: Gained carrier" },
  miss = { "mlx5_core 0000:5c:00.0 eth2: Link down", "veth9a1: Gained carrier" },
}
ethernet {
  id = "link_down", title = "Network interface lost its link",
  recovery = { rule = "network.ethernet.link_up", same = "nic", within = retries },
  regex = { nic .. [[(?: \S+)?: (?:NIC )?[Ll]ink (?:is )?[Dd]own]],
    nic .. [[: (?:[Ll]ost carrier|carrier lost)]],
    nic .. [[\): state change: activated -> unavailable \(reason 'carrier-changed']] },
  remedy = "Check cable, transceiver and switch port of this interface.",
  hit = { "ixgbe 0000:81:00.0 eth4: NIC Link is Down", "systemd-networkd[911]: ens5f0: Lost carrier",
    "bnxt_en 0000:19:00.0 enp25s0f0np0: NIC Link is Down",
    "cxi_core 0000:21:00.0 hsn0: Link is down",
    at(0, "eth4: NIC Link is Down") .. at(4, "eth5: NIC Link is Up") },
  miss = { at(0, "eth4: NIC Link is Down") .. at(4, "eth4: NIC Link is Up"),
    "ixgbe 0000:81:00.0 eth4: NIC Link is Up 10 Gbps, Flow Control: RX/TX",
    "br-1f: port 2(veth9a1) entered disabled state", "veth9a1: Lost carrier" },
}
ethernet {
  id = "watchdog", title = "A transmit queue of the adapter is stuck", action = "isolate",
  regex = { [[NETDEV WATCHDOG: ]] .. nic .. [[.*(?:transmit queue \d+ timed out|CPU: \d+: transmit queue)]],
    nic .. [[: (?:Tx timeout|TX timeout|tx_timeout|Detected Tx Unit Hang)]] },
  remedy = "Reboot the host; update the adapter's firmware or replace it.",
  hit = { "NETDEV WATCHDOG: eth0 (i40e): transmit queue 3 timed out",
    "NETDEV WATCHDOG: enp25s0f0 (bnxt_en): transmit queue 5 timed out 5012 ms" },
  miss = { "eth0: registered NETDEV" },
}
ethernet {
  id = "reset", title = "Network adapter reset itself",
  regex = { nic .. [[: (?:Reset adapter|Resetting? (?:the )?adapter|Adapter reset|Hardware error ]] ..
    [[detected|Error in firmware|firmware (?:fatal|crash))]],
    [[(?:i40e|ice|ixgbe|bnxt_en|qede|ena|gve|cxi_core) \S+(?: \S+)?: (?:Firmware not responding|FW ]] ..
      [[(?:fatal|not responding)|Error recovery failed|PF reset failed|Device reset (?:request )?failed|]] ..
      [[Trigger reset is on|Reset failed)]] },
  remedy = "Update firmware and driver; replace the adapter if it repeats.",
  hit = { "ixgbe 0000:81:00.0 eth4: Reset adapter",
    "bnxt_en 0000:19:00.0 eth1: Firmware not responding, status: 0x0",
    "ena 0000:00:05.0: Trigger reset is on" },
  miss = { "ice 0000:81:00.0: The DDP package was successfully loaded" },
}
ethernet {
  id = "bond_down", title = "A bond runs without any active interface", severity = "fatal",
  regex = { [[(?P<nic>\b\w*bond\w*): now running without any active interface]],
    [[(?P<nic>\bteam\w*): no active ports]] },
  remedy = "Check both links of the bond and the switches above them.",
  hit = { "bond0: now running without any active interface!" },
    miss = { "bond0: (slave eth1): making interface the new active one" },
}
ethernet {
  id = "bond_slave", title = "One interface of a bond failed", severity = "warning",
  regex = { [[(?P<nic>\b\w*bond\w*): .*link status definitely down]] },
  remedy = "Check cable and switch port of this interface; the bond still runs.",
  hit = { "bond0: (slave eth1): link status definitely down, disabling slave",
    "bond0: link status definitely down for interface eth1, disabling it" },
  miss = { "bond0: (slave eth1): link status definitely up, 25000 Mbps full duplex" },
}
ethernet {
  id = "duplicate_address", title = "Another host uses the same address", category = "platform",
    action = "fix",
  regex = { [[(?i)duplicate address (?:detected|use detected)]],
    [[IPv6: .*: IPv6 duplicate address .* detected]], [[(?i)ARP: .*is using my IP address]] },
  remedy = "Give the two hosts different addresses.",
  hit = { "IPv6: eth0: IPv6 duplicate address fe80::a00:27ff:fe4e:66a1 detected!" },
    miss = { "eth0: no IPv6 routers present" },
}
ethernet {
  id = "degraded", title = "Network interface came up slower than it could", severity = "warning",
    symptom = "slowdown",
  regex = { nic .. [[: .*(?:[Ll]ink speed (?:downgraded|degraded|reduced)|Downshift occurred)]],
    [[(?i)(?:network|nic|link) .{0,30}speed \d+\S* .{0,20}(?:is )?(?:lower|less|slower) than expected]] },
  remedy = "Check cable and transceiver.",
  hit = { "e1000e 0000:00:1f.6 eno1: Link Speed was downgraded by SmartSpeed: Downshift occurred",
    "NIC link speed 100Gb/s is lower than expected 400Gb/s" },
  miss = { "eno1: NIC Link is Up 1000 Mbps Full Duplex" },
}
-- Three losses of one port in ten minutes are a flapping link, and two that last longer than NCCL waits.
ethernet {
  id = "flap", title = "A network link flaps", action = "isolate",
  window = { by = "host", same = "nic", span = "600s", at_least = 2 },
  recovery = { rule = "network.ethernet.link_up", same = "nic" },
  when = function(_, window) return window.count >= 3 or window.down_ns >= 30000000000 end,
  regex = { nic .. [[(?: \S+)?: (?:NIC )?[Ll]ink (?:is )?[Dd]own]], [[(?P<nic>\bib\w+): [Ll]ink down]] },
  remedy = "Isolate the host; replace cable or transceiver, then look at the switch port.",
  hit = { at(0, down) .. at(30, down) .. at(50, down), at(0, down) .. at(40, up) .. at(50, down) },
  miss = { up, at(0, down) .. at(3, up) .. at(50, down),
    at(0, down) .. at(1, "mlx5_core 0000:5d:00.0 eth3: Link down") ..
      at(2, "mlx5_core 0000:5e:00.0 eth4: Link down") },
}
