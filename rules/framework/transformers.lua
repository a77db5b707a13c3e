-- Hugging Face transformers, PEFT, TRL, datasets' callers; Lightning, NeMo's and Hydra's outer loops.

local function hf(row)
  rule {
    id = "framework." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", role = row.role,
    general = row.general, symptom = row.symptom, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

-- Code that came with a model is copied into a cache that all ranks share: a stale or half-written copy.
hf {
  id = "transformers.remote_code", title = "Model's own code in the cache is stale or half written",
  component = "framework",
  regex = { [[(?:AttributeError|ImportError|ModuleNotFoundError): .*\btransformers_modules\b]],
    [[does not appear to have a file named \S+\.py]] },
  remedy = "Clear the modules cache (HF_MODULES_CACHE), let one rank load first, or give each rank its own.",
  hit = { "AttributeError: module 'transformers_modules.3f2a.processing_x' has no attribute 'XProcessor'" },
  miss = { "A new version of the following files was downloaded from the hub: modeling_x.py" },
}
hf {
  id = "transformers.arch", title = "Installed transformers does not know this model",
  component = "dependency",
  regex = { [[but Transformers does not recognize this architecture]],
    [[KeyError: '(?:qwen|llama|mistral|gemma|deepseek|phi|glm|mixtral|falcon)\w*']],
    [[Unrecognized configuration class <]], [[Unrecognized model in \S+\. Should have a `model_type` key]],
    [[requires you to execute the configuration file in that repo.*trust_remote_code]],
    [[Tokenizer class \w+ does not exist or is not currently imported]] },
  remedy = "Update transformers, or allow the model's own code.",
  hit = { "ValueError: The checkpoint you are trying to load has model type `qwen3` but Transformers " ..
      "does not recognize this architecture.", "KeyError: 'qwen2_moe'" },
  miss = { "You are using a model of type llama to instantiate a model of type mistral." },
}
hf {
  id = "transformers.padding", title = "Tokenizer or collator got texts that it cannot batch",
  component = "user_data",
  regex = { [[Unable to create tensor, you should probably activate truncation and/or padding]],
    [[Asking to pad but the tokenizer does not have a padding token]], [[text input must be of type `str`]],
    [[Cannot handle batch sizes > 1 if no padding token]],
    [[TextEncodeInput must be Union]] },
  remedy = "Set padding token, padding and truncation; look for empty or non-text fields.",
  hit = { "ValueError: Unable to create tensor, you should probably activate truncation and/or padding " ..
      "with 'padding=True'" },
  miss = { "Truncation was not explicitly activated but `max_length` is provided" },
}
hf {
  id = "transformers.arguments", title = "Training arguments contradict each other",
  symptom = "launch_failure",
  regex = { [[(?:ValueError|RuntimeError): (?:--|`)?(?:load_best_model_at_end|save_strategy|]] ..
      [[eval_strategy|evaluation_strategy|bf16|fp16|tf32|fsdp|deepspeed|push_to_hub)\b.*(?:requires?|]] ..
      [[must|cannot|not supported|need)]],
    [[Your setup doesn't support bf16/gpu]], [[FP16 Mixed precision training .* can only be used on]],
    [[Can't find a valid checkpoint at]], [[No valid checkpoint found in output directory]],
    [[Target modules .* not found in the base model]],
    [[You cannot perform fine-tuning on purely quantized models]],
    [[\bThe `?metric_for_best_model`? training argument is set to\b.*not found]] },
  remedy = "Correct the arguments named.",
  hit = { "ValueError: --load_best_model_at_end requires the save and eval strategy to match",
    "ValueError: Target modules {'q_proj'} not found in the base model. Please check the target " ..
      "modules and try again." },
  miss = { "Using auto half precision backend" },
}
hf {
  id = "lightning.config", title = "Lightning refuses the trainer's configuration",
  symptom = "launch_failure",
  regex = { [[\bMisconfigurationException: (?P<what>\S.*)]],
    [[(?:ValueError|RuntimeError): (?P<what>You set `[-\w]+=.*`.*)]],
    [[RuntimeError: (?P<what>Lightning can't create new processes if CUDA is already initialized)]],
    [[ValueError: (?P<what>The provided lr scheduler .*)]] },
  remedy = "Correct the argument named; compare with the installed version.",
  hit = { "lightning.fabric.utilities.exceptions.MisconfigurationException: You requested gpu: [0, 1] " ..
      "But your machine only has: [0]" }, miss = { "`Trainer.fit` stopped: `max_steps=40` reached." },
}
-- The exception's text begins with a line break.
hf {
  id = "lightning.devices", title = "Lightning is asked for GPUs that the job does not have: <gpus>",
  symptom = "launch_failure",
  regex = { [[^\s*You requested (?i:gpus?): (?P<gpus>\[[\d, ]*\])]] },
  remedy = "Ask the scheduler for as many GPUs as the trainer's devices say, or the other way round.",
  hit = { "                You requested GPUs: [0, 1]" },
  miss = { "You requested 2 nodes" },
}
hf {
  id = "lightning.refused", title = "Lightning refuses the trainer's configuration", role = "cascade",
  symptom = "launch_failure",
  regex = { [[\bMisconfigurationException:\s*$]] },
  remedy = "Read the lines below it.",
  hit = { "pytorch_lightning.utilities.exceptions.MisconfigurationException: " },
  miss = { "except MisconfigurationException as e:" },
}
hf {
  id = "lightning.deadlock", restart = "same",
  title = "Lightning: a rank failed and the others were stopped", role = "cascade",
  category = "unknown", component = "unknown", severity = "error", action = "none",
  regex = { [[\bDeadlockDetectedException\b]], [[DeadLock detected from rank]],
    [[(?:\[rank: (?P<failed_rank>\d+)\] )?[Cc]hild process with PID \d+ terminated with code ]] ..
      [[(?P<code>[1-9]\d*)\. Forcefully ]] ..
      [[terminating all other processes]] },
  remedy = "Look at the rank that failed first.",
  hit = { "[rank: 3] Child process with PID 4021 terminated with code 1. Forcefully terminating all " ..
      "other processes to avoid zombies" },
  miss = { "All distributed processes registered. Starting with 8 processes" },
}
