-- Machine checks: what the CPU and the firmware report about broken hardware (x86 MCE, ACPI/GHES on any CPU,
-- ARM RAS). Corrected errors are routine and only warn; an uncorrected one takes a process or the host with
-- it.

local function hardware(row)
  rule {
    id = "kernel.mce." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = "hardware",
      component = row.component or "cpu",
    severity = row.severity or "fatal", action = row.action or "isolate", general = row.general,
      says = row.says,
      role = row.role, symptom = row.symptom, ends = row.ends,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

hardware {
  id = "panic", title = "Host panicked on a fatal machine check",
  regex = { [[Kernel panic - not syncing: .{0,20}(?:[Ff]atal (?:local )?[Mm]achine check|]] ..
    [[Fatal hardware error|Timeout: Not all CPUs entered broadcast)]],
    [[Machine check: .{0,10}Processor context corrupt]],
      [[Kernel panic - not syncing: (?:NMI|Asynchronous SError Interrupt|UE detected|UNCORRECTED ERROR)]] },
  remedy = "Take the host out and read its management controller's event log; replace the CPU, board or " ..
    "memory it names.",
  hit = { "Kernel panic - not syncing: Fatal machine check",
    "mce: [Hardware Error]: Machine check: Processor context corrupt",
    "Kernel panic - not syncing: Asynchronous SError Interrupt" },
  miss = { "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
    "mce: CPU supports 20 MCE banks" },
}
hardware {
  id = "exception", title = "CPU raised a machine check exception",
  regex = { [[\[Hardware Error\]: CPU \d+: Machine Check Exception: [0-9a-f]+ Bank \d+]],
    [[\[Hardware Error\]: Machine check: (?:Action required|Uncorrected|Unknown|Invalid)]] },
  -- A memory controller's bank is a matter of rules/kernel/edac.lua.
  except = { [[Bank \d+: [bf][0-9a-f]{11}[01]0[89a-f][0-9a-f]\b]] },
  remedy = "Drain the host; the management controller's log names the CPU or memory module.",
  hit = { "mce: [Hardware Error]: CPU 12: Machine Check Exception: 5 Bank 7: be00000000800400" },
  miss = { "mce: [Hardware Error]: Machine check events logged" },
}
hardware {
  id = "logged", title = "Machine checks were logged", severity = "warning", says = "notice",
    action = "check",
  regex = { [[mce: \[Hardware Error\]: Machine check events logged]],
    [[Hardware event\. This is not a software error]] },
  remedy = "Read them with rasdaemon or mcelog: they name processor, bank and address.",
  hit = { "mce: [Hardware Error]: Machine check events logged" }, miss = { "mce: CPU supports 20 MCE banks" },
}
hardware {
  id = "memory_kill", title = "Process was killed because its memory is damaged", component = "host_memory",
  ends = "killed",
  regex = { [[Memory failure: 0x[0-9a-f]+: .*(?:Killing|Sending SIGBUS to) ]],
    [[MCE: Killing \S+ due to hardware memory corruption]],
    [[due to hardware memory corruption]], [[Uncorrected hardware memory error in user-access]] },
  remedy = "Drain the host and replace the memory module; restart the job elsewhere.",
  hit = { "Memory failure: 0x3f2a1c: Sending SIGBUS to python3:88231 due to hardware memory corruption",
    "mce: Uncorrected hardware memory error in user-access at 3f2a1c0400" },
  miss = { "Memory failure: 0x3f2a1c: recovery action for free buddy page: Recovered" },
}
hardware {
  -- The next lines name the part: memory (edac.lua), a PCIe device, a processor.
  id = "fatal_event", title = "Firmware reported a fatal hardware error", general = true,
  regex = { [[\[Hardware Error\]: +event severity: fatal]], [[\[Hardware Error\]: +Error \d+, type: fatal]],
    [[BERT: Error records from previous boot]], [[\[Hardware Error\]: .*severity:? ?fatal]] },
  remedy = "Take the host out; the next lines and the management controller's log name the part.",
  hit = { "{1}[Hardware Error]: event severity: fatal", "BERT: Error records from previous boot:" },
  miss = { "{1}[Hardware Error]: event severity: corrected" },
}
hardware {
  id = "recoverable_event", title = "Firmware reported an uncorrected but survivable hardware error",
    severity = "error", action = "check", general = true,
  regex = { [[\[Hardware Error\]: +event severity: recoverable]],
    [[\[Hardware Error\]: +Error \d+, type: recoverable]] },
  remedy = "Find the part in the following lines; drain the host if it repeats.",
  hit = { "{3}[Hardware Error]: event severity: recoverable" },
    miss = { "{3}[Hardware Error]: event severity: info" },
}
hardware {
  id = "uncorrected", title = "Uncorrected machine check was logged", severity = "error", general = true,
  regex = { [[\[Hardware Error\]: .*\b(?:Uncorrected, software (?:restartable|containable) error|]] ..
    [[Deferred error|System Fatal error)]],
    [[mcelog: .*[Uu]ncorrected error]],
      [=[\[Hardware Error\]: +(?:MC\d+_STATUS|CPU:\d+ .*STATUS)\[[^\]]*\|UE\|]=] },
  remedy = "Drain the host and decode the record (rasdaemon, mcelog).",
  hit = { "[Hardware Error]: Uncorrected, software restartable error.",
    "[Hardware Error]: CPU:3 (19:1:1) MC17_STATUS[Over|UE|MiscV|AddrV|-|-|-]: 0xfc" },
  miss = { "[Hardware Error]: Corrected error, no action required.",
    "[Hardware Error]: CPU:3 (19:1:1) MC17_STATUS[Over|CE|MiscV]: 0x9c" },
}
hardware {
  id = "cache", title = "CPU cores or cache taken out of service by the kernel", severity = "error",
    action = "check",
  regex = { [[(?i)CPU \d+ .*(?:cache|LLC).* disabled due to .*errors]],
    [[mcelog: .*CPU \d+ has .* large number of corrected]] },
  remedy = "Plan the replacement of the named part; the host still runs.",
  hit = { "mcelog: CPU 4 has an unusually large number of corrected errors" },
    miss = { "mcelog: CPU 3 BANK 8" },
}
hardware {
  id = "corrected", restart = "same",
  title = "Corrected hardware errors are being logged", severity = "info", action = "none",
    general = true,
  regex = { [[\[Hardware Error\]: Corrected error, no action required]],
    [[\[Hardware Error\]: Machine check events logged]],
    [[\[Hardware Error\]: +event severity: corrected]] },
  remedy = "None; watch the rate.",
  hit = { "mce: [Hardware Error]: Machine check events logged" },
    miss = { "mce: CPU0: Thermal monitoring enabled (TM1)" },
}
hardware {
  id = "nmi", title = "Hardware raised an unexplained interrupt (NMI)", severity = "error",
    action = "check",
  regex = { [[NMI: (?:PCI system error|IOCK error|memory parity error)]],
    [[Uhhuh\. NMI received for unknown reason]],
    [[NMI received for unknown reason [0-9a-f]+ on CPU]] },
  remedy = "Read the management controller's log; drain the host if it comes again.",
  hit = { "NMI: PCI system error (SERR) for reason b1 on CPU 0.",
    "Uhhuh. NMI received for unknown reason 2d on CPU 14." },
  miss = { "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter." },
}

-- Heat and power of the host.
hardware {
  id = "overheat_shutdown", title = "Host is so hot that it shuts down",
  regex = { [[critical temperature reached]],
    [[(?i)temperature .{0,30}(?:upper|lower)? ?non-?recoverable.{0,20}assert]] },
  remedy = "Check the cooling of the rack before the host is used again.",
  hit = { "thermal thermal_zone0: acpitz: critical temperature reached, shutting down" },
    miss = { "thermal_sys: Registered thermal governor 'step_wise'" },
}
hardware {
  id = "throttled", title = "CPU slows down because it is too hot", severity = "warning", action = "check",
    symptom = "slowdown",
  regex = { [[(?:Core|Package) temperature(?:/speed)? (?:is )?above threshold, cpu clock (?:is )?throt]] ..
    [[tled]] },
  remedy = "Check cooling if steps of this host are slow.",
  hit = { "mce: CPU3: Package temperature above threshold, cpu clock throttled (total events = 41)" },
  miss = { "mce: CPU3: Package temperature/speed normal" },
}
hardware {
  id = "power_supply", title = "A power supply of the host failed", severity = "error", action = "check",
  regex = { [[(?i)Power Supply\b.{0,60}(?:Failure detected|Power Supply AC lost|predictive failure|]] ..
    [[input lost)]],
    [[(?i)PSU ?[1-8]\b.{0,40}(?:failed|fault|lost input)]] },
  remedy = "Replace the power supply or restore its feed; GPUs may be capped until then.",
  hit = { "ipmi: Power Supply #0xe1 | Failure detected | Asserted", "PSU2 fault detected" },
    miss = { "Power Supply | Presence detected | Asserted" },
}
