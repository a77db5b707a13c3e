-- cuBLAS, cuDNN, cuFFT, cuSPARSE, NVRTC, Transformer Engine, Flash Attention. (No memory for them:
-- memory.lua.)

local function library(row)
  rule {
    id = "cuda.library." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "framework",
    component = row.component or "cuda_runtime", severity = row.severity or "error", general = row.general,
    match = { regex = row.regex }, remedy = row.remedy, action = row.action or "check",
    examples = { hit = row.hit, miss = row.miss },
  }
end

library {
  id = "execution", restart = "same", title = "Kernel of a CUDA library failed while running",
  regex = { [[(?:CUBLAS|CUSOLVER|CUSPARSE|CUDNN)_STATUS_(?:EXECUTION_FAILED\w*|INTERNAL_ERROR\w*|]] ..
      [[MAPPING_ERROR)]], [[CUFFT_(?:EXEC_FAILED|INTERNAL_ERROR)]],
    [[HIPBLAS_STATUS_(?:EXECUTION_FAILED|INTERNAL_ERROR)]], [[rocblas_status_internal_error]],
    [[miopenStatus(?:InternalError|UnknownError)]] },
  remedy = "Look for an earlier CUDA error or an Xid; the same GPU each time: check it.",
  hit = { "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm(handle)`",
    "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED" },
  miss = { "CUDNN_STATUS_SUCCESS" },
}
library {
  id = "argument", title = "CUDA library refused the arguments", category = "user", component = "user_code",
  regex = { [[(?:CUBLAS|CUSOLVER|CUSPARSE|HIPBLAS)_STATUS_INVALID_VALUE]], [[CUDNN_STATUS_BAD_PARAM]],
    [[CUFFT_INVALID_\w+]] },
  remedy = "Check shapes and indices just before; a library path that hides the bundled cuBLAS does the " ..
      "same.", action = "fix",
  hit = { "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasGemmEx( handle, " ..
      "opa, opb)`" },
  miss = { "invalid value in config" },
}
library {
  id = "version", title = "CUDA library does not fit the program or the GPU", category = "user",
  component = "dependency",
  regex = { [[cuDNN version incompatibility: PyTorch was compiled]],
    [[CUDNN_STATUS_(?:VERSION_MISMATCH|SUBLIBRARY_VERSION_MISMATCH|ARCH_MISMATCH\w*)]],
    [[Loaded runtime CuDNN library: .* but source was compiled with]],
    [[(?:CUBLAS|CUDNN)_STATUS_(?:ARCH_MISMATCH|NOT_SUPPORTED\w*)]],
    [[GET was unable to find an engine to execute this computation]],
    [[Unable to find a valid cuDNN algorithm to run convolution]],
    [[nvrtc: error: (?:invalid value|failed to open libnvrtc-builtins)]] },
  remedy = "Use one set of CUDA libraries: clear LD_LIBRARY_PATH, reinstall the matching ones.",
  action = "fix",
  hit = { "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 9, 2) but " ..
      "found runtime version (8, 5, 0).",
    "nvrtc: error: failed to open libnvrtc-builtins.so.12.1." },
  miss = { "cuDNN version 8902" },
}
library {
  id = "attention", title = "Attention kernel does not support this GPU, type or size", category = "user",
  component = "user_config",
  regex = { [[FlashAttention only supports? (?:Ampere|fp16|head dimension|GPUs)]],
    [[No available kernel\. Aborting execution]],
    [[NotImplementedError: No operator found for `memory_efficient_attention]],
    [[FlashAttention (?:forward|backward) (?:only supports?|for .*requires)\b]],
    [[Expected is_sm\w+(?: \|\| is_sm\w+)* to be true, but got false]],
    [[(?i)bfloat16 is (?:only supported on GPUs|not supported on (?:this|your) (?:GPU|device))]],
    [[Current (?:CUDA )?Device does not support bfloat16]], [[Type (?P<type>fp16|bf16) is not supported]],
    [[No dot product attention (?:backend )?(?:support|is available)]],
    [[(?:fp8|FP8|float8) .*(?:requires|only supported on) .*(?:compute capability|[Hh]opper|sm_?\d+)]] },
  remedy = "Choose another attention or precision for this GPU.", action = "fix",
  hit = { "RuntimeError: FlashAttention only supports Ampere GPUs or newer.",
    "RuntimeError: No available kernel. Aborting execution.",
    "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0." },
  miss = { "Using FlashAttention 2" },
}
library {
  id = "launch", title = "Kernel asks for more than the GPU gives, or for a wrong grid",
  category = "framework", component = "cuda_runtime",
  regex = { [[CUDA error: (?P<what>too many resources requested for launch|invalid configuration argument)]],
    [[CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES]],
    [[FATAL: kernel `(?P<kernel>\w+)` is for (?P<archs>\S+), but was built for]] },
  remedy = "Check sizes of zero and very large ones; build the extension for this GPU; fewer threads a " ..
      "block.",
  hit = { "RuntimeError: CUDA error: too many resources requested for launch",
    "RuntimeError: CUDA error: invalid configuration argument" },
  miss = { "launch configuration: 8 nodes" },
}
library {
  id = "start", restart = { "never", "same" },
  title = "cuDNN could not start: no memory left for it, or another version", category = "user",
  component = "dependency", severity = "fatal", general = true, action = "fix",
  regex = { [[DNN library initialization failed]], [[Failed to get convolution algorithm\. This is probably]],
    [[DNN library is not found]], [[Blas (?:GEMM|xGEMM\w*) launch failed]] },
  remedy = "Leave memory on the GPU (XLA_PYTHON_CLIENT_MEM_FRACTION, memory growth); align cuDNN and CUDA.",
  hit = { "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization " ..
      "failed. Look " ..
      "at the errors above for more details.",
    "UnknownError: Failed to get convolution algorithm. This is probably because cuDNN failed to " ..
      "initialize" },
  miss = { "Loaded cuDNN version 8902" },
}
