-- Open MPI, MPICH (and Intel MPI, Cray MPICH), PMIx: starts, aborts, and peers that are gone.

local function mpi(row)
  rule {
    id = "mpi." .. row.id, engine = 1, title = row.title, category = row.category or "user",
    component = row.component or "dependency", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

mpi {
  id = "gpu_support", title = "MPI was asked for GPU support that the program was not built with",
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
  id = "pmi", title = "Launcher and MPI library do not fit each other", symptom = "launch_failure",
  regex = { [[OMPI was not built with SLURM's PMI support]], [[PMI2?_Init failed to initialize]],
    [[PMIX ERROR: (?:UNREACHABLE|NOT-FOUND|ERR-FILE|OUT-OF-RESOURCE)]],
    [[PMI_Get_appnum returned]], [[The application appears to have been direct launched using "srun"]],
    [[mpi/pmi\w*: .*(?:can't|failed to) (?:load|create|init)]],
    [[opal_init failed|orte_init failed|ompi_mpi_init: ompi_rte_init failed]],
    [[MPIR_Init_thread.*(?:failed|PMI)]] },
  remedy = "Use srun --mpi=pmix (or pmi2) in the version that the library was built for, or mpirun.",
  hit = { "The application appears to have been direct launched using \"srun\", but OMPI was not built " ..
      "with SLURM's PMI support",
    "MPI startup(): PMI server not found\nMPIR_Init_thread(192): PMI2_Init failed to initialize. " ..
        "Return code: 14" },
  miss = { "srun: switch NONE plugin loaded" },
}
mpi {
  id = "slots", title = "More MPI ranks than places for them", component = "user_config",
  symptom = "launch_failure",
  regex = { [[There are not enough slots available in the system]],
    [[All nodes which are allocated for this job are already filled]],
    [[bind(?:ing)? to a (?:level|resource) .*(?:more processes than|not supported)]],
    [[A request was made to bind to that would (?:result in|require) binding more]] },
  remedy = "Match ranks per host with what was allocated; --oversubscribe only if meant.",
  hit = { "There are not enough slots available in the system to satisfy the 16" },
  miss = { "slots=8 max_slots=8" },
}
mpi {
  id = "daemon", title = "MPI could not start its daemon on a host", category = "platform",
  component = "platform",
  symptom = "launch_failure", action = "check",
  regex = { [[ORTE was unable to reliably start one or more daemons]],
    [[PRTE has lost communication with a remote daemon]],
    [[An ORTE daemon has unexpectedly failed after launch]],
    [[ORTE has lost communication with a remote daemon]],
    [[HYDU_sock_connect .*unable to connect]], [[Host key verification failed\.]],
    [[ssh: connect to host \S+ port \d+: ]],
    [[Permission denied \(publickey]] },
  remedy = "Test ssh or the launcher to that host; check the library's path there.",
  hit = { "ORTE was unable to reliably start one or more daemons.",
    "ssh: connect to host node12 port 22: Connection refused" },
  miss = { "Warning: Permanently added 'node12' (ED25519) to the list of known hosts." },
}
mpi {
  id = "abort", title = "A rank called MPI_Abort", role = "cascade", category = "unknown",
  component = "unknown", severity = "error",
  action = "none",
  regex = { [[MPI_ABORT was invoked on rank (?P<rank>\d+)]], [[application called MPI_Abort\(]],
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
  remedy = "Look at the rank named: its own last lines, its host's kernel log.",
  hit = { "mpirun noticed that process rank 5 with PID 0 on node n3 exited on signal 11 (Segmentation " ..
      "fault).",
    "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES" },
  miss = { "mpirun -np 8 ./train" },
}
mpi {
  id = "lost_peer", title = "MPI lost its connection to a peer", role = "cascade", category = "unknown",
  component = "network",
  severity = "error", action = "check",
  regex = { [[btl_tcp\S* .*(?:connect\(\) to|recv\(.*\) failed|readv failed)]],
    [[Open MPI detected an inbound MPI TCP connection]],
    [[OOB-TCP: .*(?:[Cc]onnection|lost)]], [[MPIDI_OFI_handle_cq_error]],
    [[MPIR_\w+\(\d+\).*: (?:Other MPI error|Message truncated|.*process failed)]],
    [[PMIX ERROR: (?:LOST[- ]CONNECTION|LOST-PEER|PMIX_ERR_LOST_CONNECTION)]], [[MPI_ERR_PROC_FAILED]] },
  remedy = "See whether the peer ended; if not, check the fabric between the hosts.",
  hit = { "MPIDI_OFI_handle_cq_error(1062): OFI poll failed " ..
      "(ofi_events.c:1064:MPIDI_OFI_handle_cq_error:Input/output error)",
    "[n1][[4,1],0][btl_tcp_endpoint.c:625:mca_btl_tcp_endpoint_recv_connect_ack] btl_tcp_frag.c " ..
        "recv(12) failed: Connection reset by peer" },
  miss = { "btl_tcp_if_include eth0" },
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
  regex = { [[\*\*\* Process received signal \*\*\*]], [[\bSignal: (?P<signal>Segmentation fault|Bus ]] ..
      [[error|Illegal instruction|Floating point exception) \(\d+\)]] },
  remedy = "Look at the frames below it.", action = "check",
  hit = { "[n7:31808] *** Process received signal ***", "[n7:31808] Signal: Segmentation fault (11)" },
  miss = { "[n7:31808] Signal handlers installed" },
}
