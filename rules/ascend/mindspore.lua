-- MindSpore on Ascend: device memory, data pipeline, cluster set-up, as its C++ side prints them.

local function ms(row)
  rule {
    id = "ascend.mindspore." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
      component = row.component,
    severity = row.severity or "fatal",
      action = row.action or (row.category and row.category ~= "user" and "check" or "fix"), role = row.role,
      general = row.general,
    symptom = row.symptom, source = { "log" }, remedy = row.remedy, match = { regex = row.regex,
      except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

ms {
  id = "card_taken", restart = "same",
  title = "Another process holds the NPU's memory", component = "gpu_memory",
  regex = { [[(?:Device (?P<device>\d+) )?may be other processes occupying this card]],
    [[free memory size is less than half of total memory size]] },
  remedy = "End the other process (npu-smi info) or take another NPU.",
  hit = { "Malloc device memory failed, size[32212254720], ret[207001], Device 6 may be other processes " ..
    "occupying this card, check as: ps -ef|grep python" },
  miss = { "Malloc device memory success, size[1024]" },
}
ms {
  id = "memory", restart = { "never", "same" }, title = "NPU memory is used up", component = "gpu_memory",
  regex = { [[Memory not enough: .*smaller than required size]],
    [[Memory not enough.*[Cc]urrent free memory size]], [[Malloc device memory failed]],
    [[Device\(id:\d+\) memory isn't enough and alloc failed]],
    [[Please try to reduce 'batch_size'|please try to reduce 'batch_size']], [[#umsg#Memory not enough]] },
  remedy = "Lower the batch, use recomputation or split the model further.",
  hit = { "Memory not enough: Device(id:0) memory isn't enough and alloc failed, kernel name: " ..
    "Default/MatMul-op1, alloc size: 1073741824B.",
    "Malloc device memory failed, size[1073741824], ret[207001]" },
  miss = { "Device MOC memory size: 62420M" },
}
ms {
  id = "dataset", title = "Data pipeline of MindSpore failed", component = "user_data", general = true,
  regex = { [[Exception thrown from dataset pipeline]],
    [[Exception thrown from (?:user defined )?Python function in dataset]],
    [[map operation: \[.*\] failed]] },
  remedy = "Read the lines below: a file, a sample or a function of the pipeline.",
  hit = { "RuntimeError: Exception thrown from dataset pipeline. Refer to 'Dataset Pipeline Error " ..
    "Message'." },
    miss = { "Dataset pipeline: 16 workers" },
}
ms {
  id = "files", title = "Data files do not fit each other or are missing", component = "user_data",
  regex = { [[DB file can not match file]],
    [[Invalid file, (?:failed to open|the size of mindrecord file header|DB file)]], [[Fail to open \./?\S+]],
    [[The folder .* does not exist or is not a directory or permission denied]] },
  remedy = "Write the MindRecord files again with this version, and move each with its index (.db).",
  hit = { "RuntimeError: Unexpected error. Invalid file, DB file can not match file",
    "Invalid file, failed to open files for reading mindrecord files." },
    miss = { "opened 8 mindrecord files" },
}
ms {
  id = "workers", title = "Number of data workers is out of range", component = "user_config",
  regex = { [[num_workers=?\S*.{0,40}not within the required range]],
    [[num_parallel_workers .{0,60}(?:exceeds the boundary|not within the required interval|greater than|]] ..
      [[should be)]] },
  remedy = "Set it to at most the CPU threads of the host.",
  hit = { "GeneratorDataset's num_workers=8, this value is not within the required range of [1, " ..
    "cpu_thread_cnt=2]." },
    miss = { "num_parallel_workers: 8" },
}
ms {
  id = "slow_data", title = "Data pipeline is slower than the device", component = "user_data",
    severity = "warning", symptom = "slowdown",
  regex = { [[Bad performance attention, it takes more than \d+ seconds]] },
  remedy = "Speed up the pipeline: more workers, faster storage, less work per sample.",
  hit = { "Bad performance attention, it takes more than 25 seconds to fetch a batch of data from dataset " ..
    "pipeline, which might result `GetNext` timeout problem." },
  miss = { "it takes 2 seconds to fetch a batch" },
}
ms {
  id = "device_id", title = "Device id does not exist", component = "user_config",
  regex = { [=[Device \d+ call rtSetDevice failed, ret\[107001\]]=],
    [[set device=\d+, valid device range is]] },
  remedy = "Use a device id that npu-smi shows.",
  hit = { "RuntimeError: Device 8 call rtSetDevice failed, ret[107001]. The details refer to 'Ascend " ..
    "Error Message'." },
    miss = { "Device 7 call rtSetDevice ok" },
}
ms {
  id = "node_timeout", restart = "same",
  title = "A node of the MindSpore cluster stopped answering", category = "platform",
    component = "nccl_comm", role = "cascade", severity = "error", symptom = "hang",
  regex = { [[The total number of timed out node is]], [[The node: \S+ is timed out]],
    [[Failed to connect to the meta server node url]] },
  remedy = "Read that node's own log; it failed or never started.",
  hit = { "The total number of timed out node is 1. Timed out node list is: [const vector]{3}",
    "Failed to connect to the meta server node url: 10.0.0.1:8118" },
    miss = { "The number of alive nodes is 8" },
}
ms {
  id = "cluster_config", title = "MindSpore cluster settings are wrong", component = "user_config",
  regex = { [[Spawned worker process number is not as expected]],
    [[The port number of meta server node \S+ is invalid]], [[Repeated registration node:]],
    [[The global rank id .* should be less than global rank size]],
    [[please export MINDSPORE_HCCL_CONFIG_PATH or RANK_TABLE_FILE]], [[Role name .* is invalid]] },
  remedy = "Correct worker count, port, ranks or rank table of the launcher.",
  hit = { "Failed to register the compute graph node: 3. Reason: Repeated registration node: 3 to the " ..
    "scheduler" },
    miss = { "Register node 3 success" },
}
ms {
  id = "not_inited", title = "Collective used before the cluster was initialised", component = "user_code",
  regex = { [[Distributed Communication has not been inited]], [[hcomInfo\.pComm is null]] },
  remedy = "Call init() before using collectives.",
  hit = { "RuntimeError: Distributed Communication has not been inited" },
    miss = { "Distributed Communication inited" },
}
ms {
  id = "library", title = "MindSpore cannot load its Ascend library", category = "user",
    component = "dependency",
  regex = { [[Load dynamic library:? ?'?libmindspore_\S+ failed]], [[Unsupported device target '?Ascend]],
    [[get libAscend\S+ failed]] },
  remedy = "Install the CANN version this MindSpore was built for and source its set_env.sh.",
  hit = { "Load dynamic library: libmindspore_ascend.so.2 failed. libhccl.so: cannot open shared object file",
    "RuntimeError: Unsupported device target Ascend." },
    miss = { "Load dynamic library libmindspore_ascend.so.2 success" },
}
ms {
  id = "stream", restart = "unknown",
  title = "Work on the NPU failed, seen when MindSpore waited for it", category = "framework",
    component = "framework", role = "cascade", general = true, severity = "error",
  regex = { [[[Ss]ync [Ss]tream (?:failed|error)]], [[SyncStream failed]],
    [[Call runtime aclrtSynchronizeStream\w* error]], [[Run task (?:for graph:\S+ )?error]] },
  remedy = "Read the Ascend error message next to it.",
  hit = { "RuntimeError: Sync stream failed:Ascend_0",
    "Call runtime aclrtSynchronizeStreamWithTimeout error." }, miss = { "Sync stream success" },
}
