-- Other schedulers and Ray: limits, cancellations, actors and workers that die.

local function other(row)
  rule {
    id = "scheduler." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "fatal", role = row.role,
    symptom = row.symptom or "other", ends = row.ends, general = row.general,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "retry", examples = { hit = row.hit, miss = row.miss },
  }
end

other {
  id = "sge.error_state", title = "Grid Engine put the job into the error state: <what>",
  component = "platform", symptom = "launch_failure", action = "check",
  regex = { [[^error reason\s+\d+: .*?: (?:error: )?(?P<what>.+)]] },
  remedy = "Mend that on the host that the job ran on, then clear the state with qmod -cj.",
  hit = { "error reason    1:          11/21/2026 02:12:01 [1001:4711]: error: can't open output file " ..
    "\"/work/ana/job.o4711\"" },
  miss = { "error reason codes are listed in the manual" },
}
other {
  id = "condor.daemon", title = "HTCondor's <daemon> ended with an error", component = "platform",
  symptom = "launch_failure", severity = "error", action = "check",
  regex = { [[\*\*\*\* (?P<daemon>condor_\w+) \(\w+\) pid \d+ EXITING WITH STATUS (?:[1-9]|\d\d+)\b]],
    [[\bERROR "(?P<what>[^"]+)" at line \d+ in file \S+\.(?:cpp|C|h)\b]] },
  except = { [[EXITING WITH STATUS 99\b]] },
  remedy = "Read the lines above it in that daemon's log: its configuration, files, or host.",
  hit = { "**** condor_startd (condor_STARTD) pid 4711 EXITING WITH STATUS 4",
    "ERROR \"Cannot open the spool\" at line 812 in file /src/condor_schedd.cpp" },
  miss = { "**** condor_startd (condor_STARTD) pid 4711 EXITING WITH STATUS 0" },
}
-- LSF's termination reasons, in the mail of a job, bjobs -l and bhist -l.
local reasons = {
  { "limit", "LSF ended the job at one of its limits", "RUNLIMIT|CPULIMIT|PROCESSLIMIT|PROCLIMIT|THREADL" ..
    "IMIT|DEADLINE",
    "job killed after reaching LSF run time limit.", remedy = "Ask for more of the limit named." },
  { "preempt", "LSF preempted the job or closed its window", "PREEMPT|WINDOW|LOAD|RC_RECLAIM|MC_RECALL",
    "job killed by preemption.", remedy = "Requeue it; save on the warning signal." },
  { "owner", "Job was ended by its owner", "OWNER|FORCE_OWNER|REQUEUE_OWNER", "job killed by owner.",
    category = "user", severity = "error", action = "none", general = true,
    remedy = "Ask who ended it; nothing is broken by itself.", restart = "never" },
  { "admin", "Job was ended by an administrator or the scheduler", "ADMIN|FORCE_ADMIN|REQUEUE_ADMIN|" ..
    "REMOVE_HUNG_JOB|ORPHAN_SYSTEM|BUCKET_KILL", "job killed by root or LSF administrator.",
    remedy = "Ask the operators; requeue it." },
  { "swap", "LSF ended the job at its swap limit", "SWAP", "job killed after reaching LSF swap usage limit.",
    category = "user", component = "host_memory", action = "fix", symptom = "crash",
    remedy = "Ask for more memory, or use less.", restart = { "never", "same" } },
  { "folder", "Job's folder is not there on the host", "CWD_NOTEXIST",
    "current working directory is not accessible or does not exist on the execution host.",
    category = "platform", component = "storage", action = "fix", symptom = "launch_failure",
    remedy = "Check that the file system is mounted on the host, and the path of -cwd.",
    restart = "elsewhere" },
  { "pre_exec", "Host failed LSF's command before the job", "PRE_EXEC_FAIL",
    "job killed after reaching pre-execution retry limit.", symptom = "launch_failure",
    remedy = "Read the output of the queue's or the job's pre-execution command on that host.",
    restart = "elsewhere" },
  { "signal", "Job was ended by a signal from outside of LSF", "EXTERNAL_SIGNAL",
    "job killed by a signal external to LSF.", category = "unknown", component = "unknown",
    severity = "error", action = "check", general = true, symptom = "crash",
    remedy = "Look for the kernel's out-of-memory line and for who signalled it on that host.",
    restart = "unknown" },
  { "zombie", "LSF lost the job's host: the job is a zombie", "ZOMBIE",
    "job exited while LSF is not available.",
    category = "unknown", component = "unknown", severity = "error", action = "check",
    remedy = "Look at that host: console, network, LSF's daemons.", restart = "elsewhere" },
}
for _, row in ipairs(reasons) do
  local first = text.match(row[3], [[^\w+]])
  other {
    id = "lsf." .. row[1], restart = row.restart, title = row[2], category = row.category,
    component = row.component,
    severity = row.severity, action = row.action, symptom = row.symptom, general = row.general,
    remedy = row.remedy, regex = { [[\bTERM_(?P<reason>]] .. row[3] .. [[)\b]] },
    hit = { "TERM_" .. first .. ": " .. row[4] }, miss = { "Successfully completed.", "TERM_" .. first ..
      "S" },
  }
end
other {
  id = "lsf.refused", restart = "never", title = "LSF did not take the job: <what>", category = "user",
    component = "user_config",
  symptom = "launch_failure", action = "fix",
  -- A sentence of LSF, behind the name of a queue or limit or alone.
  regex = { [[^(?:bsub: )?(?P<what>(?:\S+: )?[A-Z].{2,300}?)\. ]] ..
    [[(?:Job not submitted|Request aborted by esub)\.?]] },
  remedy = "Correct queue, resources or limits of the request.",
  hit = { "Bad resource requirement syntax. Job not submitted.",
    "normal: No such queue. Job not submitted." },
  miss = { "Job <4711> is submitted to queue <normal>.",
    "no Bad resource requirement syntax. Job not submitted.",
    "trainer: no Bad resource requirement syntax. Job not submitted." },
}
other {
  id = "lsf.down", restart = "later",
  title = "LSF does not answer", symptom = "launch_failure", severity = "error",
  action = "check",
  regex = { [[^(?:LSF is down|Cannot connect to LSF|]] ..
    [[Cannot connect to (?P<what>\S+ daemon))\. Please wait \.\.\.]],
    [[\b(?P<call>\w+): Failed in an LSF library call: (?P<why>.+)]],
    [[\bFailed in an LSF library call: (?P<why2>.+)]] },
  remedy = "Check LSF's daemons (lim, mbatchd) and the environment (profile.lsf).",
  hit = { "LSF is down. Please wait ...", "Failed in an LSF library call: LIM is down; try later" },
  miss = { "LSF 10.1.0.13 started" },
}
other {
  id = "lsf.jsm", title = "jsrun lost its daemon on a host", symptom = "crash", severity = "error",
  action = "check", category = "unknown", component = "unknown", role = "cascade",
  regex = { [[Remote JSM server is not responding on host (?P<host>\S+)]],
    [[One or more process \(first noticed rank (?P<failed_rank>\d+)\) terminated with signal \d+]] },
  remedy = "Look at that host: memory, GPU, network.",
  hit = { "Error: Remote JSM server is not responding on host batch305-06-2021 15:29:45:920",
    "ERROR:  One or more process (first noticed rank 7) terminated with signal 6" },
  miss = { "jsrun -n 4 ./train" },
}
other {
  id = "lsf.memory", restart = { "never", "same" },
  title = "LSF ended the job at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[TERM_MEMLIMIT\b]] }, remedy = "Ask for more memory, or use less.",
  hit = { "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit." },
  miss = { "Max Memory : 1204 MB" },
}
other {
  id = "pbs.limit", title = "PBS ended the job at one of its limits",
  regex = { [[PBS: job killed: (?P<limit>walltime \S+|cput \S+|ncpus \S+) exceeded limit]] },
  remedy = "Ask for more time or cores.", hit = { "=>> PBS: job killed: walltime 3617 exceeded limit 3600" },
  miss = { "PBS: job 17 started" },
}
other {
  id = "pbs.deleted", restart = "never",
  title = "Job was deleted by its owner or an operator (qdel)", category = "user",
  severity = "error", action = "none", general = true,
  regex = { [[\bJob (?:to be )?deleted at request of (?P<who>\S+)]],
    [[\bJob (?P<job>\S+) (?:was )?deleted by (?:user )?(?P<who2>\S+)]],
      [[qdel: .{0,60}deleted by (?P<who3>\S+)]] },
  remedy = "Ask who deleted it (tracejob, qstat -xf); nothing is broken by itself.",
  hit = { "Job deleted at request of root@pbs1.example.org", "Job 41337.pbs1 was deleted by user ana" },
  miss = { "qdel: Unknown Job Id 41337.pbs1" },
}
other {
  id = "pbs.node", restart = "elsewhere",
  title = "PBS lost a host of the job or its daemon", category = "unknown",
  component = "unknown", severity = "error", action = "check", symptom = "crash",
  regex = { [[PBS: job killed: node \d+ \((?P<host>[^)]+)\) requested job (?:die|terminate)]],
    [[\bJob (?:requeued|deleted), execution node (?P<host2>\S*) ?(?:is )?down]],
    [[\bnode (?P<host3>\S+) (?:is )?down, (?:re)?queu]],
      [[im_eof, (?:Premature end of message|End of File) from addr (?P<peer>\S+)]] },
  remedy = "Look at that host: console, memory, network, pbs_mom.",
  hit = { "=>> PBS: job killed: node 3 (n17) requested job die, 'EOF'",
    "Job requeued, execution node n17 down" },
  miss = { "execution node n17 is free" },
}
other {
  id = "pbs.start", title = "PBS could not start the job on its host", symptom = "launch_failure",
  severity = "error", action = "check",
  regex = { [[\bPost job file processing error; job (?P<job>\S+) on host (?P<host>\S+)]],
    [[\bJob cannot be executed\b]], [[\bjob exec(?:ution)? failure, (?:retry|before files staged|]] ..
      [[after files staged)]],
    [[\bJob held, too many failed attempts to run\b]], [[\bUnable to copy file (?P<file>\S+) to (?P<to>\S+)]],
    [[\bJob Rejected by all possible destinations\b]] },
  remedy = "Read pbs_mom's log of that host: home folder, user, copy of files, prologue.",
  hit = { "Post job file processing error; job 41337.pbs1 on host n17/0",
    "Job held, too many failed attempts to run", "Unable to copy file /var/spool/pbs/spool/4.OU to " ..
      "n1:/home/ana/4.o" },
  miss = { "Job will be executed at 10:00" },
}
other {
  id = "pbs.refused", restart = "never",
  title = "PBS did not take the job", category = "user", component = "user_config",
  symptom = "launch_failure", action = "fix",
  regex = { [[^(?:qsub|qalter|qrsh): (?P<what>(?:Unknown (?:queue|resource)|Unauthorized Request|]] ..
    [[Bad UID for job execution|Job (?:exceeds|violates) queue|Illegal attribute or resource value|]] ..
      [[Invalid (?:credential|request)|submit error|script file|Maximum number of jobs|would exceed).*)]],
    [[\b(?:Can Never Run|Not Running): (?P<what2>Insufficient amount of .*|can't fit .*)]] },
  remedy = "Correct queue, account or resources of the request.",
  hit = { "qsub: Unknown queue", "qsub: Job violates queue and/or server resource limits",
    "Can Never Run: Insufficient amount of queue resource: ngpus (R: 16 A: 8 T: 8)" },
  miss = { "qsub: waiting for job 41337.pbs1 to start" },
}
other {
  id = "pbs.server", restart = "later",
  title = "PBS server does not answer", symptom = "launch_failure", severity = "error",
  action = "check",
  regex = { [[^(?:qsub|qstat|qdel|pbsnodes): (?:cannot connect to server (?P<server>\S+)|]] ..
    [[Communication failure)]],
    [[\bpbs_iff: (?:cannot connect|error returned)]] },
  remedy = "Check pbs_server, its port, and the time of the host.",
  hit = { "qsub: cannot connect to server pbs1 (errno=15034)", "pbs_iff: cannot connect to host" },
  miss = { "Connecting to server pbs1" },
}
-- Grid Engine: messages of execd and shepherd, and the words of qsub.
other {
  id = "sge.limit", title = "Grid Engine ended the job at one of its limits",
  regex = { [[\bjob (?P<job>[\d.]+) exceeded (?:hard|soft) (?P<limit>wallclock|CPU) time\b]],
    [[\bexceeded job (?:hard|soft) limit "(?P<limit2>h_rt|s_rt|h_cpu)"]],
      [[\bqmaster enforced (?P<limit3>h_rt(?:, h_cpu)?),? or h_vmem limit]] },
  remedy = "Ask for more time (-l h_rt).",
  hit = { "job 4711.1 exceeded hard wallclock time - initiate terminate method" },
  miss = { "h_rt=86400" },
}
other {
  id = "sge.memory", restart = { "never", "same" },
  title = "Grid Engine ended the job at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[\bexceeds job (?:hard|soft) limit "(?P<limit>h_vmem|h_rss|s_vmem)"]] },
  remedy = "Ask for more memory (-l h_vmem), or use less.",
  hit = { "queue all.q@n7 job 4711 exceeds job hard limit \"h_vmem\" of queue (4.1G > limit:4.0G) - " ..
    "sending SIGKILL" },
  miss = { "h_vmem=4G" },
}
other {
  id = "sge.refused", restart = "never", title = "Grid Engine did not take the job", category = "user",
    component = "user_config",
  symptom = "launch_failure", action = "fix",
  regex = { [[^Unable to run job: (?P<what>.+)]], [[^(?:error: )?no suitable queues\b]],
    [[^job rejected: (?P<what2>.+)]] },
  remedy = "Correct queue, project, parallel environment or resources of the request.",
  hit = { "Unable to run job: job rejected: the requested parallel environment \"mpi\" does not exist." },
  miss = { "Your job 4711 (\"train\") has been submitted" },
}
other {
  id = "sge.start", title = "Grid Engine could not start the job on its host", symptom = "launch_failure",
  severity = "error", action = "check",
  regex = { [[\bfailed (?P<what>searching requested shell|changing into working directory|]] ..
    [[opening input/output file|before writing \S+|in prolog)]],
    [[\bfailed   +(?:1|19|21|25|26|27) +: (?P<what2>.+)]],
      [[\bcan't get password entry for user "?(?P<user>[^"\s.]+)]] },
  remedy = "Read execd's messages of that host: file systems, the directory service, the prolog.",
  hit = { "failed changing into working directory:11/21/2026 02:12:01 [1001:4711]: error: can't chdir " ..
    "to /work/ana",
    "failed       26  : opening input/output file", "can't get password entry for user \"ana\"" },
  miss = { "failed       0" },
}
-- Flux: job.exception lines of `flux run`, `flux batch` and the event log.
other {
  id = "flux.limit", title = "Flux ended the job at its time limit",
  regex = { [[\bjob\.exception type=timeout severity=0\b ?(?P<what>.*)]] },
    remedy = "Ask for more time (-t).",
  hit = { "123.456s: job.exception type=timeout severity=0 resource allocation expired" },
  miss = { "job.exception type=timeout severity=7" },
}
other {
  id = "flux.request", restart = "never", title = "Flux cannot give what the job asks for", category = "user",
  component = "user_config", symptom = "launch_failure", action = "fix",
  regex = { [[\bjob\.exception type=(?:alloc|dependency|feasibility|validate) severity=0 ?(?P<what>.*)]],
    [[\bflux-(?:run|submit|batch|alloc): ERROR: (?P<what2>.*(?:unsatisfiable|exceeds|invalid|]] ..
      [[not permitted).*)]] },
  remedy = "Compare nodes, cores, GPUs and time of the request with flux resource list.",
  hit = { "0.012s: job.exception type=alloc severity=0 unsatisfiable request",
    "flux-run: ERROR: [Errno 22] unsatisfiable request" },
  miss = { "job.exception type=alloc severity=5" },
}
other {
  id = "flux.node", restart = "elsewhere",
  title = "Flux lost a host of the job", category = "unknown", component = "unknown",
  severity = "error", action = "check", symptom = "crash",
  regex = { [[\bjob\.exception type=node-failure severity=\d+ .*?\bbroker (?P<host>\S+)]],
    [[\blost contact with job shell on (?:broker )?(?P<host2>[^\s(]+)]],
      [[\bbroker\.\w+\[\d+\]: (?P<host3>\S+) \(rank \d+\) .*(?:lost|disconnected)]] },
  remedy = "Look at that host: console, memory, network.",
  hit = { "88.1s: job.exception type=node-failure severity=0 lost contact with job shell on broker n17 " ..
    "(rank 5)" },
  miss = { "broker n17 (rank 5) joined" },
}
other {
  id = "flux.exec", restart = "never",
  title = "Flux could not start a task", category = "user", component = "user_config",
  symptom = "launch_failure", severity = "error", action = "fix",
  regex = { [[\bjob\.exception type=exec severity=0 (?P<what>.*)]],
    [[\bflux-shell\[\d+\]: FATAL: (?P<what2>.+)]],
    [[\btask \d+(?: \(host (?P<host>[^)]+)\))?: start failed: (?P<what3>.+)]] },
  remedy = "Correct the program's path or the shell's options.",
  hit = { "0.201s: job.exception type=exec severity=0 task 0: start failed: trian.py: No such file or " ..
    "directory" },
  miss = { "flux-shell[0]: DEBUG: 0: task 0 started" },
}
other {
  id = "flux.cancelled", restart = "never",
  title = "Job was cancelled by its owner or an operator (flux cancel)",
  category = "user", severity = "error", action = "none", general = true,
  regex = { [[\bjob\.exception type=cancel severity=0 ?(?P<what>.*)]] },
  remedy = "Ask who cancelled it; nothing is broken by itself.",
  hit = { "12.3s: job.exception type=cancel severity=0 interrupted by ctrl-C" },
  miss = { "job.exception type=cancel severity=7" },
}
other {
  id = "pbs.memory", restart = { "never", "same" },
  title = "PBS ended the job at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[PBS: job killed: (?P<limit>(?:p?v?mem) \S+) exceeded limit]],
    [[PBS: job killed: .{0,20}\b(?P<limit2>mem|vmem)\b.{0,40} (?:over|exceeds?) ]] },
  remedy = "Ask for more memory, or use less.",
  hit = { "=>> PBS: job killed: mem 268435456kb exceeded limit 262144000kb" },
  miss = { "resources_used.mem=1204kb" },
}
other {
  id = "ray.oom", restart = { "never", "same" },
  title = "Ray killed a worker because the host's memory ran out", category = "user",
  component = "host_memory", action = "fix", symptom = "crash", ends = "killed",
  regex = { [[ray\.exceptions\.OutOfMemoryError: ]],
    [[Task was killed due to the node running low on memory]],
    [[\d+ Workers \(tasks / actors\) killed due to memory pressure]], [[ObjectStoreFullError: ]] },
  remedy = "Fewer workers per host, smaller objects, more memory.",
  hit = { "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory." },
  miss = { "ray memory usage 40%" },
}
other {
  id = "ray.node", restart = "elsewhere",
  title = "Ray lost a node: <host>", category = "unknown", component = "network",
    action = "check",
  symptom = "crash", severity = "error",
  regex = { [[The node with node id: \S+ and address: (?P<host>[^\s,]+) .*has been marked dead]],
    [[The node with node id: \S+ .*has been marked dead]], [[ray\.exceptions\.NodeDiedError]],
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
  id = "dask.memory", restart = { "never", "same" },
  title = "Dask stopped a worker at its memory limit", category = "user",
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
  id = "dependency", restart = "never", title = "Job it depends on did not end well", category = "user",
  component = "user_config", severity = "error", action = "none", symptom = "launch_failure",
  regex = { [[\bDependencyNeverSatisfied\b]], [[Job dependency problem]] },
  remedy = "Look at the job it waits for.", hit = { "srun: error: Job dependency problem" },
  miss = { "Dependency=afterok:17" },
}

other {
  id = "pbs.status", restart = "unknown",
  title = "PBS job was ended by a signal: deleted, or at a limit", severity = "error",
  general = true, action = "check",
  regex = { [[\bExit_status ?= ?(?P<status>271|265)\b]] },
  remedy = "Read tracejob or qstat -xf for who or what ended it.",
  hit = { "PBS Job Id: 41337.pbs1 Execution terminated Exit_status=271" }, miss = { "Exit_status=0" },
}
local over = {
  { "walltime", "-29", "PBS ended the job at one of its limits", "platform", "platform",
    "Ask for more time." },
  { "cput", "-28", "PBS ended the job at one of its limits", "platform", "platform",
    "Ask for more CPU time." },
  { "mem", "-2[67]", "PBS ended the job at its memory limit", "user", "host_memory",
    "Ask for more memory, or use less.", restart = { "never", "same" } },
}
for _, row in ipairs(over) do
  other {
    id = "pbs.status_" .. row[1], restart = row.restart, title = row[3], category = row[4],
    component = row[5], remedy = row[6],
    regex = { [[\bExit_status ?= ?(?P<status>]] .. row[2] .. [[)\b]] },
    hit = { "Exit_status=" .. (row[2] == "-2[67]" and "-27" or row[2]) }, miss = { "Exit_status=-1",
      "Exit_status=0" },
  }
end
-- HTCondor: the events of a job's log.
other {
  id = "condor.memory", restart = { "never", "same" },
  title = "HTCondor held the job at its memory limit", category = "user",
  component = "host_memory", action = "fix", symptom = "crash",
  regex = { [[(?i)\b(?:job has gone over memory limit of (?P<limit>\d+ \w+)|]] ..
    [[memory usage exceeded (?:request_memory|job ad)|has exceeded its memory limit|]] ..
      [[peak memory usage: \d+ MB\b.*held)]] },
  remedy = "Ask for more memory (request_memory), or use less.",
  hit = { "\tError from slot1@n7: Docker job has gone over memory limit of 8192 Mb",
    "Job was held. The job has exceeded its memory limit" },
  miss = { "request_memory = 8192" },
}
other {
  id = "condor.removed", restart = "never",
  title = "Job was removed by its owner or an operator (condor_rm)", category = "user",
  severity = "error", action = "none", general = true,
  regex = { [[\bvia condor_rm(?: \(by user (?P<who>[^)]+)\))?]] },
  remedy = "Ask who removed it; nothing is broken by itself.",
  hit = { "\tvia condor_rm (by user ana)" }, miss = { "condor_rm is in the path" },
}
other {
  id = "condor.evicted", title = "HTCondor evicted the job from its host",
  regex = { [[^\d{3} \(\d+\.\d+\.\d+\) .*Job was evicted]], [[\bJob was evicted\.$]] },
  remedy = "It starts again elsewhere; write checkpoints.",
  hit = { "004 (4711.000.000) 11/21 02:12:01 Job was evicted." },
    miss = { "004 jobs were evicted from the cache" },
}
other {
  id = "condor.lost", title = "HTCondor lost the job's host", category = "unknown", component = "unknown",
  severity = "error", action = "check", symptom = "crash",
  regex = { [[\bJob (?:reconnection failed|disconnected, attempting to reconnect)]],
    [[\bJob disconnected too long: JobLeaseDuration \((?P<limit>\d+ seconds)\) expired]],
    [[\bShadow exception!]] },
  remedy = "Look at that host: console, memory, network, condor_startd.",
  hit = { "024 (4711.000.000) 11/21 02:12:01 Job reconnection failed",
    "007 (4711.000.000) 11/21 02:12:01 Shadow exception!" },
  miss = { "023 (4711.000.000) 11/21 02:12:01 Job reconnected to slot1@n7" },
}
other {
  id = "condor.start", restart = "never", title = "HTCondor could not start the program", category = "user",
    component = "user_config",
  symptom = "launch_failure", action = "fix",
  regex = { [[\bError from (?P<slot>\S+@\S+): (?P<what>Failed to (?:execute|open|transfer) .*)]],
    [[\bTransfer (?:input|output) files failure at .*?(?P<what>(?:Error|reading|writing).*)]] },
  remedy = "Correct the program's path, its rights or the files to transfer.",
  hit = { "\tError from slot1@n7: Failed to execute '/work/train.sh': (errno=2: 'No such file or " ..
    "directory')" },
  miss = { "Started on slot1@n7" },
}

-- What launchers, brokers and sites' own scripts say of it, whichever scheduler stands behind.
other {
  id = "time_limit", title = "Job reached its time limit", general = true,
  regex = { [[(?i)\b(?:job|step|allocation)\b.{0,60}\b(?:reached|exceeded|hit|]] ..
    [[over)\b.{0,20}\b(?:time ?limit|wall ?time)\b]] },
  except = { [[(?i)\b(?:will|would|soon|warning|if|before|minutes? (?:left|remaining))\b]] },
  remedy = "Ask for more time, or save and requeue before the limit.",
  hit = { "srun: Job step 3895264.0 reached its time limit", "job 77 exceeded its walltime of 3600 s" },
  miss = { "job time limit: 24:00:00", "job will be stopped when it reached its time limit" },
}
other {
  id = "memory_limit", restart = { "never", "same" },
  title = "Job was ended at its memory limit", category = "user",
    component = "host_memory",
  action = "fix", symptom = "crash", general = true,
  regex = { [[(?i)\b(?:job|task|step|process)\b.{0,60}\b(?:killed|ended|terminated|]] ..
    [[aborted)\b.{0,60}\b(?:more memory than|memory limit)]],
    [[(?i)\b(?:job|task|step)\b.{0,40}\bexceed(?:ed|s)\b.{0,20}\bmemory limit\b.{0,40}\b(?:kill|]] ..
      [[terminat|abort|cancel)]] },
  except = { [[(?i)\b(?:will|would|may|might|can|if|not)\b.{0,20}\b(?:be )?(?:killed|ended|terminated|]] ..
    [[aborted)\b|\bwill be\b]] },
  remedy = "Ask for more memory, or use less.",
  hit = { "Your job has been killed because it used more memory than requested",
    "Resource usage summary: job exceeded memory limit, killed" },
  miss = { "jobs that use more memory than requested will be killed", "memory limit of the job: 64 GB" },
}
other {
  id = "preempted", title = "Job was preempted", general = true,
  regex = { [[(?i)\bjob\b.{0,40}\b(?:was |is |being )?preempted\b]],
    [[(?i)\b(?:received|got) (?:a )?(?:spot )?(?:preemption|interruption|termination) (?:notice|]] ..
      [[warning|signal)\b]],
    [[(?i)\b(?:preemption|interruption|termination) (?:notice|warning) (?:was |has been )?received\b]],
    [[(?i)\b(?:node|instance|host|vm|tpu|pod|task|worker)\b.{0,40}\b(?:is being |was )preempted\b]] },
  except = { [[(?i)\b(?:not|never|if|may be|can be) preempted\b]] },
  remedy = "Requeue it; save on the warning signal.",
  hit = { "srun: Job 391256 preempted by a job of partition urgent, requeue in 30 seconds",
    "Received preemption notice from the node pool, draining in 30 s",
    "spot interruption notice received: the host ends in 2 minutes", "TPU worker 3 was preempted" },
  miss = { "preemption: enabled, mode requeue", "this job can be preempted" },
}
