-- torchrun and the elastic agent. What they say about their children tells which rank went first (its
-- `Root Cause` block) and how, seldom why.

local function launcher(row)
  rule {
    id = "pytorch.launcher." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "unknown",
    component = row.component or "unknown", severity = row.severity or "error", role = row.role,
    general = row.general, symptom = row.symptom, blames = row.blames, ends = row.ends,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "none", examples = { hit = row.hit, miss = row.miss },
  }
end

launcher {
  id = "child", restart = "unknown", title = "Launcher reports that a child process failed", role = "cascade",
  general = true,  -- a signal or a status of its own, in the same list, says more
  regex = { [[\bChildFailedError\b]],
    [[failed \(exitcode: 1\) local_rank: (?P<local_rank>\d+) \(pid: \d+\)]],
    [[exitcode\s+: 1 \(pid: \d+\)]],
    [[\bProcessExitedException: process \d+ terminated with exit code]],
    [[\bProcessRaisedException:]],
    [[subprocess\.CalledProcessError: Command .* returned non-zero exit status]],
    [[ERROR: torch\.distributed\.elastic\.multiprocessing\.api:failed]] },
  except = { [[exitcode: -\d]], [[exit status 1[34]\d\b]] },  -- the signal says more
  remedy = "Look at the first error of the rank that the block names as the root cause.",
  hit = { "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "  exitcode  : 1 (pid: 254133)",
    "failed (exitcode: 1) local_rank: 3 (pid: 4021) of binary: /usr/bin/python" },
  miss = { "  time      : 2023-03-01_10:11:12" },
}
-- The same with a signal: that much is a cause of its own. 15 came from the launcher itself.
launcher {
  id = "sigkill", blames = "few", title = "Rank was killed by SIGKILL",
  category = "user", component = "host_memory", ends = "killed",
  regex = { [[Signal 9 \(SIGKILL\) received by PID (?P<pid>\d+)]], [[exitcode\s+: -9 \(pid: \d+\)]],
    [[failed \(exitcode: -9\) local_rank: (?P<local_rank>\d+)]],
    [[ProcessExitedException: process \d+ terminated with signal SIGKILL]],
    [[return code(?: = |: )-9\b]], [[died with <<?Signals\.SIGKILL: 9>]] },
  remedy = "Look for the kernel's out-of-memory lines on that host: most often memory ran out; then lower " ..
      "workers, offload and caches. If there are none, ask who killed it.",
  action = "fix",
  hit = { "  traceback : Signal 9 (SIGKILL) received by PID 4955", "  exitcode  : -9 (pid: 79468)",
    "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>." },
  miss = { "  traceback : Signal 15 (SIGTERM) received by PID 4955" },
}
launcher {
  id = "crash", blames = "few", title = "Rank crashed in native code",
  category = "framework", component = "framework",
  general = true,
  regex = { [[Signal (?:11|4|8) \((?P<signal>SIGSEGV|SIGILL|SIGFPE)\) received by PID (?P<pid>\d+)]],
    [[exitcode\s+: -(?:11|4|8) \(pid: \d+\)]],
    [[failed \(exitcode: -(?:11|4|8)\) local_rank: (?P<local_rank>\d+)]],
    [[ProcessExitedException: process \d+ terminated with signal (?P<signal>SIGSEGV|SIGBUS|SIGILL|SIGFPE)]] },
  remedy = "Look at the native stack or core file of that rank; suspect extensions and mixed library " ..
      "versions.",
  action = "fix",
  hit = { "  traceback : Signal 11 (SIGSEGV) received by PID 1207", "  exitcode  : -11 (pid: 1207)",
    "failed (exitcode: -11) local_rank: 1 (pid: 4021) of binary: /usr/bin/python" },
  miss = { "  traceback : Signal 9 (SIGKILL) received by PID 1207" },
}
launcher {
  id = "aborted", title = "Rank aborted (SIGABRT): look for the message before it", role = "cascade",
  regex = { [[Signal 6 \(SIGABRT\) received by PID (?P<pid>\d+)]], [[exitcode\s+: -6 \(pid: \d+\)]],
    [[failed \(exitcode: -6\) local_rank: (?P<local_rank>\d+)]],
    [[ProcessExitedException: process \d+ terminated with signal SIGABRT]] },
  remedy = "The reason stands earlier: a watchdog's timeout, a C++ exception, a failed check.",
  hit = { "  traceback : Signal 6 (SIGABRT) received by PID 1207" },
  miss = { "  traceback : Signal 11 (SIGSEGV) received by PID 1207" },
}
launcher {
  id = "stopping", title = "Launcher stops the other ranks", severity = "warning", role = "cascade",
  regex = { [[Sending process \d+ closing signal SIG\w+]], [[Signal 15 \(SIGTERM\) received by PID]],
    [[Unable to shutdown process \d+ via]], [[Killing subprocess \d+]] },
  remedy = "Nothing: it follows from another failure, or from a stop that somebody asked for.",
  hit = { "Sending process 48041 closing signal SIGTERM", "Killing subprocess 8711" },
  miss = { "Setting signal handlers" },
}
-- The launcher itself was asked to end: by the scheduler, by its owner, or by srun after another task failed.
launcher {
  id = "stopped", title = "Launcher was stopped from outside (SIGTERM or SIGINT)", role = "cascade",
  category = "platform", component = "platform",
  regex = { [[Received (?:Signals\.)?(?:SIG(?P<signal>\w+)|\d+) death signal, shutting down workers]],
    [[\bSignalException: Process \d+ got signal: (?P<signal>\d+)]] },
  remedy = "Ask who stopped it: time limit, preemption, its owner, or the failure of another task.",
  hit = { "Received 15 death signal, shutting down workers",
    "Received Signals.SIGTERM death signal, shutting down workers",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 87 got signal: 15" },
  miss = { "Setting signal handlers" },
}
-- An exit status of its own, neither an exception's nor a signal's: the program decided to end.
launcher {
  id = "status", restart = "unknown", title = "Rank ended by itself", general = true, blames = "few",
  regex = { [[exitcode\s+: (?P<code>[2-9]|[1-9]\d|1[01]\d|12[0-7]) \(pid: \d+\)]],
    [[failed \(exitcode: (?P<code>[2-9]|[1-9]\d|1[01]\d|12[0-7])\) local_rank: (?P<local_rank>\d+)]],
    [[(?i)\brank\W{0,3}(?P<rank>\d+)\b.{0,60}\b(?:exited|ended|terminated|finished|failed)\b.{0,16}]] ..
      [[\b(?:code|status)[ =:]{0,3}(?P<code>[2-9]|[1-9]\d|1[01]\d|12[0-7])\b]],
    [[(?i)\bwork\w{2,3}[ _:#-]{0,2}[a-z]?(?P<worker>\d{1,4})\b.{0,60}]] ..
      [[\b(?:exited|ended|terminated|failed)\b.{0,16}]] ..
      [[\b(?:code|status)[ =:]{0,3}(?P<code>[2-9]|[1-9]\d|1[01]\d|12[0-7])\b]] },
  remedy = "Look in that rank's program for the exit with this code, and at its last lines.",
  hit = { "  exitcode  : 3 (pid: 254133)", "main: worker w2 exited with code 17",
    "failed (exitcode: 5) local_rank: 3 (pid: 4021) of binary: /usr/bin/python" },
  miss = { "  exitcode  : 1 (pid: 254133)", "  exitcode  : -9 (pid: 254133)",
    "worker w2 exited with code 0" },
}
launcher {
  id = "peers", title = "Agent lost the other agents", role = "cascade", component = "network",
  regex = { [[\bRendezvousClosedError\b]], [[\bRendezvousGracefulExitError\b]],
    [[The node .* has failed to send a keep-alive heartbeat]],
    [[The node '\S+' has failed to shutdown the rendezvous]],
    [[Agent .* exit barrier failed|Error waiting on exit barrier]] },
  remedy = "Find out which host left first.",
  hit = { "torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
    "The node 'host12_817_0' has failed to send a keep-alive heartbeat to the rendezvous 'job' due to " ..
        "an error" },
  miss = { "Rendezvous complete for workers. Result: restart_count=0" },
}
launcher {
  id = "restarts", restart = "unknown", title = "Agent gave up: all restarts are used", role = "cascade",
  regex = { [[(?:FAILED|UNHEALTHY)\. 0/\d+ attempts left]], [[WorkerGroupFailureException]],
    [[Max(?:imum)? restarts \(\d+\) (?:reached|exceeded)]] },
  remedy = "Look at the first failure, not at the last.",
  hit = { "Worker group FAILED. 0/3 attempts left; will restart worker group" },
  miss = { "Worker group FAILED. 2/3 attempts left; will restart worker group" },
}
