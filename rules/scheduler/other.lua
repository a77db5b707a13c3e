-- Other schedulers and Ray: limits, cancellations, actors and workers that die.

local function other(row)
  rule {
    id = "scheduler." .. row.id, engine = 1, title = row.title, category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "fatal", role = row.role,
    symptom = row.symptom or "other", general = row.general,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "retry", examples = { hit = row.hit, miss = row.miss },
  }
end

other {
  id = "lsf.limit", title = "LSF ended the job at one of its limits",
  regex = { [[TERM_(?P<limit>RUNLIMIT|CPULIMIT|SWAP|PROCLIMIT|PREEMPT|OWNER|ADMIN|LOAD|EXTERNAL_SIGNAL)\b]] },
  remedy = "Ask for more of the limit named.",
  hit = { "TERM_RUNLIMIT: job killed after reaching LSF run time limit." },
  miss = { "Successfully completed." },
}
other {
  id = "lsf.memory", title = "LSF ended the job at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[TERM_MEMLIMIT\b]] }, remedy = "Ask for more memory, or use less.",
  hit = { "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit." },
  miss = { "Max Memory : 1204 MB" },
}
other {
  id = "pbs.limit", title = "PBS ended the job at one of its limits",
  regex = { [[PBS: job killed: (?:walltime|cput|ncpus) \S+ exceeded limit]] },
  remedy = "Ask for more time or cores.", hit = { "=>> PBS: job killed: walltime 3617 exceeded limit 3600" },
  miss = { "PBS: job 17 started" },
}
other {
  id = "pbs.memory", title = "PBS ended the job at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[PBS: job killed: (?:mem|vmem|pmem|pvmem) \S+ exceeded limit]] },
  remedy = "Ask for more memory, or use less.",
  hit = { "=>> PBS: job killed: mem 268435456kb exceeded limit 262144000kb" },
  miss = { "resources_used.mem=1204kb" },
}
other {
  id = "ray.oom", title = "Ray killed a worker because the host's memory ran out", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[ray\.exceptions\.OutOfMemoryError: ]],
    [[Task was killed due to the node running low on memory]],
    [[\d+ Workers \(tasks / actors\) killed due to memory pressure]], [[ObjectStoreFullError: ]] },
  remedy = "Fewer workers per host, smaller objects, more memory.",
  hit = { "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory." },
  miss = { "ray memory usage 40%" },
}
other {
  id = "ray.node", title = "Ray lost a node", category = "hardware", component = "unknown", action = "check",
  symptom = "crash", severity = "error",
  regex = { [[The node with node id: \S+ .*has been marked dead]], [[ray\.exceptions\.NodeDiedError]],
    [[Raylet is terminated|The raylet has failed|raylet died unexpectedly]] },
  remedy = "Look at that host: power, memory, network.",
  hit = { "The node with node id: 5a3c and address: 10.0.0.7 and node name: 10.0.0.7 has been marked " ..
      "dead because the detector has missed too many heartbeats from it." },
  miss = { "Connected to Ray cluster." },
}
other {
  id = "ray.actor", title = "Ray actor or worker died", role = "cascade", category = "unknown",
  component = "unknown", severity = "error", action = "none", symptom = "crash",
  regex = { [[(?:ray\.exceptions\.)?(?:RayActorError|ActorDiedError|ActorUnavailableError|]] ..
      [[WorkerCrashedError|OwnerDiedError|ObjectLostError)\b]],
    [[A worker died or was killed while executing a task by an unexpected system error]],
    [[ray\.exceptions\.RayTaskError\b]] },
  remedy = "Look at that worker's own log and exit detail.",
  hit = { "ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task." },
  miss = { "(pid=4021) actor ready" },
}
other {
  id = "dask.memory", title = "Dask stopped a worker at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[Worker .{0,60}exceeded \d+% memory budget]],
    [[Worker is at \d+% memory usage\. Pausing worker]] },
  remedy = "Fewer threads or partitions per worker, a higher memory_limit, more memory.",
  hit = { "distributed.nanny - WARNING - Worker tcp://10.0.0.3:4021 (pid=99) exceeded 95% memory budget. " ..
      "Restarting...",
      "distributed.worker_memory - WARNING - Worker is at 86% memory usage. Pausing worker." },
  miss = { "Worker is at 40% memory usage. Resuming worker." },
}
other {
  id = "dependency", title = "Job it depends on did not end well", category = "user",
  component = "user_config", severity = "error", action = "none", symptom = "launch_failure",
  regex = { [[\bDependencyNeverSatisfied\b]], [[Job dependency problem]] },
  remedy = "Look at the job it waits for.", hit = { "srun: error: Job dependency problem" },
  miss = { "Dependency=afterok:17" },
}

-- What launchers, brokers and sites' own scripts say of it, whichever scheduler stands behind.
other {
  id = "time_limit", title = "Job reached its time limit", general = true,
  regex = { [[(?i)\b(?:job|step|allocation)\b.{0,60}\b(?:reached|exceeded|hit|over)\b.{0,20}\b(?:time ]] ..
      [[?limit|wall ?time)\b]] },
  except = { [[(?i)\b(?:will|would|soon|warning|if|before|minutes? (?:left|remaining))\b]] },
  remedy = "Ask for more time, or save and requeue before the limit.",
  hit = { "srun: Job step 3895264.0 reached its time limit", "job 77 exceeded its walltime of 3600 s" },
  miss = { "job time limit: 24:00:00", "job will be stopped when it reached its time limit" },
}
other {
  id = "preempted", title = "Job was preempted", general = true,
  regex = { [[(?i)\bjob\b.{0,40}\b(?:was |is |being )?preempted\b]],
    [[(?i)\b(?:received|got) (?:a )?(?:spot )?(?:preemption|interruption|termination) ]] ..
        [[(?:notice|warning|signal)\b]],
    [[(?i)\b(?:preemption|interruption|termination) (?:notice|warning) (?:was |has been )?received\b]],
    [[(?i)\b(?:node|instance|host|vm|tpu|pod|task|worker)\b.{0,40}\b(?:is being |was )preempted\b]] },
  except = { [[(?i)\b(?:not|never|if|may be|can be) preempted\b]] },
  remedy = "Requeue it; save on the warning signal.",
  hit = { "srun: Job 391256 preempted by a job of partition urgent, requeue in 30 seconds",
    "Received preemption notice from the node pool, draining in 30 s",
    "spot interruption notice received: the host ends in 2 minutes", "TPU worker 3 was preempted" },
  miss = { "preemption: enabled, mode requeue", "this job can be preempted" },
}
