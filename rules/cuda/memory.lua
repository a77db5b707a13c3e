-- Device memory: used up by this job, by somebody else, or failing.

local function memory(row)
  rule {
    id = "cuda.memory." .. row.id, engine = 1, restart = row.restart or { "never", "same" },
    title = row.title, category = row.category or "user",
    component = "gpu_memory", severity = row.severity or "fatal", general = row.general, role = row.role,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    when = row.when,
    examples = { hit = row.hit, miss = row.miss },
  }
end

-- Programs that measure how much fits catch this and try again with less.
local tried = { [[(?i)\b(?:retry(?:ing)?|fall(?:ing)? ?back|trying again|reducing batch|skip(?:ping|]] ..
    [[ped)?)\b]],
  [[(?i)\b(?:may|might|could) (?:follow|occur|happen)]] }

memory {
  id = "full", title = "GPU memory is used up", except = tried,
  regex = { [[\b(?:CUDA|HIP|XPU|NPU|MUSA) out of memory\b]],
    [[\bOutOfMemoryError: (?:CUDA|HIP|Allocation on device)]],
    [[RESOURCE_EXHAUSTED: (?:Out of memory (?:while trying to allocate|allocating)|Ran out of memory in ]] ..
        [[memory space hbm)]],
    [[RESOURCE_EXHAUSTED: .{0,40}(?:allocating device buffer|while allocating)]],
    [[(?i)OOM when allocating tensor with shape]],
    [[failed to allocate \S+ ?\(\d+ bytes\) (?:from device|on device).*out of memory]],
    [[(?:CUDA|HIP)_ERROR_OUT_OF_MEMORY]], [[cupy\.cuda\.memory\.OutOfMemoryError]],
    [[torch\.OutOfMemoryError: ]], [[\bMPS backend out of memory]],
    -- The allocator asks NVML who holds the memory, only when there is none left.
    [[\bNVML_SUCCESS == \w+ INTERNAL ASSERT FAILED at "\S*CUDACachingAllocator\.cpp]],
    [[RESOURCE_EXHAUSTED: Failed to allocate request for \S+ \(\d+B\) on device ordinal (?P<device>\d+)]] },
  remedy = "Smaller batch or sequence, recomputation, sharding or offload; against fragmentation " ..
      "expandable_segments.",
  hit = { "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.10 GiB " ..
      "total capacity)",
    "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB",
    "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate " ..
        "17179869184 bytes.",
    "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 2.00G." },
  miss = { "CUDA out of memory, retrying with half the batch", "RuntimeError: CUDA error: out of memory" },
}
-- PyTorch lists the other processes on the card first, then its own.
memory {
  id = "others", restart = "same", title = "GPU memory is held by another process: <others> GiB",
  except = tried, category = "platform",
  regex = { [[CUDA out of memory\..*\bProcess (?P<pid>\d+) has (?P<others>[\d.]+) GiB memory in use\..*]] ..
    [[\bthis process has (?P<own>[\d.]+) [GM]iB memory in use]] },
  when = function(event)
    local others, own = tonumber(event.others), tonumber(event.own)
    if text.has(event.text, [[this process has [\d.]+ MiB]]) then return others ~= nil end
    return others ~= nil and own ~= nil and others > own
  end,
  remedy = "End that process if it is left of an earlier run (nvidia-smi lists it), or take a free card.",
  hit = { "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total " ..
    "capacity of 79.15 GiB with 12.00 MiB free. Process 4123 has 70.10 GiB memory in use. " ..
      "Including non-PyTorch memory, this process has 9.00 GiB memory in use." },
  miss = { "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total " ..
    "capacity of 79.15 GiB with 12.00 MiB free. Process 4123 has 1.10 GiB memory in use. Including " ..
      "non-PyTorch memory, this process has 78.00 GiB memory in use." },
}
-- Not from PyTorch's own allocator: a context, NCCL or a first call found no memory. Then it is often another
-- process on the card, or a card that fails.
memory {
  id = "refused", restart = "same",
  title = "GPU gave no memory outside of the allocator: full, shared with others, or failing",
  regex = { [[\b(?:CUDA|HIP) (?:runtime )?error(?: \(\d+\))?: out of memory\b]],
    [[Cuda failure (?:2 )?'out of memory']],
    [[cuda\w*\(\d*\).*cudaErrorMemoryAllocation|cudaErrorMemoryAllocation: ?out of memory]] },
  severity = "error", action = "check", except = tried, general = true,
  remedy = "See with nvidia-smi which processes use the card; if there are none, have it checked.",
  hit = { "RuntimeError: CUDA error: out of memory" },
  miss = { "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB" },
}
memory {
  id = "library", title = "Library found no GPU memory for its workspace", severity = "error",
  regex = { [[CUBLAS_STATUS_ALLOC_FAILED]], [[CUDNN_STATUS_ALLOC_FAILED]], [[CUFFT_ALLOC_FAILED]],
    [[CUSPARSE_STATUS_INSUFFICIENT_RESOURCES]],
    [[CUBLAS_STATUS_NOT_INITIALIZED]], [[CUDNN_STATUS_NOT_INITIALIZED]], [[could not create cudnn handle]] },
  remedy = "Leave room on the card; if it is empty, compare driver and library versions and check the card.",
  hit = { "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED" },
  miss = { "cuBLAS workspace set to :4096:8" },
}
memory {
  id = "ecc", restart = "elsewhere",
  title = "GPU memory error that ECC could not correct, seen by the program",
  category = "hardware",
  regex = { [[uncorrectable ECC error encountered]], [[cudaErrorECCUncorrectable]],
    [[CUDA_ERROR_ECC_UNCORRECTABLE]],
    [[hipErrorECCNotCorrectable]], [[(?i)uncorrectable ECC error .*(?:CUDA|HIP) error]] },
  remedy = "Take the host out, reset the GPU; replace it if it happens again.", action = "isolate",
  hit = { "RuntimeError: CUDA error: uncorrectable ECC error encountered",
    "F stream.cc:921] CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered" },
  miss = { "ECC errors corrected: 12" },
}
memory {
  id = "pinned", title = "Pinned host memory could not be had", severity = "error",
  regex = { [[(?:CUDA_ERROR|cudaError)\w*.*(?:cudaHostAlloc|cuMemHostAlloc|cudaHostRegister)]],
    [[failed to alloc \d+ bytes on host: CUDA]],
    [[pin_memory.*(?:CUDA error: out of memory|CUDA error: invalid argument)]],
    [[(?:cudaHostAlloc|cudaHostRegister|cudaMallocHost)\b.{0,60}(?:failed|error)]] },
  remedy = "Pin less (offload, loaders), raise the locked-memory limit, ask for more host memory.",
  hit = { "W pinned.cc:13] failed to alloc 8589934592 bytes on host: CUDA_ERROR_OUT_OF_MEMORY",
    "cudaHostAlloc failed: out of memory" },
  miss = { "pin_memory=True" },
}
