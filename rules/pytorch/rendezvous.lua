-- Where ranks meet: the store, its sockets, names and addresses.

local function meeting(row)
  rule {
    id = "pytorch.rendezvous." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom or "launch_failure",
    observes = row.observes, reads = row.reads,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

meeting {
  -- Address, port, name, firewall, or a first host that never started: the line does not tell which.
  id = "unreachable", title = "Ranks could not reach the meeting point", general = true,
  regex = { [[\bRendezvousConnectionError\b]], [[The connection to the C10d store has failed]],
    [[The client socket has (?:failed to connect to any network address of|timed out after .* while ]] ..
        [[trying to connect)]],
    [[RuntimeError: connect\(\) timed out]] },
  remedy = "Check MASTER_ADDR, port, name resolution and firewall, and that the first host started.",
  hit = { "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the " ..
      "C10d store has failed.",
    "DistNetworkError: The client socket has timed out after 600s while trying to connect to (node1, " ..
        "29500)." },
  miss = { "[W socket.cpp:601] [c10d] The client socket has failed to connect to [node1]:29500 (errno: " ..
      "110)" },
}
meeting {
  id = "name", restart = "later", title = "Name of the meeting point cannot be resolved",
  regex = { [[The IPv[46] network addresses of \(.*\) cannot be retrieved]],
    [[\bsocket\.gaierror: \[Errno -\d+]],
    [[(?:getaddrinfo|gethostbyname).{0,60}Name or service not known]] },
  except = { [[Temporary failure in name resolution]] },
  severity = "error", remedy = "Correct the host name, or use an address; check DNS and headless services.",
  hit = { "[W socket.cpp:697] [c10d] The IPv6 network addresses of (trainer-0, 29500) cannot be " ..
      "retrieved (gai error: -2)",
    "socket.gaierror: [Errno -2] Name or service not known" },
  miss = { "INFO resolved trainer-0 to 10.0.0.3" },
}
meeting {
  id = "resolver", restart = "later",
  title = "Name service did not answer", category = "platform", component = "network",
  severity = "error", action = "check",
  regex = { [=[\bgaierror: \[Errno -3\]]=], [[Temporary failure in name resolution]] },
  remedy = "Check DNS from that host or container (resolv.conf, the cluster's name service).",
  hit = { "socket.gaierror: [Errno -3] Temporary failure in name resolution",
    "ssh: Could not resolve hostname n3: Temporary failure in name resolution" },
  miss = { "socket.gaierror: [Errno -2] Name or service not known" },
}
meeting {
  id = "missing", restart = "unknown",
  title = "Not all ranks or hosts arrived at the start", category = "unknown",
  component = "unknown",
  role = "cascade", action = "check", observes = "meeting",
  regex = { [[\bRendezvousTimeoutError\b]],
    [[Timed out (?:initializing process group in store based barrier|after \d+ seconds waiting for ]] ..
      [[(?:clients|workers))]],
    [[Timed out waiting on barrier on rank \d+, for key prefix: ]],
    [[timed out waiting for clients\. \d+/\d+ clients joined]],
    [[wait timeout after \d+ms, keys: /default_pg]],
    [[store based barrier.{0,120}(?:[Tt]imed out|timeout)]] },
  reads = { [[imed out after (?:(?P<waited_s>\d+) ?seconds)?.*\b(?P<came>\d+)/(?P<all>\d+) ]] ..
      [[(?P<rendezvous>clients|workers) joined]],
    [[imed out (?P<group_start>initializing process group) in store based barrier.*world_size=(?P<all>\d+)]],
    [[in store based barrier on rank: *(?P<own_rank>\d+)]],
    [[store based barrier.*(?:worker_count|num_workers_joined)=(?P<came>\d+)]],
    [[imed out waiting on barrier on (?:rank (?P<own_rank>\d+))?.*key prefix: (?P<barrier>[^ (]*).*]] ..
      [[world_size=(?P<all>\d+)]],
    [=[imed out waiting on barrier on .*missing_ranks=\[(?P<absent>\d[\d, ]*)\]]=] },
  remedy = "Find the hosts that said nothing: they failed or hang earlier.",
  hit = { "RuntimeError: Timed out initializing process group in store based barrier on rank: 3, for " ..
      "key: store_based_barrier_key:1",
    "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError",
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 6/8 clients " ..
        "joined.",
    "torch.distributed.DistStoreError: Timed out waiting on barrier on rank 0, for key prefix: agents/ " ..
        "(world_size=4, missing_ranks=[2], timeout=300)" },
  miss = { "Rank 3: Completed store-based barrier for key:store_based_barrier_key:1 with 8 nodes." },
}
meeting {
  id = "store_gone", title = "Store's server is gone", category = "unknown", component = "unknown",
  role = "cascade",
  symptom = "crash", severity = "error", action = "none",
  regex = { [[\bDistNetworkError: (?:Connection reset by peer|Failed to recv|failed to recv|Broken pipe)]],
    [[(?:sendBytes|recvValue|recvVector|recvBytes|recv|send) failed on .*(?:Connection reset by peer|]] ..
        [[Broken pipe|Connection was likely closed|failed to recv, got 0 bytes)]],
    [[(?:RuntimeError|DistStoreError|DistNetworkError): (?:Socket Timeout|Broken pipe|Connection reset ]] ..
        [[by peer|Stop_waiting response is expected)]],
    [[DistStoreError: .*(?:Timeout|[Tt]imed out|wait timeout)]],
    [[Failed to check the "should dump" flag on TCPStore]],
    [[TCPStore server has shut ?down too early|TCPStore is not available]] },
  -- Who counts those that came holds the store itself.
  except = { [[Timed out (?:initializing process group|after \d+ seconds waiting for|waiting on barrier)]] },
  remedy = "Look at the host that held the store (rank 0): why it ended or hangs.",
  hit = { "torch.distributed.DistNetworkError: Connection reset by peer",
    "[W TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=4): Broken pipe",
    "[c10d] recvValue failed on SocketImpl(fd=7, addr=[n1]:5, remote=[n0]:9): failed to recv, got 0 bytes",
    "torch.distributed.DistStoreError: Socket Timeout" },
  miss = { "TCPStore server started on port 29500",
    "torch.distributed.DistStoreError: Timed out after 60 seconds waiting for clients. 6/8 clients joined." },
}
meeting {
  id = "gloo", title = "Gloo ranks could not connect to each other", component = "network",
  regex = { [[Gloo connectFullMesh failed]], [[gloo/transport/tcp/\S+\] (?:no error|.*Connect timeout)]],
    [[Unable to resolve hostname to a \(local\) address]], [[gloo\S* .*Unable to find address for: \S+]],
    [=[gloo/transport/\S+\] connect \[(?P<peer>[^\]]+)\]:\d+: ]=] ..
      [[(?:Connection refused|Connection timed out|No route)]],
    [[Unable to find interface for: (?P<interface>\S+)]], [[makeDeviceFor\w+\(\): unsupported gloo device]] },
  remedy = "Name the interface for Gloo (GLOO_SOCKET_IFNAME), see that host names resolve to its addresses.",
  hit = { "RuntimeError: Gloo connectFullMesh failed with [/pytorch/gloo/transport/tcp/pair.cc:144] no error",
    "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:3451: " ..
      "Connection " ..
        "refused",
    "RuntimeError: [enforce fail at gloo/transport/tcp/device.cc:83] rp != nullptr. Unable to find " ..
        "address for: ib9" },
  miss = { "[W ProcessGroupGloo.cpp:694] Warning: Unable to resolve hostname to a (loopback) address" },
}
meeting {
  id = "gloo_peer", title = "Gloo peer closed its connection", category = "unknown", component = "unknown",
  role = "cascade", symptom = "crash", severity = "error", action = "none", observes = "peer",
  regex = { [=[gloo/transport/\S+\] (?:Connection closed by peer|Read error|Write error|Timed out ]=] ..
      [=[waiting|writev? ?\[)]=],
    [[Application timeout caused pair closure]] },
  reads = { [=[(?P<closed>Connection closed by) (?:remote )?peer \[?(?P<closed_by>[^<\] ]*)]=],
    [[(?P<closed>Connection closed by peer)]], [[(?P<at_exit>gloo)]],
    [[Timed out waiting (?P<waited_ms>\d+)ms for (?P<op>recv|send) operation to complete]] },
  remedy = "Look at the peer: it ended or hangs.",
  hit = { "RuntimeError: [../gloo/transport/tcp/pair.cc:525] Connection closed by peer [10.0.0.3]:27711",
    "RuntimeError: [gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 1800000ms for recv " ..
        "operation" },
  miss = { "gloo transport tcp selected" },
}
meeting {
  id = "gloo_size", restart = "never",
  title = "Ranks gave different sizes to one operation", component = "user_code",
  symptom = "crash", observes = "sizes",
  regex = { [[\bop\.preamble\.length <= op\.nbytes\b\. (?P<size>\d+ vs \d+)]],
    [[gloo/\S+\].*(?:tensors|inputs|sizes?) .{0,40}(?:mismatch|must (?:be|have) the same|differ)]] },
  remedy = "Make every rank call the same operation with the same shape: look at its last batch and " ..
      "branches.",
  hit = { "  what():  [enforce fail at ../gloo/transport/tcp/pair.cc:446] op.preamble.length <= " ..
      "op.nbytes. " ..
      "8192 vs 4096" },
  miss = { "gloo transport tcp selected" },
}
meeting {
  id = "usage", restart = "never",
  title = "Process group is used the wrong way", component = "user_code", symptom = "crash",
  regex = { [[Default process group has not been initialized]],
    [[trying to initialize the default process group twice]],
    [[Invalid (?:rank|group rank) \d+|the rank should be in the interval]],
    [[ranks? .*is not (?:a member|part) of (?:the )?group]],
    [[No backend type associated with device type (?P<device_type>\w+)]],
    [[Backend .* does not (?:support|implement) \w+]],
    [[The server socket on \S+ is not the expected one]] },
  remedy = "Initialise the group once, before its first use, with the backend for the tensors' device.",
  hit = { "ValueError: Default process group has not been initialized, please make sure to call " ..
      "init_process_group.",
    "RuntimeError: No backend type associated with device type cpu" },
  miss = { "Warning: destroy_process_group() was not called before program exit" },
}
