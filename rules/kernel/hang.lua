-- The kernel notices that something stands still, or that it cannot go on at all.

local function host(row)
  rule {
    id = "kernel." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "platform",
      component = row.component or "host_kernel",
    severity = row.severity or "fatal", action = row.action or "isolate", general = row.general,
      role = row.role, symptom = row.symptom or "hang",
    blames = row.blames or "host", source = { "kernel", "log" }, remedy = row.remedy,
      match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

host {
  id = "hang.soft_lockup", title = "A CPU was stuck in the kernel", severity = "error", action = "check",
  regex = { [[BUG: soft lockup - CPU#\d+ stuck for \d+s]] },
  remedy = "Look at the stack below the line; reboot the host if it repeats, and check drivers and firmware.",
  hit = { "watchdog: BUG: soft lockup - CPU#12 stuck for 22s! [python3:81231]" },
    miss = { "watchdog: softlockup detector enabled" },
}
host {
  id = "hang.hard_lockup", title = "A CPU stopped taking interrupts",
  regex = { [[Watchdog detected hard LOCKUP on cpu]], [[NMI watchdog: .*hard LOCKUP]],
    [[hardlockup detected]] },
  remedy = "Reboot the host; suspect firmware or hardware if it comes again.",
  hit = { "NMI watchdog: Watchdog detected hard LOCKUP on cpu 17",
    "watchdog: Watchdog detected hard LOCKUP on cpu 3" },
  miss = { "NMI watchdog: Enabled. Permanently consumes one hw-PMU counter." },
}
host {
  id = "hang.rcu", title = "The kernel's RCU stalls", severity = "error", action = "check",
  regex = { [[rcu\w*:? ?(?:INFO: )?\w*(?:self-)?detected (?:expedited )?stalls? on CPU]],
    [[rcu_\w+ (?:self-)?detected (?:expedited )?stalls? on]], [[rcu: .*kthread starved for]] },
  remedy = "Look at the stack below the line; reboot the host if it does not recover.",
  hit = { "rcu: INFO: rcu_sched self-detected stall on CPU",
    "INFO: rcu_preempt detected stalls on CPUs/tasks:",
    "rcu: INFO: rcu_preempt detected expedited stalls on CPUs/tasks: {" },
  miss = { "rcu: Hierarchical RCU implementation." },
}
-- Only says that the task waits: for a file system, a device, a lock. What it waits for is the cause.
host {
  id = "hang.task", restart = "unknown",
  title = "A task waits in the kernel for too long", severity = "error", action = "check",
    role = "cascade", general = true,
  regex = { [[task (?P<name>[^:]+):(?P<pid>\d+) blocked for more than \d+ seconds]],
    [[task (?P<name>[^:]+):(?P<pid>\d+) is blocked on]] },
  remedy = "Read the stack below: NFS, Lustre and GPFS calls mean storage, nvidia or mlx5 calls mean the " ..
    "device.",
  hit = { "INFO: task python3:22101 blocked for more than 120 seconds." },
    miss = { "INFO: lockdep is turned off." },
}
host {
  id = "panic", title = "Kernel panic", symptom = "crash", general = true,
  regex = { [[Kernel panic - not syncing]] },
  remedy = "Take the host out and keep the crash dump; the text after the panic names the cause.",
  hit = { "Kernel panic - not syncing: Fatal exception in interrupt" }, miss = { "kernel.panic = 10" },
}
host {
  id = "oops", title = "The kernel crashed in its own code", symptom = "crash",
  regex = { [[BUG: unable to handle (?:kernel (?:NULL pointer dereference|paging request)|page fault for ]] ..
    [[address)]],
    [[BUG: kernel NULL pointer dereference, address]],
      [[Unable to handle kernel (?:NULL pointer dereference|paging request|access to user memory)]],
    [[kernel BUG at \S+:\d+!]], [=[Oops: [0-9a-fx]+ \[#\d+\]]=],
      [[Oops: (?:general protection fault|Fatal exception|invalid opcode)]],
    [[PANIC: double fault]], [[Internal error: Oops]] },
  remedy = "Reboot the host; the module in the stack (nvidia, mlx5, lustre, ...) is the one to update.",
  hit = { "BUG: unable to handle page fault for address: ffffb0c2c0a01000",
    "BUG: kernel NULL pointer dereference, address: 0000000000000008",
    "Oops: 0002 [#1] SMP NOPTI", "kernel BUG at mm/slub.c:379!" },
  miss = { "BUG: TRACE_BUFFER too low", "Oops, something went wrong in my script" },
}
host {
  id = "reboot", restart = "same",
  title = "Host started again", symptom = "crash", severity = "warning", action = "check",
  regex = { [[Linux version \d+\.\d+\.\d+\S* \(.*\) (?:\(|#)]],
    [[systemd-logind\S*: (?:The system will reboot now|System is rebooting)]] },
  remedy = "Find out why: management controller's log, crash dump, maintenance.",
  hit = { "Linux version 5.15.0-105-generic (buildd@lcy02) (gcc 11.4.0) #115-Ubuntu SMP",
    "systemd-logind[1]: System is rebooting." },
  miss = { "Linux version: see /etc/os-release" },
}
host {
  id = "clock", title = "The host's clock is unstable", severity = "warning", action = "check",
    symptom = "other",
  regex = { [[clocksource: timekeeping watchdog on CPU\d+: Marking clocksource .* as unstable]],
    [[Clocksource tsc unstable]] },
  remedy = "Check firmware; times of this host's log lines may be off.",
  hit = { "clocksource: timekeeping watchdog on CPU3: Marking clocksource 'tsc' as unstable because the " ..
    "skew is too large:" },
  miss = { "clocksource: Switched to clocksource tsc" },
}
host {
  id = "systemd_freeze", title = "The host's init system froze",
  regex = { [[systemd\[1\]: Freezing execution]] },
  remedy = "Reboot the host.",
  hit = { "systemd[1]: Freezing execution." }, miss = { "systemd[1]: Reloading." },
}
