-- Intel Gaudi: the habanalabs driver in the kernel's log.

-- A hard reset: processes that use the card are ended. (Resets between programs are debug messages.)
rule {
  id = "intel.gaudi.reset", restart = "elsewhere",
  engine = 1, title = "Gaudi card is reset by its driver", category = "hardware",
  component = "gpu", severity = "fatal", action = "isolate", source = { "log", "kernel" },
  match = { regex = { [[habanalabs (?P<card>\S+): Going to (?:reset device$|RESET device!)]] } },
  remedy = "Read the driver's lines before it; isolate the host, and replace the card if it is reset again.",
  examples = {
    hit = { "habanalabs hl0: Going to reset device", "habanalabs hl3: Going to RESET device!" },
    miss = { "habanalabs hl0: Going to reset device after release by user",
      "habanalabs hl0: Successfully loaded firmware to device" },
  },
}

-- The rest of the driver's lines: cards are hl0 .. hl7 (accel0 .. in newer kernels).
local card = [[(?:habanalabs|accel) (?P<card>\S+): ]]

local function driver(row)
  rule {
    id = "intel.gaudi." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
    component = row.component or "gpu", severity = row.severity or "fatal", general = row.general,
    action = row.action or "isolate", symptom = row.symptom, source = { "log", "kernel" },
    match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    examples = { hit = row.hit, miss = row.miss },
  }
end

driver {
  id = "heartbeat", title = "Gaudi card lost its heartbeat",
  regex = { card .. [[(?:\S+ )?(?:Device heartbeat failed|EQ: heartbeat event was not received|]] ..
    [[heartbeat failed)]] },
  remedy = "Isolate the host; reset or power-cycle the card, and replace it if it happens again.",
  hit = { "habanalabs hl2: Device heartbeat failed!", "accel accel3: 0000:b3:00.0 Device heartbeat failed!" },
  miss = { "habanalabs hl2: heartbeat is enabled" },
}
driver {
  id = "unusable", title = "Gaudi card does not start", symptom = "launch_failure",
  regex = { [[habanalabs \S+: Failed to initialize (?P<card>\S+?)\. Device .*is NOT usable]],
    card .. [[Failed to (?:reset! Device is NOT usable|communicate with Device CPU|detect if device is a]] ..
      [[live|]] ..
      [[load firmware|initialize the H/W)]],
    [[Failed to initialize (?P<card2>accel\d+)\. Device \S+ is NOT usable]],
    card .. [[(?P<what>CPU boot (?:error|ready timeout).*)]] },
  remedy = "Power-cycle the host, check driver and firmware versions (hl-smi); replace the card if it " ..
    "still fails.",
  hit = { "habanalabs 0000:1a:00.0: Failed to initialize hl2. Device is NOT usable !",
    "habanalabs: Failed to initialize accel2. Device 0000:1a:00.0 is NOT usable!",
    "habanalabs hl2: Failed to communicate with Device CPU (CPU-CP timeout)" },
  miss = { "habanalabs hl2: Successfully added device to habanalabs driver" },
}
driver {
  id = "memory", title = "Gaudi memory has uncorrectable errors", component = "gpu_memory",
  regex = { card .. [[.*(?P<what>HBM\S* ?\S* (?:DERR|double[- ]bit|uncorrectable).*)]],
    card .. [[.*(?P<what>(?:HBM|SRAM|MMU|DEC|TPC|MME|DMA)\d*\w*_ECC_DERR\w*)]],
    card .. [[.*ECC event detected\..*DERR]], card .. [[.*(?P<what>Received (?:HBM|DRAM) .*(?:DERR|uncor]] ..
      [[rectable).*)]] },
  except = { [[(?i)\bDERR(?: count)?[=: ]+0\b]] },
  remedy = "Isolate the host and reset the card; replace it if the error returns.",
  hit = { "habanalabs hl1: Received event 12, HBM0_MC0_SPI interrupt: HBM DERR on channel 3",
    "habanalabs hl1: Received H/W interrupt 55 [\"TPC4_ECC_DERR\"]" },
  miss = { "habanalabs hl1: Received H/W interrupt 54 [\"TPC4_ECC_SERR\"]" },
}
driver {
  id = "timeout", restart = "same", title = "Work on a Gaudi card did not end in time", category = "unknown",
    severity = "error",
  symptom = "hang", action = "check", general = true,
  regex = { card .. [[.*Command submission \d+ timeout]], card .. [[.*CS \d+ has timed out]] },
  remedy = "Look at the other ranks first: one that is gone makes its peers' collectives time out. One " ..
    "card " ..
    "alone in job after job is the card.",
  hit = { "habanalabs hl0: Command submission 41337 timeout!" },
  miss = { "habanalabs hl0: Command submission timeout is 30 seconds" },
}
driver {
  id = "access", restart = "same",
  title = "Program on a Gaudi card used an address that it may not", category = "framework",
  component = "framework", severity = "error", action = "check",
  regex = { card .. [[.*(?P<what>[PH]?MMU page fault on va \S+)]], card ..
    [[.*(?P<what>RAZWI (?:event|happened|occurred).*)]],
    card .. [[.*(?P<what>MMU access error on va \S+)]] },
  remedy = "Update software and firmware to one release; report the program's graph dump.",
  hit = { "habanalabs hl0: PMMU page fault on va 0x1001000040000" },
  miss = { "habanalabs hl0: MMU initialised" },
}
driver {
  id = "port", title = "Network port of a Gaudi card is down", component = "network", action = "check",
  severity = "error",
  regex = { card .. [[.*(?P<port>port \d+)\b.{0,20}(?:link is down|link down|lost (?:link|signal))]],
    card .. [[.*(?:link is down|link down),? (?P<port2>port \d+)]] },
  remedy = "Check cable and switch port; hl-smi -n link shows the ports of the card.",
  hit = { "habanalabs hl4: port 8 link is down" }, miss = { "habanalabs hl4: port 8 link is up" },
}
driver {
  id = "power", title = "Power supply or board protection stopped a Gaudi card",
  regex = { card .. [[.*(?P<what>Power supply (?:is not|failure|fault).*)]],
    card .. [[.*(?P<what>CPLD (?:shutdown|reset).{0,40})]], card ..
      [[.*(?P<what>Overheating.*|fatal thermal.*)]] },
  except = { [[(?i)no longer|back to normal]] },
  remedy = "Check power and cooling of the host before the card is used again.",
  hit = { "habanalabs hl6: FW reported CPLD shutdown event" },
  miss = { "habanalabs hl6: Power supply is OK" },
}

-- Synapse, the library above: "synStatus=8 [Device not found]", "synStatus=synStatus 26 [Generic failure]",
-- or "... with synStatus 26 [...]". The text in brackets is the library's, and tells more than the number.
local function synapse(row)
  rule {
    id = "intel.gaudi.synapse." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = row.category,
    component = row.component, severity = row.severity or "fatal", general = row.general, role = row.role,
    action = row.action or "check", symptom = row.symptom, source = { "log" },
    match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    examples = { hit = row.hit, miss = row.miss },
  }
end

local status = {
  -- id, title, category, component, texts, remedy
  { "no_device", "No Gaudi card can be acquired", "platform", "gpu",
    { "Device not found", "Not enough devices found" },
    "Compare hl-smi with what the job asked for: the driver, the devices in the container " ..
      "(HABANA_VISIBLE_DEVICES), cards that did not start.", restart = "elsewhere" },
  { "acquired", "Gaudi card is held by another process", "user", "gpu",
    { "Device already acquired", "All resources are taken" },
    "End the other process (hl-smi names it); one process per card." },
  { "in_reset", "Gaudi card is being reset under the program", "hardware", "gpu",
    { "Device in reset" }, "Read the driver's lines in the kernel log: they name the reason.",
    severity = "error", restart = "elsewhere" },
  { "memory", "Gaudi memory is used up", "user", "gpu_memory",
    { "Out of Device memory (OOM)", "Failed to allocate Device memory" },
    "Lower batch, sequence or model per card; fewer bucket shapes in cached graphs.", action = "fix",
    restart = { "never", "same" } },
  { "host_memory", "Host memory or huge pages for Gaudi are used up", "user", "host_memory",
    { "Out of HOST memory (OOM)", "Out-Of-Resources" }, "Raise huge pages and the memory limit of the job.",
    restart = "never" },
  { "terminated", "Gaudi's runtime ends after a fatal fault", "unknown", "gpu",
    { "Synapse is being terminated due to fatality", "Got timeout notification from Driver" },
    "Read the kernel log and dfa_log.txt for the first fault.", severity = "error", role = "cascade" },
  { "hccl", "Collective on Gaudi failed", "unknown", "nccl_comm", { "Got failure from HCCL" },
    "Look for the rank that failed first, and for a port that is down (hl-smi).", severity = "error",
    role = "cascade", restart = "unknown" },
  { "unsupported", "Program asks Gaudi for what it does not support", "framework", "framework",
    { "Unsupported operation", "Invalid tensor's dimensions", "Invalid Tensor properties",
      "Invalid argument" },
    "Read the operation above it; try another release or keep that part on the CPU.", restart = "never" },
}
for _, row in ipairs(status) do
  local any = ""
  for _, words in ipairs(row[5]) do
    any = any .. (any == "" and "" or "|") .. (text.match(words, [[^[\w' -]+\w]]) or words)
  end
  synapse {
    id = row[1], restart = row.restart, title = row[2], category = row[3], component = row[4],
    remedy = row[6],
    severity = row.severity, action = row.action, role = row.role,
    regex = { [[\bsynStatus\W{1,3}(?:synStatus )?(?P<number>\d+) \[(?i:]] .. any .. [=[)[^\]]*\]\W{0,2}]=] ..
      [[(?P<what>[^.]*)]] },
    hit = { "RuntimeError: synStatus=8 [" .. row[5][1] .. "] Device acquire failed.",
      "RuntimeError: synNodeCreateWithId failed for node: batch_gemm with synStatus 8 [" .. row[5][1] ..
        "]. ." },
    miss = { "RuntimeError: synStatus=26 [Generic failure] Device acquire failed.", "[" .. row[5][1] .. "]" },
  }
end
-- The generic failure says only which step failed.
synapse {
  id = "acquire", title = "No Gaudi card can be acquired", category = "platform", component = "gpu",
  symptom = "launch_failure", general = true,
  regex = { [[\bsynStatus\W{1,3}(?:synStatus )?26 \[Generic failure\]\W{0,2}(?P<what>Device acquire failed)]],
    [[(?P<what2>synDeviceAcquire\w*)\(.*\) failed with synapse error: (?P<code>\d+)]],
    [[^\W*(?:RuntimeError: )?Device acquire failed]] },
  remedy = "Compare hl-smi with what the job asked for; read the driver's lines in the kernel log, and " ..
    "end " ..
    "processes that still hold cards.",
  hit = { "RuntimeError: synStatus=26 [Generic failure] Device acquire failed.",
    "HCCL demo error: In function initDevice(): synDeviceAcquire(&resources.deviceHandle, nullptr) failed " ..
      "with synapse error: 20" },
  miss = { "Device acquired" },
}
synapse {
  id = "graph", restart = "never",
  title = "Gaudi's graph compiler failed", category = "framework", component = "framework",
  regex = { [[(?P<what>Graph compile failed)\.? ?synStatus\W{1,3}(?:synStatus )?\d+]],
    [[(?P<what2>syn\w+ failed for node: \S+) with synStatus \d+]],
      [[Habana exception raised from compile at graph\.cpp]] },
  except = { [[(?i)\[(?:Out of|Failed to allocate|Device in reset|Unsupported|Invalid)]] },
  remedy = "Find the operation (lazy mode off, or PT_HPU_MAX_COMPOUND_OP_SIZE small); try another " ..
    "release, and " ..
    "report the graph dump.",
  hit = { "RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure].",
    "RuntimeError: synNodeCreateWithId failed for node: batch_gemm with synStatus 26 [Generic failure]. ." },
  miss = { "Graph compile took 41 s" },
}
-- The bridge's header stands before what failed; the next line says what.
synapse {
  id = "bridge", restart = "unknown",
  title = "Gaudi's PyTorch bridge stopped the program", category = "framework",
  component = "framework", severity = "error", general = true,
  regex = { [[FATAL ERROR :: MODULE:(?P<module>\w+) (?P<what>.*)]],
    [[Habana exception raised from (?P<call>\S+ at \S+)]],
    [[\bsynStatus\W{1,3}(?:synStatus )?26 \[Generic failure\]\W{0,2}(?P<what2>[^.]*)]] },
  except = { [[Device acquire failed]] },
  remedy = "Read the next lines and $HABANA_LOGS for what failed.",
  hit = { "RuntimeError: [Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread...",
    "[Rank:6] Habana exception raised from compile_and_run at graph.cpp:599" },
  miss = { "MODULE:PT_BRIDGE loaded" },
}
synapse {
  id = "oom", restart = { "never", "same" },
  title = "Gaudi memory is used up", category = "user", component = "gpu_memory", action = "fix",
  regex = { [[MODULE:PT_DEVMEM .*(?:Allocation failed for size::(?P<size>\d+)|out of memory)]],
    [[(?i)hpu out of memory]] },
  remedy = "Lower batch, sequence or model per card; fewer bucket shapes in cached graphs.",
  hit = { "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for " ..
    "size::3221225472 (3072)MB" },
  miss = { "MODULE:PT_DEVMEM Memory Stats" },
}
synapse {
  id = "no_hpu", restart = "elsewhere",
  title = "Program sees no Gaudi card", category = "platform", component = "driver",
  symptom = "launch_failure",
  regex = { [[(?i)No HPU devices? (?:found|available)]], [[habanalabs driver is not loaded or no AIPs av]] ..
    [[ailable]],
    [[hl-smi: .*(?:driver .*not loaded|No .*device)]], [[ModuleNotFoundError: No module named '(?P<modul]] ..
      [[e>habana_frameworks\S*)']],
    [[(?P<library>libSynapse\.so|libhccl\.so|libhl_logger\.so): cannot open shared object file]] },
  except = { [[libhccl\.so]] },
  remedy = "Load the habanalabs driver; start the container with the habana runtime and the image of " ..
    "the driver's release.",
  hit = { "habanalabs driver is not loaded or no AIPs available, aborting...",
    "RuntimeError: No HPU devices available" },
  miss = { "HPU devices: 8" },
}
