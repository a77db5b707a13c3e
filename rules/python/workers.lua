-- Worker processes of a Python program: how they die, and what the parent says then.

local function worker(row)
  rule {
    id = "python.worker." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "user",
    component = row.component or "user_code", severity = row.severity or "fatal", role = row.role,
    ends = row.ends, general = row.general,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

worker {
  id = "shm", restart = { "never", "same" }, title = "Data loader ran out of shared memory",
  component = "host_memory",
  -- The message speaks of the limit, an option of the container. (A full /dev/shm: rules/storage/disk.lua.)
  regex = { [[dataloader's workers are out of shared memory]], [[(?i)insufficient shared memory \(shm\)]],
    [[(?i)out of shared memory\. Please try to raise your shared memory limit]],
    [[DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) is killed by signal: Bus error]],
    [[OSError: \[Errno 28\] No space left on device: '/(?:psm_|torch_)]] },
  remedy = "Enlarge /dev/shm (docker --shm-size, emptyDir medium Memory), or fewer workers and less " ..
      "prefetch.",
  hit = { "RuntimeError: DataLoader worker (pid 30882) is killed by signal: Bus error.",
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared " ..
        "memory (shm)." },
  miss = { "RuntimeError: DataLoader worker (pid 30882) is killed by signal: Segmentation fault." },
}
worker {
  id = "killed", restart = { "never", "same" },
  title = "Data loader worker was killed, most likely for host memory",
  component = "host_memory", ends = "killed",
  regex = { [[DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) is killed by signal: Killed]],
    [[A worker process managed by the executor was unexpectedly terminated]],
    [[A process in the process pool was terminated abruptly]],
    [[TerminatedWorkerError: ]] },
  remedy = "Look for the kernel's out-of-memory lines; lower workers, prefetch and caches.",
  hit = { "RuntimeError: DataLoader worker (pid 4021) is killed by signal: Killed. ",
    "concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly" },
  miss = { "RuntimeError: DataLoader worker (pid 4021) is killed by signal: Terminated. " },
}
worker {
  id = "crashed", title = "Data loader worker crashed in native code", component = "framework",
  category = "framework",
  regex = { [[DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) is killed by signal: (?:Segmentation fault|]] ..
      [[Aborted|Illegal instruction|Floating point)]] },
  remedy = "Run with num_workers=0 to see the place; suspect image, audio or video decoders.",
  hit = { "RuntimeError: DataLoader worker (pid 88) is killed by signal: Segmentation fault. " },
  miss = { "RuntimeError: DataLoader worker (pid 88) is killed by signal: Killed. " },
}
worker {
  id = "ended", title = "Data loader worker ended early", role = "cascade", severity = "error",
  category = "unknown",
  component = "unknown",
  regex = { [[DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) (?:exited unexpectedly|is killed by signal: ]] ..
      [[(?:Terminated|Interrupt))]],
    [[Pin memory thread exited unexpectedly]] },
  remedy = "Look for what ended it before.", action = "none",
  hit = { "RuntimeError: DataLoader worker (pid(s) 1211, 1275) exited unexpectedly" },
  miss = { "This DataLoader will create 16 worker processes in total. Our suggested max number of " ..
      "worker is 8" },
}
worker {
  id = "timeout", restart = "unknown", title = "Data loader delivered nothing in time", component = "storage",
  category = "unknown",
  regex = { [[RuntimeError: DataLoader timed out after \d+ seconds]] }, severity = "error", action = "check",
  remedy = "Check the file system's speed and the loader's locks; raise the timeout only for known slow " ..
      "reads.",
  hit = { "RuntimeError: DataLoader timed out after 120 seconds" },
  miss = { "DataLoader timeout set to 120 seconds" },
}
worker {
  id = "bootstrap", restart = "never", title = "Worker processes are started outside of the main guard",
  regex = { [[An attempt has been made to start a new process before the]],
    [[daemonic processes are not allowed to have children]] },
  remedy = "Start processes below `if __name__ == \"__main__\":`; no pools inside of daemonic workers.",
  hit = { "        An attempt has been made to start a new process before the current process has finished" },
  miss = { "Started 8 worker processes" },
}
worker {
  id = "pipe", title = "Other process closed the pipe or queue", role = "cascade", severity = "error",
  category = "unknown",
  component = "unknown",
  regex = { [=[\bBrokenPipeError: \[Errno 32\]]=], [=[\bConnectionResetError: \[Errno 104\]]=],
    [[\bEOFError\s*$]],
    [[multiprocessing\.managers\.RemoteError]] },
  remedy = "Look for the process that ended first.", action = "none",
  hit = { "BrokenPipeError: [Errno 32] Broken pipe",
    "ConnectionResetError: [Errno 104] Connection reset by peer" },
  miss = { "EOFError: Ran out of input" },
}
