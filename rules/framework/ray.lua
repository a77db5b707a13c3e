-- Ray's start and placement, vLLM and the trainers on top of them.

local function ray(row)
  rule {
    id = "framework." .. row.id, engine = 1, title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", general = row.general,
    role = row.role, symptom = row.symptom or "launch_failure",
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

ray {
  id = "ray.no_cluster", title = "No Ray cluster answers at the address",
  regex = { [[Could not find any running Ray instance]],
    [[ConnectionError: (?:ray client connection timeout|Could not find.* Ray)]],
    [[Unable to connect to GCS at (?P<peer>\S+)]],
    [[Failed to connect to GCS at address (?P<peer>[\w.:-]+)]] },
  remedy = "Start the head first, give its address (RAY_ADDRESS), open its port to the hosts.",
  hit = { "ConnectionError: Could not find any running Ray instance. Please specify the one to connect to",
    "RuntimeError: Failed to connect to GCS at address 10.0.0.4:6379 within 5 seconds" },
  miss = { "Connected to Ray cluster. View the dashboard at 127.0.0.1:8265" },
}
ray {
  id = "ray.register", title = "Ray worker could not register on its host", component = "platform",
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
  id = "vllm.engine", title = "Inference engine did not start or is gone", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none", symptom = "crash",
  regex = { [[Engine core initialization failed\. See root cause above]],
    [[\bEngineDeadError\b]], [[AsyncEngineDeadError]], [[Engine process failed to start]],
    [[RuntimeError: Engine loop (?:has died|is not running)]] },
  remedy = "Look at the first error above it.",
  hit = { "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
    "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue." },
  miss = { "Engine core initialised" },
}
