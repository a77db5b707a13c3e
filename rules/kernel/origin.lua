-- What a driver reports as an error into the kernel's log, where no rule knows the message: its name tells
-- the part of the machine, its words stand in the headline. Below an error: a driver also reports what it
-- mends.

local function origin(row)
  rule {
    id = "kernel.origin." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title .. ": <text>", says = "origin",
    source = { "kernel", "log" }, category = row.category, component = row.component,
    severity = row.severity or "error", match = { regex = row.regex, except = row.except },
      remedy = row.remedy,
    action = "check", examples = { hit = row.hit, miss = row.miss },
  }
end

local fails = [[(?i:\b(?:error|fail(?:ed|ure|s)?|fatal|time[d-]? ?out|unable|cannot|could not|lost|]] ..
  [[dead|stuck|not responding|unrecoverable|uncorrectable|assert(?:ion)?)\b|\*ERROR\*)]]
local mild = { [[(?i)\bcorrect(?:able|ed)\b|\b(?:dereg|destroy|detach|remov|unload|teardown)|retry|]] ..
  [[recovered|succeeded|no error|not supported|deprecated|firmware bug|\bACPI\b|module verification|]] ..
    [[tainting|try again|non-?fatal|fall ?back|benchmark|checksum error|copy (?:udata|response)|]] ..
      [[handshake failed]] }

local rows = {
  { "amdgpu", "AMD driver reports a fault", "hardware", "gpu", [[\b(?:amdgpu|amdkfd|kfd kfd)\b]],
    "amdgpu 0000:c1:00.0: amdgpu: psp gfx command LOAD_TA(0x1) failed and response status is (0x0)",
    "amdgpu 0000:c1:00.0: amdgpu: SMU is initialized successfully!" },
  { "habanalabs", "Gaudi driver reports a fault", "hardware", "gpu", [[\bhabanalabs\b]],
    "habanalabs hl3: 0000:4d:00.0: Failed to reset the device, state is 3",
    "habanalabs hl3: 0000:4d:00.0: Successfully added device to the driver" },
  { "ascend", "Ascend driver reports a fault", "hardware", "gpu",
    [=[\[(?:ascend|drv_\w+|devmm|hisi_?\w*)\]]=],
    "[ascend] [drv_pcie] [ERROR] device 3 link lost", "[ascend] [drv_pcie] [INFO] device 3 online" },
  { "mlx5", "Mellanox driver reports a fault", "platform", "network", [[\bmlx[45]_(?:core|ib|en)\b]],
    "mlx5_core 0000:9f:00.1: mlx5_load_one:1102: Failed to alloc IRQs",
    "mlx5_core 0000:9f:00.1: firmware version: 28.39.1002" },
  { "efa", "EFA driver reports a fault", "platform", "network", [[\befa [0-9a-f:.]+:]],
    "efa 0000:9f:19.0: Cannot reset the device, state is unknown",
    "efa 0000:9f:19.0: Setup irq:92 name:efa-mgmnt@pci:0000:9f:19.0" },
  { "ethernet", "Network driver reports a fault", "platform", "network",
    -- Short names end many words; with a PCI domain behind them they do not.
    [[\b(?:(?:ixgbe|i40e|bnxt_en|bnxt_re|irdma|cxgb4|hns3|qede|be2net|e1000e|mana|cxi_\w+|]] ..
      [[hfi1) (?:\d{4}:[0-9a-f:.]+|hfi1_\d|\w+\d)|(?:ena|ice|gve|tg3|igb) 000[0-9a-f]:[0-9a-f:.]+)\b]],
    "bnxt_en 0000:17:00.0 eth0: Error (timeout: 5000) waiting for completion",
      "bnxt_en 0000:17:00.0 eth0: NIC Link is Up" },
  { "nvidia", "NVIDIA driver reports a fault", "platform", "driver",
    [[\b(?:NVRM: (?:GPU\d+ )?\w+:|nvidia-uvm: |nvidia-nvswitch\d+: |nvidia-nvlink: |]] ..
      [[NVRM: GPU [0-9a-f:.]+: )]],
    "NVRM: kchannelAllocMem_GM107: Unable to get instance memory info!",
    "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15" },
  { "nvme", "Disk reports a fault", "hardware", "storage", [[\bnvme nvme\d+:]],
    "nvme nvme2: Identify namespace failed (-5)", "nvme nvme2: 32/0/0 default/read/poll queues" },
}
origin {
  id = "lustre", restart = "later", title = "Lustre reports a fault",
  category = "platform", component = "storage",
  regex = { [[\bLustreError: .*\)\) \S]] }, except = mild,
  remedy = "Look at the servers and the network of this file system; other clients report the same if " ..
    "it is theirs.",
  hit = { "LustreError: 233:0:(udsp.c:745:lnet_udsp_apply_single_policy()) Bad UDSP policy" },
  miss = { "Lustre: lnew-MDT0000-mdc: Connection restored to 10.0.0.4@o2ib" },
}
for _, row in ipairs(rows) do
  origin {
    id = row[1], title = row[2], category = row[3], component = row[4],
    regex = { row[5] .. [[.*]] .. fails, }, except = mild,
    remedy = "Look at the lines around it; ask the vendor with them if the part fails again.",
    hit = { row[6] }, miss = { row[7] },
  }
end
