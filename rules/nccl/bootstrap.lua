-- NCCL's start: interfaces, addresses, sockets of the bootstrap, plugins, versions, shared memory. RCCL,
-- HCCL's CUDA-like cousins and Neuron's CCOM print the same lines under their own names.

-- The message is repeated alone behind `Last error:` of an exception; old versions leave their name out.
local W = [[(?:(?:NCCL|RCCL|CCOM|\.(?:cc|cu|h):\d+) WARN .*|^(?:WARN .*)?)]]

local function start(row)
  rule {
    id = "nccl." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "network", severity = row.severity or "fatal",
    symptom = row.symptom or "launch_failure",
    role = row.role, observes = row.observes, reads = row.reads, general = row.general,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

start {
  id = "bootstrap.no_interface", title = "No network interface matches the NCCL settings",
  regex = { [[Bootstrap ?: no socket interface found]], [[no socket interface found]],
    [[No socket interface found]],
    [[No interface found (?:in the same subnet|starting with)]], [[NET/Socket : [Nn]o interface found]],
    [[Socket creation failed : Address family not supported]],
    [[connecting to address .{0,60}with family \d+ is neither]] },
  except = { [[NET/IB : No device found]] },
  remedy = "Correct NCCL_SOCKET_IFNAME; list the interfaces of the hosts.",
  hit = { "NCCL WARN Bootstrap : no socket interface found",
    "NCCL WARN No interface found starting with eth9",
    "include/socket.h:344 WARN Socket creation failed : Address family not supported by protocol",
    "ncclSocketInit: connecting to address  with family 512 is neither AF_INET(2) nor AF_INET6(10)" },
  miss = { "NCCL INFO NET/IB : No device found." },
}
-- (Files that cannot be extended: rules/storage/disk.lua.) A peer that refuses is not (or no longer) there;
-- a peer without a route or an answer is a broken network.
start {
  id = "bootstrap.refused", restart = "same",
  title = "Peer's bootstrap port refused the connection: it ended, or its network is broken",
  category = "hardware", severity = "error", symptom = "crash", action = "check", observes = "refusal",
  regex = { W .. [[[Cc]onnect to (?P<peer>\S+) failed : Connection refused]],
    [[socketPollConnect:? connect (?:to \S+ )?returned Connection refused]],
    [[exceeded error retry count \(\d+\)]] },
  remedy = "Look at the peer named: did its process start and stay? If it did, test that host's network.",
  hit = { "n2:51:88 [0] include/socket.h:403 NCCL WARN Connect to 10.1.2.3<56821> failed : Connection " ..
      "refused",
    "NCCL WARN socketPollConnect: connect returned Connection refused, exceeded error retry count (35)" },
  miss = { "NCCL INFO Call to connect returned Connection refused, retrying" },
}
-- Old versions do not say whom they called.
start {
  id = "bootstrap.refused_unnamed", restart = "same", title = "Connection to a peer's NCCL port was refused",
  category = "platform", severity = "error", symptom = "crash", action = "check",
  regex = { W .. [[Call to connect (?:returned|timeout|failed)\b.{0,20}Connection refused]] },
  except = [[retrying]],
  remedy = "See that all ranks started and stayed, and that firewall and interface choice let them meet.",
  hit = { "n3:771:802 [0] include/socket.h:185 WARN Call to connect failed : Connection refused",
    "NCCL WARN Net : Call to connect failed : Connection refused" },
  miss = { "NCCL INFO Call to connect returned Connection refused, retrying" },
}
start {
  id = "bootstrap.loopback", title = "NCCL uses the loopback interface among those between hosts",
  category = "user", severity = "info", symptom = "launch_failure", action = "fix", observes = "loopback",
  regex = { [[NET ?: Using interface lo:127\.]], [=[NET/Socket ?: Using \[0\]lo:127\.\S+ \[1\]]=],
    [=[NET/Socket ?: Using .*\[[1-9]\d*\]lo:127\.]=] },
  remedy = "Name the interfaces between the hosts in NCCL_SOCKET_IFNAME, without lo (\"^lo,docker\").",
  hit = { "n2:4152:4206 [0] NCCL INFO NET : Using interface lo:127.0.0.1<0>",
    "n2:41:42 [0] NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0> [1]eth0:10.151.40.240<0>" },
  miss = { "NCCL INFO NET/Socket : Using [0]lo:127.0.0.1<0>",
    "NCCL INFO Could not find real path of /sys/class/net/lo/device" },
}
start {
  id = "bootstrap.unreachable", restart = "same",
  title = "Peer cannot be reached over the network", category = "platform",
  severity = "error",
  symptom = "crash", action = "check",
  regex = { W .. [[(?:No route to host|Network is unreachable|Connection timed out|Host is unreachable|]] ..
      [[Operation timed out|Software caused connection abort)]],
    -- Old versions leave their name out.
    [[\bCall to connect failed : (?:No route to host|Network is unreachable|Connection timed out)]],
    [[socketPollConnect.*(?:No route to host|Connection timed out|Network is unreachable)]] },
  remedy = "Check interface choice, routes and firewall between the two hosts.",
  hit = { "NCCL WARN Net : Connect to 10.0.0.9<41231> failed : No route to host",
    "n1:4:9 [0] misc/socket.cc:471 NCCL WARN socketStartConnect: Connect to 10.1.1.1<3333> failed : " ..
        "Connection timed out",
        "n1:8:9 [0] include/socket.h:360 WARN Call to connect failed : Connection timed out",
    "NCCL WARN socketStartConnect: Connect to 10.0.0.2<4576> failed : Software caused connection abort" },
  miss = { "NCCL INFO Call to connect timeout, retrying" },
}
start {
  id = "bootstrap.files", title = "Too few open files allowed for NCCL's sockets", category = "platform",
  component = "host_kernel",
  regex = { W .. [[Too many open files]], [[(?:NCCL|CCOM).*socket.*Too many open files]] },
  remedy = "Raise the limit of open files (ulimit -n) for jobs on all hosts.",
  hit = { "4:5 [14] include/socket.h:438 NCCL WARN Net : Socket creation failed : Too many open files" },
  miss = { "NCCL INFO comm opened 12 sockets" },
}
start {
  id = "bootstrap.peer_closed", restart = "same",
  title = "Peer closed its connection to NCCL", role = "cascade",
  category = "unknown",
  component = "unknown", severity = "error", symptom = "crash", action = "none", observes = "peer",
  regex = { W .. [[(?:Connection closed by (?:remote )?peer|Connection reset by peer|Broken pipe)]],
    W .. [[(?:socketProgress|ncclSocketProgress|recv).*(?:[Cc]onnection closed|failed)]],
    [[socketProgress: Connection closed by remote peer]],
    [[Accept failed.*Software caused connection abort]],
    [[remote process (?:has )?exited or there was a network error]] },
  reads = { [=[(?P<closed>Connection closed by) (?:remote )?peer \[?(?P<closed_by>[^<\] ]*)]=],
    [[(?P<closed>Connection closed by peer)]] },
  remedy = "Look for what ended the peer.",
  hit = { "NCCL WARN socketProgress: Connection closed by remote peer node7<49152>",
    "NCCL WARN Net : Call to recv from 10.0.0.3<4021> failed : Connection reset by peer",
    "n1: Test NCCL failure common.cu:303 'remote process exited or there was a network error / '" },
  miss = { "NCCL INFO Connected all rings" },
}
start {
  id = "plugin.missing", title = "Network that was asked for by name is not there", component = "nccl_comm",
  regex = { W .. [[Error: network (?P<network>.+) not found]], W ..
    [[Failed to initialize (?:any )?NET plugin]],
    W .. [[Could not find(?: any)? network (?:plugin|named)]],
    W .. [[NCCL_NET(?:_PLUGIN)?=\S+ .*(?:not found|not available)]] },
  remedy = "Load the plugin's library (LD_LIBRARY_PATH, NCCL_NET_PLUGIN), or drop NCCL_NET.",
  hit = { "net.cc:626 NCCL WARN Error: network AWS Libfabric not found." },
  miss = { "NCCL INFO NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
    "CCOM WARN NET/OFI aws-ofi-nccl initialization failed" },
}
start {
  id = "version", title = "Ranks run different versions of NCCL", component = "dependency",
  regex = { W .. [[[Mm]ismatch\w* (?:NCCL )?version.*? rank (?P<rank>\d+)]],
      W .. [[[Mm]ismatch\w* (?:NCCL )?version]], [[(?:NCCL|RCCL) (?:library )?version mismatch]],
    W .. [[(?:version|Version) .* (?:do|does) not match]],
    W .. [[Cuda failure .*(?:CUDA driver version is insufficient)]],
    W .. [[Message truncated : received \d+ bytes instead of \d+]] },
  remedy = "Use the same image on all hosts; look which libnccl each rank loads.",
  hit = { "NCCL WARN Mismatched NCCL version detected : rank 0 version 21805 rank 3 version 21403",
    "NCCL WARN Message truncated : received 256 bytes instead of 8" },
  miss = { "NCCL version 2.18.3+cuda12.1" },
}
start {
  id = "duplicate_gpu", title = "Two ranks of a host use the same GPU", component = "user_config",
  regex = { [[Duplicate GPU detected ?: rank (?P<rank>\d+) and rank (?P<rank2>\d+) both on]],
    [[Multiple ranks? .* (?:same|one) (?:CUDA )?device]] },
  remedy = "Set the device from LOCAL_RANK before CUDA is first used; check the launcher's GPU binding.",
  hit = { "NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 98000" },
  miss = { "NCCL INFO comm 0x1 rank 1 nranks 8 cudaDev 1 busId 98000 - Init COMPLETE" },
}
start {
  id = "shm.full", title = "Too little shared memory for NCCL", category = "platform",
  component = "host_memory",
  regex = { W .. [[(?:posix_fallocate|ftruncate|shm_open|ncclShmOpen|shmOpen).*(?:No space left|failed)]],
    W .. [[Error while (?:creating|attaching to) shared memory segment(?: (?P<file>\S+))?]],
    -- Below PyTorch's "Last error:" the same text stands alone.
    [[(?:^|^Last error: |unrelated\) ')Error while (?:creating|attaching to) shared memory segment (?P<f]] ..
      [[ile>/dev/shm/nc]] ..
      [[cl-\S+)]],
    [[^(?:Error: )?failed to extend (?P<file>/dev/shm/nccl-\S+) to \d+ bytes]] },
  remedy = "Enlarge /dev/shm of the container (--shm-size, --ipc=host); remove left-over nccl-* files.",
  hit = { "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-QkB1 (size 9637888)" },
  miss = { "NCCL INFO Channel 00 : 0[0] -> 1[1] via SHM/direct/direct" },
}
start {
  id = "shm.removed", title = "Shared-memory files of NCCL were removed while in use", category = "platform",
  component = "host_kernel",
  regex = { W .. [[unlink shared memory (?P<file>\S+) failed, error: No such file]], W ..
    [[/dev/shm/nccl-\S+.*No such file or directory]] },
  severity = "error", remedy = "Set RemoveIPC=no in logind.conf, or keep the user's session alive.",
  hit = { "NCCL WARN unlink shared memory /dev/shm/nccl-d5rTd0 failed, error: No such file or directory" },
  miss = { "NCCL WARN Error: failed to extend /dev/shm/nccl-03v824 to 4194660 bytes" },
}
start {
  id = "imex", title = "Program may not use the NVLink domain between hosts (IMEX)", category = "platform",
  component = "nvlink",
  regex = { W .. [[Cuda failure 800 'operation not permitted']], W ..
    [[(?:cuMemImportFromShareableHandle|cuMemExportToShareableHandle|FABRIC).*(?:not permitted|failed)]],
    [[IMEX (?:channel|domain).*(?:not (?:found|available|permitted|ready)|denied|failed)]] },
  remedy = "Give the user the IMEX channel device and start nvidia-imex on all hosts of the domain.",
  hit = { "transport/p2p.cc:275 NCCL WARN Cuda failure 800 'operation not permitted'" },
  miss = { "NCCL INFO MNNVL 1 cliqueId 7ffe" },
}
start {
  id = "topology", restart = "same", title = "NCCL could not use the machine's layout", category = "platform",
  component = "nccl_comm",
  regex = { W .. [[(?:Could not find (?:real path of|a path for)|No NVML device|Could not open XML ]] ..
      [[topology file|Cannot find path from)]],
    W .. [[Missing (?:"\w+" )?attribute]], W .. [[[Tt]opology .*(?:invalid|failed|mismatch)]],
    W .. [[nvml\w+\(.*\) failed]] },
  severity = "error", remedy = "Check /sys and NVML inside of the container, and the topology file given.",
  action = "check",
  hit = { "NCCL WARN Could not find real path of /sys/class/pci_bus/0000:07/../../0000:07:00.0",
    "NCCL WARN nvmlInit_v2() failed: Driver Not Loaded" },
  miss = { "NCCL INFO NCCL_TOPO_FILE set by environment to /etc/topo.xml" },
}
