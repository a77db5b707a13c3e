-- Host memory used up, as the kernel says it. The usual cause is the job (data loaders, offload, pinned
-- buffers, a leak);
-- Slurm's and Kubernetes' own words about it are in rules/scheduler.

-- The end of the kernel's summary: whose memory it took back.
local victim = [[(?:.*\btask_memcg=(?P<cgroup>[^,\s]*),task=(?P<process>[^,\s]*),pid=(?P<pid>\d+))?]]

local function oom(row)
  rule {
    id = "kernel.oom." .. row.id, engine = 1, restart = row.restart or { "never", "same" },
    title = row.title, category = row.category or "user",
      component = row.component or "host_memory",
    severity = row.severity or "fatal", action = row.action or "fix", general = row.general, role = row.role,
    ends = row.ends,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

oom {
  id = "cgroup", title = "Memory limit of the job or container reached, a process was killed",
  ends = "killed",
  regex = { [[Memory cgroup out of memory: Kill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]*)\)]],
    [[oom-kill:constraint=CONSTRAINT_MEMCG]] .. victim,
    [[[Tt]ask in \S+ killed as a result of limit of \S+]] },
  remedy = "Ask for more host memory, or lower workers, prefetch, caching and offload.",
  hit = { "Memory cgroup out of memory: Killed process 31337 (python3) total-vm:412345678kB, " ..
    "anon-rss:98765432kB",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=step_0,task=pt_main_thread,pid=4812" ..
        ",uid=1001" },
  miss = { "Memory cgroup stats for /slurm/uid_1001/job_42" },
}
oom {
  id = "host", title = "Host ran out of memory, a process was killed", ends = "killed",
  regex = { [[Out of memory: Kill(?:ed)? process (?P<pid>\d+) \((?P<process>[^)]*)\)]],
    [[Out of memory \(oom_kill_allocating_task\): Kill(?:ed)? process]],
    [[oom-kill:constraint=CONSTRAINT_(?:NONE|CPUSET|MEMORY_POLICY)]] .. victim },
  remedy = "Lower the host memory the job uses (workers, offload, pinned buffers); look for a leak if it " ..
    "grew over time.",
  hit = { "Out of memory: Killed process 4955 (python) total-vm:1067912344kB, anon-rss:503312000kB, " ..
    "file-rss:0kB",
    "Out of memory: Kill process 4955 (python) score 912 or sacrifice child" },
  miss = { "RuntimeError: CUDA error: out of memory" },
}
-- The kernel's last line of it, where the one before was lost: it does not say whose limit was reached.
oom {
  id = "killed", title = "Kernel killed a process for memory: <process>, pid <pid>",
  ends = "killed",
  regex = { [[\bKilled process (?P<pid>\d+)(?:, UID \d+,)? \((?P<process>[^)]*)\),?(?: UID[: ]\d+,)? ]] ..
      [[total-vm:]],
    [[\boom_reaper: reaped process (?P<pid>\d+) \((?P<process>[^)]*)\)]] },
  except = { [[[Oo]ut of memory|as a result of limit]] },
  remedy = "Ask for more host memory, or keep less in it (workers, offload, pinned buffers); the lines " ..
    "before say whether a limit or the host was full.",
  hit = { "kernel: Killed process 9931 (python) total-vm:22907828kB, anon-rss:21500204kB, file-rss:0kB",
    "Killed process 9931, UID 1001, (python) total-vm:22907828kB, anon-rss:21500204kB",
    "Killed process 9931 (python3), UID 1000, total-vm:22907828kB, anon-rss:21500204kB",
    "oom_reaper: reaped process 4955 (python), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB" },
  miss = { "Memory cgroup out of memory: Killed process 31337 (python3) total-vm:412345678kB",
    "launcher: Killed process 9931 (train.py)" },
}
oom {
  id = "invoked", restart = "same",
  title = "Kernel looks for a process to kill: memory is used up", general = true,
    severity = "warning",  -- the next lines name whom it killed
  regex = { [[invoked oom-killer: gfp_mask=]] },
  remedy = "See which process the following lines name.",
  hit = { "python3 invoked oom-killer: gfp_mask=0x1100cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0" },
  miss = { "oom_reaper: reaped process 4955 (python), now anon-rss:0kB" },
}
oom {
  id = "daemon", title = "An out-of-memory daemon killed a process", ends = "killed",
  regex = { [[systemd-oomd.*Killed \S+ due to memory]],
    [[earlyoom.*[Ss]ending SIG(?:TERM|KILL) to process]] },
  remedy = "Lower the host memory the job uses, or exclude jobs from this daemon.",
  hit = { "systemd-oomd[812]: Killed /user.slice/user-1001.slice/session-3.scope due to memory used " ..
    "(253GB) / total (256GB)",
    "earlyoom[912]: sending SIGTERM to process 4955 uid 1001 \"python\": badness 912" },
  miss = { "earlyoom[912]: mem avail: 240123 of 257000 MiB" },
}
oom {
  id = "panic", restart = "same",
  title = "Host panicked for lack of memory", component = "host_memory", category = "platform",
    action = "check",
  regex = { [[Kernel panic - not syncing: (?:System is deadlocked on memory|Out of memory)]] },
  remedy = "Reserve memory for the system on this host; limit jobs by cgroup.",
  hit = { "Kernel panic - not syncing: Out of memory: compulsory panic_on_oom is enabled" },
    miss = { "Kernel panic - not syncing: Fatal exception" },
}
-- Atomic allocations of network drivers fail and are retried: no fault by itself.
oom {
  id = "allocation", restart = "same",
  title = "Kernel could not allocate pages", category = "platform", severity = "warning",
    action = "check",
  regex = { [=[page allocation (?:failure|stalls for)[:. ]]=] },
  remedy = "Raise vm.min_free_kbytes if it repeats or a driver fails after it.",
  hit = { "kworker/3:1: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL), nodemask=(null)" },
    miss = { "page_pool: allocation ok" },
}
