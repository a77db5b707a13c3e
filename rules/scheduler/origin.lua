-- What a program of the scheduler, a launcher, a container runtime or a driver reports as its own error,
-- where no rule knows the message: its origin tells who acts, its words stand in the headline.

local function origin(row)
  rule {
    id = "scheduler.origin." .. row.id, engine = 1, title = row.title .. ": <what>", says = "origin",
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
