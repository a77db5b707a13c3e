-- No usable GPU at the start: driver, visibility, modes, builds.

local function setup(row)
  rule {
    id = "cuda.setup." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "platform",
    component = row.component or "driver", severity = row.severity or "fatal", symptom = "launch_failure",
    general = row.general, says = row.says, match = { regex = row.regex, except = row.except },
      remedy = row.remedy,
    action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

setup {
  id = "driver_old", title = "Driver is too old for this CUDA",
  regex = { [[CUDA driver version is insufficient for CUDA runtime version]],
    [[Possibly insufficient driver version: (?P<version>[\d.]+)]],
    [[The NVIDIA driver on your system is too old]],
    [[CUDA_ERROR_(?:INSUFFICIENT_DRIVER|COMPAT_NOT_SUPPORTED_ON_DEVICE|SYSTEM_DRIVER_MISMATCH)]],
    [[cudaErrorInsufficientDriver]],
    [[forward compatibility was attempted on non supported HW]],
    [[unsupported display driver / cuda driver combination]],
    [[provided PTX was compiled with an unsupported toolchain]],
    [[API call is not supported in the installed CUDA driver]] },
  remedy = "Update the driver on that host, or use a build for its CUDA version.",
  hit = { "RuntimeError: CUDA error: CUDA driver version is insufficient for CUDA runtime version",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)." },
  miss = { "NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2" },
}
setup {
  id = "driver_missing", title = "No driver in reach of the program",
  regex = { [[Found no NVIDIA driver on your system]],
    [[NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver]],
    [[nvidia-container-cli: initialization error: (?:driver|nvml|cuda|load library)]],
    [[CUDA driver library cannot be found]],
    [[could not select device driver "" with capabilities: ..gpu]] },
  remedy = "Load the driver's modules; check the container runtime's GPU hook and the device files.",
  hit = { "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
    "nvidia-container-cli: initialization error: nvml error: driver not loaded" },
  miss = { "NVIDIA driver 535.104.05 loaded" },
}
setup {
  id = "no_device", title = "Program sees no GPU", component = "driver",
  regex = { [[\bNo CUDA GPUs are available]], [[no CUDA-capable device is detected]],
    [[\bcudaErrorNoDevice\b]], [[CUDA_ERROR_NO_DEVICE\b]],
    [[No HIP GPUs are available]],
    [[ProcessGroupNCCL is only supported with GPUs, no GPUs found]],
    [[There are currently no available devices found, must be one of]],
    [[RuntimeError: Failed to infer device type]], [[no supported devices found for platform CUDA]],
    [[Unable to proceed, no GPU resources available]] },
  except = { [[(?i)running on cpu|will be used on cpu|ignore this|failed call to cuInit]] },
  remedy = "Check CUDA_VISIBLE_DEVICES, the job's GPU request, the container's hook; count the GPUs on " ..
      "the host.",
  hit = { "RuntimeError: No CUDA GPUs are available",
    "RuntimeError: CUDA error: no CUDA-capable device is detected",
    "ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!" },
  miss = { "failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected" },
}
setup {
  id = "not_ready", title = "GPU fabric is not ready: fabric manager does not run",
  regex = { [[CUDA_ERROR_SYSTEM_NOT_READY]], [[cudaErrorSystemNotReady]],
    [[(?:CUDA|Cuda|cuda).{0,80}system not yet initialized]],
    [[Error 802: system not yet initialized]] },
  remedy = "Start nvidia-fabricmanager in the driver's version; look for NVSwitch errors.",
  action = "isolate",
  hit = { "UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: " ..
      "system not yet initialized" },
  miss = { "system initialized" },
}
setup {
  -- The driver says the same of a GPU that needs a reset: what the kernel's log tells leads.
  id = "busy", restart = "same", title = "GPU is taken by another process (exclusive mode or oversubscribed)",
  category = "user", says = "failure",
  component = "cuda_runtime",
  regex = { [[CUDA-capable device(?:s are|\(s\) is/are) busy or unavailable]],
    [[cudaErrorDevicesUnavailable]],
    [[CUDA_ERROR_DEVICE_UNAVAILABLE]],
    [[cudaErrorDeviceAlreadyInUse|exclusive-thread device already in use]] },
  remedy = "One rank per GPU; end left-over processes; if the card is free, reset it.",
  hit = { "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable" },
  miss = { "GPU 0: 54% utilization" },
}
setup {
  id = "ordinal", restart = "never",
  title = "Program asks for a GPU number that is not there", category = "user",
  component = "user_config",
  regex = { [[invalid device ordinal]], [[cudaErrorInvalidDevice\b]], [[CUDA_ERROR_INVALID_DEVICE\b]],
    [[AssertionError: Invalid device id]],
    [[(?:ValueError|RuntimeError): .*device index (?:must be|out of range)]] },
  remedy = "Match ranks per host and CUDA_VISIBLE_DEVICES with the GPUs there; a GPU may have dropped out.",
  action = "fix",
  hit = { "RuntimeError: CUDA error: invalid device ordinal" }, miss = { "device ordinal 3 selected" },
}
setup {
  id = "arch", restart = "never",
  title = "Program was not built for this GPU", category = "user", component = "dependency",
  action = "fix",
  regex = { [[no kernel image is available for execution on the device]], [[CUDA_ERROR_NO_BINARY_FOR_GPU]],
    [[device kernel image is invalid]],
    [[hipErrorNoBinaryForGpu]], [[(?:CUDA|HIP) error: (?:invalid device function|named symbol not found)]],
    [[is not compatible with the current PyTorch installation]],
    [[sm_\d+a? is not supported|requires sm_?\d+ or higher]] },
  remedy = "Install a build that names the GPU's architecture (TORCH_CUDA_ARCH_LIST).",
  hit = { "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "NVIDIA H100 with CUDA capability sm_90 is not compatible with the current PyTorch installation." },
  miss = { "compiling for sm_90" },
}
setup {
  id = "fork", restart = "never",
  title = "CUDA was used before worker processes were forked", category = "user",
  component = "cuda_runtime",
  regex = { [[Cannot re-initialize CUDA in forked subprocess]], [[CUDA error: initialization error]],
    [[CUDA_ERROR_NOT_INITIALIZED]] },
  remedy = "Use the spawn start method, or touch CUDA only in the workers.", action = "fix",
  hit = { "RuntimeError: Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing" },
  miss = { "multiprocessing start method: spawn" },
}
setup {
  id = "permission", title = "CUDA call is not permitted on this host", component = "driver",
  regex = { [[(?:CUDA|HIP) error: operation not permitted\b]], [[CUDA_ERROR_NOT_PERMITTED]],
    [[cudaErrorNotPermitted]] },
  except = { [[when stream is capturing]] },
  remedy = "Check device files, IMEX channels, MIG and profiling rights for the job's user.",
  hit = { "RuntimeError: CUDA error: operation not permitted" },
  miss = { "CUDA error: operation not permitted when stream is capturing" },
}
setup {
  id = "cpu_build", restart = "never",
  title = "Installed build of the library has no GPU support", category = "user",
  component = "dependency", action = "fix",
  regex = { [[Torch not compiled with CUDA enabled]], [[Distributed package doesn't have NCCL]],
    [[CUDA Setup failed despite GPU being available]],
    [['NoneType' object has no attribute 'c(?:adam|get_|quantize|dequantize|gemm|igemm|lion|]] ..
      [[percentile)\w*']], [[undefined symbol: cget_col_row_stats]],
    [[StreamExecutor without BLAS support]] },
  remedy = "Install the build for this CUDA version in place of the CPU build.",
  hit = { "AssertionError: Torch not compiled with CUDA enabled",
    "RuntimeError: Distributed package doesn't have NCCL built in",
    "RuntimeError: CUDA Setup failed despite GPU being available. Please run the following command" },
  miss = { "torch 2.4.0+cpu was not asked for a GPU" },
}
setup {
  id = "stub", restart = "never",
  title = "Program runs with the stub of the CUDA driver library", category = "user",
  component = "dependency", action = "fix",
  regex = { [[CUDA driver is a stub library]], [[CUDA_ERROR_STUB_LIBRARY|cudaErrorStubLibrary]] },
  remedy = "Take the stubs folder of the toolkit out of LD_LIBRARY_PATH; the driver's own libcuda has " ..
      "to win.",
  hit = { "RuntimeError: CUDA driver error: CUDA driver is a stub library" },
  miss = { "linking against /usr/local/cuda/lib64/stubs" },
}
setup {
  id = "unsupported", restart = "never",
  title = "Driver or virtual GPU does not support the operation", severity = "error",
  regex = { [[(?:CUDA|HIP) error: operation not supported]],
    [[CUDA_ERROR_NOT_SUPPORTED\b|cudaErrorNotSupported]],
    [[CUDA driver initialization failed, you might not have a CUDA gpu]] },
  remedy = "Check the driver, MIG and vGPU settings, and that the container sees the devices.",
  hit = { "RuntimeError: CUDA error: operation not supported",
    "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu." },
  miss = { "operation not supported by this file system" },
}
setup {
  id = "requirement", title = "Container image asks for another driver than the host's",
  regex = { [[nvidia-container-cli: requirement error: unsatisfied condition: (?P<what>[^,]+)]] },
  remedy = "Update the host's driver, or take an image for its CUDA version.", action = "fix",
  hit = { "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your " ..
      "driver to a newer version" },
  miss = { "nvidia-container-cli: driver version 550.54.15" },
}
