-- Links that several hosts lose at once: what they share is at fault, a switch, its power or its maintenance.

local nic = [[(?P<nic>\b(?:eth|en[opsxP]|em|ib|hsn|rdma|slot|roce|np|mlx5_)\w*)]]

rule {
  id = "network.several_hosts", restart = "later",
  engine = 1, title = "Links of several hosts go down at once: what they share",
  category = "hardware", component = "network", severity = "error", symptom = "hang", action = "check",
  blames = "job", source = { "kernel", "log" },
  match = { regex = { nic .. [[(?: \S+)?: (?:NIC )?[Ll]ink (?:is )?[Dd]own]], nic .. [[: [Ll]ost ]] ..
    [[carrier]] } },
  window = { by = "job", span = "60s", at_least = 3 },
  when = function(_, window) return window.hosts >= 3 end,
  remedy = "Look at the switch above these hosts, its power and its planned work, before any single cable.",
  examples = {
    hit = { "Nov 21 02:12:01 node-3 kernel: mlx5_core 0000:5c:00.0 eth2: Link down\nNov 21 02:12:03 " ..
      "node-4 " ..
      "kernel: mlx5_core 0000:5c:00.0 eth2: Link down\nNov 21 02:12:04 node-5 kernel: mlx5_core " ..
      "0000:5c:00.0 eth2: Link down" },
    miss = { "Nov 21 02:12:01 node-3 kernel: mlx5_core 0000:5c:00.0 eth2: Link down\nNov 21 02:12:03 " ..
      "node-3 " ..
      "kernel: mlx5_core 0000:5d:00.0 eth3: Link down\nNov 21 02:12:04 node-5 kernel: mlx5_core " ..
      "0000:5c:00.0 eth2: Link down",
      "Nov 21 02:12:01 node-3 kernel: mlx5_core 0000:5c:00.0 eth2: Link down\nNov 21 02:14:03 node-4 " ..
      "kernel: mlx5_core 0000:5c:00.0 eth2: Link down\nNov 21 02:16:04 node-5 kernel: mlx5_core " ..
      "0000:5c:00.0 eth2: Link down" },
  },
}
