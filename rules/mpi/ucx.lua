-- UCX, libfabric and libpsm: the transports below MPI and NCCL plugins.

local function ucx(row)
  rule {
    id = "mpi." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "platform",
    component = row.component or "network", severity = row.severity or "error", role = row.role,
    general = row.general, match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

-- UCX installs its own handler: the signal's origin may be anywhere in the program.
ucx {
  id = "ucx.signal", title = "Process crashed (caught by UCX; a crash may hide an earlier error)",
  category = "framework",
  component = "framework", severity = "fatal", general = true,  -- the signal alone, as any crash
  regex = { [[Caught signal (?P<number>4|7|8|11) \((?P<signal>[^:)]+)]] },
  remedy = "Repeat with UCX_ERROR_SIGNALS=\"\" to see the program's own error; look at the frames.",
  hit = { "[n1:244443:0:244443] Caught signal 11 (Segmentation fault: address not mapped to object at " ..
      "address 0x455)" },
  miss = { "Caught signal 15 (Terminated)" },
}
ucx {
  id = "ucx.peer", title = "UCX lost a peer", role = "cascade", category = "unknown", action = "none",
  regex = { [[UCX +(?:ERROR|WARN|DIAG) .*(?:Connection reset by remote peer|Endpoint timeout|[Rr]emote ]] ..
      [[(?:access|endpoint) .*(?:failure|error))]],
    [[UCX_ERR_(?:ENDPOINT_TIMEOUT|CONNECTION_RESET|REMOTE_DISCONNECT)]], [[UCX +ERROR .*ucp_ep_\w+ failed]] },
  remedy = "Find out which peer ended first.",
  hit = { "ucp_ep.c:1504 UCX  ERROR ep 0x7f: error 'Connection reset by remote peer' on ud_mlx5 will " ..
      "not be handled since no error callback is installed" },
  miss = { "UCX  INFO ucp_context_0 self cfg#0 tag(self/memory)" },
}
ucx {
  id = "ucx.transport", restart = "never", title = "UCX found no usable transport", severity = "fatal",
  regex = { [[UCX +ERROR .*no (?:active messages|remote registered memory|auxiliary|.*) transport (?:to|]] ..
      [[for)]], [[UCX_ERR_(?:NO_DEVICE|UNREACHABLE|UNSUPPORTED)]],
    [[UCX +(?:ERROR|WARN) .*(?:network device '\S+' is not available|transport '\S+' is not available)]],
    [[No components were able to be opened in the pml framework]] },
  remedy = "Correct UCX_TLS and UCX_NET_DEVICES; check the adapters on that host.",
  hit = { "select.c:630 UCX  ERROR no active messages transport to <no debug data>: Unsupported operation",
    "UCX  WARN  network device 'mlx5_9:1' is not available, please use one or more of: 'mlx5_0:1'(IB)" },
  miss = { "UCX  INFO transport rc_mlx5 selected" },
}
ucx {
  id = "ucx.memory", title = "UCX could not register or map memory",
  regex = { [[UCX +ERROR .*(?:mmap|shmget|shmat|shm_open|failed to allocate)\b.*(?:failed|Cannot ]] ..
      [[allocate|No space)]],
    [[UCX +ERROR .*(?:cuda|cu)\w*\(.*\) failed]] },
  remedy = "Raise the locked-memory limit and /dev/shm; check GPU peer-memory support.",
  hit = { "mm_posix.c:445 UCX  ERROR shm_open(file_name=/ucx_shm_posix_1) failed: No space left on device" },
  miss = { "UCX  DEBUG registered memory 0x7f..0x8f" },
}
ucx {
  id = "ofi.endpoint", restart = { "never", "same" },
  title = "libfabric could not open its device or reach a peer",
  regex = { [[(?:fi_getinfo|fi_endpoint|fi_domain|fi_fabric|fi_cq_open|fi_av_insert)\w*(?:\(\))?:? ]] ..
      [[(?:failed|returned|error)\b.*]],
    [[libfabric:\d+:\S*:.*(?:Unable to|[Ff]ailed to) (?:open|allocate|create|connect)]],
    [[OFI (?:call )?(?P<what>\w+(?: \w+){0,3}(?:\(\))?) failed \(ofi_\w+\.c]],
    [[PSM[23] (?:was unable to|no hfi units)]], [[PSM[23] can't open (?P<unit>(?:nic|hfi) unit: \S+)]],
    [[Unable to initialize verbs NIC (?P<nic>\S+)]], [[hfi_userinit: (?P<what2>.*(?:failed|cannot).*)]] },
  except = { [[initNet\(\) failed|\(File exists\)|WARN NET/OFI]] },
  severity = "error", remedy = "Check provider, devices and limits on that host (fi_info).",
  hit = { "MPIDI_OFI_init_local(1205): OFI call domain failed (ofi_init.c:1205:create_vni_domain:No such " ..
      "device)", "n1:rank1: PSM3 can't open nic unit: 0 (err=23)",
    "create_vni_context(2253).....: OFI endpoint open failed " ..
      "(ofi_init.c:2253:create_vni_context:Invalid argument)",
    "Unable to initialize verbs NIC /sys/class/infiniband/mana_0 (unit 0:0)",
    "libfabric:4021:1699:efa:ep_ctrl:efa_base_ep_create_qp():141<warn> Unable to create queue pair" },
  miss = { "CCOM WARN OFI plugin initNet() failed is EFA enabled?" },
}
ucx {
  id = "ucx.access", title = "UCX's adapter refused a transfer", severity = "error", role = "cascade",
  category = "unknown",
  regex = { [[(?P<what>Remote (?:access|operation|invalid request)(?: error)?|Local (?:protection|length]] ..
    [[|QP operation)(?: error)?) on ]] ..
    [[(?P<adapter>mlx\d_\d+:\d+)/\w+ \(synd]] },
  remedy = "See whether the peer ended or freed the buffer; a rank that failed before holds the cause.",
  hit = { "[n1:4711:0:4711] ib_mlx5_log.c:171  Remote access error on mlx5_0:1/RoCE (synd 0x13 vend " ..
    "0x88 hw_synd 0/0)" },
  miss = { "Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)" },
}
ucx {
  id = "ucx.connect", title = "UCX could not connect to a peer",
  regex = { [[UCX +ERROR .*(?:failed to connect|connect\w* to \S+ failed|[Cc]onnection refused|No route ]] ..
    [[to host)(?P<what>.*)]],
    [[libfabric:\d+:\S+:.*\b(?P<what>connection refused|[Nn]o route to host|[Nn]etwork is unreachable)]] },
  remedy = "See whether the peer ended; else check addresses, routes and firewalls between the hosts.",
  hit = { "UCX  ERROR failed to connect to remote endpoint",
    "libfabric:4711:tcp:ep_ctrl:xnet_progress(): connection refused" },
  miss = { "UCX  INFO connected to remote endpoint" },
}
