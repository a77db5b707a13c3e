-- Slurm: jobs that do not start. Prolog, credentials, plugins, containers (pyxis, enroot), resources.

local function launch(row)
  rule {
    id = "scheduler.launch." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "platform",
    component = row.component or "platform", severity = row.severity or "fatal", general = row.general,
    symptom = "launch_failure", match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

launch {
  id = "prolog", title = "Host failed the scheduler's checks before the job",
  regex = { [[\bprolog_running: timed out on (?P<host>[\w.-]+)]],
    [[(?i)\b(?:Task|Job)?prolog\w*.{0,60}(?:failed|failure|error|exit(?:ed)? (?:status|]] ..
    [[code) [1-9]|timed out|giving up)]],
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
  id = "plugin", restart = "never",
  title = "srun could not load its plugins (often: started inside of a container)",
  category = "user",
  regex = { [[(?:srun|sbatch|slurmstepd): (?:error|]] ..
    [[fatal): .*plugin_load_from_file(?:: dlopen\([^)]*\): (?P<library>\S+\.so[\d.]*): )?]],
    [[(?:srun|sbatch): fatal: Can't find plugin for(?: (?P<plugin>\S+))?]],
    [[srun: (?:error|fatal): .*(?:cannot create|Couldn't load) \S* ?(?:context|plugin)]] },
  remedy = "Start srun on the host, and give the container options to srun, not to sbatch.", action = "fix",
  hit = { "srun: fatal: Can't find plugin for switch/hpe_slingshot" },
  miss = { "srun: switch NONE plugin loaded" },
}
-- The lines behind `pyxis:` are those of the container runtime: what they name decides (see image, user).
launch {
  id = "spank", restart = "same",
  title = "Slurm's plugin failed on the host: <plugin>", severity = "error", general = true,
  regex = { [[spank: required plugin (?P<plugin>\S+?): \w+\(\) failed with rc=-\d+]],
    [[pyxis: (?P<plugin>seccomp) filter failed]], [[[Pp]lugin stack initialization failed]],
    [[launch failed: Plugin initialization failed]] },
  remedy = "Read the plugin's line above it on that host; it is about the host, not the program.",
    action = "check",
  hit = { "slurmstepd: error: spank: required plugin spank_x11.so: task_init() failed with rc=-1" },
  miss = { "spank: loaded plugin spank_x11.so" },
}
launch {
  id = "container", restart = "never",
  title = "Container of the job could not be started", category = "user", general = true,
  regex = { [[pyxis: (?:container start failed|couldn't start container|failed to (?:create|import|start) )]],
    [[enroot-\w+: (?:.*\[ERROR\]|failed)]], [[pyxis: +\[ERROR\] (?P<what>\S.*)]],
    [[\bcontainer creation failed: ]] },
  remedy = "Read the runtime's lines below it: image, mounts, hooks, space for unpacking.", action = "fix",
  hit = { "slurmstepd: error: pyxis: container start failed with error code: 1",
    "slurmstepd: error: pyxis:     [ERROR] Failed to refresh the dynamic linker cache" },
  miss = { "pyxis: imported docker image: nvcr.io/nvidia/pytorch:24.04-py3" },
}
launch {
  id = "image", restart = "never",
  title = "Container image could not be fetched or opened", category = "user",
  component = "user_config", action = "fix",
  regex = { [[\[ERROR\] (?:URL .*returned error code: (?:401|403|404)|Could not process JSON input|]] ..
    [[No such file or directory: \S+\.sqsh|File not found: )]],
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
  id = "resources", restart = "never",
  title = "Job asked for what the cluster does not give", category = "user",
  component = "user_config", action = "fix",
  regex = { [[(?:srun|sbatch|salloc): error: (?:Batch job submission failed|]] ..
    [[Unable to (?:allocate resources|create step for job \S+)): ]],
      [[Requested node configuration is not available]],
    [[Invalid (?:generic resource \(gres\)|account or account/partition|partition name|qos) specification]],
    [[(?:srun|sbatch): error: (?:Memory specification can not be satisfied|]] ..
      [[More processors requested than permitted)]],
    [[(?:srun|sbatch|salloc): error: Job submit/allocate failed: (?P<what>.+)]],
    [[\b(?P<what>(?:AssocGrp|QOSMax|AssocMax|QOSGrp)\w*Limit)\b]],
    [=[(?:\bReason=|\sPD\s.*\()(?P<what>PartitionTimeLimit|PartitionNodeLimit|BadConstraints|InvalidAcco]=] ..
      [=[unt|InvalidQOS|]=] ..
      [=[QOSMax\w+|QOSGrp\w+|AssocGrp\w+|AssocMax\w+)[\s),]]=],
    [[sbatch: error: (?P<what>CPU count per node can not be satisfied|Invalid --?\w+ specification.*|]] ..
      [[invalid \w+ specified: .*)]] },
  except = { [[Socket timed out|Unable to contact slurm controller|Zero Bytes|Unexpected message|]] ..
    [[error generating job credential|Protocol authentication|Job/step already completing]] },
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
    [[(?:gres/gpu|GRES).{0,40}count too low \(\d+ < \d+\)]], [[Reason=gres/gpu count (?:reported|too) low]],
    [[gres/gpu(?:[:\w]*)? count (?:reported lower than configured|too low) \((?P<counts>\d+ < \d+)\)]],
    [[gres/gpu: count changed for node (?P<host>\S+) from (?P<from>\d+) to (?P<to>\d+)]] },
  remedy = "A GPU is missing: look for Xid 79 or a failed start of the driver.", action = "isolate",
  hit = { "slurmctld: error: _slurm_rpc_node_registration node=n7: gres/gpu count too low (7 < 8)" },
  miss = { "gres/gpu: count 8" },
}
launch {
  id = "munge", title = "Credentials of Slurm are refused", severity = "error",
  regex = { [[(?i)munge.{0,60}(?:Rewound credential|Expired credential|Invalid credential|]] ..
    [[decode failed|Failed to access)]], [[auth_g_\w+: (?P<what>\S+ has authentication error.*)]],
        [[Invalid job credential]],
    [[Invalid authentication credential]], [[Protocol authentication error]] },
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
    [=[slurm_receive_msgs?: \[\[(?P<host>[^\]]+)\]:6818\] failed: ]=],  -- the port of a host's slurmd
    [[srun: error: (?:Application launch failed|[Tt]asks? \S+ launch failed)(?:: (?P<what>.+))?]],
    [[error: task_g_set_affinity|error: .*slurmstepd: couldn't chdir to]] },
  remedy = "Read slurmd's log of that host.",
  hit = { "srun: error: Task launch for StepId=17.0 failed on node n3: Communication connection failure",
    "srun: error: slurm_receive_msgs: [[n3]:6818] failed: Socket timed out on send/recv operation" },
  miss = { "srun: launching StepId=17.0 on host n3, 8 tasks" },
}
launch {
  id = "script", restart = "never",
  title = "Job script, folder or binding of the request is wrong", category = "user",
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
launch {
  id = "config", title = "Slurm's commands or daemon find no configuration",
  regex = { [[\bCould not establish a configuration source\b]], [[fetch_config: DNS SRV lookup failed]],
    [[_establish_config_source: failed to fetch config]],
    [[(?:fatal|error): (?P<what>Unable to (?:process configuration file|]] ..
      [[determine this slurmd's NodeName|find slurm\.conf).*)]],
    [[s_p_parse_file: unable to (?:status|read) file (?P<file>[^\s:,]+)]],
    [[fatal: (?P<what2>Invalid (?:Slurm|node|partition) .*|.* (?:not found in|]] ..
      [[parse error in) \S*slurm\.conf.*)]] },
  remedy = "Check slurm.conf on this host, or slurmctld's address: SLURM_CONF, slurmd --conf-server, " ..
    "the DNS " ..
    "SRV record _slurmctld._tcp.",
  hit = { "squeue: fatal: Could not establish a configuration source",
    "squeue: error: fetch_config: DNS SRV lookup failed",
    "error: s_p_parse_file: unable to status file /etc/slurm/slurm.conf: No such file or directory, " ..
      "retrying in 1sec" },
  miss = { "slurmd: Using configuration file /etc/slurm/slurm.conf" },
}
launch {
  id = "daemon", restart = "same",
  title = "Slurm's daemon stops on a fatal error: <what>", severity = "error", general = true,
  regex = { [[\bslurm(?:ctld|d|dbd|stepd)\b(?:\[\d+\])?: fatal: (?P<what>.+)]] },
  remedy = "Read the line; the daemon of this host does not run.",
  hit = { "slurmctld: fatal: Can't save state, the state folder is full",
    "slurmd: fatal: cgroup namespace 'freezer' not mounted. aborting" },
  miss = { "slurmctld: Running as primary controller" },
}
launch {
  id = "node_config", title = "Host has less than Slurm's configuration says", category = "hardware",
  component = "unknown", severity = "error", action = "isolate",
  regex = { [[\bnode (?P<host>\S+) has low (?P<what>(?:cpu|socket\*core\*thread|tmp_disk) (?:count|]] ..
    [[size) \([^)]*\))]],
    [[Reason=(?P<what2>Low (?:CPUs|socket\*core\*thread count|TmpDisk)(?: \([^)]*\))?)]] },
  remedy = "Look for a processor, core or disk that the host lost; else correct slurm.conf.",
  hit = { "slurmctld: error: Node node n7 has low cpu count (96 < 192)",
    "Reason=Low socket*core*thread count" },
  miss = { "Node configuration: CPUs=192" },
}
launch {
  id = "rebooted", title = "Host was restarted under the job", category = "hardware", component = "unknown",
  severity = "error",
  regex = { [[\b[Nn]ode (?P<host>\S+) unexpectedly rebooted]], [[Reason=Node unexpectedly rebooted]] },
  remedy = "Read the host's console and management controller for the reason; drain it until it is known.",
  hit = { "slurmctld: validate_node_specs: Node n7 unexpectedly rebooted boot_time=1 last response=2",
    "Reason=Node unexpectedly rebooted [slurm@2026-11-21T02:12:01]" },
  miss = { "Node n7 rebooted as asked" },
}
launch {
  id = "busy", restart = "same",
  title = "Job step waits for resources that another step of the job holds", category = "user",
  component = "user_config", severity = "error", action = "fix",
  regex = { [[Job (?P<job>\S+) step creation still disabled, retrying \((?P<what>[^)]*)\)]] },
  remedy = "End the other srun, or start this one with --overlap or --exact.",
  hit = { "srun: Job 41337 step creation still disabled, retrying (Requested nodes are busy)" },
  miss = { "srun: Step created for StepId=41337.1" },
}
launch {
  id = "output", restart = "never", title = "Output file of the job cannot be opened", category = "user",
    component = "user_config",
  action = "fix",
  regex = { [[slurm(?:stepd|d): error: .*[Cc]ould not open (?:std(?:out|err|in)|]] ..
    [[I/O) (?:file )?(?P<file>[^\s:]+)(?:: (?P<what>.+))?]],
    [[error: _?open_output_file\w* (?P<file2>\S+)]] },
  remedy = "Create the folder of --output before the job starts; it is not made by Slurm.",
  hit = { "slurmstepd: error: Could not open stdout file /work/ana/logs/4.out: No such file or directory" },
  miss = { "slurmstepd: stdout file /work/ana/logs/4.out" },
}
launch {
  id = "lines", restart = "never", title = "Job script has the line ends of Windows", category = "user",
    component = "user_config",
  action = "fix",
  regex = { [[Batch script contains DOS line breaks]], [[bad interpreter: \S+\^M\b]],
    [[/usr/bin/env: '(?P<what>\S+?)(?:\\r|\^M)']] },
  remedy = "Convert it (dos2unix).",
  hit = { "sbatch: error: Batch script contains DOS line breaks (\\r\\n)" },
    miss = { "Batch script written" },
}
-- The container runtime's hooks: what fails there is the host's or the driver's.
launch {
  id = "container_gpu", title = "GPU hook of the container runtime failed", component = "driver",
  regex = { [[nvidia-container-cli: (?P<part>ldcache|mount|device|container|detection|permission|]] ..
    [[input) error: (?P<what>.*)]],
    [[error running (?:prestart|createContainer|startContainer) hook .*nvidia-c\S+.*?(?P<what2>(?:stde]] ..
      [[rr|error):? .*)]] },
  remedy = "Read what follows: a device that is gone, a library that cannot be mounted, a process of the " ..
    "hook that was killed (memory).",
  hit = { "slurmstepd: error: pyxis:     nvidia-container-cli: ldcache error: process /sbin/ldconfig " ..
    "terminated with signal 9",
    "nvidia-container-cli: device error: 7: unknown device: unknown" },
  miss = { "nvidia-container-cli: version 1.17.4" },
}
launch {
  id = "enroot", title = "Container could not be set up on the host", component = "platform",
  regex = { [[enroot-(?:nsenter|mount|switchroot|mksquashovlfs|]] ..
    [[aufs2ovlfs): (?P<what>failed to (?:create user namespace|mount|set capabilities|switch root|]] ..
      [[execute)\b.*)]],
    [[(?:^|\[ERROR\] )Command not found: (?P<command>[\w.-]+), see ]],
    [[pyxis: .*(?P<what2>unable to (?:create|open|write) \S*(?:/run|/tmp|enroot)\S*.*)]],
    [[/etc/enroot/hooks\.d/(?P<hook>[^:]+): line \d+: .*(?:Segmentation fault|Killed|Aborted)]] },
  remedy = "Check user namespaces, ENROOT_DATA_PATH and ENROOT_RUNTIME_PATH, and the hooks of this host.",
  hit = { "slurmstepd: error: pyxis:     enroot-nsenter: failed to create user namespace: Operation not " ..
    "permitted",
    "[ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container" },
  miss = { "enroot-nsenter: user namespace created" },
}
launch {
  id = "engine", title = "Container engine of the host does not work",
  regex = { [[Cannot connect to the Docker daemon at (?P<socket>\S+?)\. ]],
    [[(?P<what>failed to find loop device: no loop devices available)]],
    [[(?P<what>failed to (?:mount|open) \S*fuse\S*.*|fuse: device not found.*|]] ..
      [[squashfuse\S* .*(?:failed|exited).*)]],
    [[(?P<what>cannot set up user namespaces?.*|user namespaces? (?:are|is) (?:disabled|not enabled).*)]],
    [[newuidmap: (?P<what>.*(?:not allowed|failed).*)]] },
  except = { [[Is the docker daemon running\? .*(?:skip|ignor)]] },
  remedy = "Start the engine's daemon on that host; check loop devices, FUSE and user namespaces.",
  hit = { "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "FATAL:   container creation failed: mount hook function failure: error: while mounting image: " ..
      "failed to " ..
      "find loop device: no loop devices available" },
  miss = { "Docker daemon at unix:///var/run/docker.sock answers" },
}
launch {
  id = "image_fetch", restart = "never", title = "Container image could not be fetched", category = "user",
    component = "user_config",
  action = "fix",
  regex = { [[[Ww]hile (?:making|building|pulling|fetching) (?:image|SIF|OCI|shub|]] ..
    [[library)\b.*: (?P<what>[^:]+(?:: [^:]+)?)$]],
    [[(?P<what>unauthorized: authentication required|denied: requested access to the resource is denied)]] },
  remedy = "Correct the image's name; log in to the registry.",
  hit = { "FATAL:   While making image from oci registry: error fetching image to cache: while building " ..
    "SIF from " ..
    "layers: conveyor failed to get: unauthorized: authentication required" },
  miss = { "INFO:    Creating SIF file..." },
}
-- Hosts and versions that do not fit.
launch {
  id = "address", restart = "same", title = "Slurm cannot find the address of a host", component = "network",
    severity = "error",
  regex = { [[Unable to resolve "(?P<host>[^"]+)"(?:: (?P<what>.+))?]],
    [[can't find address for (?:host )?(?P<host>[^\s,]+)]],
    [[get_addr_info: getaddrinfo\(\) failed: (?P<what>.+)]] },
  except = { [[dns|DNS]] },
  remedy = "Check name service and slurm.conf on this host.",
  hit = { [[srun: error: Unable to resolve "n7": Unknown host]],
    "srun: error: fwd_tree_thread: can't find address for host n7, check slurm.conf" },
  miss = { [[resolved "n7" to 10.0.0.7]] },
}
launch {
  id = "versions", restart = "never",
  title = "Slurm's parts are of different versions or configurations", severity = "error",
  general = true,
  regex = { [[Incompatible versions of client and server code]],
    [[Node (?P<host>\S+) appears to have a different slurm\.conf than the slurmctld]],
    [[Node configuration differs from hardware: (?P<what>.+)]] },
  remedy = "Install one version and one slurm.conf on all hosts; restart slurmd.",
  hit = { "srun: error: Task launch for StepId=17.0 failed on node n3: Incompatible versions of client " ..
    "and server code",
    "slurmctld: error: Node n7 appears to have a different slurm.conf than the slurmctld." },
  miss = { "slurmd version 24.05.4 started" },
}
launch {
  id = "tasks_late", restart = "same",
  title = "Not all tasks of the step were started in time", severity = "error",
    general = true,
  regex = { [[timeout waiting for task launch, started (?P<tasks>\d+ of \d+) tasks]],
    [[step_launch_notify_io_failure: aborting, io error with slurmstepd on node (?P<node>\d+)]],
    [[io error and missing step on node (?P<node>\S+)]] },
  remedy = "Look at the host that did not start its task: slurmd's log, file systems, memory.",
  hit = { "srun: error: timeout waiting for task launch, started 7 of 8 tasks",
    "srun: error: step_launch_notify_io_failure: aborting, io error with slurmstepd on node 3" },
  miss = { "srun: started 8 of 8 tasks" },
}
launch {
  id = "pmix", restart = "same",
  title = "PMIx of a host cannot reach that of another one", component = "network",
  severity = "error", general = true,
  regex = { [[pmixp_\w+: \S+ \[\d+\]: \S+ ERROR: (?P<what>.*)]],
    [[mpi/pmix\w*: (?P<what>.*(?:[Cc]annot|failed|FAILED|unable to).*)]] },
  remedy = "Find the host that is missing: its task ended, or ports between the hosts are closed " ..
    "(SLURM_PMIX_DIRECT_CONN, SrunPortRange).",
  hit = { "slurmstepd: error:  mpi/pmix_v4: pmixp_dconn_connect: n3 [0]: pmixp_dconn.h:241: ERROR: " ..
    "Cannot establish " ..
      "direct connection to n7 (1)" },
  miss = { "slurmstepd: mpi/pmix_v4: loaded" },
}
launch {
  id = "expired", restart = "never",
  title = "srun was started in an allocation that has ended", category = "user",
  component = "user_config", severity = "error", action = "fix", general = true,
  regex = { [[Slurm job (?P<job>\S+) has expired]], [[Expired or invalid job (?P<job>\S+)]] },
  remedy = "Start a new allocation; SLURM_JOB_ID of the environment is an old one.",
  hit = { "srun: error: Slurm job 41337 has expired",
    "srun: error: Check SLURM_JOB_ID environment variable. Expired or invalid job 41337" },
  miss = { "srun: job 41337 has been allocated resources" },
}
launch {
  id = "epilog", title = "Host failed Slurm's clean-up after a job", severity = "error", general = true,
  regex = { [[(?i)\bepilog\w*\b.{0,40}(?:failed|error|exit(?:ed)? (?:status|code) [1-9]|timed out)]],
    [[Reason=Epilog error]] },
  remedy = "Read slurmd's log of that host; it is drained until somebody resumes it.",
  hit = { "slurmd: error: Epilog failed: rc:256", "Reason=Epilog error [slurm@2026-11-21T02:12:01]" },
  miss = { "slurmd: epilog for job 17 ran for 2 seconds" },
}
