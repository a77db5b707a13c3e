-- A program's last words at level fatal, where no rule knows the message. The line's header tells what kind
-- of program wrote it; its words stand in the headline.

local function last_words(row)
  rule {
    id = "process.fatal." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title .. ": <what>", says = "origin",
    source = "fatal", category = row.category, component = row.component, severity = "fatal",
    blames = "few", symptom = row.symptom, match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = "check", examples = { hit = row.hit, miss = row.miss },
  }
end

local mild = [[(?i)\b(?:ignor(?:ed|ing)|retry(?:ing)?|will (?:retry|try))\b]]

last_words {
  id = "container", title = "Container runtime failed", category = "platform", component = "platform",
  symptom = "launch_failure", regex = { [=[(?:^|[\]:|>] ?)FATAL:   +(?P<what>\S.*)]=] }, except = { mild },
  remedy = "Read the message: image, mounts, options, and rights of user namespaces on this host.",
  hit = { "FATAL:   container creation failed: hook function for tag prelayer returns error" },
  miss = { "INFO:    Converting SIF file to temporary sandbox...", "FATAL: 3 of 4 shards unread" },
}
last_words {
  id = "native", title = "Program ended by its own check", category = "framework", component = "framework",
  regex = {
    [[(?:^|\s)F(?:\d{4}|\s)\s?.*\b(?:[\w-]+/)*[\w.-]+\.(?:cc|cpp|cxx|cu|h|hpp):\d+\] (?P<what>\S.*)]],
    [=[\[[\d: ,.-]+ C \d+ \d+\] (?:\(\w+\) )?\S+\.cc:\d+:\s+(?P<what>\S.*)]=] },
  remedy = "Look for the first process that reports it, and for this text among the library's reports.",
  hit = { "2026-03-06 12:30:07.123456: F xla/service/plan.cc:2605] plan has no root",
    "F0306 12:30:07.123456    4711 channel.cc:88] ring has no head",
    "[2026-03-06 12:30:07,123 C 41233 41233] (raylet) config.cc:39: Unsupported system config: x" },
  miss = { "E0306 12:30:07.123456    4711 channel.cc:88] ring has no head" },
}
last_words {
  id = "service", title = "Service of the cluster ended", category = "platform", component = "platform",
  regex = { [[(?:^|\s)F\d{4} \S+ +\d+ [\w.-]+\.go:\d+\] (?P<what>\S.*)]],
    [=[\[\d{4}-\d\d-\d\dT[\d:.]+\] fatal: (?P<what>\S.*)]=],
    [[\blevel=(?:fatal|panic)\b.*\bmsg="?(?P<what>[^"]+)]] },
  remedy = "Read that service's log on its host; jobs that it starts or watches wait for it.",
  hit = { "F0306 12:30:07.123456       1 server.go:302] failed to run Kubelet: no cgroup",
    "[2026-03-06T12:30:07.123] fatal: slurmscriptd_init: slurmscriptd did not start" },
  miss = { "I0306 12:30:07.123456       1 server.go:302] started" },
}
