-- What a program of the scheduler, a launcher, a container runtime or a driver reports as its own error,
-- where no rule knows the message: its origin tells who acts, its words stand in the headline.

local function origin(row)
  rule {
    id = "scheduler.origin." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title .. ": <what>", says = "origin",
    category = row.category or "platform", component = row.component or "platform",
    severity = row.severity or "error", symptom = row.symptom, match = { regex = row.regex,
      except = row.except },
    remedy = row.remedy, action = "check", examples = { hit = row.hit, miss = row.miss },
  }
end

local tools = [[(?:srun|sbatch|salloc|scancel|scontrol|squeue|sinfo|sbcast|sattach|slurmd|slurmstepd|]] ..
  [[slurmctld|slurmdbd|slurmrestd|sackd|sacctmgr|sacct|scrontab)]]
-- Lines about tasks that ended, and about what follows, say nothing of the scheduler.
local ends = { [[task[s]? [\d,-]+: ]], [[\*\*\* (?:STEP|JOB) ]], [[Exited with exit code]],
  [[Terminating (?:StepId|job step)|launch/slurm: _step_signal|_handle_msg_timeout|Step created|]] ..
    [[step creation]],
  [[\b(?:retrying|will retry|ignored|ignoring)\b]],
    [[Aborting, \S+ not sent|io timeout|Timed out waiting for job]],
  [[[Jj]ob step aborted|Force Terminated|error: (?:poe|Unable to (?:send|contact) \S+ message)]],
  [[pyxis: +\S|enroot|Task launch for]], [[cpu[-_]bind|mpi/pmix_v\d: .*(?:_dmdx|timeout)|]] ..
    [[error: \S+: slurm_receive_msg]] }
origin {
  id = "slurm_fatal", title = "Slurm's <program> ended", severity = "fatal", symptom = "launch_failure",
  regex = { [[\b(?P<program>]] .. tools .. [[): fatal: (?P<what>\S.*)]] }, except = ends,
  remedy = "Look the message up in Slurm's documentation; it is about the cluster or the request, not " ..
    "the program.",
  hit = { "srun: fatal: SLURM_CONF points to a file of another cluster" },
  miss = { "srun: error: node3: task 4: Killed", "slurmd: debug: fatal errors are logged" },
}
origin {
  id = "slurm_error", title = "Slurm's <program> reports an error", symptom = "launch_failure",
  regex = { [[^(?P<program>]] .. tools .. [[): error: (?P<what>\S.*)]] }, except = ends,
  remedy = "Look the message up in Slurm's documentation; it is about the cluster or the request, not " ..
    "the program.",
  hit = { "sbatch: error: Batch script is empty of commands" },
  miss = { "srun: error: node3: tasks 4-7: Exited with exit code 1",
    "slurmstepd: error: *** STEP 7.0 ON n3 ***" },
}

-- The lines behind `pyxis:` that are indented are those of the container runtime.
origin {
  id = "pyxis", title = "Container plugin of Slurm failed", symptom = "launch_failure",
  regex = { [[\berror: pyxis: (?P<what>[^\s].*)]] },
  except = { [[pyxis: (?:imported|importing|creating|starting|created|removed|version|printing|]] ..
    [[container |exported|exporting|ignoring|reusing|running|using)\b]] },
  remedy = "Read the runtime's lines around it: image, mounts, options of srun --container-*.",
  hit = { "slurmstepd: error: pyxis: couldn't get job step ID: unknown plugin" },
  miss = { "slurmstepd: pyxis: imported docker image: nvcr.io/nvidia/pytorch:24.04-py3",
    "slurmstepd: error: pyxis:     [WARN] Kernel module nvidia_uvm is not loaded" },
}
origin {
  id = "enroot", title = "Container runtime failed", symptom = "launch_failure",
  regex = { [[^(?P<program>enroot-\w+): (?P<what>\S.*)]] },
  remedy = "Read the message: image, mounts, rights of user namespaces on this host.",
  hit = { "enroot-mount: invalid fstab entry: \"tmp\" at fstab" }, miss = {
    "enroot-mount was built for glibc 2.28" },
}
origin {
  id = "pbs", title = "PBS reports a failure",
  regex = { [[^(?P<program>qsub|qrun|qalter|pbsdsh|pbs_tmrsh|pbs_attach): (?P<what>\S.*)]],
    [[;000[01];(?P<program>pbs_mom|pbs_server|PBS_Server|Server@\S+|pbs_sched)\S*;(?:Svr|Job|Req|Node|]] ..
      [[Hook);[^;]*;(?P<what>.*\b(?i:error|fail(?:ed|ure|s)?|cannot|could not|unable|invalid|denied|]] ..
        [[reject(?:ed)?|bad|not found|no such)\b.*)]] },
  except = { [[(?i)waiting for job \d+|job \S+ (?:ready|completed)|no error]] },
  remedy = "Look the message up in the documentation of PBS; see tracejob for this job.",
  hit = { "qsub: Default partition name is not allowed",
    "03/06/2026 12:30:07;0001;pbs_mom;Svr;pbs_mom;resv_alloc failed" },
  miss = { "qsub: waiting for job 17.head to start",
    "03/06/2026 12:30:07;0008;pbs_mom;Job;17.head;Started, pid = 7" },
}
-- Events of Kubernetes as kubectl prints them, or taken out of their objects.
origin {
  id = "kubernetes_event", title = "Kubernetes reports <reason> of <object>",
  regex = { [[(?:^|\bWarning\s+)(?P<reason>(?:Fail|Err|Evict|Invalid|Unhealthy|Unexpected|NetworkNot|]] ..
    [[NodeNot|\w{0,40}Failed|\w{0,40}Error)\w*)\s.{0,60}?(?P<object>(?i:pod|node|job|jobset|trainjob|]] ..
      [[podgroup|pytorchjob|mpijob|rayjob|raycluster|workload|replicaset|statefulset|]] ..
        [[persistentvolumeclaim)/[\w.-]+):?\s+(?P<what>\S.*)]] },
  except = { [[\bNormal\b]] },
  remedy = "See `kubectl describe` of that object and the log of the component that wrote the event.",
  hit = { "3m12s       Warning   FailedToRetrieveCredentials   pod/train-0   token of the registry has gone",
    "FailedPreStopHook Pod/train-3: hook ended with status 3" },
  miss = { "3m12s       Normal    Pulled   pod/train-0   Image is there", "Failed pods: 0, jobs/queued: 4" },
}
origin {
  id = "kubernetes_component", title = "A component of Kubernetes reports",
  regex = { [[^"(?P<what>(?:Error|Failed|Fail|Unable|Could not|Cannot|Timed out|Timeout|]] ..
    [[No )[^"]{0,160})" err=]],
    [[^"(?P<what>[A-Z][^"]{3,160}(?:failed|error|failure))"? err=]] },
  except = { [[err="?<nil>|(?i)will retry|retrying|requeu]] },
  remedy = "Read the error behind it; look at that component on its node.",
  hit = { [["Unable to watch the runtime" err="stream ended" node="n3"]] },
  miss = { [["Starting controller" err="<nil>"]] },
}
