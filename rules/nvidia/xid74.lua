-- Xid 74, an NVLink error. The line of newer drivers ends with seven registers of the link. The first, third,
-- fourth and fifth have a documented meaning on Hopper. What they leave open is plain nvidia.xid.74.

local pci = [[NVRM: Xid \((?:PCI:)?(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): 74\b]]
local head = pci .. [[.* on (?P<link>link \d+)]]
local any = [[0x[0-9A-Fa-f]+]]

-- The bits of the hex digit `at`, from the right, that the list has.
local function mask(bits, at)
  local out = 0
  for _, number in ipairs(bits) do
    if number // 4 == at then out = out | 1 << number % 4 end
  end
  return out
end

-- By mask: the characters of digits that have one of its bits, and of those that have no others.
local some_of, only_of = {}, {}
for bits = 0, 15 do
  local some, only = "", ""
  for value = 0, 15 do
    local character = string.format("%x%X", value, value)
    if value & bits ~= 0 then some = some .. character end
    if value & ~bits == 0 then only = only .. character end
  end
  some_of[bits], only_of[bits] = some, only
end

-- A register that has one of the bits.
local function with(bits)
  local out = ""
  for at = 0, 7 do
    local class = some_of[mask(bits, at)]
    if class ~= "" then
      out = out .. (out == "" and "" or "|") .. string.format("[%s][0-9A-Fa-f]{%d}", class, at)
    end
  end
  return "0x[0-9A-Fa-f]*(?:" .. out .. ")"
end

-- A register that is not empty and has no other bits; and one that may be empty. No zeros lead.
local function some(bits)
  local out, below = "", ""
  for top = 0, 7 do
    local class = only_of[mask(bits, top)]
    local first = text.match(class, "^00(.+)$")
    if first then out = out .. (out == "" and "" or "|") .. "[" .. first .. "]" .. below end
    below = "[" .. class .. "]" .. below
  end
  return "0x(?:" .. out .. ")"
end
local function only(bits) return "(?:0x0|" .. some(bits) .. ")" end

-- The end of the line, with patterns for some of the registers.
local function registers(patterns, rest)
  local out = [[ ?\(]]
  for number = 1, 7 do
    out = out .. (patterns[number] or rest) .. (number < 7 and ", ?" or [[\)]])
  end
  return out
end

local parity = { registers({ with { 4, 5 } }, any), registers({ [3] = with { 0, 1, 2, 6 } }, any),
  registers({ [5] = with { 18, 19, 21, 22, 24, 25, 27, 28 } }, any) }
local contact = { registers({ with { 8, 9, 12, 16, 17, 21, 22, 24, 28 } }, any) }
local ignored, late = { 0, 23, 30 }, { 0, 1, 20, 23, 30 }
local others_late, corrected = { 16, 17, 18 }, { 20, 23, 26, 29 }
local silent = { registers({ some(ignored), [5] = only(corrected) }, "0x0"),
  registers({ only(ignored), [5] = some(corrected) }, "0x0") }
local later = { registers({ some(late), [4] = only(others_late), [5] = only(corrected) }, "0x0"),
  registers({ only(late), [4] = some(others_late), [5] = only(corrected) }, "0x0"),
  registers({ only(late), [4] = only(others_late), [5] = some(corrected) }, "0x0") }

local function lines(ends)
  local out = {}
  for _, one in ipairs(ends) do out[#out + 1] = head .. one end
  return out
end
local function joined(...)
  local out = {}
  for _, list in ipairs { ... } do for _, one in ipairs(list) do out[#out + 1] = "link \\d+" .. one end end
  return out
end
local function sample(...)
  local text = "NVRM: Xid (PCI:0000:9b:00): 74, pid='<unknown>', name=<unknown>, NVLink: fatal error " ..
    "detected on link 14("
  for i, register in ipairs { ... } do text = text .. (i == 1 and "" or ", ") .. register end
  return text .. ")"
end
local of_parity = sample("0x10", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0")
local of_contact = sample("0x10000", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0")
local of_corrected = sample("0x1", "0x0", "0x0", "0x0", "0x100000", "0x0", "0x0")
local of_later = sample("0x2", "0x0", "0x0", "0x20000", "0x0", "0x0", "0x0")
local of_others = sample("0x0", "0x0", "0x10000", "0x0", "0x0", "0x0", "0x0")
local of_none = sample("0x0", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0")

local function link(row)
  rule {
    id = "nvidia.xid.74" .. (row.id and "." .. row.id or ""), engine = 1,
    restart = row.restart or "elsewhere", title = row.title, category = "hardware", component = "nvlink",
    severity = row.severity or "fatal",
    action = row.action or "isolate", role = row.role, source = { "kernel", "log" }, window = row.window,
    when = row.when, match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    examples = { hit = row.hit, miss = row.miss },
  }
end

link {
  title = "NVLink error",
  regex = { pci .. [[(?:.* on (?P<link>link \d+))?]],
    [[XidCriticalError: Xid=74 on Device]], [[Detected XID 74 for GPU \d]] },
  except = joined(parity, contact, later),
  remedy = "Drain the host and reset all GPUs of the fabric; check baseboard, cables and switches if it " ..
    "returns.",
  hit = { "kernel: NVRM: Xid (PCI:0000:9b:00): 74, pid=4211, name=python3, Ch 00000008", of_others, of_none },
  miss = { "NVRM: Xid (PCI:0000:9b:00): 1740, pid=4211", of_parity, of_contact, of_corrected, of_later },
}
link {
  id = "parity", title = "NVLink error: data of the link failed its parity check inside of the GPU",
  regex = lines(parity),
  remedy = "Drain the host and reset all GPUs of the fabric; have the board checked if the same link " ..
    "does it " ..
    "a third time.",
  hit = { of_parity, sample("0x0", "0x0", "0x40", "0x0", "0x0", "0x0", "0x0"),
    sample("0x0", "0x0", "0x0", "0x0", "0x8000000", "0x0", "0x0") },
  miss = { of_contact, of_others, sample("0x0", "0x10", "0x0", "0x0", "0x0", "0x0", "0x0") },
}
link {
  id = "contact", title = "NVLink error: signal between the ends of the link is bad",
  regex = lines(contact), except = joined(parity),
  remedy = "Drain the host; check and reseat the board or bridge of this link, then run the vendor's " ..
    "link test.",
  hit = { of_contact, sample("0x200000", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0") },
  miss = { of_parity, of_others, of_later },
}
link {
  id = "later", title = "NVLink error that follows another error", severity = "error", action = "check",
  restart = "same",
  role = "cascade", regex = lines(later), except = joined(silent),
  remedy = "Look for the first Xid or SXid of this host and of the peers; reset the fabric.",
  hit = { of_later, sample("0x0", "0x0", "0x0", "0x40000", "0x0", "0x0", "0x0") },
  miss = { of_corrected, of_contact, of_none, sample("0x12", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0") },
}
link {
  id = "corrected", title = "NVLink corrected many errors", severity = "warning", action = "none",
  restart = "same",
  regex = lines(silent),
  remedy = "None now; run the vendor's link test at the next chance.",
  hit = { of_corrected, sample("0x800000", "0x0", "0x0", "0x0", "0x0", "0x0", "0x0") },
  miss = { of_later, of_none, sample("0x0", "0x0", "0x0", "0x0", "0x300000", "0x0", "0x0") },
}

-- One link of one GPU, while all others of the host are fine. The registers that matter only if they come
-- again
-- are among them.
local function at(time, line) return "Nov 21 " .. time .. " node-3 kernel: " .. line end
link {
  id = "again", title = "The same NVLink fails again and again: <link> of <pci>",
  regex = { [[NVRM: Xid \((?:PCI:)?(?P<unit>(?P<pci>[0-9A-Fa-f:.]+)[^)]*\): 74\b.* on (?P<link>link \d+))]] },
  window = { by = "host", span = "24h", distinct = "unit" },
  when = function(_, window) return window.count >= 3 and window.distinct == 1 end,
  remedy = "Drain the host; replace the board or bridge of this link.",
  hit = { at("02:12:01", of_parity) .. "\n" .. at("02:27:01", of_others) .. "\n" .. at("05:12:01",
    of_parity) },
  miss = { at("02:12:01", of_parity) .. "\n" .. at("02:27:01", of_parity),
    at("02:12:01", of_parity) .. "\n" .. at("02:27:01", of_parity) .. "\nNov 21 02:28:01 node-3 " ..
      "kernel: NVRM: Xid (PCI:0000:3b:00): " ..
      "74, pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link 2(0x0, 0x0, 0x0, 0x0, " ..
        "0x0)" },
}
