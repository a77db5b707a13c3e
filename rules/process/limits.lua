-- Limits of the process and the C library it runs on.

local function limit(row)
  rule {
    id = "process.limit." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "platform",
    component = row.component or "host_kernel", severity = row.severity or "fatal", general = row.general,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

limit {
  id = "files", restart = { "never", "same" }, title = "Too many open files",
  regex = { [[\bToo many open files\b]], [=[\[Errno 24\]]=], [[\bEMFILE\b]],
    [[RuntimeError: received \d+ items of ancdata]],
    [[unable to open shared memory object .* in read-write mode: Too many]] },
  except = { [[Too many open files in system]], [[directory watch|inotify]] },
  remedy = "Raise ulimit -n for jobs; share tensors by file_system; close what loaders open.",
  hit = { "OSError: [Errno 24] Too many open files: '/data/shard-0007.tar'",
    "RuntimeError: received 0 items of ancdata" },
  miss = { "open files                      (-n) 1048576" },
}
limit {
  id = "threads", restart = { "never", "same" }, title = "No more processes or threads may be started",
  regex = { [[can't start new thread]],
    [[pthread_create failed|Thread creation failed: Resource temporarily unavailable]],
    [[fork: (?:retry: )?Resource temporarily unavailable]],
    [[(?:BlockingIO|OS)Error: \[Errno 11\] Resource temporarily unavailable\s*$]],
    [[OpenBLAS blas_thread_init: pthread_create failed]],
    [[libgomp: Thread creation failed]], [[Cannot create (?:worker )?thread|failed to create thread]],
    [[what\(\):\s+Resource temporarily unavailable]] },
  remedy = "Raise ulimit -u and the cgroup's pids.max; set OMP_NUM_THREADS; fewer loader workers.",
  hit = { "RuntimeError: can't start new thread", "bash: fork: retry: Resource temporarily unavailable",
    "libgomp: Thread creation failed: Resource temporarily unavailable" },
  miss = { "started 16 threads" },
}
limit {
  id = "stack", title = "Stack or file-size limit of the process was hit", component = "host_kernel",
  severity = "error",
  regex = { [[File size limit exceeded]], [[OSError: \[Errno 27\] File too large]],
    [[(?:\d+ |: )CPU time limit exceeded]], [[Fatal Python error: Cannot recover from stack overflow]] },
  remedy = "Raise the limit named (ulimit -f, -t, -s) for jobs.",
  hit = { "run.sh: line 3: 771 File size limit exceeded(core dumped) python train.py" },
  miss = { "file size                       (blocks, -f) unlimited" },
}
limit {
  id = "glibc", title = "C library of the host or image is too old for the program", category = "user",
  component = "dependency",
  regex = { [[version `?GLIBC_[\d.]+'? not found]], [[version `?(?:GLIBCXX|CXXABI)_[\d.]+'? not found]],
    [[\bkernel too old\b]] },
  remedy = "Use an image with a newer glibc and libstdc++, or put the environment's own first in " ..
      "LD_LIBRARY_PATH.",
  hit = { "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /opt/bin/train)",
    "ImportError: version `GLIBCXX_3.4.30' not found" },
  miss = { "ldd (GNU libc) 2.35" },
}
limit {
  id = "command", title = "Command of the job script is not there", category = "user",
  component = "user_config",
  regex = { [[(?:line \d+: |bash: |sh: (?:\d+: )?)(?P<command>\S+): (?:command )?not found]],
    [[execve\(\): (?P<command>\S+): No such file or directory]],
    [[exec: "?(?P<command>[^":]+)"?: (?:executable file not found|stat )]],
    [[(?:line \d+: |bash: )(?P<command>\S+): Permission denied]],
    [[(?:line \d+: |bash: |cannot execute: )\S+: (?:bad interpreter|cannot execute)]] },
  except = { [[(?i)^(?:warning|info)]] },
  severity = "error",
  remedy = "Load the module or environment in the script; check the path inside of the container.",
  hit = { "/var/spool/slurmd/job17/slurm_script: line 8: torchrun: command not found",
    "slurmstepd: error: execve(): python3: No such file or directory" },
  miss = { "wandb not found, logging is off" },
}
