-- Limits of the host that jobs run into: processes, files, memory locks, connection and address tables.

local function limit(row)
  rule {
    id = "kernel.limit." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = "platform",
      component = row.component or "host_kernel",
    severity = row.severity or "error", action = row.action or "fix", general = row.general,
      source = { "kernel", "log" }, remedy = row.remedy,
    match = { regex = row.regex, except = row.except }, examples = { hit = row.hit, miss = row.miss },
  }
end

limit {
  id = "pids", restart = { "never", "same" }, title = "Process limit of the job's control group reached",
  regex = { [[cgroup: fork rejected by pids controller in]] },
  except = { [[/system\.slice/]] },  -- a service of the host, not the job
  remedy = "Raise the limit (TasksMax, pids.max, podPidsLimit) or start fewer workers and threads.",
  hit = { "cgroup: fork rejected by pids controller in /kubepods/burstable/pod7f" },
    miss = { "cgroup: memory: limit set" },
}
limit {
  id = "files", restart = "elsewhere", title = "Host has no more file handles",
  regex = { [[VFS: file-max limit \d+ reached]], [[Too many open files in system]] },
  remedy = "Raise fs.file-max; look for a process that leaks handles.",
  hit = { "VFS: file-max limit 9223372 reached" }, miss = { "VFS: Disk quotas dquot_6.6.0" },
}
limit {
  id = "inotify", title = "Watch limit of the host reached", severity = "warning",
  regex = { [[inotify_add_watch\(\) failed|inotify watch limit reached|fs\.inotify\.max_user_(?:watches|]] ..
    [[instances)]],
    [[Failed to (?:allocate|create) (?:directory watch|inotify)]] },
  remedy = "Raise fs.inotify.max_user_watches and max_user_instances.",
  hit = { "Failed to allocate directory watch: Too many open files",
    "OSError: [Errno 28] inotify watch limit reached" }, miss = { "inotify: watching 3 files" },
}
limit {
  id = "memlock", title = "Memory that may be locked for the network is limited", component = "network",
  regex = { [[RLIMIT_MEMLOCK is \d+ bytes]],
    [[(?i)(?:ulimit -l|memlock|locked memory) .{0,40}(?:too low|too small|not unlimited|insufficient)]],
    [[(?P<device>\w+): ibv_\w+\(\) failed: Cannot allocate memory\b.*\bmax locked memory]],
    [[[Pp]lease set max locked memory \(ulimit -l\) to '?unlimited]] },
  remedy = "Set memlock to unlimited for jobs (limits.conf, LimitMEMLOCK of slurmd, container runtime).",
  hit = { "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes." },
    miss = { "max locked memory (kbytes, -l) unlimited" },
}
limit {
  id = "conntrack", restart = "same",
  title = "Connection tracking table is full, packets are dropped", component = "network",
  regex = { [[nf_conntrack: (?:nf_conntrack: )?table full, dropping packet]] },
  remedy = "Raise nf_conntrack_max or take the cluster's traffic out of tracking.",
  hit = { "nf_conntrack: nf_conntrack: table full, dropping packet" },
    miss = { "nf_conntrack: default automatic helper assignment has been turned off" },
}
limit {
  id = "neighbours", restart = "same",
  title = "Neighbour table is full: hosts cannot be reached", component = "network",
  regex = { [[neighbou?r:? (?:table overflow|\w+_cache: neighbou?r table overflow)]],
    [[arp_cache: neighbor table overflow]] },
  remedy = "Raise net.ipv4.neigh.default.gc_thresh1..3 on all hosts.",
  hit = { "neighbour: arp_cache: neighbor table overflow!" }, miss = { "neighbour: lookup" },
}
limit {
  id = "tcp_memory", restart = "same",
  title = "TCP ran out of memory", component = "network", severity = "warning",
  regex = { [[TCP: out of memory -- consider tuning tcp_mem]], [[TCP: too many orphaned sockets]] },
  remedy = "Raise net.ipv4.tcp_mem; look for connections that pile up.",
  hit = { "TCP: out of memory -- consider tuning tcp_mem" }, miss = { "TCP: Hash tables configured" },
}
limit {
  id = "cpuset", restart = "elsewhere",
  title = "CPU set of the job's control group is empty", component = "platform",
  regex = { [[cpuset\.(?:cpus|mems)\b.{0,120}(?:No space left on device|Invalid argument)]],
    [[Failed to set '?cpuset\.\w+'? attribute on]] },
  remedy = "Restart the node's job daemon; a race with systemd left its control group without CPUs. No " ..
    "disk is full.",
  hit = { "slurmd.service: Failed to set 'cpuset.cpus' attribute on '/system.slice/slurmd.service' to '': " ..
    "No space left on device" },
  miss = { "OSError: [Errno 28] No space left on device: '/scratch/x'" },
}
