-- How a process ends outside of Python: signals, aborts, allocators. Shells, launchers and C libraries print
-- it.

local function ends(row)
  rule {
    id = "process." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "framework",
    component = row.component or "framework", severity = row.severity or "fatal", role = row.role,
    ends = row.ends, general = row.general, blames = row.blames or "few",
    match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

-- A death by signal in the words of launchers, shells and schedulers: the negative number of Python's
-- subprocess, 128 + number of shells and containers, or the signal itself. `name` without SIG. What torchrun
-- says of its ranks belongs to rules/pytorch/launcher.lua.
local torchrun = { [[\(exitcode: -\d+\) local_rank: ]], [[\bexitcode\s+: -\d+ \(pid: ]] }
local function died(number, name)
  local who = [[(?i)(?:\brank\W{0,3}(?P<rank>\d+)\b.{0,60}|]] ..
    [[\bworkers?[ _:#-]{0,2}[a-z]?(?P<worker>\d{1,4})\b.{0,60})?]]
  local code = [[ ?[_-]?(?:code|status)s?(?: was| is| of)?]]
  return who .. [[\b(?:exit|return)]] .. code .. [[[ =:("']{0,4}-]] .. number .. [[\b]],
    who .. [[\b(?:exited|terminated|died|crashed|ended)\b.{0,20}[ =:(]-]] .. number .. [[\b]],
    who .. [[\b(?:killed|terminated|died|exited|crashed|ended|stopped)\b.{0,24}\bsignal[ =:#(]{1,3}(?:]] ..
      number .. [[|SIG]] .. name .. [[)\b]],
    who .. [[<Signals\.SIG]] .. name .. [[: ]] .. number .. [[>]],
    who .. [[\b(?:exit|return)(?:ed)?.{0,24}(?:code|status)s?(?: was| is| of)?[ =:(]{0,8}]] ..
      (128 + number) .. [[\b]]
end

-- What `culprit run` saw of the end.
ends {
  id = "exit_status", restart = "unknown", title = "<who> ended with exit code <code>", category = "unknown",
  component = "unknown", severity = "error", role = "cascade", general = true, blames = "job",
  regex = { [[^culprit run: (?P<who>\S+) ended with exit code (?P<code>[1-9]\d*)$]] },
  remedy = "Read what the program wrote before it ended.",
  hit = { "culprit run: python3 ended with exit code 1" },
  miss = { "culprit run: python3 ended with exit code 0" },
}
-- What started the program says that it failed, and nothing else.
ends {
  id = "command", restart = "unknown",
  title = "Command failed: <what>", category = "unknown", component = "unknown",
  severity = "error", role = "cascade", general = true, blames = "job",
  regex = { [[^g?make(?:\[\d+\])?: \*\*\* (?P<what>\[.*\] Error \d+)\s*$]] },
  remedy = "Read what the command wrote before it ended.",
  hit = { "make: *** [Makefile:12: train] Error 1" },
  miss = { "make: Nothing to be done for 'all'.", "make: *** [Makefile:12: train] Error 1 (ignored)" },
}
ends {
  id = "segfault", title = "Process crashed (segmentation fault)", severity = "error", general = true,
  regex = { [[Fatal Python error: (?:Segmentation fault|Bus error)]],
    [[(?:: |\d+ )Segmentation fault\b(?: \(core dumped\))?]],
    [[!!!!!!! Segfault encountered !!!!!!!]], [[\*\*\* SIGSEGV \(@]],
    [[\bSegmentation fault \(core dumped\)]], [[received signal SIGSEGV]],
    [[^\s*Segmentation fault\s*$]],
    [[process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 11\b]],
    [[\brank (?P<rank>\d+) died from signal 11\b]],
    [[EXIT STRING: Segmentation fault \(signal 11\)]],
    [[: tasks? \d[\d,-]*: Segmentation fault]], [[Fatal error condition occurred .*signal 11]],
    died(11, "SEGV") },
  except = torchrun,
  remedy = "Look at the native frames or the core file; suspect compiled extensions; one host only: " ..
      "check its memory.",
  hit = { "launcher: worker w1 exited with code -11", "trainer (exitcode: -11) is gone",
    "child returned non-zero exit status 139", "[rank: 2] child process 811 died by signal 11",
    "Fatal Python error: Segmentation fault",
    "run.sh: line 12: 48151 Segmentation fault      (core dumped) python train.py",
    "srun: error: n7: task 640: Segmentation fault",
    "*** SIGSEGV (@0x0) received by PID 4055 (TID 0x7f) from PID 0; stack trace: ***",
    "mpirun noticed that process rank 5 with PID 4055 on node n3 exited on signal 11 (Segmentation fault).",
    "Segmentation fault" },
  miss = { "firmware load failed with error -11", "recv returned -11, trying again",
    "faulthandler enabled for segmentation faults" },
}
ends {
  id = "buserror", title = "Process crashed (bus error): a mapped file or shared memory went away",
  severity = "error", general = true,
  category = "user", component = "host_memory",
  regex = { [[(?:: |\d+ )Bus error\b]], [[^\s*Bus error(?: \(core dumped\))?\s*$]],
    [[process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 7\b]],
    [[\brank (?P<rank>\d+) died from signal 7\b]], [[Signal 7 \(SIGBUS\) received by PID]],
    [[failed \(exitcode: -7\) local_rank: (?P<local_rank>\d+)]], [[exitcode\s+: -7 \(pid: \d+\)]],
    [[\*\*\* SIGBUS \(@]], [[Caught signal 7 \(Bus error]],
    [[received signal SIGBUS]],
    died(7, "BUS") },
  except = { [[DataLoader worker]] },
  remedy = "Check the space in /dev/shm and files that were cut while mapped; else the host's memory.",
  hit = { "job ended with exit code 135", "rank 3 terminated by signal 7",
    "run.sh: line 3: 771 Bus error               (core dumped) python train.py",
    "srun: error: n7: task 3: Bus error", "Bus error (core dumped)",
    "  traceback : Signal 7 (SIGBUS) received by PID 1207" },
  miss = { "PCIe Bus Error: severity=Corrected" },
}
-- `culprit run` compares the kernel's counts of kills for memory before and after a death by SIGKILL.
ends {
  id = "killed_from_outside", ends = "killed", severity = "error", blames = "job", category = "unknown",
  component = "unknown",
  title = "<who> was killed by SIGKILL, and the kernel killed nothing for memory",
  regex = { [[: (?P<who>\S+) was killed by signal 9 \(SIGKILL\), and the kernel killed nothing for ]] ..
      [[memory\b]] },
  remedy = "Ask who ended it: the scheduler (sacct, kubectl describe pod), a watchdog of the site, " ..
      "systemd-oomd or earlyoom (their logs), a person.",
  hit = { "culprit run: python3 was killed by signal 9 (SIGKILL), and the kernel killed nothing for memory" },
  miss = { "culprit run: python3 was killed by signal 9 (SIGKILL)" },
}
-- Who sends SIGKILL without a message is nearly always the kernel for memory, or a cgroup.
ends {
  id = "killed", title = "Process was killed by SIGKILL", ends = "killed",
  category = "user",
  component = "host_memory", severity = "error", general = true, action = "fix",
  regex = { [[line \d+: +\d+ Killed\b]], [[: task \d+: Killed\b]], [[^\s*Killed\s*$]],
    [[process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 9\b]],
    [[\brank (?P<rank>\d+) died from signal 9\b]],
    [[exited on signal 9 \(Killed\)]], [[died from signal 9\b]],
    [[Command terminated by signal 9\b]],
    [[EXIT STRING: Killed \(signal 9\)]],
    died(9, "KILL") },
  remedy = "Look for the kernel's out-of-memory lines on that host: most often memory ran out. If there " ..
      "are none, ask who killed it.",
  hit = { "rank 5 (pid 7712) terminated by signal 9", "main: worker 4 exited with code -9",
    "command terminated with exit code 137",
    "/var/spool/slurmd/job17/slurm_script: line 48: 880015 Killed                  python3 train.py",
    "srun: error: n7: task 3: Killed", "Killed" },
  miss = { "Killing subprocess 1204", "mpirun noticed that process rank 1 with PID 7 on node n3 exited on " ..
      "signal 15 (Terminated).", "run.sh: line 3: 771 Terminated              python train.py" },
}
-- All tasks of a host at once: the step was ended.
ends {
  id = "tasks_killed", title = "All tasks of a host were killed", role = "cascade", general = true,
  ends = "killed",
  category = "unknown", component = "unknown", severity = "error", action = "check",
  regex = { [[: tasks \d[\d,-]*: Killed\b]] },
  remedy = "Find out what ended the step; if nothing did, look for the kernel's out-of-memory lines there.",
  hit = { "srun: error: n7: tasks 0-7: Killed" }, miss = { "srun: error: n7: task 3: Killed" },
}
-- What a program or a broker of its own says of a rank that it no longer hears.
ends {
  id = "rank_lost", title = "A rank stopped answering", role = "cascade", general = true,
  category = "unknown", component = "unknown", severity = "error", action = "check",
  regex = { [[(?i)\brank\W{0,3}(?P<rank>\d+)\b.{0,24}\b(?:disconnected|stopped responding|not responding|]] ..
    [[unreachable|went away|(?:missed|lost|no) (?:its )?heartbeats?|(?:is|was|has been) ]] ..
      [[(?:lost|dead|gone))\b]],
    [[(?i)\b(?:lost (?:connection to|contact with)|no (?:heartbeat|answer) from) (?:the )?]] ..
      [[rank\W{0,3}(?P<rank>\d+)\b]] },
  except = { [[(?i)\b(?:if|until|again|reconnect\w*|recovered)\b]] },
  remedy = "Look at that rank's own last lines and at its host.",
  hit = { "rank 2 disconnected: aborting the job", "coordinator: lost contact with rank 17" },
  miss = { "rank 2 reconnected", "ranks 0 and 1 are connected" },
}
ends {
  id = "terminated", title = "Process was asked to end (SIGTERM)", role = "cascade", category = "unknown",
  component = "unknown",
  severity = "error", action = "none",
  regex = { [[: task \d+: Terminated\b]], [[line \d+: +\d+ Terminated\b]], [[\*\*\* SIGTERM \(@]],
    [[died from signal 15\b]],
    [[(?i)received (?:signal )?(?:SIGTERM|signal 15)\b]],
    died(15, "TERM") },
  except = { [[(?i)will|handler|requeue]] },
  remedy = "Look for what made the launcher or scheduler stop the job.",
  hit = { "worker 4 exited with code -15", "task ended with exit code 143",
    "srun: error: n7: task 3: Terminated", "*** SIGTERM (@0x3e80) received by PID 4055 from PID 1" },
  miss = { "Setting signal handlers. SIGTERM will save a checkpoint" },
}
-- `culprit run` passes the signal on.
ends {
  id = "asked_to_end", role = "cascade", category = "platform", component = "platform", severity = "error",
  action = "none", restart = "unknown",
  title = "<who> was asked to end: <signal> was sent to culprit run",
  regex = { [[^culprit run: (?P<who>\S+) was asked to end: (?P<signal>SIG\w+) was sent to culprit run$]] },
  remedy = "Ask who stopped it: time limit, preemption, its owner, or the failure of another task.",
  hit = { "culprit run: python3 was asked to end: SIGTERM was sent to culprit run" },
  miss = { "culprit run: python3 was killed by signal 15 (SIGTERM)" },
}
ends {
  id = "abort", restart = "unknown",
  title = "C++ exception was not caught", severity = "error", general = true,
  category = "unknown",
  regex = { [[terminate called after throwing an instance of '(?P<kind>[^']+)']],
    [[terminate called without an active exception]], [[libc\+\+abi: terminating]] },
  except = { [[std::bad_alloc]], [[c10::Dist\w*Error]], torchrun[1], torchrun[2] },
  remedy = "Read `what():` below it and the error before it.",
  hit = { "terminate called after throwing an instance of 'c10::Error'" },
  miss = { "Fatal Python error: Aborted" },
}
-- Also by a failed assertion, or by a library that checks itself.
ends {
  id = "aborted", restart = "unknown",
  title = "Process aborted (SIGABRT)", severity = "error", general = true,
  category = "unknown",
  regex = { [[Fatal Python error: Aborted]], [[: task \d+: Aborted\b]],
    [[line \d+: +\d+ Aborted\b]], [[^\s*Aborted(?: \(core dumped\))?\s*$]],
    [[process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 6\b]],
    died(6, "ABRT") },
  except = { torchrun[1], torchrun[2] },
  remedy = "Read the error before it: a failed assertion, an uncaught C++ exception, a check of a library.",
  hit = { "worker 2 exited with exit status 134", "rank 1 exited with code -6",
    "Fatal Python error: Aborted" },
  miss = { "Aborted request 17, will be sent again" },
}
ends {
  id = "bad_alloc", restart = { "never", "same" },
  title = "Host memory could not be allocated (C++)", category = "user",
  component = "host_memory", action = "fix",
  regex = { [[std::bad_alloc]], [[tcmalloc: large alloc \d+ bytes == \(nil\)]],
    [[mmap failed: Cannot allocate memory]], [[memory allocation of \d+ bytes failed]],
    [[(?i)\bfork(?:ing)?:? (?:failed: )?(?:\[Errno 12\] )?Cannot allocate memory]],
    [[virtual memory exhausted]] },
  remedy = "Ask for more host memory, or load less at once; check ulimit -v.",
  hit = { "terminate called after throwing an instance of 'std::bad_alloc'",
    "memory allocation of 1048576 bytes failed" },
  miss = { "tcmalloc: large alloc 4294967296 bytes == 0x7f12 @" },
}
ends {
  id = "heap", title = "Heap of the process is corrupted", severity = "error",
  regex = { [[(?:free|malloc|realloc|munmap_chunk|malloc_consolidate)\(\):? ?\(?(?:invalid (?:pointer|]] ..
      [[size|next size|chunk size)|corrupted|memory corruption|unaligned|unsorted)]],
    [[double free or corruption]], [[corrupted size vs\. prev_size]],
    [[\*\*\* stack smashing detected \*\*\*]], [[\*\*\* buffer overflow detected \*\*\*]],
    [[malloc\(\): (?:unaligned|unsorted|smallbin|mismatching|largebin)]] },
  role = "cascade",
  remedy = "If nothing came before it: run under a memory checker; suspect mixed libraries.",
  hit = { "double free or corruption (!prev)", "malloc_consolidate(): invalid chunk size",
    "*** stack smashing detected ***: terminated" },
  miss = { "malloc trim threshold set" },
}
ends {
  id = "illegal", restart = "never",
  title = "Program uses instructions that this processor lacks", category = "user",
  component = "dependency",
  regex = { [[(?:: |\d+ |^\s*)Illegal instruction\b]],
    [[process rank (?P<rank>\d+) with PID \d+ on node (?P<host>\S+) exited on signal 4\b]],
    [[Fatal Python error: Illegal instruction]],
    [[\*\*\* SIGILL \(@]],
    [[Caught signal 4 \(Illegal instruction]], [[This CPU does not support .{0,60}(?:AVX|instructions)]],
    died(4, "ILL") },
  except = torchrun,
  remedy = "Build for this processor, or use hosts of the same kind; same kind: check the processor.",
  action = "fix",
  hit = { "rank 1 died with signal SIGILL",
    "run.sh: line 3: 771 Illegal instruction     (core dumped) python train.py" },
  miss = { "CUDA error: an illegal instruction was encountered" },
}
ends {
  id = "check", restart = "unknown",
  title = "Library stopped the program: an internal check failed", severity = "error",
  general = true, category = "framework",
  regex = { [[\bCheck failed: \S]], [[\bNon-OK-status: \S]],
    [[\*\*\* Check failure stack trace: \*\*\*]], [[^\s*F tensorflow/\S+:\d+\] ]],
    [[: F \S+/\S+\.(?:cc|h):\d+\] (?:Check failed|Non-OK)]],
    [[Assertion [`']\S.*' failed\.]] },
  remedy = "Read the condition: it names the library and the place.",
  hit = { "F0511 18:18:50.796322     914 pjrt_client.cc:77] Check failed: status.ok()",
    "*** Check failure stack trace: ***",
    "python: src/tcp.c:99: send: Assertion `fd >= 0' failed." },
  miss = { "I0511 18:18:50.796322     914 pjrt_client.cc:77] Created client" },
}
-- The kernel's word on a crash: which library the process was in.
local victim = [=[(?P<process>\w[\w.-]*)\[(?P<pid>\d+)\]]=]
rule {
  id = "process.segfault_kernel", restart = "same", engine = 1, title = "Process crashed inside a library",
  category = "framework", component = "framework", severity = "error", general = true,
  source = { "kernel", "log" },
  match = { regex = { victim .. [[: segfault at \S+ ip .* in (?P<library>[\w.+-]+)\[]],
    [[traps: ]] .. victim .. [[ (?:general protection fault|trap (?:invalid opcode|divide error)) .* in ]] ..
      [[(?P<library>[\w.+-]+)]] } },
  remedy = "Suspect the library named; if many programs crash on one host only, check its memory.",
  action = "check",
  examples = { hit = { "python3[31234]: segfault at 0 ip 00007f02 sp 00007ffc error 4 in " ..
      "libtorch_cuda.so[7f8+1000]",
      "traps: python[123] general protection fault ip:7f02 sp:7ffc error:0 in libcuda.so.535.104.05[7f+1]" },
    miss = { "faulthandler: segfault handler enabled" } },
}
