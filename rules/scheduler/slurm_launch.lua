-- Slurm: jobs that do not start. Prolog, credentials, plugins, containers (pyxis, enroot), resources.

local function launch(row)
  rule {
    id = "scheduler.launch." .. row.id, engine = 1, title = row.title, category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "fatal", general = row.general,
    symptom = "launch_failure", match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

launch {
  id = "prolog", title = "Host failed Slurm's checks before the job",
  regex = { [[(?i)\b(?:Task|Job)?prolog\w*.{0,60}(?:failed|failure|error|exit(?:ed)? (?:status|code) ]] ..
      [[[1-9]|timed out|giving up)]],
    [[(?i)prolog .*notification failed]], [[\blaunch failed requeued held\b]],
    [[error: .*Job .*: Prolog (?:error|failed)]], [[Reason=(?:Prolog error|batch job complete failure)]] },
  remedy = "Read slurmd's log of that host; it is drained until somebody resumes it.",
  hit = { "slurmd: error: prolog failed: rc:256 output:gpu check",
    "slurmctld: error: prolog_running: timed out on n3" },
  miss = { "slurmd: prolog completed for job 17" },
}
launch {
  id = "cgroup", title = "Slurm could not set up the job's cgroup", component = "platform",
  regex = { [[Failed to set 'cpuset\.\w+' attribute]],
    [[slurm(?:d|stepd): error: .*cgroup.*(?:[Nn]o such file|unable|Unable|failed|No space)]],
    [[error: xcgroup_\w+: unable]] },
  remedy = "Restart slurmd on that host; check cgroup version and controllers. No disk is full.",
  hit = { "systemd[1]: slurmd.service: Failed to set 'cpuset.cpus' attribute on " ..
      "'/system.slice/slurmd.service' to '': No space left on device",
    "slurmstepd: error: xcgroup_param_set: unable to open " ..
        "'/sys/fs/cgroup/memory/slurm/uid_1/memory.limit': No such file" },
  miss = { "slurmd: cgroup plugin: cgroup/v2 loaded" },
}
launch {
  id = "plugin", title = "srun could not load its plugins (often: started inside of a container)",
  category = "user",
  regex = { [[(?:srun|sbatch|slurmstepd): (?:error|fatal): .*plugin_load_from_file]] ..
      [[(?:: dlopen\([^)]*\): (?P<library>\S+\.so[\d.]*): )?]],
    [[(?:srun|sbatch): fatal: Can't find plugin for(?: (?P<plugin>\S+))?]],
    [[srun: (?:error|fatal): .*(?:cannot create|Couldn't load) \S* ?(?:context|plugin)]] },
  remedy = "Start srun on the host, and give the container options to srun, not to sbatch.", action = "fix",
  hit = { "srun: fatal: Can't find plugin for switch/hpe_slingshot" },
  miss = { "srun: switch NONE plugin loaded" },
}
-- The lines behind `pyxis:` are those of the container runtime: what they name decides (see image, user).
launch {
  id = "container", title = "Container of the job could not be started", category = "user", general = true,
  regex = { [[pyxis: (?:container start failed|couldn't start container|failed to (?:create|import|start) )]],
    [[Failed to invoke spank plugin stack]],
    [[enroot-\w+: (?:.*\[ERROR\]|failed)]], [[pyxis: +\[ERROR\] (?P<what>\S.*)]],
    [[spank_pyxis\.so: task_init\(\) failed]],
    [[\bcontainer creation failed: ]] },
  remedy = "Read the runtime's lines below it: image, mounts, hooks, space for unpacking.", action = "fix",
  hit = { "slurmstepd: error: pyxis: container start failed with error code: 1",
    "slurmstepd: error: pyxis:     [ERROR] Failed to refresh the dynamic linker cache" },
  miss = { "pyxis: imported docker image: nvcr.io/nvidia/pytorch:24.04-py3" },
}
launch {
  id = "image", title = "Container image could not be fetched or opened", category = "user",
  component = "user_config", action = "fix",
  regex = { [[\[ERROR\] (?:URL .*returned error code: (?:401|403|404)|Could not process JSON input|No ]] ..
      [[such file or directory: \S+\.sqsh|File not found: )]],
    [[pyxis: +\[ERROR\] (?:URL|Invalid image)]], [[\bcould not open image /?\S+: ]],
    [[pyxis: .*failed to import docker image]] },
  remedy = "Correct the image's name or path; log in to the registry.",
  hit = { "slurmstepd: error: pyxis:     [ERROR] URL https://registry-1.docker.io/v2/x/manifests/y " ..
      "returned error code: 401 Unauthorized",
    "FATAL:   could not open image /img/train.sif: failed to retrieve path" },
  miss = { "enroot: Fetching image manifest" },
}
launch {
  id = "user", title = "Host does not know the job's user", blames = "host",
  regex = { [[cannot find name for (?P<name>(?:user|group) ID \d+)]],
    [[slurm\w*: error: .*(?:uid|user id) \d+ .*(?:not found|unknown|invalid)]],
    [[getpwuid\w*\(\S*\)?:? .*(?:failed|not found)]],
    [[KeyError: 'getpwuid\(\): uid not found: \d+']] },
  remedy = "Check the directory service (sssd, LDAP) on that host and drain it until it answers.",
  hit = { "slurmstepd: error: pyxis:     id: cannot find name for user ID 42" },
  miss = { "user ID 1001 mapped" },
}
launch {
  id = "resources", title = "Job asked for what the cluster does not give", category = "user",
  component = "user_config", action = "fix",
  regex = { [[(?:srun|sbatch|salloc): error: (?:Batch job submission failed|Unable to (?:allocate ]] ..
      [[resources|create step for job \S+)): ]], [[Requested node configuration is not available]],
    [[Invalid (?:generic resource \(gres\)|account or account/partition|partition name|qos) specification]],
    [[(?:srun|sbatch): error: (?:Memory specification can not be satisfied|More processors requested ]] ..
        [[than permitted)]],
    [[\b(?:AssocGrp|QOSMax|AssocMax)\w*Limit\b]] },
  remedy = "Correct account, partition, GPUs, memory or time in the request.",
  hit = { "srun: error: Unable to create step for job 17: More processors requested than permitted",
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination " ..
      "specified" },
  miss = { "srun: job 17 has been allocated resources" },
}
launch {
  id = "gres", title = "Slurm and host disagree on the number of GPUs", category = "hardware",
  component = "gpu", severity = "error",
  regex = { [[gres/gpu: count (?:reported|changed).*(?:lower|less|from \d+ to \d+)]],
    [[(?:gres/gpu|GRES).{0,40}count too low \(\d+ < \d+\)]], [[Reason=gres/gpu count (?:reported|too) low]] },
  remedy = "A GPU is missing: look for Xid 79 or a failed start of the driver.", action = "isolate",
  hit = { "slurmctld: error: _slurm_rpc_node_registration node=n7: gres/gpu count too low (7 < 8)" },
  miss = { "gres/gpu: count 8" },
}
launch {
  id = "munge", title = "Credentials of Slurm are refused", severity = "error",
  regex = { [[(?i)munge.{0,60}(?:Rewound credential|Expired credential|Invalid credential|decode failed|]] ..
      [[Failed to access)]], [[Invalid job credential]], [[Protocol authentication error]] },
  remedy = "Check clocks, munge's key and daemon on that host.",
  hit = { "slurmd: error: Munge decode failed: Expired credential",
    "srun: error: Task launch for StepId=17.0 failed on node n3: Invalid job credential" },
  miss = { "munged: Created 2 work threads" },
}
launch {
  id = "nhc", title = "Host failed its health check", category = "hardware", component = "unknown",
  severity = "error", general = true,
  regex = { [[nhc: Health check failed: +(?P<check>\w+)]], [[\bHealth check failed: +check_\w+]] },
  remedy = "Keep the host out and look at the check named.", action = "isolate",
  hit = { "ERROR:  nhc:  Health check failed:  check_ps_service:  nvidia-persistenced not running" },
  miss = { "nhc: Node Health Check completed successfully" },
}
launch {
  id = "task", title = "Slurm could not start tasks on a host", severity = "error", general = true,
  regex = { [[srun: error: Task launch for (?:StepId=)?\S+ failed on node (?P<host>\S+): ]],
    [[srun: error: (?:Application launch failed|Task .* launch failed)]],
    [[error: task_g_set_affinity|error: .*slurmstepd: couldn't chdir to]] },
  remedy = "Read slurmd's log of that host.",
  hit = { "srun: error: Task launch for StepId=17.0 failed on node n3: Communication connection failure" },
  miss = { "srun: launching StepId=17.0 on host n3, 8 tasks" },
}
launch {
  id = "script", title = "Job script, folder or binding of the request is wrong", category = "user",
  component = "user_config", severity = "error", action = "fix",
  regex = { [[sbatch: error: Unable to open file (?P<file>\S+)]],
    [[srun: error: (?P<what>CPU binding outside of job step allocation|Unable to satisfy cpu bind request)]],
    [=[slurmstepd: error: Unable to create TMPDIR \[(?P<path>[^\]]+)\]: (?P<what>.*)]=],
    [[sbatch: error: This does not look like a batch script]] },
  remedy = "Correct the path or the binding in the script.",
  hit = { "sbatch: error: Unable to open file train.sh",
    "srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0x0000000F." },
  miss = { "sbatch: Submitted batch job 17" },
}
