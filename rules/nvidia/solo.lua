-- Exceptions of a GPU's engines (Xid 13) and page faults (Xid 31): the program, unless one unit of one GPU
-- repeats them while all other GPUs of the job are fine. A run raises them in a burst and ends: two that are
-- ten minutes apart belong to two runs. (43 and 45 say only that a channel was torn down: xid.lua.)
-- What says more than a single 13 is fatal, so that it leads it.

local pci = [[NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): ]]
local unit = [[NVRM: Xid \((?:PCI:)?(?P<unit>(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): 13\b.*Graphics SM Warp ]] ..
  [[Exception on \((?P<tpc>GPC \d+, TPC \d+)), SM \d+\): ]]
local run_ns = 600 * 1000000000

local function again(_, window)
  return window.distinct == 1 and window.hosts <= 1 and window.first_ns ~= nil and
    window.last_ns - window.first_ns >= run_ns
end

local function fault(row)
  rule {
    id = "nvidia.xid." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category,
    component = row.component or "gpu", severity = row.severity or "error", action = "check",
    blames = row.blames, source = { "kernel", "log" }, match = { regex = row.regex },
    window = row.window or { by = "job", span = "24h", distinct = "unit" }, when = row.when or again,
    remedy = row.remedy, examples = { hit = row.hit, miss = row.miss },
  }
end

local function sm(time, gpu, place, what)
  return "Nov 21 " .. time .. ":01 node-3 kernel: NVRM: Xid (PCI:0000:" .. gpu .. ":00): 13, " ..
    "pid='<unknown>', name=<unknown>, " ..
    "Graphics SM Warp Exception on (" .. place .. ", SM 0): " .. what
end
local function page(time, gpu)
  return "Nov 21 " .. time .. ":01 node-3 kernel: NVRM: Xid (PCI:0000:" .. gpu .. ":00): 31, " ..
    "pid=2079991, name=pt_main_thread, Ch 00000007, intr 00000000. MMU Fault: ENGINE GRAPHICS " ..
    "GPCCLIENT_T1_6 faulted @ 0x7f5a_e7504000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
end

-- All GPUs run the same instructions: one unit that alone cannot read them is broken.
local bad, range = "Illegal Instruction Encoding", "Out Of Range Address"
fault {
  id = "13.instruction", title = "One unit of GPU <pci> cannot read the program's instructions: <tpc>",
  category = "hardware", severity = "fatal", regex = { unit .. [[Illegal Instruction]] },
  remedy = "Take the GPU out and run the vendor's diagnostics on it; its results may have been wrong before.",
  hit = { sm("02:12", "2a", "GPC 7, TPC 7", bad) .. "\n" .. sm("03:18", "2a", "GPC 7, TPC 7", bad) },
  miss = { sm("02:12", "2a", "GPC 7, TPC 7", bad) .. "\n" .. sm("02:12", "2a", "GPC 7, TPC 7", bad),
    sm("02:12", "2a", "GPC 7, TPC 7", bad) .. "\n" .. sm("03:18", "2a", "GPC 6, TPC 7", bad),
    sm("02:12", "2a", "GPC 7, TPC 7", bad) .. "\n" .. sm("03:18", "3b", "GPC 7, TPC 7", bad) },
}
fault {
  id = "13.unit", title = "Same unit of GPU <pci> raises exceptions in run after run: <tpc>",
  category = "unknown", severity = "fatal",
  regex = { unit .. [[(?:Out Of Range|Misaligned|Invalid|MMU|Stack|API)]] },
  blames = "few",
  remedy = "Run the vendor's diagnostics on this GPU; if they pass, and the rank comes back on another " ..
    "GPU " ..
    "with the same exception, it is the program.",
  hit = { sm("02:12", "2a", "GPC 1, TPC 3", range) .. "\n" .. sm("03:18", "2a", "GPC 1, TPC 3", range) },
  miss = { sm("02:12", "2a", "GPC 1, TPC 3", range) .. "\n" .. sm("02:13", "2a", "GPC 1, TPC 3", range),
    sm("02:12", "2a", "GPC 1, TPC 3", range) .. "\n" .. sm("03:18", "2a", "GPC 1, TPC 2", range) },
}
-- A rank with work of its own faults alone too: this only adds to the evidence.
fault {
  id = "31.again", title = "One GPU alone raises page faults in run after run", category = "unknown",
  severity = "warning", regex = { pci .. [[31\b]] }, window = { by = "job", span = "24h", distinct = "pci" },
  blames = "few",
  remedy = "Run the vendor's diagnostics on this GPU if the rank's work is like that of the others.",
  hit = { page("02:12", "b5") .. "\n" .. page("03:18", "b5") },
  miss = { page("02:12", "b5") .. "\n" .. page("03:18", "c1"), page("02:12", "b5") .. "\n" ..
    page("02:12", "b5") },
}
-- The reverse: no card is at fault where several fail in the same way at once.
fault {
  id = "13.many", restart = "never",
  title = "Several GPUs raise the same exception at once: the program's, not a GPU's",
  category = "user", component = "user_code", severity = "fatal", regex = { pci .. [[13\b]] }, blames = "job",
  window = { by = "job", span = "60s", distinct = "pci" },
  when = function(_, window) return window.distinct >= 2 or window.hosts >= 2 end,
  remedy = "Look at the kernel that ran: compute-sanitizer or CUDA_LAUNCH_BLOCKING=1 on one GPU shows it.",
  hit = { sm("02:12", "2a", "GPC 1, TPC 3", range) .. "\n" .. sm("02:12", "3b", "GPC 0, TPC 0", range) },
  miss = { sm("02:12", "2a", "GPC 1, TPC 3", range) .. "\n" .. sm("02:12", "2a", "GPC 0, TPC 0", range),
    sm("02:12", "2a", "GPC 1, TPC 3", range) .. "\n" .. sm("02:17", "3b", "GPC 0, TPC 0", range) },
}
fault {
  id = "31.many", restart = "never",
  title = "Several GPUs raise page faults at once: the program's, not a GPU's",
  category = "user", component = "cuda_runtime", regex = { pci .. [[31\b]] }, blames = "job",
  window = { by = "job", span = "60s", distinct = "pci" },
  when = function(_, window) return window.distinct >= 2 or window.hosts >= 2 end,
  remedy = "Look for an address that was freed or computed wrongly: compute-sanitizer on one GPU shows it.",
  hit = { page("02:12", "b5") .. "\n" .. page("02:12", "c1") },
  miss = { page("02:12", "b5") .. "\n" .. page("02:12", "b5"), page("02:12", "b5") .. "\n" ..
    page("02:17", "c1") },
}
