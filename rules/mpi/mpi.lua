-- Open MPI, MPICH (and Intel MPI, Cray MPICH), PMIx: starts, aborts, and peers that are gone.

local function mpi(row)
  rule {
    id = "mpi." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category or "user",
    component = row.component or "dependency", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

mpi {
  id = "gpu_support", restart = "never",
  title = "MPI was asked for GPU support that the program was not built with",
  symptom = "launch_failure",
  regex = { [[GPU_SUPPORT_ENABLED is requested, but GTL library is not linked]],
    [[CUDA support .*was not (?:compiled|built)]],
    [[The call to cuMemHostRegister.* failed]],
    [[not configured with CUDA|CUDA-aware support is not (?:enabled|available)]] },
  remedy = "Link the GPU transport library, or set MPICH_GPU_SUPPORT_ENABLED=0.",
  hit = { "MPICH ERROR [Rank 0] - Abort(-1): MPIDI_CRAY_init: GPU_SUPPORT_ENABLED is requested, but " ..
      "GTL library is not linked" },
  miss = { "MPICH_GPU_SUPPORT_ENABLED=1" },
}
mpi {
  id = "pmi", restart = "never", title = "Launcher (PMI, PMIx) and MPI library do not fit each other",
    symptom = "launch_failure",
  regex = { [[OMPI was not built with SLURM's PMI support]], [[PMI2?_Init failed to initialize]],
    [[PMIX ERROR: (?:PMIX_ERR_|PMIX_)?(?P<what>UNREACH(?:ABLE)?|NOT[-_]FOUND|ERR-FILE|]] ..
      [[FILE_OPEN_FAILURE|OUT[-_]OF[-_]RESOURCE)\b]],
    [[PMI_Get_appnum returned]], [[The application appears to have been direct launched using "srun"]],
    [[mpi/pmi\w*: .*(?:can't|failed to) (?:load|create|init)]],
    [[opal_init failed|orte_init failed|ompi_mpi_init: ompi_rte_init failed]],
    [[MPIR_Init_thread.*(?:failed|PMI)]] },
  except = { [[in file (?:gds_|dstore_)]] },  -- a race at the start that ends well
  remedy = "Use srun --mpi=pmix (or pmi2) in the version that the library was built for, or mpirun.",
  hit = { "The application appears to have been direct launched using \"srun\", but OMPI was not built " ..
      "with SLURM's PMI support",
    "MPI startup(): PMI server not found\nMPIR_Init_thread(192): PMI2_Init failed to initialize. " ..
        "Return code: 14" },
  miss = { "srun: switch NONE plugin loaded",
    "PMIX ERROR: NOT-FOUND in file gds_ds12_lock_pthread.c at line 199" },
}
mpi {
  id = "slots", restart = "never", title = "More MPI ranks than places for them", component = "user_config",
  symptom = "launch_failure",
  regex = { [[There are not enough slots available in the system]],
    [[All nodes which are allocated for this job are already filled]],
    [[bind(?:ing)? to a (?:level|resource) .*(?:more processes than|not supported)]],
    [[A request was made to bind to that would (?:result in|require) binding more]] },
  remedy = "Match ranks per host with what was allocated; --oversubscribe only if meant.",
  hit = { "There are not enough slots available in the system to satisfy the 16" },
  miss = { "slots=8 max_slots=8" },
}
-- What the launcher says of it stands behind what ssh or the host said.
mpi {
  id = "daemon", title = "MPI could not start its daemon on a host", category = "platform",
  component = "platform", general = true,
  symptom = "launch_failure", action = "check",
  regex = { [[(?:ORTE|PRTE) was unable to reliably start one or more daemons]],
    [[An? (?:ORTE|PRTE) daemon has unexpectedly failed after launch]],
    [[HYDU_sock_connect .*unable to connect]],
    [[Unable to start a daemon on the local node]], [[(?:ORTE|PRTE) does not know how to route a message]],
    [[Open MPI was unable to launch its daemon]],
    [[\[mpiexec@(?P<host>[\w.-]+)\] .*(?:launch_procs|HYDT_bsci_\w+|]] ..
      [[HYD_pmci_wait_for_completion) .*(?:fail|error)]] },
  remedy = "Test ssh or the launcher to that host; check the library's path there.",
  hit = { "ORTE was unable to reliably start one or more daemons.",
    "A PRTE daemon has unexpectedly failed after launch and before" },
  miss = { "Warning: Permanently added 'node12' (ED25519) to the list of known hosts.",
    "ssh: connect to host node12 port 22: Connection refused" },
}
mpi {
  id = "ssh", title = "Launcher cannot reach a host over ssh", category = "platform", component = "platform",
  symptom = "launch_failure", action = "check",
  regex = { [[ssh: connect to host (?P<host>\S+) port (?P<port>\d+): (?P<what>.*)]],
    [[ssh: Could not resolve hostname (?P<host>[^\s:]+)]], [[Host key verification failed\.]],
    [[(?P<what>(?:ssh|kex)_exchange_identification: .+)]],
    [[(?P<host>\S+): Permission denied \(publickey]], [[Permission denied \(publickey]],
    [[(?:^|\W)(?P<what>Connection (?:closed|reset) by \S+ port 22\b)]],
    [[\b(?P<command>(?:orted|prted|hydra_pmi_proxy|pdsh)): (?:command not found|No such file)]] },
  except = { [[(?i)fatal: Could not read from remote|\bgit@]] },
  remedy = "Log in to that host by hand: keys, known hosts, its name, sshd's limit of open log-ins " ..
    "(MaxStartups), the path of the library there.",
  hit = { "ssh: connect to host node12 port 22: Connection refused",
    "ssh_exchange_identification: Connection closed by remote host",
    "kex_exchange_identification: read: Connection reset by peer",
    "bash: orted: command not found" },
  miss = { "ORTE was unable to reliably start one or more daemons.",
    "git@github.com: Permission denied (publickey)." },
}
mpi {
  id = "init", restart = "unknown",
  title = "MPI could not start in a process", general = true, severity = "error",
  category = "unknown", component = "unknown", symptom = "launch_failure", action = "check",
  regex = { [[An error occurred in (?:MPI|PMPI)_(?P<call>Init\w*)]], [[\bMPI runtime init failed]],
    [[It looks like (?:MPI_INIT|MPI_Init|\w+_init) failed]],
    [[Fatal error in (?:MPI|PMPI)_(?P<call>Init\w*): ]] },
  remedy = "Start with mpirun, or with the srun --mpi type that the library was built for; read the " ..
      "lines above.",
  hit = { "*** An error occurred in MPI_Init_thread", "It looks like MPI runtime init failed for some reason",
    "Fatal error in PMPI_Init: Other MPI error, error stack:" },
  miss = { "MPI_Init took 1.2 s" },
}
mpi {
  id = "component", restart = "never",
  title = "MPI's or PMIx's runtime does not find one of its parts", severity = "error",
    general = true, action = "fix",
  symptom = "launch_failure",
  regex = { [[A requested component was not found, or was unable to be opened]],
    [[component was not found\b.*\bFramework: (?P<framework>\w+)]] },
  remedy = "Install in the job's environment or image the part that the box names (Framework, Component), " ..
    "in the version of the launcher outside.",
  hit = { "A requested component was not found, or was unable to be opened.  This" },
  miss = { "mca: base: components_open: found loaded component self" },
}
mpi {
  id = "daemon_lost", title = "MPI lost its daemon on a host: its host, container or network is gone",
  role = "cascade", category = "unknown", component = "network", severity = "error", action = "check",
  regex = { [[(?:ORTE|PRTE) has lost communication with a remote daemon]] },
  remedy = "Find out what ended that host's daemon: memory, the container, the network.",
  hit = { "ORTE has lost communication with a remote daemon." },
  miss = { "ORTE was unable to reliably start one or more daemons." },
}
mpi {
  id = "abort", title = "A rank called MPI_Abort", role = "cascade", category = "unknown",
  component = "unknown", severity = "error",
  action = "none",
  regex = { [[MPI_ABORT was invoked on rank (?P<failed_rank>\d+)]], [[application called MPI_Abort\(]],
    [[Abort\(\d+\) on node \d+ \(rank (?P<rank2>\d+)]],
    [[MPI_Abort\(MPI_COMM_WORLD]] },
  remedy = "Read what that rank printed before.",
  hit = { "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
    "Abort(1090575) on node 3 (rank 3 in comm 0): Fatal error" },
  miss = { "MPI_Finalize done" },
}
mpi {
  id = "peer", title = "Launcher saw a rank end early", role = "cascade", category = "unknown",
  component = "unknown", severity = "error",
  action = "none",
  regex = { [[mpi(?:run|exec)(?:\.real)? (?:noticed that|detected that one or more) process]],
    [[prterun (?:noticed|detected) that]],
    [[= +BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES]],
    [[Primary job terminated normally, but \d+ process returned]],
    [[\S+: rank (?P<rank>\d+) (?:exited with code|died from signal) \d+]],
    [[YOUR APPLICATION TERMINATED WITH THE EXIT STRING]] },
  -- Where the line names the signal, rules/process/signals.lua says what that means.
  except = { [[exited on signal (?:4|6|7|9|11)\b]], [[died from signal (?:7|9|11)\b]],
    [[EXIT STRING: (?:Killed|Segmentation fault)]] },
  remedy = "Look at the rank named: its own last lines, its host's kernel log.",
  hit = { "mpirun detected that one or more processes exited with non-zero status, thus causing",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES" },
  miss = { "mpirun -np 8 ./train" },
}
mpi {
  id = "lost_peer", title = "MPI lost its connection to a peer", role = "cascade", category = "unknown",
  component = "network",
  severity = "error", action = "check",
  regex = { [[btl_tcp\S* .*(?:connect\(\) to \S+ failed: (?:Connection (?:refused|timed|reset)|Op)|]] ..
    [[recv\(.*\) failed|readv failed)]],
    [[Open MPI detected an inbound MPI TCP connection]],
    [[OOB-TCP: .*(?:[Cc]onnection|lost)]], [[MPIDI_OFI_handle_cq_error]],
    [[MPIR_\w+\(\d+\).*: (?:Other MPI error|Message truncated|.*process failed)]],
    [[Fatal error in P?MPI_(?:Wait\w*|Recv|Send|Isend|Irecv|Bcast|Barrier|All\w+|Reduce\w*|Gather\w*|]] ..
      [[Scatter\w*|Sendrecv): (?:Other MPI error|See the MPI_ERROR field|Unknown error class)]],
    [[PMIX ERROR: (?:LOST[- ]CONNECTION|LOST-PEER|PMIX_ERR_LOST_CONNECTION)]], [[MPI_ERR_PROC_FAILED]] },
  remedy = "See whether the peer ended; if not, check the fabric between the hosts.",
  hit = { "MPIDI_OFI_handle_cq_error(1062): OFI poll failed " ..
      "(ofi_events.c:1064:MPIDI_OFI_handle_cq_error:Input/output error)",
    "[n1][[4,1],0][btl_tcp_endpoint.c:625:mca_btl_tcp_endpoint_recv_connect_ack] btl_tcp_frag.c " ..
        "recv(12) failed: Connection reset by peer" },
  miss = { "btl_tcp_if_include eth0" },
}
mpi {
  id = "fence", restart = "unknown",
  title = "Not all processes came to a meeting of MPI (PMIx)", role = "cascade", general = true,
  category = "unknown", component = "unknown", severity = "error", symptom = "hang", action = "check",
  regex = { [[pmixp_coll\w*:.*\bcollective timeout seq=\d]], [[PMIX ERROR: (?:PMIX_ERR_)?TIMEOUT\b]],
    [[OPAL ERROR: Timeout in file \S*pmix]], [[^A request has timed out and will therefore fail:]] },
  remedy = "Find the host whose processes did not start or ended early: the next lines may list it.",
  hit = { "slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_reset_if_to: c7 [0]: pmixp_coll_ring.c:738: " ..
      "0x7f21: collective timeout seq=2",
    "PMIX ERROR: TIMEOUT in file client/pmix_client_fence.c at line 100" },
  miss = { "pmixp_coll_ring_contrib: seq=2" },
}
mpi {
  id = "fence_host", restart = "unknown",
  title = "Processes of a host never came to a meeting of MPI (PMIx)", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", symptom = "hang", action = "check",
  regex = { [[pmixp_coll\w*:.*\bwait contrib: (?:(?P<host>[A-Za-z][\w.-]*)\s*$|]] ..
    [[(?P<hosts>[A-Za-z]\S*\[\S+))]] },
  remedy = "Look at the processes of that host: they did not start, hang or ended early.",
  hit = { "slurmstepd: error:  mpi/pmix_v4: pmixp_coll_ring_log: c7 [0]: pmixp_coll_ring.c:801: \t\t wait " ..
      "contrib: c9",
    "mpi/pmix_v3: pmixp_coll_tree_log: c7 [0]: pmixp_coll_tree.c:1352: \t wait contrib: c[9-11]" },
  miss = { "pmixp_coll_ring_log: c7 [0]: pmixp_coll_ring.c:801: \t\t wait contrib: -" },
}
-- A fault's own frames: in the first frames below the signal stands the library that crashed.
mpi {
  id = "crashed_inside", title = "Program crashed inside of the MPI library", category = "framework",
  component = "network",
  regex = { [[\[ ?[1-3]\] \S*/lib(?:mpi|open-pal|open-rte|pmix|psm2)\S*\.so\S*\(\w+]] },
  remedy = "Try another version or transport; GPU buffers in non-blocking reductions are often unsupported.",
  action = "mitigate",
  hit = { "[n7:1204] [ 2] /opt/openmpi/lib/libmpi.so.40(NBC_Progress+0x164)[0x4000]" },
  miss = { "[n7:1204] [ 9] /opt/openmpi/lib/libmpi.so.40(MPI_Init+0x64)[0x4000]" },
}
mpi {
  id = "signal", title = "Process got a fatal signal", general = true, category = "framework",
  component = "framework", severity = "error",
  regex = { [[\*\*\* Process received signal \*\*\*]],
    [[\bSignal: (?P<signal>Segmentation fault|Bus error|Illegal instruction|]] ..
      [[Floating point exception) \(\d+\)]] },
  remedy = "Look at the frames below it.", action = "check",
  hit = { "[n7:31808] *** Process received signal ***", "[n7:31808] Signal: Segmentation fault (11)" },
  miss = { "[n7:31808] Signal handlers installed" },
}
mpi {
  id = "executable", restart = "never",
  title = "MPI launcher cannot start the program", component = "user_config",
  symptom = "launch_failure",
  regex = { [[mpirun was unable to (?:launch the specified application|find the specified executable)]],
    [[prterun was unable to (?:launch|find)]], [[mpirun has detected an attempt to run as root]],
    [[\[proxy:\S+\] HYDU_create_process .*execvp error on file (?P<file>\S+)]] },
  remedy = "Correct the program's path on every host; as root in a container allow it (--allow-run-as-root).",
  hit = { "mpirun was unable to launch the specified application as it could not access",
    "mpirun has detected an attempt to run as root." },
  miss = { "mpirun (Open MPI) 4.1.5" },
}
mpi {
  id = "usage", restart = "never", title = "Program calls MPI the wrong way", component = "user_code",
  regex = { [[\b(?P<kind>MPI_ERR_(?:TRUNCATE|RANK|COMM|TYPE|COUNT|TAG|ROOT|BUFFER|ARG|GROUP|OP))\b]],
    [[Fatal error in P?MPI_\w+: (?P<kind>Message truncated|Invalid (?:rank|communicator|count|tag|]] ..
      [[datatype))]] },
  remedy = "Check counts, ranks and tags of the call on both sides.",
  hit = { "*** MPI_ERR_TRUNCATE: message truncated", "*** MPI_ERR_RANK: invalid rank" },
  miss = { "MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort)" },
}
mpi {
  id = "binding", restart = "never",
  title = "MPI could not bind its processes to cores", category = "platform",
  component = "platform", severity = "error", symptom = "launch_failure", action = "check",
  regex = { [[Open MPI tried to bind a (?:new )?process, but]], [[Error: hwloc_set_cpubind returned]] },
  remedy = "Compare the cores of the job's cgroup with what mpirun binds; --bind-to none as a test.",
  hit = { "Open MPI tried to bind a new process, but something went wrong." },
  miss = { "[n1:1] MCW rank 0 bound to socket 0" },
}
mpi {
  id = "tcp", title = "MPI could not connect to a peer over TCP", category = "platform",
  component = "network", severity = "error", action = "check",
  regex = { [[Open MPI failed to TCP connect to a peer MPI process]] },
  remedy = "Choose the interface that both hosts share (btl_tcp_if_include); check the firewall.",
  hit = { "WARNING: Open MPI failed to TCP connect to a peer MPI process." },
  miss = { "Open MPI connected 16 peers" },
}
mpi {
  id = "shm", title = "MPI could not set up shared memory on the host", category = "platform",
  component = "host_memory", symptom = "launch_failure", action = "check",
  regex = { [[A system call failed during shared memory initialization that should not have]],
    [[It appears as if there is not enough space for (?P<file>\S+)]],
    [[unable to (?:create|allocate) (?:the )?shared memory (?:backing )?(?:file|segment)]],
    [[MPIDI?U?_\w*[Ss]hm\w*\(\d+\)\.*: (?P<what>.*)]] },
  remedy = "Check space and rights of /dev/shm and of the session folder (TMPDIR) on that host.",
  hit = { "A system call failed during shared memory initialization that should not have.",
    "It appears as if there is not enough space for /tmp/ompi.n7.1001/pid.4711/1/vader_segment.n7.1 " ..
      "(the shared-memory " ..
      "backing file)." },
  miss = { "shared memory initialised" },
}
mpi {
  id = "ib_retry", title = "MPI's InfiniBand retries to a peer ran out", category = "platform",
    component = "network",
  severity = "error", action = "check",
  regex = { [[The InfiniBand retry count between two MPI processes has been exceeded]],
    [[from (?P<sender>\S+) to: (?P<peer>\S+) error polling \w+ CQ with status RETRY EXCEEDED]] },
  remedy = "See whether the peer died first; else check links and routes between the two hosts.",
  hit = { "The InfiniBand retry count between two MPI processes has been exceeded." },
  miss = { "InfiniBand retry count is 7" },
}
mpi {
  id = "hydra", title = "Hydra lost its proxy or a process on a host", role = "cascade", category = "unknown",
  component = "unknown", severity = "error", action = "none", general = true,
  regex = { [[downstream from host (?P<host>\S+) (?:exited with status (?P<code>[1-9]\d*)|]] ..
    [[was killed by signal (?P<signal>\d+))]],
    [[\[proxy:\d+:\d+@(?P<host>[\w.-]+)\] .*(?:demux engine error|connection lost|error)]],
    [[one of the processes terminated badly; aborting]] },
  remedy = "Look at that host: its process' last lines, its kernel log.",
  hit = { "[mpiexec@n1] wait_proxies_to_terminate (../i_mpiexec.c:532): downstream from host n7 exited " ..
    "with status 255",
    "[proxy:0:1@n7] main (proxy/pmip.c:206): demux engine error waiting for event" },
  miss = { "[proxy:0:1@n7] started" },
}
