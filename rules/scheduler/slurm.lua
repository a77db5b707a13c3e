-- Slurm: why it ended a job, and what its steps say.

local function slurm(row)
  rule {
    id = "scheduler.slurm." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom or "other", ends = row.ends, blames = row.blames,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "retry",
    examples = { hit = row.hit, miss = row.miss },
  }
end

-- A row of sacct with a state and its exit code, in columns or with --parsable.
local function in_a_row(state, code)
  return "[ \\t|]" .. state .. "[ \\t|]+" .. (code or [[\d+:\d+]]) .. [[(?:\||\s*$)]]
end

-- The step's and the job's line say the same; the word behind DUE TO is the cause.
local causes = {
  { "time_limit", "Job reached its time limit", "TIME LIMIT",
    "Ask for more time, or save and requeue before the limit." },
  { "preempted", "Job was preempted", "PREEMPTION", "Requeue it; save on the warning signal." },
  { "node_failure", "Slurm lost a host of the job (<peer>)", "NODE FAILURE",
    "Requeue without the host that failed: 'Node failure on' or sacct names it. ON is the host of the " ..
      "batch script.",
    "unknown", "check", true },
  { "job_requeue", "Job was put back into the queue", "JOB REQUEUE", "Nothing, if it was meant." },
}
for _, c in ipairs(causes) do
  slurm {
    id = c[1], restart = c[5] and "elsewhere" or "same", title = c[2],
    category = c[5] and "hardware" or "platform", component = c[5] or "platform",
    severity = c[5] and "error" or "fatal", action = c[6] or "retry", remedy = c[4], general = c[7],
    -- The hole keeps the host of the batch script, which lives and writes the line, from being accused.
    regex = { [[CANCELLED (?:AT \S+ )?DUE TO ]] .. (c[5] and "(?P<peer>" .. c[3] .. ")" or c[3]) },
    hit = { "slurmstepd: error: *** STEP 1999616.0 ON n5 CANCELLED AT 2024-05-27T21:42:11 DUE TO " .. c[3] ..
      " ***",
      "slurmstepd: error: *** JOB 1999616 ON n5 CANCELLED AT 2024-05-27T21:42:11 DUE TO " .. c[3] ..
        ", see slurmctld log for details ***" },
    miss = { "slurmstepd: error: *** JOB 1999616 ON n5 CANCELLED AT 2024-05-27T21:42:11 ***" },
  }
end
slurm {
  id = "cancelled", title = "Job was cancelled by its owner or an operator", category = "user",
  severity = "error", action = "none", role = "cascade",  -- srun cancels a step when one of its tasks fails
  regex = { [[\*\*\* STEP \S+ ON (?P<host>\S+) CANCELLED AT \S+ (?:DUE to SIGNAL \w+ )?\*\*\*]],
    [[STEP \S+ ON \S+ CANCELLED AT \S+ by uid]] },
  remedy = "Ask who cancelled it (sacct); nothing is broken by itself.",
  hit = { "slurmstepd: error: *** STEP 1809579.0 ON r8i3n1 CANCELLED AT 2024-05-23T08:45:57 ***" },
  miss = { "slurmstepd: error: *** JOB 17 ON n5 CANCELLED AT 2024-05-27T21:42:11 DUE TO TIME LIMIT ***" },
}
-- A task that fails ends its step; a whole job is cancelled by scancel or by the scheduler, which says why.
slurm {
  id = "cancelled_job", title = "Job was cancelled by its owner or an operator (scancel)", category = "user",
  severity = "error", action = "none", general = true,
  regex = { [[\*\*\* JOB (?P<job>\S+) ON \S+ CANCELLED AT \S+ (?:DUE to SIGNAL \w+ )?\*\*\*]],
    [[JOB (?P<job>\S+) ON \S+ CANCELLED AT \S+ by uid]], [[\bJobState=CANCELLED\b]],
    in_a_row([[CANCELLED(?: by \d+|\+)]]) },
  remedy = "Ask who cancelled it (sacct); nothing is broken by itself.",
  hit = { "slurmstepd: error: *** JOB 1809579 ON r8i3n1 CANCELLED AT 2024-05-23T08:45:57 ***",
    "4711|train|CANCELLED by 1001|0:15|n[1-4]" },
  miss = { "slurmstepd: error: *** JOB 17 ON n5 CANCELLED AT 2024-05-27T21:42:11 DUE TO TIME LIMIT ***",
    "slurmstepd: error: *** STEP 1809579.0 ON r8i3n1 CANCELLED AT 2024-05-23T08:45:57 ***" },
}
-- The states of a job in scontrol, sacct and seff.
slurm {
  id = "state", restart = "same", title = "Job reached its time limit", general = true,
  regex = { [[\bJobState=(?:TIMEOUT|DEADLINE)\b]], [[\bState: (?:TIMEOUT|DEADLINE)\b]],
    in_a_row("(?:TIMEOUT|DEADLINE)") },
  remedy = "Ask for more time, or save and requeue before the limit.",
  hit = { "   JobState=TIMEOUT Reason=TimeLimit Dependency=(null)", "State: TIMEOUT (exit code 0)",
    "41337        train    gpu   acct   8    TIMEOUT      0:0",
    "4711.batch|batch|TIMEOUT|0:15||n1|2026-11-30T01:00:00" },
  miss = { "JobState=RUNNING Reason=None", "TIMEOUT 30" },
}
slurm {
  id = "state_preempted", restart = "same", title = "Job was preempted", general = true,
  regex = { [[\bJobState=PREEMPTED\b]], [[\bState: PREEMPTED\b]], in_a_row("PREEMPTED") },
  remedy = "Requeue it; save on the warning signal.",
  hit = { "   JobState=PREEMPTED Reason=None Dependency=(null)", "4711|train|PREEMPTED|0:15|n[1-4]" },
  miss = { "PreemptMode=REQUEUE", "JobState=RUNNING Reason=None" },
}
-- What ended it is in the job's own log.
slurm {
  id = "state_signal", restart = "unknown", title = "Job ended by signal <signal>", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none", symptom = "crash",
  regex = { [[\bReason=RaisedSignal:(?P<signal>\d+)]], in_a_row("FAILED", [[0:(?P<signal>[1-9]\d*)]]) },
  remedy = "Look at the job's log and at the kernel's of its first host. 9 is often the out-of-memory " ..
    "killer's.",
  hit = { "JobState=FAILED Reason=RaisedSignal:9(Killed) Dependency=(null)", "4711|train|FAILED|0:9|n[1-4]" },
  miss = { "4711|train|FAILED|1:0|n[1-4]", "4711|train|COMPLETED|0:0|n[1-4]" },
}
slurm {
  id = "state_failed", restart = "unknown", title = "Job ended with an error", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none", symptom = "crash",
  regex = { [[\bJobState=FAILED Reason=NonZeroExitCode\b]], in_a_row("FAILED", [[[1-9]\d*:0]]) },
  remedy = "Look at the job's own log: the scheduler knows the exit code alone.",
  hit = { "JobState=FAILED Reason=NonZeroExitCode Dependency=(null)", "4711|train|FAILED|1:0|n[1-4]" },
  miss = { "4711|train|FAILED|0:9|n[1-4]", "4711|train|COMPLETED|0:0|n[1-4]" },
}
slurm {
  id = "unavailable", restart = "later",
  title = "Hosts that the job asks for are down, drained or reserved", severity = "error",
  symptom = "launch_failure",
  regex = { [[(?P<what>ReqNodeNotAvail,[ _]?(?:UnavailableNodes:(?P<nodes>[^\s)]*)|Reserved for maintena]] ..
    [[nce|May be reserved \w+ \w+ \w+))]],
    [[Reason=(?P<what>ReqNodeNotAvail)\b]], [[\((?P<what>JobHeldAdmin|NodeDown|PartitionDown|PartitionIn]] ..
      [[active|]] ..
      [[launch failed requeued held)\)]] },
  remedy = "See sinfo -R for the reason of those hosts; leave them out of the request.",
  hit = { "41337 gpu train ana PD 0:00 4 (ReqNodeNotAvail, UnavailableNodes:n[7-8])",
    "JobState=PENDING Reason=ReqNodeNotAvail,_UnavailableNodes:n7 Dependency=(null)" },
  miss = { "41337 gpu train ana PD 0:00 4 (Priority)" },
}
slurm {
  id = "oom", restart = { "never", "same" },
  title = "Slurm's memory limit was exceeded, tasks were killed", category = "user",
  component = "host_memory", symptom = "crash", ends = "killed",
  action = "fix",
  regex = { [[Detected \d+ oom[-_]kill event(?:\(s\)|s)? in (?:StepId=|step )]],
    [[: task \d+: Out Of Memory]], [[Exceeded (?:job|step|virtual) memory limit]],
    [[slurmstepd: error: .*exceeded (?:job )?memory limit]], [[\bOUT_OF_ME(?:MORY|\+)]],
    [[Some of (?:your processes|the step tasks) (?:may )?have been (?:killed by the cgroup ]] ..
        [[out-of-memory handler|OOM Killed)]] },
  remedy = "Ask for more memory (--mem), or lower loader workers, caches and offload.",
  hit = { "slurmstepd: error: Detected 1 oom_kill event in StepId=13215045.0. Some of the step tasks " ..
      "have been OOM Killed.",
    "srun: error: holy8a24101: task 0: Out Of Memory",
    "slurmstepd: error: Detected 1 oom-kill event(s) in step 42.batch cgroup." },
  miss = { "slurmstepd: task/cgroup: memory limit 256000MB" },
}
slurm {
  id = "node_fail", restart = "elsewhere",
  title = "Slurm marked a host of the job as failed", category = "hardware",
  component = "unknown", severity = "error",
  action = "check", blames = "host",
  regex = { [[\b(?:srun: )?error: Node failure on (?P<host>\S+)]], [[\bJobState=(?:NODE|BOOT)_FAIL\b]],
    [[\bnodes? (?P<host>\S+) not responding, setting DOWN]], [[error: Nodes (?P<host>\S+) not responding]],
    [[Batch job aborted on node failure]], [[Job (?:credential|has been) .*NODE_FAIL]],
    [[Killing JobId=\S+ on failed node (?P<host>\S+)]], [[\bState: NODE_FAIL\b]],
    in_a_row("(?:NODE|BOOT)_FAIL") },
  remedy = "Look at that host's console and power state; requeue without it.",
  hit = { "srun: error: Node failure on gpu-node-17", "slurmctld: error: Nodes gpu-node-17 not responding",
    "4711|train|NODE_FAIL|0:0|n[1-4]" },
  miss = { "Node gpu-node-17 now responding" },
}
slurm {
  id = "aborted", restart = "same", title = "Job step ends because one of its tasks ended", role = "cascade",
  category = "unknown", component = "unknown",
  severity = "error", action = "none",
  regex = { [[srun: Job step aborted: Waiting up to]],
    [[srun: (?:Force )?Terminat(?:ing|ed) (?:StepId=|job step )]],
    [[srun: error: \S+: tasks? .*unknown error: -1]],
    [[Abandoning IO \d+ secs after job shutdown initiated]], [[Job allocation \S+ has been revoked]],
    [[srun: error: .*Timed out waiting for job step to complete]] },
  remedy = "Look at the task that ended first.",
  hit = { "srun: Job step aborted: Waiting up to 32 seconds for job step to finish." },
  miss = { "srun: job 17 queued and waiting for resources" },
}
slurm {
  id = "task", restart = "unknown", title = "A task of the job step ended with an error", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none", symptom = "crash",
  regex = { [[srun: error: \S+: tasks? (?:(?P<failed_rank>\d+)|[^:]+): (?:Exited with exit code ]] ..
      [[(?P<code>[1-9]\d*)|Aborted)]] },
  remedy = "Look at the task that ended first. An exit code above 128 is a signal: 137 is SIGKILL, often " ..
    "the out-of-memory killer's.",
  hit = { "srun: error: n17: task 3: Exited with exit code 1",
    "srun: error: n17: tasks 0-3: Exited with exit code 2" },
  miss = { "srun: error: n17: task 3: Exited with exit code 0" },
}
slurm {
  id = "kill", restart = "elsewhere",
  title = "Slurm could not end the job's processes on a host", component = "host_kernel",
  severity = "error", action = "check",
  regex = { [[Kill task failed]], [[error: .*STEPD TERMINATED ON \S+ .*DUE TO JOB NOT ENDING WITH SIGNALS]],
    [[JOB NOT ENDING WITH SIGNALS]] },
  remedy = "Processes hang in the kernel (driver, file system): drain the host, look for hung tasks, reboot.",
  hit = { "slurmstepd: error: *** JOB 17 STEPD TERMINATED ON n3 AT 2024-01-01T00:00:00 DUE TO JOB NOT " ..
      "ENDING WITH SIGNALS ***", "update_node: node n3 reason set to: Kill task failed" },
  miss = { "killed task 3" },
}
slurm {
  id = "controller", restart = "same", title = "Slurm's controller could not be reached", severity = "error",
  regex = { [[Unable to contact slurm controller]], [[slurm_receive_msgs?: .*Socket timed out on send/recv]],
    [[(?:job submission failed|allocate resources|create step for job \S+|step \S+): Socket timed out on]] ..
      [[ send/recv]],
    [[error: Unable to confirm allocation for job]],
    [[slurm_load_jobs error: Unable to contact]],
    [[Zero Bytes were transmitted or received]] },
  except = [=[\[\[[^\]]+\]:6818\]]=],  -- the port of a host's slurmd
  remedy = "Check slurmctld, munge and the network to it.", action = "check",
  hit = { "srun: error: Unable to confirm allocation for job 17: Unable to contact slurm controller " ..
      "(connect failure)" }, miss = { "slurmctld: Running as primary controller" },
}
slurm {
  id = "requeue_output", title = "Job started again finds the remains of its first start", category = "user",
  component = "user_config", severity = "error",
  action = "fix",
  regex = { [[(?i)output (?:dir(?:ectory)?|path) .{0,120}already exists.{0,80}(?:resume|overwrite)]] },
  remedy = "Let the script resume when its output is there.",
  hit = { "Output directory /out/run1 already exists; pass --resume or --overwrite" },
  miss = { "Resuming from output directory /out/run1" },
}
