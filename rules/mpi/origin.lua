-- What a communication library or an MPI launcher reports as its own error, where no rule knows the message.

local function origin(row)
  rule {
    id = "mpi.origin." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title .. ": <what>", says = "origin",
    category = row.category, component = row.component, severity = "error",
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = "check",
    examples = { hit = row.hit, miss = row.miss },
  }
end

local mild = [[(?i)\b(?:fall(?:ing|s)? ?back|retry(?:ing)?|ignor(?:ed|ing)|disabled|not supported|]] ..
  [[deprecated|will be|using|assuming|skipping)\b]]
origin {
  id = "ucx", title = "UCX reports an error", category = "platform", component = "network",
  regex = { [[\bUCX\s+(?:ERROR|FATAL)\s+(?P<what>\S.*)]], [[\b\w+\.c:\d+\s+Fatal: (?P<what>\S.*)]],
    [[^Fatal: (?P<what>.*\buc[pst]_\w+.*)]] },
  except = { mild },
  remedy = "Look at the adapter and transport that it names; other ranks may only report the loss of " ..
    "this one.",
  hit = { "address.c:564  UCX  ERROR device address contains undefined bytes at offset 12" },
  miss = { "ucp_context.c:1774 UCX  INFO  UCP version is 1.15" },
}
origin {
  id = "libfabric", title = "libfabric reports an error", category = "platform", component = "network",
  regex = { [[\blibfabric:\d+:.*<(?:warn|critical)> (?P<what>.*\b(?i:fail(?:ed|ure)?|error|cannot|]] ..
    [[could not|unable|invalid|timed out|lost)\b.*)]] },
  except = { mild, [[(?i)not found|no such|Failed to find|dlopen|dlsym]] },
  remedy = "Look at the provider and adapter that it names.",
  hit = { "libfabric:4123:1772800207::tcp:ep_ctrl:xnet_report_error():199<warn> internal transfer " ..
    "failed (unknown)" },
  miss = { "libfabric:4123:1772800207::core:core:ofi_hmem_init():209<info> Hmem iface FI_HMEM_CUDA ready" },
}
origin {
  id = "launcher", title = "MPI launcher failed", category = "platform", component = "platform",
  regex = { [=[^\[(?:mpiexec|proxy|hydra\w*)[:@][^\]]*\] (?P<what>.*\b(?i:unable|error|failed|]=] ..
    [[cannot|not (?:in|found))\b.*)]] },
  except = { mild },
  remedy = "Read the first of these lines: hosts, scheduler, daemon of the launcher.",
  hit = { "[mpiexec@n17] find_pbs_node_id (pbs_launch.c:26): user specified host not in the PBS " ..
    "allocated list" },
  miss = { "[mpiexec@n17] Launch arguments: /usr/bin/srun -N 2" },
}
-- The frames of MPICH's error stack below its calls: the last one says what happened.
origin {
  id = "stack", title = "MPI's start or call failed", category = "platform", component = "network",
  regex = { [[^(?:MPI[DRU]?\w*|PMI\w*|internal_\w+|P?MPI_\w+|HYD\w*|create_\w+|init_\w+)\(\d+\)\.*: ?]] ..
    [[(?P<what>[^\s(][^(]*(?:\(.*)?)$]] },
  except = { [[: ?\w+\([^)]*\) failed$]], [[\bfailed$]] },
  remedy = "Look at adapter, fabric library (FI_PROVIDER, UCX_TLS) and launcher that it names, on each host.",
  hit = { "MPIDI_OFI_mpi_init_hook(1419): ring of the endpoint cannot be built (ofi_init.c:1419: no data)",
    "MPID_Init(1719).......: unable to attach to the shared segment" },
  miss = { "internal_Init(70): MPI_Init(argc=(nil), argv=(nil)) failed" },
}
-- The sentences of the boxes that Open MPI, PMIx and PRRTE print between lines of dashes.
local runtime = [[\b(?:Open ?MPI|OMPI|PMIx|PRTE|PRRTE|ORTE|OPAL|MCA|mpirun|prterun|prted|orted|]] ..
  [[MPI_\w+|DVM)\b]]
local refuses = [[\b(?i:unable|fail(?:ed|s|ure)?|could not|cannot|can't|not found|invalid|]] ..
  [[unrecoverable|abort(?:ed)?|not (?:supported|be found|recognized|homogeneous|allowed)|conflict\w*|]] ..
    [[unrecognized|unknown|missing)\b]]
origin {
  id = "box", title = "MPI's runtime reports a failure", category = "platform", component = "platform",
  regex = { [[^(?P<what>[A-Z][^"=]*]] .. runtime .. [[.*]] .. refuses .. [[.*)]],
    [[^(?P<what>(?:A|An|The|We|Your|No|Some|One|At least) [^"=]*]] .. refuses .. [[.*]] ..
      runtime .. [[.*)]] },
  except = { mild, [[(?i)warning|usually is caused|\bif\b|may be|might be|deprecated]] },
  remedy = "Read the whole box: it names the parameter, host or file.",
  hit = { "A PMIx server was unable to bind its listening socket to any of the",
    "The SLURM process starter for OpenMPI was unable to locate a usable \"srun\"" },
  miss = { "MPI_Init took 1.2 s", "If Open MPI cannot find its helper, set OPAL_PREFIX" },
}
