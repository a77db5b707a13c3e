-- What a communication library or an MPI launcher reports as its own error, where no rule knows the message.

local function origin(row)
  rule {
    id = "mpi.origin." .. row.id, engine = 1, title = row.title .. ": <what>", says = "origin",
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
