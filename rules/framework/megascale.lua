-- XLA's waits for other devices: the rendezvous of a process, and Megascale between the slices of TPUs, whose
-- coordinator looks for the cause of a hang.

local function wait(row)
  rule {
    id = "framework." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title, category = row.category or "unknown",
    component = row.component or "framework", severity = row.severity or "error", role = row.role,
    symptom = row.symptom or "hang", blames = row.blames, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = row.action or "check", examples = { hit = row.hit, miss = row.miss },
  }
end

-- The first collective of a large program waits as well: no fault before XLA gives up.
wait {
  id = "xla.waits", title = "XLA's thread waits for other devices", severity = "warning", role = "cascade",
  regex = { [[This thread has been waiting for `(?P<what>.+)` for (?P<limit>\d+ seconds) and may be stuck]] },
  remedy = "None if the next line says that it is unstuck; else look at the device that did not come.",
  hit = { "[id=1] This thread has been waiting for `acquire clique for rank 3; clique=devices=[4,5,6,7]; " ..
    "is_p2p=0` for 10 seconds and may be stuck. Expected 4 threads to join the rendezvous, but not all of " ..
    "them arrived on time." },
  miss = { "[id=1] Thread is unstuck! Warning above was a false-positive. Perhaps the timeout is too " ..
    "short." },
}
wait {
  id = "xla.gave_up", title = "XLA stopped: a device did not come to a collective operation",
  severity = "fatal", role = "cascade",
  regex = { [[Termination timeout (?:for `(?P<what>.+)` )?of (?P<limit>\d+ seconds) exceeded\. Exiting]] },
  remedy = "Look at the device that did not come: an error before it, an input that is late, a collective " ..
    "that it does not call.",
  hit = { "Termination timeout for `acquire clique for rank 3` of 40 seconds exceeded. Exiting to " ..
    "ensure a " ..
    "consistent program state. Expected 4 threads to join the rendezvous, but not all of them arrived " ..
      "on time." },
  miss = { "Termination timeout is 40 seconds" },
}
wait {
  id = "megascale.hang", title = "Megascale waits for graphs that other slices do not finish",
  component = "network", role = "cascade",
  regex = { [[Megascale hang detected: Timed out waiting for (?P<n>\d+) graphs?]],
    [[Megascale detects a hang but cannot determine the root cause]] },
  remedy = "Read the coordinator's digest of the hang (task 0 of slice 0): it names cause and hosts.",
  hit = { "Megascale hang detected: Timed out waiting for 4 graphs to complete at launch_id 13650. " ..
    "Already " ..
    "completed: 100. StepGloballyInProgress: true. Timeout: 1m" },
  miss = { "Megascale hang detection enabled" },
}
wait {
  id = "megascale.chip", restart = "elsewhere",
  title = "Megascale blames TPU chips for a hang", category = "hardware",
  component = "gpu", blames = "job",
  regex = { [[Megascale detects a hang that is likely caused by bad TPU chips]] },
  remedy = "Leave out the hosts that the next lines name; the same host in several hangs has a broken TPU.",
  hit = { "Megascale detects a hang that is likely caused by bad TPU chips on the following hosts. Please " ..
    "remove the hosts from the fleet and restart the workload." },
  miss = { "Megascale detects a hang that is likely caused by a networking issue." },
}
wait {
  id = "megascale.network", restart = "same", title = "Megascale blames the network between hosts for a hang",
  category = "platform", component = "network", blames = "job",
  regex = { [[Megascale detects a hang that is likely caused by a networking issue]] },
  remedy = "Look at the links of the hosts that the next lines name; leave out one that several lines name.",
  hit = { "Megascale detects a hang that is likely caused by a networking issue. Please examine the " ..
    "underlying networking stack for the following hosts." },
  miss = { "Megascale detects a hang that is likely caused by bad TPU chips on the following hosts." },
}
wait {
  id = "megascale.modules", title = "Megascale finds workers in different programs",
  role = "cascade",
  regex = { [[Megascale detects a hang that is likely caused by running different modules on different ]] ..
    [[devices]] },
  remedy = "Start all workers with the same program; if they have it, look at the workers that are behind.",
  hit = { "Megascale detects a hang that is likely caused by running different modules on different " ..
    "devices. " ..
    "Please confirm that all workers is running the exact same program." },
  miss = { "Megascale detects a hang that is likely caused by inconsistent HLO module compilation " ..
    "across workers." },
}
wait {
  id = "megascale.compilation", restart = "never",
  title = "Workers compiled a module of the program differently",
  category = "framework",
  regex = { [[Megascale detects a hang that is likely caused by inconsistent HLO module compilation]] },
  remedy = "Compare the HLO dumps of the workers named; report the difference to JAX or XLA.",
  hit = { "Megascale detects a hang that is likely caused by inconsistent HLO module compilation across " ..
    "workers. This is likely a bug in JAX tracing or XLA compiler." },
  miss = { "Megascale detects a hang that is likely caused by running different modules on different " ..
    "devices." },
}
