-- NCCL's data paths: verbs, plugins, peer access. (ibv_modify_qp and ibv_reg_mr: rules/network, they are not
-- only NCCL's.)

-- The message is repeated alone behind `Last error:` of an exception; old versions leave their name out.
local W = [[(?:(?:NCCL|RCCL|CCOM|\.(?:cc|cu|h):\d+) WARN .*|^(?:WARN .*)?)]]

local function path(row)
  rule {
    id = "nccl.transport." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
    component = row.component or "network", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

-- A work completion with an error. 5 only flushes what was queued behind another error.
local completions = {
  { 1, "IBV_WC_LOC_LEN_ERR", "length of a local buffer", "framework", "fatal", restart = "unknown" },
  { 4, "IBV_WC_LOC_PROT_ERR", "protection of local memory: buffer was freed, or peer memory does not work",
    "platform", "fatal", restart = "same" },
  { 9, "IBV_WC_REM_INV_REQ_ERR", "remote side refused the request", "framework", "fatal",
    restart = "unknown" },
  { 10, "IBV_WC_REM_ACCESS_ERR", "remote side refused access to its memory", "platform", "fatal",
    restart = "same" },
  { 11, "IBV_WC_REM_OP_ERR", "remote adapter could not carry out the operation", "hardware", "fatal",
    restart = "elsewhere" },
  -- A cable, a switch port, an adapter, or just the death of the peer: the peer's log decides. Before the
  -- first step it may be a wrong GID index too.
  { 12, "IBV_WC_RETRY_EXC_ERR", "peer's adapter did not answer: link or route down, or peer dead", "platform",
    "error", "cascade", restart = { "unknown", "same" } },
  { 13, "IBV_WC_RNR_RETRY_EXC_ERR", "peer was not ready to receive for too long", "unknown", "error",
    restart = "same" },
}
for _, c in ipairs(completions) do
  path {
    id = "completion_" .. c[1], restart = c.restart, title = "Transfer failed, " .. c[3], category = c[4],
    severity = c[5], role = c[6],
    regex = { [[[Gg]ot completion from peer (?P<peer>[^\s<]+)\S* with (?:error |status ?=?)]] .. c[1] ..
        [[\b]],
      [[(?:Got completion|got completion)\b.* (?:with )?(?:error |status ?=?)]] .. c[1] .. [[\b]],
      W .. [[status=]] .. c[2] .. [[\b]],
      [[(?:Got completion|got completion).*status=]] .. c[2] .. [[\b]] },
    remedy = "Look at both hosts' adapters and ports, and whether the peer's process was still alive.",
    hit = { "NCCL WARN NET/IB : Got completion from peer 10.0.0.4<4791> with status=" .. c[1] ..
      " opcode=129 len=0 vendor err 129",
      "NCCL WARN NET/IB : Got completion with error " .. c[1] .. ", opcode 0, len 0, vendor err 129" },
    miss = { "NCCL WARN NET/IB : Got completion from peer 10.0.0.4<4791> with status=5 opcode=0 len=0 " ..
        "vendor err 244" },
  }
end
path {
  id = "completion_flush", restart = "same",
  title = "Queued transfer was flushed after another error", category = "unknown",
  role = "cascade",
  severity = "warning", action = "none",
  regex = { [[(?:Got completion|got completion)\b.* (?:with )?(?:error |status ?=?)5\b]],
    [[status=IBV_WC_WR_FLUSH_ERR]] },
  remedy = "Look for the completion before it.",
  hit = { "NCCL WARN NET/IB : Got completion from peer 10.0.0.4<4791> with status=5 opcode=0 len=0 " ..
      "vendor err 244" },
  miss = { "NCCL WARN NET/IB : Got completion from peer 10.0.0.4<4791> with status=12 opcode=0 len=0 " ..
      "vendor err 129" },
}
path {
  id = "async_event", title = "InfiniBand adapter reported a fatal event", severity = "error",
  regex = { [[(?:NET/IB : (?P<adapter>\w+:\d+) )?Got async (?:error )?event ?: (?:local catastrophic|]] ..
    [[port error|device fatal|local access violation|QP fatal|CQ error|GID table change.*fatal)]],
    W .. [[Got async event : local (?:QP operation|access violation work queue) err]],
    W .. [[NET/IB : (?P<adapter>\S+) Got async (?:fatal )?event : (?:port error|device fatal|]] ..
      [[local catastrophic error)]] },
  remedy = "Check port, cable and adapter named.", action = "isolate",
  hit = { "NCCL WARN NET/IB : mlx5_3:1 Got async event : port error",
    "NCCL WARN NET/IB : mlx5_0:1 Got async event : local catastrophic error" },
  miss = { "NCCL INFO NET/IB : mlx5_3:1 Got async event : port active" },
}
path {
  id = "device", title = "InfiniBand adapter could not be used", category = "platform", severity = "error",
  regex = { W .. [[NET/IB : (?:Unable to open device|No device found|Unable to query (?:device|port))]], W ..
    [[Call to ibv_(?:open_device|alloc_pd|query_device|query_port|get_device_list) failed]] },
  remedy = "Check the adapters, their ports and the container's device files.",
  hit = { "NCCL WARN NET/IB : Unable to open device mlx5_3", "NCCL WARN Call to ibv_open_device failed" },
  miss = { "NCCL INFO NET/IB : No device found." },
}
path {
  id = "verbs", restart = "same",
  title = "Call of the verbs library failed", category = "platform", severity = "error",
  general = true,
  regex = { W .. [[Call to (?P<call>ibv_\w+|rdma_\w+) failed]] },
  except = [[(?i)\busing (?:a |the )?fallback\b|\bfalling back\b]],
  remedy = "Look at the error behind the call, the adapter's state and the limits.",
  hit = { "NCCL WARN Call to ibv_post_send failed with error Cannot allocate memory" },
  miss = { "NCCL INFO Call to ibv_create_ah failed, retry",
    "NCCL WARN Call to ibv_query_gid_ex failed with Operation not supported errno 95, using fallback" },
}
path {
  id = "plugin_request", restart = "same",
  title = "Network plugin reports a failed transfer", category = "platform",
  severity = "error", general = true,
  regex = { [[NET/OFI Request \S+ completed with error]],
    [[NET/OFI .*(?:Unresponsive receiver|Unreachable remote|RDMA write failed)]],
    [[NET/(?:UCX|FasTrak|AWS|OFI) ?:? .*(?:request failed|completion error|fatal)]] },
  except = { [[initialization failed|Initializing plugin failed|Failed to initialize]] },
  remedy = "Look at the peer's process and the adapters of both hosts.",
  hit = { "NCCL WARN NET/OFI Request 0x7f45 completed with error. RC: 5. Error: 12 (Input/output error)" },
  miss = { "CCOM WARN NET/OFI aws-ofi-nccl initialization failed" },
}
path {
  id = "p2p", title = "Direct access between GPUs does not work", component = "pcie", category = "platform",
  severity = "error",
  regex = { W ..
    [[(?:peer access is not supported|failed to peer with device|Cuda failure (?:217 )?'peer access)]], W ..
    [[P2P is disabled .*(?:ACS|IOMMU)]],
    [[CUDA error: (?P<what>peer access is not supported between these two devices|]] ..
      [[peer mapping resources exhausted)]],
    [[failed to open CUDA IPC handle|CUDA_ERROR_PEER_ACCESS_UNSUPPORTED]] },
  remedy = "Disable ACS and IOMMU on the path, or NCCL_P2P_DISABLE=1; same visibility of GPUs in all " ..
      "containers.", action = "mitigate",
  hit = { "NCCL WARN failed to peer with device 1(=0x1b): 217 peer access is not supported between " ..
      "these two devices" },
  miss = { "NCCL INFO P2P is disabled between connected GPUs 1 and 0" },
}
path {
  id = "nvls", title = "NVLink's multicast (NVLS) does not work on this host", category = "platform",
  component = "nvlink", symptom = "launch_failure",
  regex = { [[Failed to bind NVLink SHARP \(NVLS\) Multicast memory]],
    [[usually caused by a system or configuration error in the Fabric Manager or NVSwitches]],
    W .. [[.*\bcuMulticast\w+\b.*failed]] },
  remedy = "Look at fabric manager and NVSwitches of that host; NCCL_NVLS_ENABLE=0 does without.",
  hit = { "transport/nvls.cc:169 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of " ..
    "size 2097152 : " ..
    "CUDA error 1 'invalid argument'." },
  miss = { "NCCL INFO NVLS multicast support is available on dev 0" },
}
