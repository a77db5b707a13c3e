-- Lustre client: evicted, connection lost, servers slow. A lost connection that is restored is routine on a
-- big system;
-- an eviction fails every operation that was under way.

local function lustre(row)
  rule {
    id = "storage.lustre." .. row.id, engine = 1, restart = row.restart or "later",
    title = row.title, category = "platform",
      component = "storage",
    severity = row.severity or "error", action = row.action or "check", general = row.general,
      role = row.role, symptom = row.symptom or "hang",
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

lustre {
  id = "evicted", title = "Lustre server evicted this client", severity = "fatal", symptom = "crash",
  regex = { [[LustreError: .*This client was evicted by (?P<target>\S+);]],
    [[Lustre(?:Error)?: .*(?:was evicted by|evicting client at|I think I was evicted)]] },
  remedy = "Restart the job from its checkpoint; check network and load between this host and the server.",
  hit = { "LustreError: 167-0: scratch-MDT0000-mdc-ffff9f: This client was evicted by scratch-MDT0000; in " ..
    "progress operations using this service will fail." },
  miss = { "Lustre: scratch-MDT0000-mdc-ffff9f: Connection restored to 10.4.0.2@o2ib" },
}
lustre {
  id = "lost", title = "Lustre client lost its server",
  regex = { [[Lustre(?:Error)?: .*Connection to (?P<target>\S+) (?:\(at (?P<server>[^)]+)\) )?.*]] ..
    [[was lost; in progress operations]] },
  remedy = "Wait for recovery; check the server and the storage network when it is not restored.",
  hit = { "Lustre: scratch-OST0004-osc-ffff9f: Connection to scratch-OST0004 (at 10.4.0.9@o2ib) was lost; " ..
    "in progress operations using this service will wait for recovery to complete" },
  miss = { "Lustre: scratch-OST0004-osc-ffff9f: Connection restored to 10.4.0.9@o2ib (at 10.4.0.9@o2ib)" },
}
lustre {
  id = "slow", title = "Lustre servers answer late", severity = "warning", symptom = "slowdown",
  regex = { [[Lustre: .*Request sent has (?:timed out for (?:slow reply|sent delay)|failed due to ]] ..
    [[network error)]],
    [[Lustre: .*Request took longer than estimated]] },
  remedy = "Check the load of the file system and the storage network.",
  hit = { "Lustre: 2873:0:(client.c:2169:ptlrpc_expire_one_request()) @@@ Request sent has timed out for " ..
    "slow reply: [sent 1715/real 1715]" },
  miss = { "Lustre: Mounted scratch-client" },
}
lustre {
  id = "operation", title = "A Lustre operation failed", general = true,
  regex = { [[LustreError: (?:11-0: )?.*[Oo]peration (?P<op>\w+) to node (?P<server>\S+) failed: rc = -\d+]],
    [[LustreError: .*(?:rc = -(?:5|28|107|108|110|122)\b)]] },
  remedy = "Look up the return code: -107 and -108 connection, -110 timeout, -5 I/O, -28 full, -122 quota.",
  hit = { "LustreError: 11-0: scratch-OST0001-osc-ffff9f: operation ost_write to node 10.4.0.9@o2ib " ..
    "failed: rc = -107" },
  miss = { "Lustre: Lustre: Build Version: 2.15.3" },
}
lustre {
  id = "network", title = "Lustre's network cannot reach a node",
  regex = { [[LNetError: .*(?:No route to|Timed out|timeout|Aborting|failed|Unable to)]],
    [[LNet: .*(?:[Tt]imed out RDMA|There was an unexpected network error|No response)]] },
  remedy = "Check InfiniBand or RoCE between this host and the node in the line.",
  hit = { "LNetError: 2790:0:(o2iblnd_cb.c:3355:kiblnd_check_txs_locked()) Timed out tx: active_txs, 0 " ..
    "seconds" },
    miss = { "LNet: Added LNI 10.4.1.7@o2ib [8/256/0/180]" },
}
lustre {
  id = "bug", restart = "elsewhere",
  title = "Lustre client crashed in its own code", severity = "fatal", symptom = "crash",
  regex = { [[LustreError: .*(?:ASSERTION\(|LBUG)]], [[LBUG\b.*(?:libcfs|lustre)]] },
  remedy = "Reboot the host; update the Lustre client.",
  hit = { "LustreError: 3120:0:(osc_cache.c:1129:osc_extent_make_ready()) ASSERTION( last_oap_count > 0 ) " ..
    "failed",
    "LustreError: 3120:0:(osc_cache.c:1129) LBUG" },
  miss = { "LustreError: 11-0: operation obd_ping to node 10.4.0.9@o2ib failed: rc = -107" },
}
