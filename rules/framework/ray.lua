-- Ray's start, placement, nodes and disks, vLLM and the trainers on top of them.

local function ray(row)
  rule {
    id = "framework." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", says = row.says,
    role = row.role, symptom = row.symptom or "launch_failure",
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

ray {
  id = "ray.no_cluster", title = "No Ray cluster answers at the address",
  regex = { [[Could not find any running Ray instance]],
    [[ConnectionError: Could not find.* Ray]] },
  remedy = "Start the head first, give its address (RAY_ADDRESS), open its port to the hosts.",
  hit = { "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to" },
  miss = { "Connected to Ray cluster. View the dashboard at 127.0.0.1:8265" },
}
ray {
  id = "ray.no_answer", restart = "same", title = "Ray's head does not answer at its address",
  regex = { [[ConnectionError: ray client connection timeout]],
    [[Unable to connect to GCS at (?P<peer>\S+)]],
    [[Failed to connect to GCS at address (?P<peer>[\w.:-]+)]] },
  remedy = "Start the head first, give its address (RAY_ADDRESS), open its port to the hosts.",
  hit = { "RuntimeError: Failed to connect to GCS at address 10.0.0.4:6379 within 5 seconds" },
  miss = { "Connected to Ray cluster. View the dashboard at 127.0.0.1:8265" },
}
ray {
  id = "ray.register", restart = "same",
  title = "Ray worker could not register on its host", component = "platform",
  category = "platform", action = "check",
  regex = { [[Failed to register worker \S* ?to Raylet]], [[Unable to register worker with raylet]],
    [[The current node timed out during startup]],
    [[Some processes that the driver started .* have failed to start]] },
  remedy = "Check limits of processes and files, ports and memory of that host; clear /tmp/ray.",
  hit = { "Failed to register worker 01000000ffff to Raylet. IOError: [RayletClient] Unable to register " ..
      "worker with raylet. No such file or directory" },
  miss = { "worker registered with raylet" },
}
ray {
  id = "ray.resources", title = "Cluster does not have the resources that the program asks of Ray",
  regex = { [[No available node types can fulfill resource request (?P<what>.*)]],
    [[Total available GPUs (?P<have>[\d.]+) is less than total desired GPUs (?P<want>[\d.]+)]],
    [[(?:placement group|[Pp]lacementGroup).{0,80}(?:infeasible|cannot be (?:created|placed))]],
    [[Cannot provide a placement group of (?P<what>.{0,80})]],
    [[Ray component \w+ is trying to use a port number (?P<port>\d+) that is used by other]] },
  remedy = "Ask for what `ray status` shows, or wait for the missing hosts.",
  hit = { "ValueError: Total available GPUs 4.0 is less than total desired GPUs 8",
    "ValueError: Cannot provide a placement group of bundles=[{'GPU': 4.0}] within 600 seconds." },
  miss = { "Resources: 64.0 CPU, 8.0 GPU" },
}
ray {
  id = "vllm.cache", title = "GPU memory is too small for the model and its cache",
  component = "gpu_memory",
  regex = { [[No available memory for the cache blocks]],
    [[max seq len \(\d+\) is larger than the maximum number of tokens that can be stored in KV cache]],
    [[Free memory on device \(?(?P<free>[^)]*)\)? on startup is less than desired GPU memory utilization]],
    [[To serve at least one request with the models's max seq len \(\d+\), .* KV cache is needed]] },
  remedy = "Lower max_model_len, raise gpu_memory_utilization, or use more GPUs; end what else runs there.",
  hit = { "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`",
    "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be " ..
        "stored in KV cache (77536)." },
  miss = { "GPU KV cache size: 77,536 tokens" },
}
ray {
  id = "vllm.engine", restart = "same", title = "Inference engine did not start or is gone", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none", symptom = "crash",
  regex = { [[Engine core initialization failed\. See root cause above]],
    [[\bEngineDeadError\b]], [[AsyncEngineDeadError]], [[Engine process failed to start]],
    [[RuntimeError: Engine loop (?:has died|is not running)]] },
  remedy = "Look at the first error above it.",
  hit = { "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue." },
  miss = { "Engine core initialised" },
}
-- What Ray's own processes say of a node: a busy host, a lost network and a dead one look alike.
ray {
  id = "ray.marked_dead", restart = "same",
  title = "Ray's head gave the host up: its heartbeats came late or not at all",
  category = "unknown", component = "platform", severity = "error", symptom = "crash", action = "check",
  regex = { [[\bThis node has bee[mn] marked as dead\b]],
    [[node manager has (?:mistakenly )?been marked (?:as )?dead\b]],
    [[\bRaylet (?:will|is going to) (?:exit|shut down).{0,60}marked (?:as )?dead\b]] },
  remedy = "Look at that host at this time: processor, memory and network; raise health_check_timeout_ms " ..
    "only for hosts that are known to be busy.",
  hit = { "[2024-03-01 10:00:00,123 C 31 31] node_manager.cc:170: This node has beem marked as dead.",
    "(raylet) node_manager.cc:1031: [Timeout] Exiting because this node manager has mistakenly been " ..
      "marked as dead by the GCS: GCS failed to check the health of this node for 5 times." },
  miss = { "this node can be marked as dead mistakenly" },
}
ray {
  id = "ray.late", restart = "same", title = "Ray's heartbeats of a host are late", category = "unknown",
    component = "platform",
  severity = "warning", symptom = "slowdown", action = "check",
  regex = { [[Last heartbeat was sent (?P<late_ms>\d+) ms ago]] },
  remedy = "Look for a shortage of processor, memory or network on that host.",
  hit = { "node_manager.cc:157: Last heartbeat was sent 6901 ms ago. There might be resource pressure on " ..
    "this node." },
  miss = { "heartbeat sent" },
}
ray {
  id = "ray.head", restart = "same",
  title = "Ray's head does not answer: its process ended or the network is broken",
  role = "cascade", category = "unknown", component = "platform", severity = "error", symptom = "crash",
  action = "check",
  regex = { [[\bGCS may have been killed\b]], [[\bFailed to connect to GCS within \d+ seconds]],
    [[\bLost connection (?:to|with) (?:the )?GCS\b]],
    [[ray\.exceptions\.RpcError: (?P<what>.*)]], [[\bGCS (?:server|client) .{0,40}(?:disconnected|died)\b]] },
  remedy = "Look at the head's host: memory, the log of gcs_server, and whether somebody stopped it.",
  hit = { "gcs_rpc_client.h:554: Failed to connect to GCS within 60 seconds. GCS may have been killed.",
    "ray.exceptions.RpcError: failed to connect to all addresses" },
  miss = { "GCS client is connected to 10.0.0.4:6379" },
}
ray {
  id = "ray.waited", restart = "unknown",
  title = "Ray: a result did not come in time", role = "cascade", category = "unknown",
  component = "unknown", severity = "error", symptom = "hang", action = "check",
  regex = { [[\bGetTimeoutError: (?P<what>Get timed out\b.*)]],
    [[\bTrainingFailedError: (?P<what>The Ray Train run failed\b.*)]] },
  remedy = "Look at the task or actor that owes the result.",
  hit = { "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready." },
  miss = { "except GetTimeoutError:" },
}
ray {
  id = "ray.disk", title = "Disk of Ray's session folder is full", category = "platform",
  component = "storage", symptom = "crash",
  regex = { [[\bOutOfDiskError\b]], [[\bfile_system_monitor\.cc:\d+: (?P<path>\S+) is over \S+ full, a]] ..
    [[vailable space: \d+]] },
  severity = "error", remedy = "Free space there, or start Ray with another --temp-dir.",
  hit = { "(raylet) file_system_monitor.cc:111: /tmp/ray/session_x is over 95% full, available space: " ..
    "1234; " ..
    "capacity: 99999. Object creation will fail if spilling is required.",
    "ray.exceptions.OutOfDiskError: Local disk is full" },
  miss = { "/tmp/ray is 40% full" },
}
ray {
  id = "ray.environment", title = "Ray could not set up the runtime environment of the job",
  regex = { [[\bRuntimeEnvSetupError\b(?:: (?P<what>.*))?]],
    [[Failed to (?:create|set up) runtime env\w*\b]] },
  remedy = "Read the agent's log (runtime_env_setup): packages, working_dir, the way to the index.",
  hit = { "ray.exceptions.RuntimeEnvSetupError: Failed to set up runtime environment." },
  miss = { "Created runtime_env successfully" },
}
ray {
  id = "ray.version", title = "Hosts of the Ray cluster run different versions", component = "dependency",
  regex = { [[Version mismatch: The cluster was started with\b]],
    [[\bRay version mismatch\b.*?(?P<version>\d[\d.]*)?]] },
  remedy = "Use one image: the same Ray and Python on all hosts.",
  hit = { "RuntimeError: Version mismatch: The cluster was started with: Ray: 2.9.0 Python: 3.10.12" },
  miss = { "Ray version 2.9.0" },
}
ray {
  id = "ray.twice", title = "Program starts Ray twice", component = "user_code",
  regex = { [[Maybe you called ray\.init twice by accident]] },
  remedy = "Call ray.init once, or pass ignore_reinit_error.",
  hit = { "RuntimeError: Maybe you called ray.init twice by accident? This error can be suppressed by ..." },
  miss = { "Started a local Ray instance." },
}
