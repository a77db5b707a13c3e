-- What the CUDA runtime reports when a kernel or the device fails. The report comes late: the line that
-- raises it is seldom the one that did it. Names of both APIs and of HIP are the same fault.

local function cuda(row)
  local regex = { [[(?:CUDA|HIP|Cuda|cuda|hip)\S* ?(?:runtime )?(?:error|failure|failed)\S*(?: ]] ..
      [[\d+)?:? .{0,60}]] .. row.text,
    [[RuntimeError: .*]] .. row.text, [[Cuda failure (?:\d+ )?']] .. row.text,
    [[(?:CUDA|HIP)_ERROR_]] .. row.name .. [[\b]] }
  for _,
  symbol in ipairs(row.symbols or {}) do regex[#regex + 1] = [[(?:cuda|hip)Error]] .. symbol .. [[\b]] end
  rule {
    id = "cuda.error." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category,
    component = row.component or "cuda_runtime", severity = row.severity or "fatal", role = row.role,
    general = row.general, match = { regex = regex }, remedy = row.remedy, action = row.action or "check",
    examples = { hit = { "RuntimeError: CUDA error: " .. row.sample, "NCCL WARN Cuda failure '" ..
      row.sample .. "'",
        "E cuda_driver.cc:1169] could not synchronize: CUDA_ERROR_" .. row.shown .. ": " .. row.sample },
      miss = { "CUDA kernel errors might be asynchronously reported at some other API call",
        "CUDA graphs enabled" } },
  }
end

local rows = {
  -- Wrong indices or stale pointers, in a kernel of a library or of the user's own; hardware is rare.
  { id = "illegal_access", title = "Kernel touched memory that is not its own", category = "framework",
    general = true,  -- memory that ran out, a stale pointer and a bad kernel all look like this
    text = "an illegal memory access was encountered", name = "ILLEGAL_ADDRESS",
    symbols = { "IllegalAddress" },
    remedy = "Repeat with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer; check extensions; same GPU each " ..
        "time: check it." },
  { id = "misaligned", title = "Kernel used a misaligned address", category = "framework",
    text = "misaligned address",
    name = "MISALIGNED_ADDRESS", symbols = { "MisalignedAddress" },
    remedy = "Suspect the extension or kernel whose call follows; update it." },
  { id = "illegal_instruction", title = "Kernel executed an illegal instruction", category = "framework",
    text = "an illegal instruction was encountered", name = "ILLEGAL_INSTRUCTION",
    symbols = { "IllegalInstruction" },
    remedy = "Suspect a kernel built for another GPU; if only one GPU says so, check it." },
  { id = "assert", restart = "never",
  title = "Assertion in a kernel: an index or label out of range", category = "user",
    component = "user_code", general = true, text = "device-side assert " ..
      "triggered", name = "ASSERT", symbols = { "Assert" },
    action = "fix",
    remedy = "Look for the `Assertion ... failed` lines above; compare ids in the data with table sizes." },
  -- Left open by the driver: a kernel's crash, a card that hangs, a driver's fault.
  { id = "launch_failure", title = "Kernel ended abnormally", category = "framework", general = true,
    text = "unspecified launch failure",
    name = "LAUNCH_FAILED", symbols = { "LaunchFailure" },
    remedy = "Look in the kernel's log for an Xid at that time; without one, suspect the program's kernel." },
  { id = "launch_timeout", title = "Kernel ran longer than the card's watchdog allows", category = "platform",
    text = "the launch timed out and was terminated", name = "LAUNCH_TIMEOUT", symbols = { "LaunchTimeout" },
    remedy = "Compute cards must not drive a display; look for an Xid." },
  { id = "hardware_stack", restart = "elsewhere",
  title = "GPU reports an error in its call stack", category = "hardware",
    component = "gpu",
    text = "hardware stack error", name = "HARDWARE_STACK_ERROR", symbols = { "HardwareStackError" },
    action = "isolate",
    remedy = "Check the GPU (DCGM diagnostics); suspect the kernel if others show it as well." },
  { id = "nvlink", restart = "elsewhere",
  title = "NVLink error that could not be corrected", category = "hardware",
    component = "nvlink",
    text = "uncorrectable NVLink error detected", name = "NVLINK_UNCORRECTABLE",
    symbols = { "NvlinkUncorrectable" },
    action = "isolate",
    remedy = "Take the host out; check NVLinks, NVSwitches and the fabric manager's log." },
  { id = "unknown", restart = "elsewhere",
  title = "CUDA reports an unknown error: driver or GPU broke", category = "hardware",
    component = "gpu",
    text = "unknown error", name = "UNKNOWN", symbols = { "Unknown" },
    remedy = "Look for an Xid on that host; reset the GPU or reboot before it is used again." },
  { id = "external", restart = "elsewhere",
  title = "CUDA call failed inside of the driver or the system", category = "hardware",
    component = "gpu",
    text = "OS call failed or operation not supported on this OS", name = "OPERATING_SYSTEM",
    symbols = { "OperatingSystem" },
    remedy = "Look for driver messages in the kernel's log; reset the GPU." },
  { id = "contained", restart = "elsewhere",
  title = "GPU met a contained error, in a peer's memory or its own",
    category = "hardware", component = "nvlink",
    text = "(?:memory error contained|Invalid access of peer GPU memory over nvlink or a hardware error)",
    name = "CONTAINED",
    shown = "CONTAINED", sample = "Invalid access of peer GPU memory over nvlink or a hardware error",
    symbols = { "Contained" }, remedy = "Look for Xid 94 or an NVLink error; reset the GPU.",
    action = "isolate" },
}
for _, row in ipairs(rows) do
  row.sample = row.sample or row.text
  row.shown = row.shown or row.name
  cuda(row)
end

rule {
  id = "cuda.error.assertion", restart = "never",
  engine = 1, title = "Kernel found an index or label out of range",
  category = "user",
  component = "user_code", severity = "fatal",
  match = { regex = { [[Assertion `(?P<condition>.*(?:[iI]ndex|idx|[tT]arget|n_classes|srcSelectDimSize|]] ..
      [[input_val).*)` failed]],
      [[\bindexSelect(?:Large|Small)Index\b.*Assertion]],
      [[block: \[\d+,\d+,\d+\], thread: \[\d+,\d+,\d+\] Assertion]] } },
  remedy = "Compare the largest id or label in the data with vocabulary, positions and classes.",
  action = "fix",
  examples = { hit = { "Indexing.cu:1237: indexSelectSmallIndex: block: [5,0,0], thread: [64,0,0] " ..
      "Assertion `srcIndex < srcSelectDimSize` failed.",
      "Loss.cu:240: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed." },
    miss = { "python: malloc.c:2379: sysmalloc: Assertion `old_top == 0' failed." } },
}
rule {
  id = "cuda.error.amd_fault", restart = "same",
  engine = 1, title = "Kernel on an AMD GPU touched memory that is not mapped",
  category = "framework", component = "framework", severity = "fatal",
  match = { regex = { [[Memory access fault by GPU node-(?P<agent>\d+)]],
    [[HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY_APERTURE_VIOLATION|MEMORY_FAULT)]],
      [[:0:rocdevice\.cpp.*Callback: Queue \S+ [Aa]borting with error]] } },
  remedy = "Suspect the kernel or library; if only one GPU shows it, check that GPU.", action = "check",
  examples = { hit = { "Memory access fault by GPU node-4 (Agent handle: 0x55d0) on address 0x7f20. " ..
      "Reason: Page not present or supervisor privilege." },
    miss = { "GPU node-4 initialised" } },
}
-- What follows any of these in threads that only clean up.
rule {
  id = "cuda.error.shutdown", restart = "same", engine = 1, title = "CUDA was shut down while still in use",
  category = "unknown",
  component = "cuda_runtime", severity = "error", role = "cascade",
  match = { regex = { [[(?:CUDA|Cuda|cuda).{0,40}driver shutting down]], [[CUDA_ERROR_DEINITIALIZED]],
      [[(?:CUDA|Cuda|cuda).{0,40}context is destroyed]] } },
  remedy = "Look for what ended the process before.", action = "none",
  examples = { hit = { "RuntimeError: CUDA error: driver shutting down" },
    miss = { "CUDA driver version: 12040" } },
}
rule {
  id = "cuda.error.other", restart = "unknown", engine = 1, title = "CUDA call failed", category = "unknown",
  component = "cuda_runtime",
  severity = "error", general = true,
  match = { except = { [[\bout of memory\b|busy or unavailable]] },  -- rules/cuda/memory.lua
    regex = { [[(?:RuntimeError|AcceleratorError|Error): (?:CUDA|HIP) error: (?P<what>\S.*)]],
      [[what\(\):\s+(?:CUDA|HIP) error: (?P<what>\S.*)]],
      [[\bcuda(?:Runtime|Driver)?Error\w*\b.*: (?P<what>\S.*)]],
      [[Cuda failure (?:\d+ )?'(?P<what>[^']+)']] } },
  remedy = "Look for an Xid in the kernel's log, and for the first error of this rank.", action = "check",
  examples = { hit = { "RuntimeError: CUDA error: invalid resource handle",
    "NCCL WARN Cuda failure 'invalid argument'" },
    miss = { "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions." } },
}
