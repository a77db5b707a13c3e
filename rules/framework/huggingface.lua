-- Hugging Face hub, datasets, tokenizers, accelerate: what they need and do not get.

local function hf(row)
  rule {
    id = "framework.hf." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", general = row.general,
    symptom = row.symptom, ends = row.ends,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

hf {
  id = "not_found", title = "Model or tokenizer files are not where they were looked for",
  regex = { [[OSError: Can't load (?:the )?(?:tokenizer|config(?:uration)?|model|feature extractor|]] ..
    [[image processor|processor) (?:for|of) '?(?P<model>[^'\s]+)]],
    [[OSError: Error no file named (?P<what>.*) found in directory (?P<path>\S+)]],
    [[OSError: Incorrect path_or_model_id: (?P<model>\S+)]],
    [[(?:LocalTokenNotFoundError|Token is required)\b.*]] },
  remedy = "Correct the name or path; the folder has to hold configuration, tokenizer and weights.",
  hit = { "OSError: Can't load tokenizer for 'my/model'. If you were trying to load it from the Hub, make " ..
      "sure you don't have a local directory with the same name.",
    "OSError: Error no file named pytorch_model.bin, model.safetensors found in directory /ckpt/last." },
  miss = { "loading weights file model.safetensors from cache" },
}
hf {
  id = "refused", title = "Hub refused the request", component = "user_config", general = true,
  regex = { [[(?:HfHubHTTPError|HTTPError): (?P<what>(?:401|403) (?:Client Error|Forbidden|Unauthorized)]] ..
      [[.*(?:huggingface|hf\.co).*)]] },
  remedy = "Log in with a token that has the right for this repository (HF_TOKEN).",
  hit = { "huggingface_hub.errors.HfHubHTTPError: 403 Forbidden: None. Cannot access content at: " ..
      "https://huggingface.co/api/models/x" },
  miss = { "HTTP Request: GET https://huggingface.co/api/models/x 200 OK" },
}
hf {
  id = "limited", restart = "later",
  title = "Hub limits or fails the requests", component = "network", category = "platform",
  regex = { [[(?:HfHubHTTPError|HTTPError): (?P<what>(?:429|5\d\d) (?:Client|]] ..
    [[Server) Error.*(?:huggingface|hf\.co).*)]], [[Consistency check failed: file should be of size ]] ..
      [[(?P<size>\d+) but has size]] },
  remedy = "Download once to the shared store and run offline; lower the number of ranks that download.",
  action = "retry",
  hit = { "huggingface_hub.utils._errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: " ..
      "https://huggingface.co/api/datasets/x",
    "OSError: Consistency check failed: file should be of size 9976578928 but has size 8388608." },
  miss = { "huggingface_hub.utils.HfHubHTTPError: 404 Client Error: Not Found for url: https://hf.co/x" },
}
hf {
  id = "map_worker", restart = { "never", "same" },
  title = "Data preparation was killed, most likely because host memory ran out",
  component = "host_memory", ends = "killed",
  regex = { [[One of the subprocesses has abruptly died during map operation]] },
  remedy = "Fewer processes (num_proc), smaller writer batches, more host memory.",
  hit = { "RuntimeError: One of the subprocesses has abruptly died during map operation.To debug the " ..
      "error, " ..
      "disable multiprocessing." },
  miss = { "Map (num_proc=16): 100%|##########| 1000/1000 [00:01<00:00, 900.00 examples/s]" },
}
hf {
  id = "tokenizer_version", title = "Tokenizer file needs another version of its library",
  component = "dependency",
  regex = { [[data did not match any variant of untagged enum (?P<what>\w+)]],
    [[Couldn't instantiate the backend tokenizer from one of]],
    [[Dataset scripts are no longer supported, but found (?P<file>\S+)]],
    [[Loading a dataset cached in a LocalFileSystem is not supported]] },
  remedy = "Update tokenizers, transformers or datasets to the version that wrote the file.",
  hit = { "Exception: data did not match any variant of untagged enum ModelWrapper at line 757479 column 3",
    "RuntimeError: Dataset scripts are no longer supported, but found x.py" },
  miss = { "Fast tokenizer loaded" },
}
hf {
  id = "import", title = "Part of transformers could not be imported", component = "dependency",
  general = true,
  regex = { [[RuntimeError: Failed to import (?P<module>transformers[\w.]*) because of the following ]] ..
      [[error]] },
  remedy = "Read the error below it; align transformers with torch, tokenizers and flash-attn.",
  hit = { "RuntimeError: Failed to import transformers.models.llama.modeling_llama because of the " ..
      "following " ..
      "error (look up to see its traceback):" },
  miss = { "transformers 4.44.0 imported" },
}
hf {
  id = "meta", title = "Model was loaded without weights or to several devices", component = "user_code",
  regex = { [[Cannot copy out of meta tensor; no data]],
    [[You can't (?:move|train) a model (?:that has|that is|when it has) .*(?:offloaded|dispatched|]] ..
      [[device_map)]],
    [[Some modules are dispatched on the CPU or the disk]] },
  remedy = "Load the whole model on one device, or keep device_map away from the distributed trainer.",
  hit = { "NotImplementedError: Cannot copy out of meta tensor; no data! Please use " ..
      "torch.nn.Module.to_empty()",
    "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM" },
  miss = { "Some parameters are on the meta device because they were offloaded to the cpu" },
}
hf {
  id = "shared", title = "Tensors that share memory cannot be saved as they are", component = "user_code",
  regex = { [[Some tensors share memory, this will lead to duplicate memory on disk]],
    [[The weights trying to be saved contained shared tensors]] },
  remedy = "Save with save_model or safe_serialization=False, or untie the weights.",
  hit = { "RuntimeError: Some tensors share memory, this will lead to duplicate memory on disk and " ..
      "potential differences when loading them again" },
  miss = { "Removed shared tensor {'lm_head.weight'} while saving. This should be OK" },
}
hf {
  id = "features", title = "Columns or types of the data files differ", component = "user_data",
  regex = { [[CastError: (?P<what>Couldn't cast.*)]], [[The features can't be aligned because (?P<what>.*)]],
    [[All the data files must have the same columns]] },
  remedy = "Give all files the same columns and types, or load them separately.",
  hit = { "datasets.table.CastError: Couldn't cast text: string label: int64 to {'text': " ..
      "Value(dtype='string')}",
    "All the data files must have the same columns, but at some point there are 2 new columns" },
  miss = { "Casting the dataset: 100%" },
}
hf {
  id = "trainer_sync", title = "Gradient synchronisation cannot be switched off for this setup",
  component = "framework",
  regex = { [[no sync context manager is incompatible with gradient partitioning logic]] },
  remedy = "Align the versions of accelerate and DeepSpeed, or leave no_sync() out with ZeRO 2 and 3.",
  hit = { "AssertionError: no_sync context manager is incompatible with gradient partitioning logic of " ..
      "ZeRO " ..
      "stage 2\nno sync context manager is incompatible with gradient partitioning logic of ZeRO stage 2" },
  miss = { "no_sync() used for gradient accumulation" },
}
hf {
  id = "attention", title = "Attention that was asked for is not installed: <what>", component = "dependency",
  regex = { [[\b(?P<what>Flash ?Attention ?\d* has been toggled on, but it cannot be used due to .*)]],
    [[ImportError: (?P<what>FlashAttention\d? .*not installed.*)]] },
  remedy = "Install flash-attn for this torch and CUDA, or choose another attn_implementation.",
  hit = { "ValueError: FlashAttention2 has been toggled on, but it cannot be used due to the following " ..
    "error: the package flash_attn seems to be not installed." },
  miss = { "Using FlashAttention2" },
}
-- The hub's client says it of each try; the last one ends the program.
hf {
  id = "request", restart = "later",
  title = "Request to the hub failed: <url>", component = "network", category = "platform",
  severity = "error", says = "failure", action = "retry",
  regex = { [[(?:Timeout|Error|Disconnected|Exception)\b.*thrown while requesting (?:GET|HEAD|POST|]] ..
    [[PUT) (?P<url>https?://[^\s?]+)]] },
  remedy = "Fetch the files once to the shared store and run offline; check the way out of the hosts.",
  hit = { [['(ReadTimeoutError("HTTPSConnectionPool(host='huggingface.co', port=443): Read timed out.]] ..
    [["), '(Request ID: 22)')' thrown while requesting HEAD https://huggingface.co/acme/m/resolve/main]] ..
      [[/a.json]] },
  miss = { "HTTP Request: GET https://huggingface.co/api/models/x 200 OK" },
}
hf {
  id = "transfer", restart = "later",
  title = "Transfer from the hub's storage failed: <what>", component = "network",
  category = "platform", severity = "error", action = "retry",
  regex = { [[RuntimeError: Data processing error: (?P<what>(?:CAS service|Reqwest|Network|I/O)\b.*)]],
    [[(?:RuntimeError|Exception): (?P<what>An error occurred while (?:down|]] ..
      [[up)loading using `hf_transfer`.*)]] },
  remedy = "Repeat it; switch the fast transfer off (HF_HUB_DISABLE_XET, HF_HUB_ENABLE_HF_TRANSFER=0).",
  hit = { "RuntimeError: Data processing error: CAS service error : Reqwest Error: HTTP status client " ..
    "error " ..
    "(429 Too Many Requests)" },
  miss = { "hf_xet is used for the download" },
}
