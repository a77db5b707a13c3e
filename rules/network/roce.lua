-- RDMA over Ethernet: connection set-up of queue pairs (GID, routes), congestion control, switches.

local function roce(row)
  rule {
    id = "network.roce." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "platform",
      component = "network",
    severity = row.severity or "error", action = row.action or "check", general = row.general,
      role = row.role, symptom = row.symptom,
    source = { "log", "kernel" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

roce {
  id = "gid", restart = "never",
  title = "RDMA connection refused by the adapter: wrong GID index or address", category = "user",
    severity = "fatal", action = "fix",
  regex = { [[ibv_modify_qp failed with (?:error )?(?:22 )?Invalid argument]],
    [[(?i)(?:no|invalid|wrong) GID (?:index|entry)?.{0,40}(?:found|available|for (?:device|port))]],
    [[ibv_query_gid\w* failed]] },
  except = [[(?i)\busing (?:a |the )?fallback\b|\bfalling back\b]],
  remedy = "Set the GID index of RoCE v2 (show_gids; NCCL_IB_GID_INDEX, UCX_IB_GID_INDEX) on all hosts " ..
      "alike.",
  hit = { "NCCL WARN Call to ibv_modify_qp failed with error Invalid argument",
    "NCCL WARN Call to ibv_modify_qp failed with 22 Invalid argument, on dev mlx5_1:1, curr state INIT, " ..
      "next state RTR, local GID index 0" },
  miss = { "NCCL INFO NET/IB : GID 3 found for mlx5_1",
    "NCCL WARN Call to ibv_query_gid_ex failed with Operation not supported errno 95, using fallback" },
}
roce {
  id = "no_route", title = "RDMA peer cannot be reached", severity = "fatal", category = "platform",
  regex = { [[ibv_modify_qp failed with (?:error )?(?:110 )?Connection timed out, on dev (?P<device>[^]] ..
    [[,]+).*remote GID (?P<peer>\S+)]],
    [[ibv_modify_qp failed with (?:error )?(?:110 )?Connection timed out]],
    [[ibv_modify_qp failed with (?:error )?(?:101 |113 )?(?:Network is unreachable|No route to host)]] },
  remedy = "Check addresses, VLAN and routes between the two adapters, then the link of the peer; on " ..
    "networks " ..
    "by rail set NCCL_CROSS_NIC=0.",
  hit = { "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_6:1, curr " ..
    "state INIT, next state RTR, local GID index 3, remote GID ::ffff:10.4.1.7" },
  miss = { "NCCL INFO Channel 00/0 : 8[0] -> 0[0] [receive] via NET/IB/0/GDRDMA" },
}
roce {
  id = "pfc_storm", restart = "elsewhere",
  title = "Switch or adapter met a storm of pause frames", category = "hardware",
    action = "isolate",
  regex = { [[(?i)PFC (?:watchdog|WD) detected (?:PFC )?storm]],
    [[(?i)detected (?:pfc|pause) (?:frame )?storm]], [[(?i)\bpause storm\b]] },
  remedy = "Find the host whose adapter sends the pause frames, isolate it; check its PCIe and firmware.",
  hit = { "PFC Watchdog detected PFC storm on port Ethernet12, queue index 3, queue id 0x15000000000012 " ..
    "and port id 0x1000000000031",
    "detected pause storm on port 5" },
  miss = { "PFC storm restored on port Ethernet12, queue index 3" },
}
roce {
  id = "cm", title = "RDMA connection manager could not connect", role = "cascade",
  regex = { [[RDMA_CM_EVENT_(?:UNREACHABLE|REJECTED|CONNECT_ERROR|ADDR_ERROR|ROUTE_ERROR)]],
    [[rdma_(?:resolve_addr|resolve_route|connect)\S* (?:failed|error)]] },
  remedy = "Check that the peer runs and that both have an address on the RDMA network.",
  hit = { "event RDMA_CM_EVENT_UNREACHABLE, status -110", "rdma_resolve_addr failed: No such device" },
    miss = { "RDMA_CM_EVENT_ESTABLISHED" },
}
roce {
  id = "switch_port", restart = "elsewhere",
  title = "Switch reports a port of the fabric down", category = "hardware",
  regex = { [[%(?:ETHPORT|LINEPROTO|LINK|ETH_PORT_CHANNEL|IFMGR)-\d-(?:IF_DOWN_LINK_FAILURE|UPDOWN|]] ..
    [[IF_DOWN|LINK_DOWN|PORT_DOWN)\S*: .*(?:down|failure)]],
    [[Set operation status DOWN for host interface]], [[hwPortFail_active]], [[linkDown_active]],
      [[hwForwardEngine\w*_active]] },
  remedy = "Check the cable and transceiver on both ends of this switch port.",
  hit = { "%ETHPORT-5-IF_DOWN_LINK_FAILURE: Interface Ethernet1/12 is down (Link failure)",
    "%LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet12, changed state to down",
    "syncd: Set operation status DOWN for host interface Ethernet48" },
  miss = { "%LINEPROTO-5-UPDOWN: Line protocol on Interface Ethernet12, changed state to up" },
}
