-- NCCL as a library: wrong calls, its own bugs, what its RAS and watchdogs say.

-- The message is repeated alone behind `Last error:` of an exception; old versions leave their name out.
local W = [[(?:(?:NCCL|RCCL|CCOM|\.(?:cc|cu|h):\d+) WARN .*|^(?:WARN .*)?)]]

local function wrong(row)
  rule {
    id = "nccl.error." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "nccl_comm", severity = row.severity or "fatal", role = row.role,
    general = row.general, says = row.says, symptom = row.symptom,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

wrong {
  id = "fp8", title = "Data type is not supported for collectives on this GPU", category = "framework",
  regex = { [[FP8 reduction support begins with sm\d+]],
    [[(?i)(?:NCCL|ProcessGroupNCCL).*(?:unsupported|does not support).*(?:Float8|fp8|data ?type)]],
    [[(?:Input tensor data type|Unconvertible NCCL type|Unsupported data type)\b.*(?:NCCL|process group)]] },
  remedy = "Communicate in a wider type.",
  hit = { "NCCL WARN FP8 reduction support begins with sm90 capable devices.",
    "RuntimeError: Input tensor data type is not supported for NCCL process group: Float8_e4m3fn" },
  miss = { "FP8 enabled for linear layers" },
}
wrong {
  id = "argument", title = "Collective was called with arguments that NCCL refuses",
  regex = { W ..
    [[(?P<call>\w+) ?: invalid (?:root|rank|type|redOp|peer|count|device|operation|reduction operation)\b]],
    W .. [[Invalid (?:config|argument|usage)\b]], W .. [[Pointer \S+ is not a valid pointer]],
    W .. [[(?:argument|root) .*(?:is not|not) valid]],
    W .. [[Tensor .* mismatch]], W .. [[nranks .* (?:invalid|must be)]] },
  except = { [[Call to (?:ibv|rdma|cuda|cu|nvml|fi)_?\w+ failed]] },
  remedy = "Check root, counts, types and buffers of that call on all ranks.",
  hit = { "NCCL WARN Broadcast : invalid root 9 (root should be in the 0..8 range)",
    "NCCL WARN AllReduce : invalid type 99" },
  miss = { "NCCL INFO AllReduce: opCount 1f sendbuff 0x7f" },
}
wrong {
  id = "mismatch", title = "Ranks gave NCCL different sizes or settings", component = "user_code",
  regex = { W .. [[(?:sizes? mismatch|mismatch(?:ed)? (?:size|count|collective|environment))]],
    [=[parameter \[count\], local \[\d+\], remote \[\d+\]]=] },
  remedy = "Make every rank call the same collective with the same size.",
  hit = { "NCCL WARN Collective size mismatch on rank 3: 1024 vs 2048" }, miss = { "NCCL INFO sizes agree" },
}
wrong {
  id = "env", title = "NCCL setting is not valid", component = "user_config",
  regex = { W .. [[(?:Invalid value|Unknown (?:value|option)|Unrecognized) .*NCCL_\w+]], W ..
    [[NCCL_\w+ .*(?:is (?:invalid|not valid|unknown)|not supported)]],
    W .. [[No (?:algorithm|protocol)/?\w* available]] },
  severity = "error", remedy = "Correct or drop the variable named.",
  hit = { "NCCL WARN Invalid value for NCCL_ALGO: Rng", "enqueue.cc:1 NCCL WARN Error : no " ..
      "algorithm/protocol available\nNCCL WARN No algorithm/protocol available for function Reduce" },
  miss = { "NCCL INFO NCCL_IB_DISABLE set by environment to 1." },
}
wrong {
  id = "remote", restart = "same",
  title = "Another rank reported an error to this one", role = "cascade", category = "unknown",
  component = "unknown",
  severity = "error", action = "none",
  regex = { [[\[Proxy Service\S* ?\d*\].*(?:Failed to execute operation|]] ..
    [[Could not receive type from localRank)]],
    [[\bproxy\.cc:\d+ -> [1-9]\b]],
    W .. [[Call to (?:recv|send|poll|accept) .*failed]],
    [[comm \S+ rank \d+ .*Abort COMPLETE]], W .. [[Async error]] },
  remedy = "Look for the first rank that failed.",
  hit = { "NCCL WARN [Proxy Service 3] Could not receive type from localRank 1, res=3, closed=0",
    "NCCL INFO comm 0x55 rank 3 nranks 16 cudaDev 3 busId b3000 - Abort COMPLETE" },
  miss = { "NCCL INFO comm 0x55 rank 3 nranks 16 cudaDev 3 busId b3000 - Init COMPLETE" },
}
wrong {
  id = "ras_missing", restart = "same",
  title = "A rank does not answer NCCL's health service", category = "unknown",
  component = "unknown",
  severity = "error", symptom = "hang", action = "check",
  regex = { [[(?i)The missing ranks?: (?P<ranks>[\d, -]+)]],
    [[Encountered (?P<n>\d+) communication timeouts while gathering communicator data]],
    [[Process \d+ on node \S+ managing GPU \d+ is (?:considered )?dead]] },
  remedy = "Look at that process: stopped, hanging in the driver, or gone.",
  hit = { "  The missing rank: 21",
    "  Encountered 2 communication timeouts while gathering communicator data" },
  miss = { "#  Rank 7 -- GPU 7 managed by process 483079 on node 172.16.64.210" },
}
wrong {
  id = "test", restart = "unknown", title = "NCCL test program failed", general = true, severity = "error",
  regex = { [[Test NCCL failure \S+:\d+ '(?P<what>[^']+)]], [[Test CUDA failure \S+:\d+ '(?P<what>[^']+)]] },
  except = { [[remote process exited]] },
  remedy = "Repeat with NCCL_DEBUG=WARN and read the warning before it.", action = "check",
  hit = { "node1: Test NCCL failure common.cu:958 'unhandled system error (run with NCCL_DEBUG=INFO " ..
      "for details)'" },
  miss = { "# Out of bounds values : 0 OK" },
}
wrong {
  id = "memory", restart = { "never", "same" }, title = "NCCL found no memory", component = "gpu_memory",
  regex = { W .. [[(?:Failed to (?:cudaMalloc\b|alloc\b)|cudaMalloc failed)]],
    W .. [[Failed to CUDA (?:calloc|malloc|host alloc)]] },
  remedy = "Leave room on the card for NCCL's buffers (NCCL_BUFFSIZE, fewer channels or communicators).",
  severity = "error",
  hit = { "NCCL WARN Failed to CUDA calloc async 608 bytes" },
  miss = { "NCCL INFO Allocated shareable buffer 0x7f size 33554432" },
}
-- Any call of CUDA may answer so: the card is full, shared with another process, or broken.
wrong {
  id = "memory_call", restart = "same",
  title = "CUDA gave NCCL no memory: full, shared with others, or broken",
  component = "gpu_memory", regex = { W .. [[Cuda failure (?:2 )?'out of memory']] },
  remedy = "Look for other processes on the card (nvidia-smi); leave room for NCCL's buffers.",
  severity = "error",
  hit = { "NCCL WARN Cuda failure 'out of memory'", "NCCL WARN Cuda failure 2 'out of memory'" },
  miss = { "NCCL WARN Cuda failure 'invalid argument'" },
}
-- Everything else that NCCL warns of: its words in the headline, where no other rule knows the line.
wrong {
  id = "warning", restart = "unknown",
  title = "NCCL warns: <what>", says = "origin", severity = "error", category = "unknown",
  regex = { [[\b(?:NCCL|RCCL) WARN (?P<what>\S.*)]] }, action = "check",
  except = { [[\b(?i:deprecated|retrying|recovered|ignor(?:ed|ing)|fall(?:ing|s)? ?back|instead|]] ..
    [[disabled)\b|Failed to open lib]] },
  remedy = "Read the warning.",
  hit = { "n1:4:9 [0] misc/x.cc:1 NCCL WARN Something new" },
  miss = { "n1:4:9 [0] NCCL INFO cudaDriverVersion 12020",
    "NCCL WARN Call to ibv_query_gid_ex failed with Operation not supported errno 95, using fallback" },
}
wrong {
  id = "collective_order", title = "Ranks call different collectives", component = "user_code",
  symptom = "hang",
  regex = { [[this may be caused by a collective mismatch around rank (?P<rank>\d+)]] },
  remedy = "Look for control flow that depends on the rank at that call.",
  hit = { "NCCL WARN Your program may be hanging, this may be caused by a collective mismatch around " ..
      "rank 3. " ..
      "Please check your collective calls at and around this rank." },
  miss = { "NCCL INFO rank 3 joined" },
}
wrong {
  id = "nvml", restart = "elsewhere",
  title = "NCCL cannot use the driver's management library", category = "platform",
  component = "driver", severity = "error", action = "check",
  regex = { W .. [[Failed to open (?P<library>libnvidia-ml\.so\S*)]] },
  remedy = "Pass the driver's utility libraries into the container (NVIDIA_DRIVER_CAPABILITIES).",
  hit = { "NCCL WARN Failed to open libnvidia-ml.so.1" }, miss = { "NCCL INFO NVML is used" },
}
