-- HCCL and HCCP, Ascend's collectives: error codes and the plog lines behind them.
-- A notify or socket timeout is an echo: some other rank died, is late, or lost its link. Look there for the
-- cause.
-- Code lines are "EI0002: ..." and, since CANN 8.5, "Communication_Error_Timeout(EI0002): ...".

local function hccl(row)
  rule {
    id = "ascend.hccl." .. row.id, engine = 1, restart = row.restart, title = row.title,
    category = row.category or "platform", component = row.component or "nccl_comm",
    severity = row.severity or "fatal", action = row.action or "check", role = row.role,
      general = row.general, symptom = row.symptom,
    source = { "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

local first = "Find the rank that failed or went silent first: its own log holds the cause."
local ranktable = "Correct the rank table: device ids, addresses and ranks must be those of the hosts " ..
  "that run."
local codes = {
  EI0001 = { "Environment variable for HCCL is invalid", "user", "user_config",
    "Correct the variable that the line names." },
  -- (A peer that does not come is a consequence: EI0002, EI0006 and EI0015 name no cause.)
  EI0002 = { "Ranks wait for a peer that does not answer", "unknown", "nccl_comm", first, role = "cascade",
    symptom = "hang", restart = "unknown" },
  EI0003 = { "Collective called with an invalid argument", "user", "user_code",
    "Correct the argument that the line names." },
  EI0004 = { "Rank table is invalid", "user", "user_config", ranktable },
  EI0005 = { "Ranks call the same collective with different arguments", "user", "user_code",
    "Make count, type and order of collectives equal on all ranks." },
  EI0006 = { "Connection to a peer was not established in time", "unknown", "nccl_comm", first,
    role = "cascade", symptom = "hang", restart = "unknown" },
  EI0007 = { "HCCL resources are used up", "framework", "nccl_comm", "Use fewer communicators and streams." },
  EI0008 = { "Ranks run different HCCL versions", "user", "dependency",
    "Install the same CANN on all hosts." },
  EI0009 = { "Transport to a peer could not be set up: NPU port", "hardware", "network",
    "Check optical module, address and switch port of the NPU in the line (hccn_tool).",
    restart = "elsewhere" },
  EI0010 = { "Peer-to-peer between NPUs does not work", "hardware", "nvlink",
    "Check the NPUs and their links; HCCL_INTRA_ROCE_ENABLE=1 goes around it.", restart = "elsewhere" },
  EI0011 = { "NPU memory used up while HCCL allocates", "user", "gpu_memory",
    "Lower the batch or HCCL_BUFFSIZE; look for other processes on the NPU.",
    restart = { "never", "same" } },
  EI0012 = { "Copy to a peer NPU failed", "hardware", "nvlink", first, severity = "error", general = true },
  EI0013 = { "RDMA to a peer NPU failed after its retries", "hardware", "network",
    "Check the network between the two NPUs in the line, unless the peer's process had died before.",
    severity = "error" },
  EI0014 = { "Rank table does not fit the devices", "user", "user_config", ranktable },
  EI0015 = { "Ranks did not all report for the communicator", "unknown", "nccl_comm", first,
    role = "cascade", symptom = "hang", restart = "unknown" },
  EI0016 = { "HCCL configuration is invalid", "user", "user_config",
    "Correct the value that the line names." },
  EI0017 = { "Rank table lacks an entry", "user", "user_config", ranktable },
  EI0018 = { "Transfer over UB to a peer NPU failed", "hardware", "network",
    "Check link and state of the two NPUs in the line, unless the peer's process had died before.",
    severity = "error" },
  EI0019 = { "HCCL's host port is taken", "user", "user_config",
    "End left-over processes or move HCCL_IF_BASE_PORT.", restart = "same" },
  EI0020 = { "HCCL's NPU port is taken", "user", "user_config",
    "Set HCCL_NPU_SOCKET_PORT_RANGE where several processes share an NPU.", restart = "same" },
  EI9999 = { "HCCL internal error", "framework", "nccl_comm",
    "Read the lines around it; report it with the plog.", general = true, severity = "error",
    restart = "unknown" },
  EJ0001 = { "HCCP did not start: an earlier job still holds the NPU", "user", "nccl_comm",
    "End the left-over processes, wait ten seconds, start again.", restart = "same" },
  EJ0002 = { "Network port of the NPU is down", "hardware", "network",
    "Check optical module, cable and switch port (hccn_tool).", action = "isolate", restart = "elsewhere" },
  EJ0003 = { "NPU address and port cannot be bound", "user", "user_config",
    "End left-over processes; check the addresses in the rank table.", restart = "same" },
  EJ0004 = { "Address in the rank table is not the NPU's", "user", "user_config", ranktable },
  EJ9999 = { "HCCP internal error", "framework", "nccl_comm",
    "Read the lines around it; report it with the plog.", general = true, severity = "error",
    restart = "unknown" },
}
for code, row in pairs(codes) do
  hccl {
    id = string.lower(code), restart = row.restart or (row[2] == "user" and "never" or "same"),
    title = row[1], category = row[2], component = row[3], remedy = row[4], role = row.role,
    general = row.general,
    severity = row.severity, symptom = row.symptom,
      action = row.action or (row[2] == "user" and "fix" or "check"),
    regex = { [[\b]] .. code .. [=[(?:[:)]| \w+_\w+)]=] },
    hit = { code .. ": [PID: 7277] 2024-11-28-11:59:30.645.648 text",
      "[ERROR] Some_Error(" .. code .. "): text", code .. " Communication_Error" },
    miss = { "search for the keyword \"" .. code .. "\" in the documents", code .. "1 tensors" },
  }
end

-- Lines of the plog. Each names what went wrong before the error code above was raised.
local function line(id, title, row)
  hccl { id = id, restart = row.restart or (row.category == "user" and "never" or "same"), title = title,
    category = row.category, component = row.component,
    severity = row.severity or "error", role = row.role, general = row.general,
    action = row.action, symptom = row.symptom, remedy = row.remedy or first, regex = row.regex,
      hit = row.hit, miss = row.miss or { "[INFO] HCCL(811,python): [Init][Result]hcom init success" } }
end
line("heartbeat", "A peer NPU's process is gone or cut off", { role = "cascade", symptom = "hang",
  regex = { [[Heartbeat Lost Occurred]],
    [=[ExceptionType:\[(?:Heartbeat Lost|Stuck|Error cqe) Occurred\]]=] },
  hit = { "Cluster Exception Location[IP/ID]:[10.3.9.2/1], Arrival Time:[Thu Nov 28 11:56:34 2024], " ..
    "Discoverer:[10.3.9.2/0], ExceptionType:[Heartbeat Lost Occurred], Possible Reason:1. Process has " ..
    "exited, 2. Network Disconnected" } })
line("notify", "Ranks wait for a peer's notify", { role = "cascade", symptom = "hang", restart = "unknown",
  regex = { [=[taskType\[Notify Wait\]]=], [[Notify wait execute failed]], [[\bnotify wait timeout\b]] },
  hit = { "[TaskExceptionHandler][Callback]Task run failed, base information is streamID:[17], taskID[5], " ..
    "taskType[Notify Wait], tag[AllReduce_0]" } })
line("socket", "Peer's connection did not come", { role = "cascade", symptom = "hang", restart = "unknown",
  regex = { [[topo exchange (?:server|agent) get socket timeout]], [[\bGetting socket times? ?out\b]],
    [[Reason: Remote Rank did not send the data in time]],
    [[the connection failure between this device and]], [[Wait links establish completed failed]],
    [[\[Recv\]\[(?:ClusterInfoMsg|RaSocket)\].*(?:fail|error)]],
      [[\[Wait\]\[P2PConnected\]connected p2p timeout]], [[\[Connect\]\[Qp\]get qp status timeout]] },
  hit = { "[ERROR] HCCL(9,python): [Get][Connection]topo exchange server get socket timeout! timeout[120 s]",
    "[ERROR] HCCL(9,python): [Wait][P2PConnected]connected p2p timeout, timeout:120 s" } })
line("cqe", "RDMA to a peer NPU used up its retries", { category = "hardware", component = "network",
  regex = { [[cqe err(?:or)? status]], [[\berror cqe status]] },
  remedy = "Check the network between the two NPUs, unless the peer's process had died before.",
  hit = { "[ERROR] HCCL(9,python): [Heartbeat]cqe error status[12], time:[2024], localInfo" } })
line("rdma_init", "NPU's RDMA adapter cannot be used", { category = "hardware", component = "network",
  severity = "fatal", restart = "elsewhere",
  regex = { [[\brdma init fail]], [[\bra qp create fail]], [[\[Init\]\[Ra\w*\].*fail]] },
  remedy = "Check the port, address and TLS switch of this NPU (hccn_tool).",
  hit = { "[ERROR] HCCL(9,python): [network_manager.cc] rdma init fail, ret[19]" } })
line("address", "HCCL's network interface or address does not exist on the host", { category = "user",
  component = "user_config", severity = "fatal", action = "fix",
  regex = { [[\[Find\]\[LocalHostIP\]ip.*is not found in the nic list]],
    [[\[Get\]\[LocalServerId\]get host ip fail by socket Ifname]],
    [[\[Init\]\[EnvVarParam\].*(?:fail|invalid|error)]] },
  remedy = "Correct HCCL_SOCKET_IFNAME or HCCL_IF_IP.",
  hit = { "[ERROR] HCCL(9,python): [Find][LocalHostIP]ip [10.0.0.9] of [HCCL_IF_IP] is not found in the " ..
    "nic list" } })
line("port", "HCCL's port is taken", { category = "user", component = "user_config", severity = "fatal",
  action = "fix", restart = "same",
  regex = { [[ra socket listen start fail]], [[the IP address and port have been bound already]],
    [[Please check the port status and whether the port]] },
  remedy = "End left-over processes of an earlier job or move HCCL_IF_BASE_PORT.",
  hit = { "[ERROR] HCCL(9,python): bind fail. family[2], IP[10.0.0.9], port[60000]. Possible Cause: the " ..
    "IP address and port have been bound already" } })
line("ranktable", "Rank table cannot be read", { category = "user", component = "user_config",
  severity = "fatal", action = "fix", remedy = ranktable,
  regex = { [[\[HcomLoadRanktableFile\]get file\[.*real path error]], [[load file\[.*\] to json fail]],
    [[\[Parse\]\[ClusterInfo\].*(?:fail|error|invalid)]], [[Get hccl rank_table_file failed]] },
  hit = { "[ERROR] HCCL(9,python): [HcomLoadRanktableFile]get file[/job/rank.json] real path error" } })
line("inconsistent", "Ranks call the same collective with different arguments", { category = "user",
  component = "user_code", severity = "fatal", action = "fix",
  regex = { [=[\[RankConsistentImpl\]\[CompareFrame\]]=] },
    remedy = "Make count, type and order of collectives equal on all ranks.",
  hit = { "[ERROR] HCCL(9,python): [RankConsistentImpl][CompareFrame] compare failed" } })
line("tls", "NPUs of the cluster differ in their TLS switch", { category = "platform", component = "network",
  severity = "fatal", action = "fix", restart = "never",
  regex = { [[ranks tlsStatus are inconsistent]] },
    remedy = "Set the TLS switch alike on all NPUs (hccn_tool -tls).",
  hit = { "Some ranks tlsStatus are inconsistent, disable ranks: [3]" } })
line("hdc", "Channel between host and NPU broke", { category = "platform", component = "driver",
  role = "cascade",
  regex = { [[HDC (?:recv msg|send) err ret\((?:16|25)\)]], [[Subprocess abnormal, close hdc server]] },
    remedy = "Look for a dead process or a lost NPU before this line.",
  hit = { "[ERROR] HCCP(9,python): HDC recv msg err ret(25)" } })
line("tsd", "NPU's task daemon could not be opened", { category = "platform", component = "driver",
  general = true, restart = "elsewhere",
  regex = { [[TsdOpen failed]], [[Open TsdClient failed]] },
    remedy = "End left-over processes, reset the NPU, start again.",
  hit = { "[ERROR] TDT(9,python): TsdOpen failed, deviceId=0, rankSize=8" } })
rule {
  id = "ascend.hccl.version", restart = "never",
  engine = 1, title = "Ranks run different versions of CANN", category = "user",
  component = "dependency", severity = "fatal", symptom = "launch_failure", source = { "log" },
  match = { regex = { [[(?i)cann version check fail\w*:? *local (?P<local>[^\s,]+), *root ]] ..
      [[(?P<root>[^\s,]+)]] } },
  remedy = "Install one CANN version on all hosts.", action = "fix",
  examples = { hit = { "[Check][CannVersion]cann version check fail: local 7.0.RC1, root 7.0.0" },
    miss = { "cann version check success: local 7.0.RC1, root 7.0.RC1" } },
}
-- What HCCL's calls return, as torch_npu prints it. All ranks of a collective fail together: most of these
-- only follow.
local returns = {
  { 1, "a parameter that is not allowed", "user", "user_code", restart = "never" },
  { 3, "NPU memory is used up", "user", "gpu_memory", restart = { "never", "same" } },
  { 4, "an inner error", "framework", "nccl_comm", restart = "unknown" },
  { 5, "something it does not support", "framework", "nccl_comm", restart = "never" },
  { 6, "a link or resource that is not there", "unknown", "nccl_comm", "cascade" },
  { 7, "a part that is not available", "unknown", "nccl_comm", "cascade" },
  { 8, "a system call that failed", "platform", "host_kernel" },
  { 9, "a peer that did not come in time", "unknown", "nccl_comm", "cascade" },
  { 11, "a TCP connection that failed", "platform", "network" }, { 12, "a RoCE connection that failed",
    "platform", "network" },
  { 13, "a TCP transfer that failed", "platform", "network" }, { 14, "a RoCE transfer that failed",
    "hardware", "network" },
  { 15, "a runtime call that failed", "framework", "framework", restart = "unknown" },
  { 16, "a driver call that failed",
    "platform", "driver" },
  { 19, "a network call that failed", "platform", "network" }, { 21, "a peer that failed", "unknown",
    "nccl_comm", "cascade" },
}
for _, row in ipairs(returns) do
  hccl {
    id = "ret." .. row[1], restart = row.restart or "same",
    title = "Collective on the NPU failed: " .. row[2], category = row[3], component = row[4],
    severity = "error", role = row[5], general = not row[5],
    regex = { [[\b[Hh]ccl(?P<call>[A-Z]\w+)(?:\(.*?\))?, error code is ]] .. row[1] .. [[\b]] },
    remedy = "Read the EI or EJ code next to it; find the rank that failed first.",
    hit = { "RuntimeError: HCCL function error: hcclAllReduce(in, out), error code is " .. row[1],
      "[ERROR] OPS function error: HcclAllgather, error code is " .. row[1] },
    miss = { "HCCL function error: hcclAllReduce, error code is " .. row[1] .. "07" },
  }
end
