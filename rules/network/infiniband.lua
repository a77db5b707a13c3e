-- InfiniBand and Omni-Path: ports, subnet manager, fabric health checks. What NCCL and UCX say is in
-- rules/nccl and rules/mpi.

local function fabric(row)
  rule {
    id = "network.ib." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = "network",
    severity = row.severity or "error", action = row.action or "isolate", general = row.general,
    says = row.says,
      role = row.role, symptom = row.symptom,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

fabric {
  id = "port_down", title = "InfiniBand port is down",
  regex = { [[(?i)No IB port \S+ is ACTIVE]],
    [[(?i)\b(?:IB|InfiniBand|HCA) (?:port|link) \S* ?(?:is |went |not )(?:down|inactive|not active)]],
    [[(?i)(?:mlx5|hfi1|qib|irdma|bnxt_re|hns)_\w+(?:[:/ ]port ?)?\d* ?(?:is |: |went )(?:down|inactive|]] ..
      [[in state (?:down|init|polling|disabled))\b]],
    [[hfi1_\d: .*(?:Link (?:went down|down reason)|Logical link.*DOWN|physical state changed to ]] ..
      [[.*(?:OFFLINE|DISABLED))]],
    [[(?i)check_hw_ib: .*(?:not active|not found|no .* active)]] },
  remedy = "Check cable, transceiver and switch port of this adapter; drain the host until the port is " ..
    "active.",
  hit = { "nhc: Health check failed: check_hw_ib: No IB port mlx5_ib7:1 is ACTIVE (LinkUp 400 Gb/sec).",
    "IB port mlx5_3/1 is down",
    "hfi1 0000:3b:00.0: hfi1_0: Link went down" },
  miss = { "mlx5_0 port 1 ==> ib0 (Up)", "Port 1: State: Active" },
}
fabric {
  id = "event", title = "InfiniBand adapter raised a port or device error",
  regex = { [[(?i)got async (?:fatal )?event ?: ?(?:port error|local catastrophic error|local work queue ]] ..
    [[catastrophic error)]],
    [[IBV_EVENT_(?:PORT_ERR|DEVICE_FATAL)]], [[ibv_?async.*(?:port error|device fatal)]] },
  remedy = "Check the port's link counters and cable; drain the host.",
  hit = { "NET/IB : mlx5_0:1 Got async event : port error", "received IBV_EVENT_PORT_ERR on mlx5_4 port 1" },
    miss = { "NET/IB : mlx5_0:1 Got async event : GID table change" },
}
fabric {
  id = "transmit", title = "IP over InfiniBand does not get its packets out", action = "check",
  regex = { [[(?P<nic>\bib\w+): (?:transmit timeout|timing out; |queue \d+ stopped)]],
    [[NETDEV WATCHDOG: (?P<nic>ib\w+)]] },
  remedy = "Check the port and the subnet manager; restart the interface.",
  hit = { "ib0: transmit timeout: latency 2048 msecs" },
    miss = { "ib0: mtu > 2044 will cause multicast packet drops." },
}
fabric {
  id = "multicast", restart = "same",
  title = "IP over InfiniBand could not join its group", severity = "warning",
    action = "check", category = "platform",
  regex = { [[(?:ib\w+): (?:multicast join failed for|failed to modify QP|couldn't attach QP)]] },
  remedy = "Check the subnet manager and the partition keys.",
  hit = { "ib0: multicast join failed for ff12:401b:ffff:0000:0000:0000:ffff:ffff, status -110" },
    miss = { "ib0: enabling connected mode will cause multicast packet drops" },
}
fabric {
  id = "subnet_manager", restart = "later",
  title = "Subnet manager of the fabric fails", category = "platform",
    action = "check",
  regex = { [[OpenSM: .*(?:SM.*(?:exiting|port is down)|FATAL)]], [[opensm\S*: .*(?:FATAL|SM port is down)]],
    [[(?i)no (?:active |master )?subnet manager (?:found|detected)]] },
  remedy = "Start or fail over the subnet manager; ports stay in Init without one.",
  hit = { "OpenSM: SM port is down", "no subnet manager found on port 1" },
    miss = { "OpenSM: Entering MASTER state" },
}
fabric {
  id = "errors", title = "Port error counters exceed their limits", action = "check", symptom = "slowdown",
  regex = { [[(?i)(?:SymbolErrorCounter|LinkDownedCounter|LinkErrorRecoveryCounter|PortRcvErrors|]] ..
    [[link_downed|symbol_error\w*|port_rcv_errors|effective_?ber).{0,60}(?:exceed|above|greater than|]] ..
    [[over the|threshold of)]],
    [[(?i)check_ib_(?:link_flapping|errors?)\S*:.{0,80}(?:fail|flap|exceed|error)]],
      [[(?i)IB link flapping detected]] },
  remedy = "Clean or replace cable and transceiver; check the switch's end of the link.",
  hit = { "mlx5_2: link_downed counter 14 exceeds threshold of 1 in 6 hours",
    "check_ib_link_flapping: mlx5_ib3 flapping, multiple flaps in 6 hours" },
  miss = { "SymbolErrorCounter:.................0" },
}
fabric {
  id = "retries", restart = "same",
  title = "RDMA transport gave up on a peer", action = "check", role = "cascade",
    general = true,
  regex = { [[(?i)transport retry (?:count|counter) exceeded]], [[\bRETRY EXCEEDED ERROR\b]],
    [[IBV_WC_RETRY_EXC_ERR|IBV_WC_RNR_RETRY_EXC_ERR]], [[RETRY_EXC_ERR]] },
  remedy = "See whether the peer died first; if all processes live, check the links between the two hosts.",
  hit = { "UCX ERROR Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)",
    "error polling LP CQ with status RETRY EXCEEDED ERROR status number 12" },
  miss = { "retry_count = 7" },
}
fabric {
  id = "slow", title = "RDMA bandwidth between hosts is below what is expected", action = "check",
    symptom = "slowdown",
  regex = { [[(?i)(?:ib_write_bw|ib_read_bw|ib_send_bw|check_ib_bw)\w*.{0,80}(?:below|less than|lower ]] ..
    [[than|did not (?:meet|reach)|expected)]] },
  remedy = "Drain the host; check link width and speed, cable, and PCIe settings of the adapter.",
  hit = { "check_ib_bw_gdr: ib_write_bw on mlx5_ib2 measured 190.3 Gb/s, below threshold 380" },
    miss = { "ib_write_bw -d mlx5_0 -F" },
}
fabric {
  id = "create", restart = { "never", "same" },
  title = "Queue pairs cannot be created: locked memory or devices are limited",
    says = "errno", category = "platform", action = "fix",
  regex = { [[ibv_(?:create_qp|reg_mr\w*|create_cq|alloc_pd)\b.{0,40}[Ff]ailed]],
    [[ibv_(?:create_qp|reg_mr\w*|create_cq|alloc_pd)\(.*\) failed]],
    [[UCX +ERROR .*(?:create|obj_create).{0,12}\b(?:QP|CQ|qp|cq)\b.*(?:Cannot allocate memory|failed)]] },
  except = { [[UCX +(?:WARN|DIAG|INFO|DEBUG)\b]] },
  remedy = "Set memlock to unlimited for jobs and containers; see that the adapter's devices are passed in.",
  hit = { "NCCL WARN Call to ibv_create_qp failed",
    "ib_md.c:379 UCX ERROR ibv_reg_mr(address=0x7f, length=4096, access=0xf) failed: Cannot allocate " ..
      "memory",
    "ib_iface.c:988  UCX  ERROR iface=0x22: failed to create UD QP TX wr:64 sge:6: Cannot allocate memory" },
  miss = { "ibv_create_qp ok", "UCX  WARN mlx5_1: ibv_create_cq() failed, device is not used" },
}
