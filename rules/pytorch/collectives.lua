-- Collectives that time out or fail, as PyTorch tells it. A time-out says that someone did not come; who and
-- why stands elsewhere, so nearly all of this is `cascade`.

local function collective(row)
  rule {
    id = "pytorch.collective." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title, category = row.category or "unknown",
    component = row.component or "nccl_comm", severity = row.severity or "fatal",
    role = row.role or "cascade",
    general = row.general, symptom = row.symptom or "hang",
    observes = row.observes or "collective", reads = row.reads,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "none", examples = { hit = row.hit, miss = row.miss },
  }
end

local own_rank = [=[\[rank(?P<own_rank>\d+)\D]=]

-- What a rank calls, in a check of DETAIL: "CollectiveFingerPrint(SequenceNumber=4, OpType=ALLREDUCE,
-- TensorShape=[20, 10], TensorDtypes=Float, ...". `n`: what follows the names of the holes.
local function fingerprint(n)
  return [[ is running collective: (?:\w+\((?:SequenceNumber=(?P<seq]] .. n ..
    [[>\d+)[,)] ?)?(?:OpType=(?P<op]] .. n .. [[>[^,)]*)[,)] ?)?(?:TensorShape=\[(?P<sizes]] .. n ..
    [=[>[^\]]*)\][,)]? ?)?(?:TensorDtypes=(?P<types]=] .. n .. [[>[^,)]*)[,)])?)?]]
end

collective {
  id = "timeout", title = "Collective timed out waiting for other ranks",
  regex = { [[Watchdog caught collective operation timeout]],
    [[WorkNCCL\(SeqNum=(?P<seq>\d+), OpType=(?P<op>\w+).*(?:ran for \d+ milliseconds before timing out|]] ..
        [[timed out)]],
    [[Timeout at (?:NCCL work|Work): ?(?P<seq>\d+)]], [[Some NCCL operations have failed or timed out]],
    [[Timed out waiting \d+ms for (?:recv|send) operation to complete]],
    [[Caught collective operation timeout: ]] },
  -- rules/pytorch/watchdog.lua reads the rest.
  reads = { own_rank,
    [[Timed out waiting (?P<waited_ms>\d+)ms for (?P<op>recv|send) operation to complete]] },
  remedy = "Find the rank that is behind or silent at this sequence number: it holds the cause.",
  hit = { "[E ProcessGroupNCCL.cpp:474] [Rank 3] Watchdog caught collective operation timeout: " ..
      "WorkNCCL(SeqNum=9)",
    "[Rank 1] Timeout at NCCL work: 78, last enqueued NCCL work: 77, last completed NCCL work: 77." },
  miss = { "NCCL timeout set to 1800000 ms" },
}
collective {
  id = "heartbeat", title = "Watchdog thread of the communicator is stuck",
  regex = { [[ProcessGroupNCCL's watchdog got stuck for \d+ seconds]], [[Heartbeat monitor timed out!]],
    [[(?i)terminat\w+ the process after attempting to dump debug info]],
    [[Process group watchdog thread terminated with exception]],
    [[NCCL watchdog thread terminated with exception]],
    [[To avoid data inconsistency, we are taking the entire process down]],
    [[Observed flight recorder dump signal from another rank]], [[Received a dump signal (?:due to|from)]] },
  reads = { [[(?P<stuck>watchdog got stuck for|Heartbeat monitor timed out|Could not acquire GIL within)]] },
  remedy = "Look at what the rank did before: a blocked driver call, the GIL, a dead GPU.",
  hit = { "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring " ..
      "enqueued collectives.",
    "Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.",
    "[Rank 0] Process group watchdog thread terminated with exception: CUDA error: unspecified launch " ..
        "failure" },
  miss = { "Heartbeat monitor started" },
}
-- The end of such a message, where the log begins or is cut behind its first line.
collective {
  id = "frames", title = "Watchdog ended the process, and its message is missing", general = true,
  observes = "frames",
  regex = { [[^\s*frame #\d+: c10d::ProcessGroup(?:NCCL|HCCL)::(?:ncclCommWatchdog|hcclCommWatchdog|]] ..
    [[watchdogHandler|Watchdog::run|WorkNCCL::checkTimeout|WorkHCCL::checkTimeout)\w*\(]] },
  remedy = "Read the lines above the frames in the whole log: a time-out, or an error of a CUDA call.",
  action = "check",
  hit = { "frame #3: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x9b (0x7f52c1 in libtorch_cuda.so)" },
  miss = { "frame #5: c10d::ProcessGroupNCCL::heartbeatMonitor() + 0x33 (0x7f52c1 in libtorch_cuda.so)",
    "frame #1: c10d::ProcessGroupNCCL::allreduce(std::vector<at::Tensor>&) + 0x5a (0x7f52c1)" },
}
-- Desync reports compare what each rank was about to do: the one place where PyTorch names the culprit.
collective {
  id = "lagging", title = "Some ranks never reached the collective on which the others wait", role = "root",
  component = "unknown", severity = "error", action = "check", observes = "absent",
  regex = { [[(?i)To our best knowledge, ranks \[(?P<ranks>[\d, ]+)\] are the lagging ranks]],
    [[\[(?P<ranks>[\d, ]+)\] (?:joined but didn't finish|finished collective #\d+, but didn't join)]],
    [[(?:Ranks? )?\[?(?P<ranks>[\d, ]+)\]? (?:has|have)(?: |n't| not) (?:failed to pass ]] ..
        [[monitoredBarrier|reached the barrier)]],
    [[\[Rank 0\]: (?:Rank (?P<ranks>\d+)|Ranks (?P<ranks2>[\d, ]+)) failed to pass monitoredBarrier]] },
  reads = { own_rank, [[\bRanks? (?P<absent>[\d, ]+) failed to pass (?P<op>monitoredBarrier)]] },
  remedy = "Look at the stacks and logs of the ranks named.",
  hit = { "\t - To our best knowledge, ranks [5] are the lagging ranks that caused this timeout.",
    "RuntimeError: [Rank 0]: Rank 5 failed to pass monitoredBarrier in 300000 ms" },
  miss = { "Rank 5 joined the barrier" },
}
collective {
  id = "mismatch", restart = "never",
  title = "Ranks called different collectives or different sizes", role = "root",
  category = "user",
  component = "user_code", action = "fix", observes = "absent",
  regex = { [[Detected mismatch between collectives on ranks]],
    [[(?i)collective(?:s)? (?:mismatch|fingerprint mismatch)]],
    [[Ranks? .* (?:and|vs\.?) .*are (?:running|calling) collective: CollectiveFingerPrint]],
    [[Mismatch between collective operation types]], [[the desync was probably caused by a mismatch]],
    [[Found (?:a )?mismatch in collective (?:type|size|op)]] },
  reads = { own_rank, [[Rank (?P<caller>\d+)]] .. fingerprint(""),
    [[ is running collective: .*Rank (?P<caller2>\d+)]] .. fingerprint("2") },
  remedy = "Look for control flow that depends on the rank (conditions, uneven data, an early exit).",
  hit = { "RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running collective: " ..
      "CollectiveFingerPrint(" },
  miss = { "all collectives match" },
}
collective {
  id = "aborted", restart = "same",
  title = "Communicator was aborted after another failure", severity = "error",
  symptom = "crash",
  regex = { [[NCCL communicator was aborted on rank (?P<rank>\d+)]],
    [[Aborting (?:process|communicator) due to]],
    [[ncclCommAbort.*due to]], [[NCCL Error \d+: unhandled|was aborted\. *Original reason for failure]],
    [[is setting up NCCL communicator and retrieving ncclUniqueId]],
    [[\[Rank (?P<rank>\d+)\] found async exception when checking for NCCL errors]],
    [[NCCL communicator encountered error set by ProcessGroupNCCL]] },
  reads = { own_rank, [[(?P<store>ncclUniqueId).*store->get\(]], [[timed out after (?P<waited_ms>\d+)\D]] },
  remedy = "Look for the first error of any rank.",
  hit = { "RuntimeError: NCCL communicator was aborted on rank 3. Original reason for failure was: watchdog",
    "torch.distributed.DistBackendError: [5] is setting up NCCL communicator and retrieving " ..
        "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: " ..
        "Connection reset by peer" },
  miss = { "NCCL communicator created on rank 3" },
}
collective {
  id = "peers_gone", restart = "same", title = "Collective failed because a peer is gone", symptom = "crash",
  severity = "error",
  regex = { [[ncclRemoteError: A call failed possibly due to a network error or a remote process exiting]],
    [[remote process exited or there was a network error, NCCL version]] },
  remedy = "Find the peer that ended first, or the link that broke.",
  hit = { "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting " ..
      "prematurely.",
    "DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, remote process exited or there was a " ..
        "network error, NCCL version 2.21.5" },
  miss = { "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device " ..
      "error.", "ncclSystemError" },
}
-- The wrapper's line; the reason follows in `Last error:` and in NCCL's own warnings.
local kinds = {
  { "internal", "NCCL failed inside", "unknown", "internal error",
    "ncclInternalError: Internal check failed.", "ncclInternalError" },
  { "system", "A system call or library that NCCL uses failed", "platform", "unhandled system error",
    "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
    "ncclSystemError", restart = "same" },
  { "cuda", "A CUDA call of NCCL failed", "unknown", "unhandled cuda error",
    "ncclUnhandledCudaError: Call to CUDA function failed.", "ncclUnhandledCudaError" },
  { "invalid_usage", "NCCL was called the wrong way", "user", "invalid usage",
    "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.", "ncclInvalidUsage",
    restart = "never" },
  { "invalid_argument", "NCCL got an argument that it does not accept", "user", "invalid argument",
    "ncclInvalidArgument: Invalid value for an argument.", "ncclInvalidArgument", restart = "never" },
}
for _, k in ipairs(kinds) do
  collective {
    id = "nccl_" .. k[1], restart = k.restart, title = k[2], category = k[3], role = "root",
    severity = "error", general = true,
    symptom = "crash", action = "check",
    regex = { [[NCCL error(?: in: .*\b|: )]] .. k[4] .. [[\b]], [[\b]] .. k[6] .. ": " },
    remedy = "Read `Last error` below it and NCCL's own warnings (NCCL_DEBUG=WARN).",
    hit = { "DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1275, " .. k[4] .. ", NCCL version 2.18.3",
      "RuntimeError: NCCL error: " .. k[4], k[5] },
    miss = { "NCCL INFO comm 0x55 rank 3 nranks 8 - Init COMPLETE" },
  }
end
