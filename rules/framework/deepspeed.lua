-- DeepSpeed, Accelerate, Horovod, Colossal-AI: the layer between the model and the ranks.

local function framework(row)
  rule {
    id = "framework." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom, observes = row.observes,
    reads = row.reads,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

framework {
  id = "deepspeed.config", title = "DeepSpeed's configuration is not accepted", symptom = "launch_failure",
  regex = { [[\bDeepSpeedConfigError\b]], [[Check batch related parameters\. train_batch_size is not equal]],
    [[(?:AssertionError|ValueError): (?:DeepSpeed|[Zz]ero|ZeRO)\b.*(?:requires?|must|not supported|only)]],
    [[deepspeed\.(?:runtime\.)?config\S*: .*(?:not supported|invalid)]],
    [[Please correct the following DeepSpeed config values that mismatch TrainingArguments]],
    [[AssertionError: DeepSpeed backend not set, please initialize it]],
    [[It is illegal to call Engine\.step\(\) inside no_sync]],
    [[ValueError: No slot '(?P<slot>[^']+)' specified on host '(?P<host>[^']+)']],
    [[(?:RuntimeError|ValueError): (?:launcher '(?P<launcher>\w+)' not installed|]] ..
      [[Hostfile .*(?:not formatted|not found|multiple entries|empty))]],
    [[ValueError: Host '(?P<unknown>[^']+)' not found in hostfile]] },
  remedy = "Correct the DeepSpeed file; batch sizes must multiply to the global one.",
  hit = { "deepspeed.runtime.config.DeepSpeedConfigError: DeepSpeedConfig: Floating-point 16 and " ..
      "bfloat16 cannot both be enabled",
    "AssertionError: Check batch related parameters. train_batch_size is not equal to " ..
        "micro_batch_per_gpu * gradient_acc_step * world_size",
    "AssertionError: zero stage 3 requires a client optimizer" },
  miss = { "[INFO] [config.py:752:print]   checkpoint_tag_validation_fail  False" },
}
framework {
  id = "deepspeed.optimizer", title = "DeepSpeed's native optimizer cannot be used on this host",
  component = "dependency",
  regex = { [[AttributeError: 'DeepSpeedCPUAdam' object has no attribute 'ds_opt_adam']],
    [[\bCUDAMismatchException\b.*version (?P<installed>[\d.]+) does not match .* with (?P<built>[\d.]+)]],
    [[\bCUDAMismatchException\b]],
    [[Installed CUDA version (?P<installed>\S+) does not match the version torch was compiled with (?P]] ..
      [[<built>[\d.]+)]],
    [[MissingCUDAException: (?P<what>\S.*)]], [[Ninja is required to load C\+\+ extensions]],
    [[Unable to JIT load the \w+ op due to]],
    [[(?:CPUAdam|FusedAdam|async_io) .*(?:not compatible|not installed|is not available)]] },
  except = { [=[\[WARNING\]]=], [=[(?i)\[NO\]]=], [[APIs are compatible]] },
  remedy = "Install compiler and CUDA toolkit in the version of torch's CUDA, or build the op beforehand.",
  hit = { "deepspeed.ops.op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: Installed " ..
      "CUDA version 11.8 does not match the version torch was compiled with 12.1",
    "Exception: >- DeepSpeed Op Builder: Installed CUDA version 10.2 does not match the version torch was " ..
      "compiled with 11.7, unable to compile cuda/cpp extensions without a matching cuda version.",
    "deepspeed.ops.op_builder.builder.MissingCUDAException: CUDA_HOME does not exist, unable to compile " ..
      "CUDA op(s)", "RuntimeError: Ninja is required to load C++ extensions" },
  miss = { "Installed CUDA version 11.1 does not match the version torch was compiled with 11.0 but since " ..
      "the APIs are compatible, accepting this combination",
    "[WARNING] async_io requires the dev libaio .so object and headers but these were not found." },
}
framework {
  id = "deepspeed.checkpoint", title = "DeepSpeed cannot load this checkpoint with this layout",
  regex = { [[ZeRO-\d optimizer state .*(?:mismatch|does not)]],
    [[(?i)The checkpoint being loaded used a DP world size of \d+ but the current world size is]],
    [[\bZeRORuntimeException\b]], [[Empty ds_version in checkpoint]],
    [[(?:FileNotFoundError|AssertionError): .*(?:zero_pp_rank|mp_rank_\d+|universal)]] },
  remedy = "Resume with the same number of ranks, or convert to a universal checkpoint.",
  hit = { "deepspeed.runtime.zero.utils.ZeRORuntimeException: The checkpoint being loaded used a DP " ..
      "world size of 8 but the current world size is 16." },
  miss = { "Unable to find latest file at /ckpt/latest, if trying to load latest checkpoint please " ..
      "ensure this file exists" },
}
framework {
  id = "deepspeed.zero3", title = "ZeRO-3 lost track of a parameter", category = "framework",
  component = "framework", severity = "error",
  regex = { [[AssertionError: \{'id': \d+, 'status': '(?:INFLIGHT|NOT_AVAILABLE)']],
    [[still have inflight params]],
    [[tracing error at step \d+:]], [[Invalidate trace cache @ step \d+.*error]] },
  remedy = "Suspect modules that are used conditionally; try another version or stage 2.",
  hit = { "RuntimeError: still have inflight params [{'id': 12, 'status': 'AVAILABLE'}]" },
  miss = { "Invalidate trace cache @ step 10: expected module 3, but got module 4" },
}
framework {
  id = "deepspeed.launcher", restart = "same",
  title = "DeepSpeed's launcher reports that a child ended", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none",
  regex = { [[\] exits with return code = (?P<code>[1-9]\d*)]],
    [[Process \d+ exits with return code = [1-9]\d*]],
    [[pdsh@\S+: \S+: ssh exited with exit code [1-9]\d*]] },
  remedy = "Look at the first error of that child.",
  hit = { "[ERROR] [launch.py:321:sigkill_handler] ['python', '-u', 'train.py'] exits with return code = 1" },
  miss = { "[INFO] [launch.py:347:main] Process 4021 exits successfully." },
}
framework {
  id = "accelerate.config", title = "Accelerate was given settings that contradict each other",
  symptom = "launch_failure",
  regex = { [[When using `deepspeed_config_file`, the following accelerate config variables will be ignored]],
    [[(?:ValueError|AssertionError): .*`?(?:accelerate config|deepspeed_plugin|fsdp_\w+|]] ..
      [[Accelerator\(\))`?.*(?:should|must|cannot|not)\b]],
    [[AcceleratorState object has no attribute|AcceleratorState.* has already been initialized]],
    [[You can't (?:train|use|move) a model that has been (?:loaded|dispatched|offloaded)]] },
  remedy = "Name each setting in one place only.",
  hit = { "ValueError: When using `deepspeed_config_file`, the following accelerate config variables " ..
      "will be ignored:" }, miss = { "accelerate launch --config_file ds.yaml" },
}
-- The lists of the line below, one line each: what a rank lacks, or who submitted a tensor. The report's hang
-- joins them.
rule {
  id = "framework.meeting.tensors", restart = "unknown",
  engine = 1, title = "Horovod lists who did not submit a tensor",
  category = "unknown", component = "unknown", severity = "info", symptom = "hang", action = "none",
  observes = "members",
  reads = { [=[Stalled ops:(?P<tensors_absent>[^\[]*\[missing ranks:.*\])]=],
    [=[Stalled ops:(?P<tensors_joined>[^\[]*\[ready ranks:.*\])]=],
    [=[(?P<tensors_absent>[^\[\]]*\[missing ranks:.*\])]=],
    [=[(?P<tensors_joined>[^\[\]]*\[ready ranks:.*\])]=],
    [=[^ *(?P<lacks>\d+)[!: ]*: \[(?P<tensors>[^\[\]]+)\] *$]=], [=[^ *\[(?P<tensors>[^\[\]]+)\] *$]=] },
  match = { regex = { [=[\[(?:missing|ready) ranks: ?\d]=],
    -- The number before it may have been read as the label of the line.
    [=[^(?:\d+!?: )?\[[^\[\]=(]*(?:[aA]ll[rR]educe|[aA]ll[gG]ather|[bB]roadcast|[aA]lltoall|]=] ..
      [=[[rR]educescatter)[^\[\]]*\]$]=] } },
  remedy = "Look at the ranks that are missing.",
  examples = { hit = { "Stalled ops:HorovodAllreduce_embed_0 [ready ranks: 0, 2]",
    "allreduce.bias [missing ranks: 3]", "3: [allreduce.embed, allreduce.bias ...]", "[broadcast.step]" },
    miss = { "3: [0.1, 0.2]", "missing ranks: none", "[0] broadcast.step" } },
}
framework {
  id = "horovod.stall", restart = "unknown",
  title = "Horovod: some ranks did not submit a tensor", category = "unknown",
  component = "unknown", severity = "error", symptom = "hang", role = "cascade", action = "check",
  observes = "meeting", general = true,  -- the next lines name ranks
  reads = { [[waiting for (?P<tensor_wait>remainder) of ranks]], [[for more than (?P<waited_s>\d+)]] },
  regex = { [[One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ]] ..
      [[ranks]] },
  remedy = "Look at the ranks that are listed as missing.",
  hit = { "[W stall_inspector.cc:107] One or more tensors were submitted to be reduced, gathered or " ..
      "broadcasted by subset of ranks and are waiting for remainder of ranks" },
  miss = { "Horovod stall check disabled" },
}
framework {
  id = "horovod.mismatch", title = "Horovod: ranks disagree on a tensor", component = "user_code",
  regex = { [[\bHorovodInternalError: (?P<what>Mismatched .*)]],
    [[Mismatched (?:data types|allreduce tensor shapes|MPI operations|root ranks)]] },
  remedy = "Give all ranks the same model and data shape.",
  hit = { "horovod.common.exceptions.HorovodInternalError: Mismatched allreduce tensor shapes: One " ..
      "rank sent a tensor of shape [3]" },
  miss = { "HorovodInternalError: ncclAllReduce failed: unhandled system error" },
}
framework {
  id = "horovod.shutdown", restart = "same",
  title = "Horovod was shut down because a rank ended", category = "unknown",
  component = "unknown", severity = "error", role = "cascade", action = "none",
  regex = { [[Horovod has been shut down\. This (?:was|]] ..
    [[has been) caused by an exception on one of the rank]] },
  remedy = "Look at the first exception of any rank.",
  hit = { "Horovod has been shut down. This has been caused by an exception on one of the rank or an attempt",
    "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused " ..
      "by an " ..
      "exception on one of the ranks or an attempt to allreduce after one of the ranks finished execution." },
  miss = { "Horovod shut down normally" },
}
