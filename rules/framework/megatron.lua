-- Megatron-LM, Megatron-DeepSpeed, NeMo, Transformer Engine, GPT-NeoX.

local function megatron(row)
  rule {
    id = "framework.megatron." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", role = row.role,
    symptom = row.symptom or "launch_failure", match = { regex = row.regex, except = row.except },
    remedy = row.remedy,
    action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

megatron {
  id = "scheduler", title = "Setting of the learning-rate schedule differs from the checkpoint's",
  regex = { [[(?:AnnealingLR|OptimizerParamScheduler): class input value \S+ and checkpoint ?value \S+]] ..
    [[ for (?P<what>.+) do not match]] },
  remedy = "Keep the value, or override it on purpose (--override-opt_param-scheduler).",
  hit = { "AssertionError: OptimizerParamScheduler: class input value 0.0001 and checkpointvalue " ..
      "0.0003 for learning rate do not match" },
  miss = { " > overriding learning rate value to 0.0001" },
}
megatron {
  id = "arguments", title = "Options differ from those of the checkpoint, or from each other",
  regex = { [[argument value \(?\S+\)? (?:from checkpoint|]] ..
    [[and input argument)?.*is not equal to the input argument value]],
    [[(?:\w+) value from checkpoint \(\S+\) is not equal to the input argument value]],
    [[(?:AssertionError|ValueError|RuntimeError): .*(?:pipeline|tensor|context|]] ..
      [[expert)[- _]model[- _]?parallel[- _]?(?:size)?.*(?:must|should|not|cannot)\b]],
    [[(?:AssertionError|ValueError): .*--[a-z][\w-]+ .*(?:must|should|not|cannot|requires?|only)\b]] },
  remedy = "Align the options named.",
  hit = { "AssertionError: num_layers value from checkpoint (24) is not equal to the input argument " ..
      "value (32).",
    "AssertionError: --use-distributed-optimizer only supported with local DDP implementation" },
  miss = { "using world size: 64, tensor-model-parallel size: 8, pipeline-model-parallel size: 2" },
}
megatron {
  id = "samples", title = "A split of the data holds no samples",
  regex = { [[assert num_samples > 0]],
    [[AssertionError: .*(?:num_samples|number of (?:samples|documents)).*(?:must|should|> ?0|zero)]],
    [[no samples left to consume: \d+, \d+]] },
  remedy = "Fit --split, evaluation iterations and the amount of data to each other.",
  hit = { "    assert num_samples > 0", "AssertionError: no samples left to consume: 1024, 1024" },
  miss = { " > datasets target sizes (minimum size): train: 1024" },
}
megatron {
  id = "index", title = "Indexed data set is missing or was built for something else",
  component = "user_data",
  regex = { [[Index file doesn't match expected format]],
    [[AssertionError: (?:header|version|index header) .*mismatch|bad header, cannot read: ]],
    [[One or both of the \.idx and \.bin files cannot be found at the path prefix]],
    [[Dataset does not exist: (?P<path>\S+)]], [[last epoch number of samples]] },
  remedy = "Build the data set again with this version's tool; check the path prefix.",
  hit = { "AssertionError: One or both of the .idx and .bin files cannot be found at the path prefix /data/x",
    "AssertionError: Index file doesn't match expected format." },
  miss = { " > loading doc-idx mapping from /data/x_doc_idx.npy" },
}
megatron {
  id = "kernels", title = "Fused kernels or an extension that the options need are not built",
  component = "framework",
  regex = { [[custom CUDA extension \w+ module is not found]],
    [[gradient_accumulation_fusion set to True but]],
      [[(?:RuntimeError|ImportError|AssertionError): .*(?:apex|APEX|[Tt]ransformer[ _][Ee]ngine|]] ..
        [[flash[-_]attn).*(?:install|not (?:found|installed|available)|required)]] },
  remedy = "Build Apex, Transformer Engine or flash-attn with their CUDA parts, or switch the option off.",
  hit = { "RuntimeError: ColumnParallelLinear was called with gradient_accumulation_fusion set to True " ..
      "but the custom CUDA extension fused_weight_gradient_mlp_cuda module is not found.",
    "ImportError: FlashAttention2 has been toggled on, but it cannot be used: the package flash_attn " ..
        "seems to be not installed." },
  miss = { "WARNING: apex is not installed, falling back to torch's LayerNorm" },
}
megatron {
  id = "helpers", title = "Data helpers could not be compiled", component = "dependency",
  regex = { [[Making C\+\+ dataset helpers module failed, exiting]],
    [[ERROR:megatron\S*:[Ff]ailed to compile the C\+\+ dataset helper]],
    [[No module named 'megatron\.core\.datasets\.helpers]] },
  remedy = "Install make and g++ with the Python headers; build once before the job.",
  hit = { "Making C++ dataset helpers module failed, exiting." },
  miss = { ">>> done with dataset index builder. Compilation time: 0.338 seconds" },
}
megatron {
  id = "checkpoint", title = "Distributed checkpoint does not fit or is incomplete", symptom = "crash",
  regex = { [[megatron\.core\.dist_checkpointing\.core\.CheckpointingException: (?P<what>.*)]],
    [[Global shape mismatch for loaded \(]],
    [[Unexpected (?:keys|sharded keys).*not found in (?:the )?checkpoint]],
    [[\bcheckpoint path (?P<path>\S+) is not a distributed checkpoint\b]],
    [[ValueError: There were no checkpoints found in checkpoint_dir]] },
  except = { [[WARNING]] }, action = "check",
  remedy = "Compare parallel layout and model options; fall back to the checkpoint before.",
  hit = { "megatron.core.dist_checkpointing.core.CheckpointingException: Global shape mismatch for " ..
      "loaded (torch.Size([51200, 4096]))" },
  miss = { "WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt" },
}
megatron {
  id = "straggler", restart = "unknown",
  title = "Straggler detection or fault tolerance ended the job", category = "unknown",
  component = "unknown", severity = "error", role = "cascade", symptom = "hang", action = "check",
  regex = { [[(?:RankMonitorServer|rank_monitor).*(?:[Dd]id not get (?:subsequent|initial) heartbeat|]] ..
    [[Terminating rank)]], [[did not get (?:subsequent|initial) heartbeat\.]] },
  remedy = "Look at that rank: why it stopped.",
  hit = { "RankMonitorServer: Did not get subsequent heartbeat. Waited 600.00 seconds." },
  miss = { "RankMonitorServer: heartbeat timeouts set to 600" },
}
-- Transformer Engine's C++ part states file and function of the check that failed.
rule {
  id = "framework.transformer_engine", restart = "unknown",
  engine = 1, title = "Transformer Engine failed: <what>",
  category = "framework", component = "framework", severity = "error", says = "origin",
  match = { regex = [[(?:RuntimeError|AssertionError|]] ..
    [[TEError): \S*transformer_engine/\S+:\d+ in function \S+: (?P<what>\S.*)]],
    except = [[(?i)CUDA Error|out of memory]] },
  remedy = "Compare shapes, types and the recipe with what this version and GPU support; try another " ..
    "backend.",
  action = "check",
  examples = {
    hit = { "RuntimeError: /src/transformer_engine/common/gemm/cublaslt_gemm.cu:339 in function " ..
      "cublas_gemm: " ..
      "cuBLAS Error: the requested functionality is not supported" },
    miss = { "transformer_engine/common loaded" },
  },
}
