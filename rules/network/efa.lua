-- Fabrics behind libfabric: AWS EFA, HPE Slingshot (CXI), and the adapters' kernel drivers.
-- A plugin that is missing or falls back, and DEREG_MR complaints at the end of a run, are harmless.

local function ofi(row)
  rule {
    id = "network." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "platform",
      component = row.component or "network",
    severity = row.severity or "error", action = row.action or "check", general = row.general,
      role = row.role, symptom = row.symptom,
    source = { "log", "kernel" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

ofi {
  id = "efa.unresponsive", title = "EFA peer is there but does not complete the handshake",
    severity = "fatal",
  regex = { [[Unresponsive (?:receiver|remote)]], [[NET/OFI .*completed with error\. RC: 103\b]] },
  remedy = "Check the security group (all traffic to itself, both ways) and that the same EFA driver and " ..
    "libfabric run on both hosts.",
  hit = { "NCCL WARN NET/OFI Request 0x7f45 completed with error. RC: 103. Error: 4126 (Unresponsive " ..
    "receiver (reachable by EFA device but handshake failed)" },
  miss = { "NET/OFI Selected Provider is efa (found 4 nics)" },
}
ofi {
  id = "efa.unreachable", title = "EFA peer cannot be reached", severity = "fatal", role = "cascade",
  regex = { [[(?i)completed with error.*(?:Unreachable remote|Remote peer|Destroyed remote|connection ]] ..
    [[(?:reset|closed) by remote)]],
    [[(?i)\b(?:Unreachable|Unresponsive|Destroyed) remote\b]], [[Invalid remote QPN]] },
  remedy = "See whether the peer's process or instance died first.",
  hit = { "NET/OFI Request 0x1 completed with error. RC: 5. Error: 4110 (Unreachable remote: host is " ..
    "unreachable)" },
    miss = { "remote completed" },
}
ofi {
  id = "efa.request", title = "A libfabric request of NCCL failed", general = true, role = "cascade",
  regex = { [[NET/OFI .*(?:Request \S+ )?completed with error\. RC: \d+]] },
  except = [[DEREG_MR]],
  remedy = "Read the error of the provider in the line; look for the first rank that failed.",
  hit = { "NCCL WARN NET/OFI Request 0x7f completed with error. RC: 22. Error: 4099 (local protection " ..
      "error)" },
    miss = { "NET/OFI Request 0x7f completed" },
}
ofi {
  id = "efa.register", restart = { "never", "same" },
  title = "Memory could not be registered with the network adapter", severity = "fatal",
    action = "fix",
  regex = { [[(?i)NET/OFI .*Unable to register memory]],
    [[(?i)\bfi_mr_(?:reg|regattr|enable)\b.*(?:failed|error)]] },
  except = { [[DEREG_MR]], [[DAOS\[]], [[mercury]] },
  remedy = "Raise locked memory and huge pages of the job; reduce buffers; check the peer-memory driver.",
  hit = { "NCCL WARN NET/OFI Unable to register memory (type = 2) for device 4. RC: -14, Error: Bad " ..
    "address" },
    miss = { "EFA: DEREG_MR failed: -22" },
}
ofi {
  id = "efa.internal", title = "EFA library stopped on an internal error", severity = "fatal",
  regex = { [[Libfabric EFA provider has encountered an internal error]],
    [[efa \S+: .*(?:Failed to (?:submit command|process command)|Wait for completion \((?:polling|]] ..
      [[timeout)\)|Reset timeout|Device isn't ready, abort)]] },
  remedy = "Restart the job on other instances; report the instance if it repeats there.",
  hit = { "Libfabric EFA provider has encountered an internal error:",
    "efa 0000:10:19.0: Wait for completion (polling) timeout" },
    miss = { "efa 0000:10:19.0: Setup irq: vector 11" },
}
ofi {
  id = "efa.provider", restart = "never",
  title = "No usable libfabric provider", severity = "fatal", category = "user",
    action = "fix",
  regex = { [[NET/OFI (?:Couldn't find any optimal provider|No eligible providers were found)]],
    [[OFI: (?:no|No) (?:available|eligible|suitable) provider]],
    [[NET/OFI (?:OFI )?(?P<call>fi_getinfo\(\)) call failed: (?:No data available|-61)]],
    [[MPIDI_OFI_\w+\(\d+\).*OFI (?:addrinfo\(\)|fi_getinfo\(\)) failed]] },
  remedy = "Load the network plugin into the job's environment, or name the one that is there; check that " ..
    "the devices are passed into the container.",
  hit = { "NET/OFI No eligible providers were found",
    "open_fabric(1234): MPIDI_OFI_init_provider(812): OFI fi_getinfo() failed" },
  miss = { "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin." },
}
ofi {
  id = "cxi.matching", restart = "never",
  title = "Slingshot adapter ran out of receive entries", component = "network",
    category = "user", severity = "fatal", action = "fix",
  regex = { [[LE resources not recovered during flow control]],
    [[FI_CXI_RX_MATCH_MODE=\[(?:hybrid|software)]], [[cxip_\w+.*Flow control.*(?:exhaust|not recovered)]] },
  remedy = "Set FI_CXI_RX_MATCH_MODE=software (or hybrid) and larger receive queues.",
  hit = { "libfabric:1:cxi:ep_ctrl: LE resources not recovered during flow control. " ..
    "FI_CXI_RX_MATCH_MODE=[hybrid|software] is required" },
    miss = { "FI_CXI_RX_MATCH_MODE=software" },
}
ofi {
  id = "cxi.fabric", title = "Slingshot fabric lost a message", role = "cascade",
  regex = { [[libfabric:\S*cxi\S*.*(?:UNDELIVERABLE|PTL_NOT_FOUND|TARGET unreachable|retry exhausted)]],
    [[cxi_core \S+: .*(?:retry handler|C_EC_CRIT)]],
    [[cxi_rh\S*: .*(?:cancel|timed out|NO_MATCHING|unorderable)]] },
  remedy = "See whether the peer died first; else check the links of both hosts.",
  hit = { "libfabric:77:cxi:ep_data:cxip_rma_cb: TXC error: UNDELIVERABLE",
    "cxi_rh[911]: connection cancelled: timed out" }, miss = { "cxi_core 0000:21:00.0: HW: Cassini rev 2.0" },
}
