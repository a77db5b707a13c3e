-- NVIDIA Xid: one number per kind of fault, printed by the driver into the kernel log. One rule per number;
-- severity and action are data, so that a site can override one where it disagrees with us.
-- Sources disagree on 63, 68, 69, 80, 92, 94 and 121: NVIDIA's newer catalogue ignores some that operators
-- treat as a reason to drain. We side with the operators where memory or a link is involved, as a warning at
-- least.

-- What most rows share: who is to blame and what to do about it.
local app = { category = "user", component = "gpu", severity = "error", action = "fix", restart = "same",
  remedy = "Look at the program first: run it with compute-sanitizer or CUDA_LAUNCH_BLOCKING=1. Suspect " ..
    "the card only if one GPU repeats it." }
local engine = { category = "hardware", component = "gpu", severity = "error", action = "check",
  restart = "same",
  remedy = "Restart the job; if the same GPU repeats it, run the vendor's diagnostics on that card." }
local reset = { category = "hardware", component = "gpu", severity = "fatal", action = "isolate",
  restart = "elsewhere",
  remedy = "Take the host out, reset the GPU (or power-cycle the host) and run diagnostics before it " ..
    "takes jobs again." }
local memory = { category = "hardware", component = "gpu_memory", severity = "fatal", action = "isolate",
  restart = "elsewhere",
  remedy = "Drain the host, reset the GPU so that the bad row is remapped; replace the card if it " ..
      "comes back." }
local link = { category = "hardware", component = "nvlink", severity = "fatal", action = "isolate",
  restart = "elsewhere",
  remedy = "Drain the host and reset all GPUs of the fabric; check baseboard, cables and switches if it " ..
    "returns." }
local driver = { category = "platform", component = "driver", severity = "error", action = "check",
  restart = "elsewhere",
  remedy = "Reset the GPU or reboot the host; keep nvidia-bug-report.sh and consider another driver " ..
      "version." }
local note = { category = "hardware", component = "gpu", severity = "warning", action = "check",
  restart = "same",
  remedy = "Nothing to do now; watch whether this GPU repeats it." }

-- Faults that end one process and no other: the line names it.
local process = [[(?:, pid='?(?P<pid>\d+)'?)?(?:, name=(?P<process>[^<,\s]+))?]]

-- number, kind, title, then what differs from the kind.
local rows = {
  { 8, engine, "GPU stopped processing (idle timeout)" },
  { 11, app, "Invalid command stream sent to the GPU" },
  { 13, app, "Graphics engine exception, usually a faulty kernel of the program", of_process = true },
  { 25, app, "Illegal command stream sent to the GPU" },
  { 31, app, "GPU page fault: the program used an address that is not mapped", component = "cuda_runtime",
    general = true, of_process = true },
  { 32, app, "Corrupted command stream at the GPU's DMA engine", of_process = true },
  { 37, note, "Driver firmware met an unknown method", component = "driver" },
  { 38, engine, "Driver firmware watchdog ran out" },
  { 44, engine, "Engine fault during a context switch" },
  -- 43 and 45 only say that a channel was torn down: every killed process leaves a 45.
  { 43, app, "GPU channel of the process was stopped after a fault of its own", role = "cascade",
    of_process = true },
  { 45, note, "GPU channel removed because its process ended", category = "user", action = "none",
    role = "cascade" },
  { 46, reset, "GPU stopped processing" },
  { 48, memory, "Uncorrectable double-bit error in GPU memory" },
  { 54, engine, "Auxiliary power of the GPU board is not connected", action = "isolate",
    restart = "elsewhere",
    remedy = "Check the power cables and the power supply of this board." },
  { 60, driver, "Security engine exception" },
  { 61, reset, "GPU micro-controller stopped at a breakpoint" },
  { 62, reset, "GPU micro-controller halted" },
  -- The row is spared only at the next reset; until then the job runs on damaged memory.
  { 63, memory, "Bad GPU memory row recorded for remapping", severity = "error", action = "check",
    role = "cascade" },  -- a repair: alone it ends no job
  { 64, memory, "Bad GPU memory row could not be remapped",
    remedy = "Replace the GPU: it has no spare row for the damaged memory." },
  { 65, engine, "Video processor exception" },
  { 66, driver, "Driver made an illegal access" },
  { 67, driver, "Driver access failed verification" },
  { 69, app, "Graphics engine class error", of_process = true },
  -- (74: rules/nvidia/xid74.lua.)
  { 78, driver, "Virtual GPU did not start" },
  { 79, reset, "GPU has fallen off the bus",
    remedy = "Isolate the host; power-cycle it, reseat or replace the GPU if it happens again." },
  -- A CRC over what the host sent: the PCIe path is as likely as the program.
  { 80, app, "Corrupted data sent to the GPU", category = "hardware", component = "pcie", action = "check",
    restart = "elsewhere" },
  { 92, note, "Many single-bit errors in GPU memory", component = "gpu_memory" },
  { 93, note, "GPU InfoROM wear limit reached" },
  { 94, memory, "Uncorrectable GPU memory error, contained to one process", of_process = true },
  { 95, memory, "Uncorrectable GPU memory error that could not be contained" },
  { 106, note, "Test message of the management bus", severity = "info", action = "none" },
  { 107, note, "Silent test message of the management bus", severity = "info", action = "none" },
  -- Often follows a 13 or 31 of the same process: an error, so that the first line of the chain decides.
  { 109, engine, "GPU context switch timed out", of_process = true },
  { 110, reset, "GPU security fault" },
  { 119, reset, "GPU system processor does not answer the driver",
    remedy = "Reset the GPU or reboot the host; update driver and GSP firmware if it recurs." },
  { 120, reset, "GPU system processor crashed",
    remedy = "Reset the GPU or reboot the host; update driver and GSP firmware if it recurs." },
  { 121, note, "Corrected error on the chip-to-chip link", component = "nvlink" },
  { 122, engine, "GPU configuration flash could not be read" },
  { 123, engine, "GPU configuration flash could not be written" },
  { 136, link, "NVLink training failed" },
  { 137, link, "Remote GPU refused an NVLink access", category = "user", severity = "error", action = "check",
    restart = "same",
    remedy = "Look for the first Xid on the peer GPUs: an illegal peer access of the program is the usual " ..
      "cause." },
  { 140, memory, "Uncorrectable ECC error" },
  { 141, note, "CUDA fast path error" },
  { 142, engine, "Video encoder error" },
  { 143, reset, "GPU did not initialise" },
  { 151, driver, "Key rotation of the confidential-computing mode failed" },
  { 152, note, "Address translation error of the deep-learning accelerator" },
  { 153, note, "Deep-learning accelerator timed out" },
  { 155, link, "NVLink stopped by software", severity = "error", action = "check" },
  { 156, reset, "A GPU resource was retired, reset pending", severity = "error", action = "check" },
  { 157, reset, "A GPU resource could not be retired" },
  { 158, reset, "GPU fatal timeout" },
  { 159, engine, "Coherent interface error between CPU and GPU" },
  { 160, note, "GPU memory channel retired", component = "gpu_memory", restart = "elsewhere" },
  { 161, memory, "GPU memory channel could not be retired" },
  { 162, note, "Power smoothing engaged again", severity = "info", action = "none" },
  { 163, note, "Power smoothing disengaged", severity = "info", action = "none" },
  { 164, note, "Power smoothing circuitry nears the end of its life" },
  { 165, note, "Power smoothing circuitry is worn out" },
  { 166, link, "NVLink traffic before its encryption was set up" },
  { 167, reset, "PCIe fatal timeout at the GPU", component = "pcie" },
  { 168, memory, "Errors in protected GPU memory reduce its capacity", severity = "error" },
  { 169, reset, "GPU security processor halted" },
  { 170, link, "NVLink interrupt in confidential-computing mode", severity = "error", action = "check" },
  { 171, memory, "Uncorrectable error in GPU DRAM" },
  { 172, memory, "Uncorrectable error in GPU SRAM" },
}

-- Engines that come in numbers: copy, video decode, JPEG, optical flow.
local engines = {
  { "Copy engine error", { 39, 40, 41, 70, 71, 72, 75, 76, 77, 85, 126, 127, 128, 129, 130, 131, 132, 133,
    134, 135 } },
  { "Video decoder error", { 68, 83, 84, 88, 89, 96, 97, 98 } },
  { "JPEG engine error", { 82, 99, 100, 101, 102, 103, 104, 105 } },
  { "Optical flow engine error", { 86, 139 } },
}

-- What health monitors make of it: `XID 48 (...) detected on GPU PCI:0000:1a:00`, `Xid 79 (...) on GPU 3`,
-- `XID 13, PCI 0002:00:00`, `Xid error 94 reported on ...`, `GPU has fallen off the bus (XID 79)`.
local function reported(number)
  local xid = [[\b(?i:xid)(?i:[ _-]?(?:error|code|event|number))?[ :=#]{0,2}(?:\[|")?]] .. number .. [[\b]]
  local name = [[(?:\.\d+)?\]?"?,?(?: ?\([^)]*\))?(?: [A-Z][A-Z0-9_]+)?]]
  local device = [[(?:GPU[ :-]?)?(?:device )?(?:PCI[: ]{0,2}(?P<pci>[0-9A-Fa-f:.]+)|]] ..
    [[(?P<address>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2})|(?P<gpu>GPU-[0-9a-f-]{4,}|\d+\b))]]
  return xid .. name .. [[,? (?:(?:was |has been )?(?:detected|reported|seen|logged|raised|occurred) )?]] ..
      [[(?:(?:on|for|by|from|at|in) )?]] .. device,
    [[\bGPU\b.{0,60}\((?i:xid) ]] .. number .. [[\)]]
end

-- The PCI address may carry the MIG instance, the oldest drivers leave out "PCI:". A channel torn down after
-- another Xid names that one: the line of the first may be lost. Then the Kubernetes device plugin's wording,
-- DCGM's, those of monitors.
local function wordings(number, tail, process)
  local address = [[NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): ]]
  local lines = { address .. number .. [[\b]] .. tail .. (process or "") }
  if tail == "" then
    local on_gpu, in_brackets = reported(number)
    for _, line in ipairs({ address .. [[4[35]\b.*caused by previous Xid ]] .. number .. [[\b]],
      [[XidCriticalError: Xid=]] .. number .. [[ on Device(?:=(?P<uuid>[\w-]+))?]],
      [[Detected XID ]] .. number .. [[ for GPU (?P<gpu>\d+)]], on_gpu, in_brackets }) do
      lines[#lines + 1] = line
    end
  end
  return lines
end

local function add(row, kind, over)
  local number = tostring(row)
  local function pick(key) if over[key] ~= nil then return over[key] end return kind[key] end
  local tail = over.tail or ""
  local sample = over.sample or "pid=4211, name=python3, Ch 00000008"
  rule {
    id = over.id or "nvidia.xid." .. number, engine = 1, restart = pick("restart"), title = over.title,
    source = { "kernel", "log" },
    category = pick("category"), component = pick("component"), severity = pick("severity"),
      action = pick("action"),
    role = over.role, general = over.general, remedy = pick("remedy"),
    match = { regex = wordings(number, tail, over.of_process and process), except = over.except },
    examples = {
      hit = { "kernel: NVRM: Xid (PCI:0000:9b:00): " .. number .. ", " .. sample,
        "[ 3606.83] NVRM: Xid (PCI:0000:01:00 GPU-I:05): " .. number .. ", " .. sample,
        tail == "" and "XID " .. number .. " (Error) detected on GPU PCI:0000:1a:00 UUID:GPU-9d3c" or nil },
      miss = { over.miss or "NVRM: Xid (PCI:0000:9b:00): 1" .. number .. "0, " .. sample,
        "NVRM: GPU at PCI:0000:9b:00: GPU-1f2e3d4c", "Xid " .. number .. " has a page in the catalogue" },
    },
  }
end

for _, row in ipairs(rows) do
  local over = {}
  for key, value in pairs(row) do if type(key) == "string" then over[key] = value end end
  over.title = row[3]
  add(row[1], row[2], over)
end
for _, group in ipairs(engines) do
  for _, number in ipairs(group[2]) do add(number, engine, { title = group[1], general = true }) end
end

-- NVLink of Blackwell and later: the line itself says whether the link survived.
for number, part in pairs({ [144] = "SAW", [145] = "RLW", [146] = "TLW", [147] = "TREX", [148] = "NVLPW_CTRL",
  [149] = "NETIR", [150] = "MSE" }) do
  add(number, link, { title = "Fatal NVLink error (" .. part .. ")", except = [[\bNon-?fatal\b]],
    sample = part .. "_LINK_EVT Fatal XC1 i0 Link 08 (0x004505c6 0x00000000)",
    miss = "NVRM: Xid (PCI:0018:01:00): " .. number .. ", " .. part .. "_LINK_EVT Nonfatal XC0 i0 Link 05" })
  add(number, note, { id = "nvidia.xid." .. number .. ".nonfatal", component = "nvlink",
    tail = [[.*\bNon-?fatal\b]],
    title = "NVLink error that the link survived (" .. part .. ")",
    sample = part .. "_LINK_EVT Nonfatal XC0 i0 Link 05",
    miss = "NVRM: Xid (PCI:0018:01:00): " .. number .. ", " .. part .. "_LINK_EVT Fatal XC1 i0 Link 08" })
end

-- 154 names the recovery that another Xid made necessary.
rule {
  id = "nvidia.xid.154", restart = "elsewhere",
  engine = 1, title = "Driver asks for a GPU reset or a reboot", role = "cascade",
  category = "hardware", component = "gpu", severity = "error", action = "isolate",
  match = { regex = [[NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): 154\b]],
    except = [[to 0x0 \(None\)]] },
  remedy = "Do what the line asks for (reset, drain or reboot); the Xid before it names the fault.",
  examples = {
    hit = { "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU " ..
      "Reset Required)" },
    miss = { "NVRM: Xid (PCI:0000:9b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) " ..
      "to 0x0 (None)" },
  },
}

rule {
  id = "nvidia.xid.other", restart = "unknown",
  engine = 1, title = "Xid that this library does not know", general = true,
  category = "hardware", component = "gpu", severity = "warning", action = "check",
  match = { regex = [[NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): (?P<xid>\d+)]] },
  remedy = "Look the number up in NVIDIA's Xid catalogue.",
  examples = { hit = { "NVRM: Xid (PCI:0000:9b:00): 201, pid=7" },
    miss = { "NVRM: loading NVIDIA UNIX x86_64 Kernel Module 550.54.15" } },
}
