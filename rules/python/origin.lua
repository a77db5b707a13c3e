-- Exceptions by the library that raised them, where no rule knows the message: the package in front of the
-- exception's name tells who acts, and the message stands in the headline.

local function origin(row)
  rule {
    id = "python.origin." .. row.id, engine = 1, restart = row.restart, title = row.title .. ": <what>",
    says = "origin",
    category = row.category, component = row.component, severity = "error", blames = "few",
    match = { regex = [[(?:^|\]:? |: )(?P<what>(?:]] .. row.package ..
      [[)\.(?:\w+\.)*_?[A-Z]\w*(?::\s.*|\s*$))]],
      except = { [[(?i)\b(?:warn(?:ing)?|ignor(?:ed?|ing)|retry(?:ing)?|retries|skip(?:ping|ped)?|]] ..
        [[fall(?:ing)? ?back|Warning)\b]] } },
    remedy = row.remedy, action = "check", examples = { hit = row.hit, miss = row.miss },
  }
end

local rows = {
  { "objectstore", "Object store refused or failed", "platform", "storage",
    "botocore|boto3|s3fs|gcsfs|adlfs|s3torchconnector|google\\.api_core|google\\.cloud\\.storage|azure" ..
      "\\.core|" ..
      "azure\\.storage|google\\.auth|s3torchconnectorclient|fsspec|minio",
    "Check name, rights and region of the bucket; then the service and the way to it.",
    "s3torchconnector.S3Exception: Client error: request canceled", restart = "later" },
  { "http", "Request to a service failed", "platform", "network",
    "requests|urllib3|httpx|aiohttp|httpcore|grpc|websockets",
    "Check address, proxy and the service; 401, 403 and 404 are the request's.",
    "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with: UNAVAILABLE>",
    restart = "later" },
  { "hub", "Model hub refused or failed", "user", "user_config", "huggingface_hub|modelscope|kaggle",
    "Check name, revision and token; run offline from the shared store if the hub is away.",
    "huggingface_hub.errors.BadRequestError: invalid revision", restart = "never" },
  { "data", "Data could not be read", "user", "user_data",
    "datasets|pyarrow|webdataset|PIL|h5py|zarr|tokenizers|sentencepiece|pandas|polars|lmdb|safetensors" ..
      "_rust|" ..
      "streaming|litdata",
    "Look at the file or record that the message names.",
    "datasets.exceptions.UnexpectedSplitsError: {'train'}", restart = "unknown" },
  { "config", "Configuration does not fit the program", "user", "user_config",
    "omegaconf|hydra|pydantic(?:_core)?|yaml|toml|jsonargparse|argparse|click|tyro|fire|marshmallow|js" ..
      "onschema|draccus",
    "Correct the option or file that the message names.",
    "jsonargparse.ArgumentError: Parser key lrr is unknown", restart = "never" },
  { "ray", "Ray ended a task or actor", "framework", "framework", "ray",
    "Read the log of the worker that the message names.",
    "ray.exceptions.RayChannelError: System error: channel closed", restart = "unknown" },
  { "xla", "JAX or XLA ended the program", "framework", "framework",
    "jax|jaxlib|flax|optax|orbax|tensorflow|tensorflow_core|keras|torch_xla|libtpu",
    "Read the message's code (INTERNAL, UNAVAILABLE, ...); look for the first process that reports it.",
    "flax.errors.ScopeParamShapeError: Initializer expected to generate shape (4, 8)", restart = "unknown" },
  { "framework", "Framework ended the program", "framework", "framework",
    "torch|torchvision|torchdata|triton|deepspeed|megatron|nemo|lightning|lightning_fabric|pytorch_lig" ..
      "htning|" ..
      "accelerate|transformers|trl|peft|colossalai|torchtitan|composer|mindspore|paddle|habana_frameworks|" ..
      "transformer_engine|flash_attn|bitsandbytes|vllm|sglang|horovod|mpi4py|pynvml|cupy|numba",
    "Read the message and the frames above it; try the library's other version if the input is valid.",
    "transformer_engine.common.TEError: recipe needs another layout", restart = "unknown" },
}
for _, row in ipairs(rows) do
  origin { id = row[1], restart = row.restart, title = row[2], category = row[3], component = row[4],
    package = row[5],
    remedy = row[6],
    hit = { row[7] }, miss = { "WARNING " .. row[7], "except " .. row[7] } }
end

-- The catch-all: an exception of any other name that was not reported as caught. Those of Python itself are
-- in exceptions.lua.
local packages = {}
for i, row in ipairs(rows) do packages[i] = [[(?:^|[^\w.])(?:]] .. row[5] .. [[)\.(?:\w+\.)*_?[A-Z]\w*:]] end
local handled = {
  [[(?i)\b(?:warn(?:ing)?|ignor(?:ed?|ing)|retry(?:ing)?|retries|skip(?:ping|ped)?|fall(?:ing)? ?back)\b]],
  [[(?i)\b(?:will be|safely|harmless|suppressed|deprecated|failed to import)\b]],
  [[died with <Signals|\bSignalException: |CalledProcessError: .*returned non-zero exit status|]] ..
    [[\b(?:NameError|UnboundLocalError|TypeError|AttributeError|IndexError|ZeroDivisionError|ValueError|]] ..
    [[NotImplementedError|RecursionError|StopIteration|OverflowError|KeyError|SyntaxError|]] ..
    [[IndentationError|TabError|AssertionError|MemoryError|Dist(?:Backend|Network|Store)?Error|]] ..
    [[ConnectionResetError|BrokenPipeError|EOFError): ]],
}
for _, package in ipairs(packages) do handled[#handled + 1] = package end
rule {
  id = "python.exception", restart = "unknown",
  engine = 1, title = "Program ended with an exception: <what>", says = "origin",
  category = "user", component = "user_code", severity = "error", blames = "few",
  match = {
    regex = [[(?:^|[^\w'"(])(?P<what>(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Timeout|Failure): ]] ..
      [[[^\s\d.+-].*)]],
    except = handled,
  },
  remedy = "Read the traceback above the line.", action = "fix",
  examples = {
    hit = { "mypackage.errors.PipelineError: stage 3 is empty", "RuntimeError: no such optimizer" },
    miss = { "srun: error: node17: task 3: Exited with exit code 1",
      "UserWarning: ExceptionGroup support is experimental" },
  },
}
