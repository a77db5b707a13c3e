-- Findings of the plugins that say more when they come again on one device or host, or on several at once. A
-- plugin reports a state once, so each hit is another spell.

-- A line that comes so often, as an example of a window.
local function times(count, line)
  local text = line
  for _ = 2, count do text = text .. "\n" .. line end
  return text
end

local function again(row)
  rule {
    id = "plugins." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = "hardware",
    component = row.component, severity = "error", symptom = row.symptom or "slowdown", general = row.general,
    source = "finding", match = { regex = row.regex }, window = row.window, when = row.when,
    blames = row.blames, remedy = row.remedy,
    action = row.action or "isolate", examples = { hit = row.hit, miss = row.miss },
  }
end

again {
  id = "gpu.throttles_again", title = "GPU is slowed by heat or power again and again", component = "gpu",
  regex = { [[^gpu_health gpu\.(?:thermal_throttle|power_brake|hw_slowdown): ]] },
  window = { by = "device", span = "24h", at_least = 3 },
  remedy = "Check the fans, the airflow, the thermal interface and the power supply of this GPU.",
  hit = { times(3, "gpu_health gpu.thermal_throttle: GPU 5 (00000000:15:00.0), 92 C (slows down at 90 C)") },
  miss = { "gpu_health gpu.temperature_high: GPU 5 (00000000:15:00.0), 88 C (slows down at 90 C)" },
}
again {
  id = "gpu.host_overheats", title = "Several GPUs of a host are slowed by heat", component = "gpu",
  regex = { [[^gpu_health gpu\.thermal_throttle: GPU (?P<gpu>\d+)]] },
  window = { by = "host", span = "30m", at_least = 4, distinct = "gpu" },
  remedy = "The cooling of the host, not its GPUs: check fans, inlet temperature and airflow.",
  hit = { "gpu_health gpu.thermal_throttle: GPU 0, 92 C\ngpu_health gpu.thermal_throttle: GPU 1, 93 C\n" ..
    "gpu_health gpu.thermal_throttle: GPU 2, 92 C\ngpu_health gpu.thermal_throttle: GPU 3, 91 C" },
  miss = { "gpu_health gpu.power_brake: GPU 5 (00000000:15:00.0), 70 C, 600 of 1980 MHz" },
}
again {
  id = "gpu.host_loses_several", title = "Several GPUs of a host fail at once", component = "pcie",
  symptom = "crash",
  regex = { [[^gpu_health gpu\.(?:fell_off|query_hangs|reset_required): GPU (?P<gpu>\d+)]] },
  window = { by = "host", span = "10m", at_least = 3, distinct = "gpu" },
  remedy = "What these GPUs share is at fault: a PCIe switch, a riser, power, or the driver. Isolate the " ..
    "host; power-cycle it.",
  hit = { "gpu_health gpu.fell_off: GPU 4 (00000000:14:00.0): NVML says that the GPU is lost\n" ..
    "gpu_health gpu.fell_off: GPU 5 (00000000:15:00.0): NVML says that the GPU is lost\n" ..
    "gpu_health gpu.query_hangs: GPU 6 (00000000:16:00.0): no answer for 20 s" },
  miss = { "gpu_health gpu.query_crashes: GPU 3: a query ended its process" },
}
again {
  id = "gpu.memory_decays", title = "GPU corrects errors of its memory again and again",
  component = "gpu_memory", symptom = "other", action = "check",
  regex = { [[^gpu_health gpu\.ecc_corrected: ]] },
  window = { by = "device", span = "24h", at_least = 3 },
  remedy = "Run the vendor's memory test on this GPU before the next job; replace it if rows are remapped.",
  hit = { times(3, "gpu_health gpu.ecc_corrected: GPU 1: 2000 corrected errors within an hour") },
  miss = { "gpu_health gpu.ecc_uncorrected_earlier: GPU 1: 2 uncorrected errors before the start" },
}
again {
  id = "gpu.nvlink_fails_again", title = "NVLink of a GPU fails again and again", component = "nvlink",
  regex = { [[^gpu_health gpu\.nvlink_(?:down|errors|crc): ]] },
  window = { by = "device", span = "24h", at_least = 3 },
  remedy = "Reseat the GPU or the NVLink bridge; run the vendor's link test.",
  hit = { times(3, "gpu_health gpu.nvlink_errors: GPU 2: 12 replays within a minute") },
  miss = { "gpu_health gpu.nvlink_fewer: GPU 2: 16 of 18 links are active" },
}
again {
  id = "net.port_flaps_again", title = "Network port goes down again and again", component = "network",
  symptom = "hang", regex = { [[^net_health net\.link_(?:flap|down): ]] },
  window = { by = "host", span = "24h", at_least = 3 },
  remedy = "Change cable and transceiver, then the switch port; drain the host until the link is stable.",
  hit = { times(3, "net_health net.link_flap: mlx5_3/1 was down 2 times for 14 s within 10 minutes") },
  miss = { "net_health net.symbol_errors: mlx5_3/1: 12 symbol errors within an hour" },
}
again {
  id = "host.memory_decays", title = "Host corrects errors of its memory again and again",
  component = "host_memory", symptom = "other", action = "check",
  regex = { [[^host_health host\.memory_corrected: ]] },
  window = { by = "host", span = "7d", at_least = 3 },
  remedy = "Replace the memory module that the finding names.",
  hit = { times(3, "host_health host.memory_corrected: mc0: 14 corrected errors within a day") },
  miss = { "host_health host.memory_pressure: 12 % of the last minute stood still" },
}

-- On several hosts at once: what they share.
local function on_hosts(line)
  local text = ""
  for host = 3, 5 do
    text = text .. (host == 3 and "" or "\n") .. "Nov 21 02:12:0" .. host .. " node-" .. host .. " " .. line
  end
  return text
end
local function shared(row)
  row.window = { by = "job", span = row.span, at_least = 3 }
  row.when = function(_, window) return window.hosts >= 3 end
  row.hit, row.miss = { on_hosts(row.line) }, { times(3, row.line) }
  again(row)
end
shared {
  id = "net.several_hosts", restart = "later",
  title = "Ports of several hosts go down at once", component = "network",
  symptom = "hang", span = "60s", action = "check", blames = "job",
  regex = { [[\bnet_health net\.link_(?:flap|down): ]] }, line = "net_health net.link_down: mlx5_3/1 is down",
  remedy = "Look at the switch that these hosts share, its power and its planned work, before any cable.",
}
shared {
  id = "gpu.several_hosts_hot", restart = "later",
  title = "GPUs of several hosts are slowed by heat at once", component = "gpu",
  span = "30m", action = "check", blames = "job",
  regex = { [[\bgpu_health gpu\.thermal_throttle: ]] },
  line = "gpu_health gpu.thermal_throttle: GPU 5 (00000000:15:00.0), 92 C (slows down at 90 C)",
  remedy = "Look at the cooling of the rack or the room, not at single GPUs.",
}
