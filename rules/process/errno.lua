-- Errors of the operating system in any line that reports a failure: the error's text with the kind of thing
-- it is about picks class and remedy. Says less than a rule for the program's own wording, more than that
-- something failed.

-- The thing that the error is about. `at`: its regex, with a hole.
local objects = {
  accelerator = [[(?P<device>/dev/(?:vfio/\d+|accel/?\w+|nvidia[\w/-]*|kfd|dri/\w+|davinci\w*|hl\w+|]] ..
    [[habanalabs\w*|neuron\d+))]],
  adapter = [[(?P<device>/dev/infiniband/\w+|/sys/class/infiniband/[\w-]+)]],
  shared_memory = [[(?P<path>/dev/shm\b[^\s'":,]*)]],
  runtime = [[(?P<path>/(?:var/)?run/[^\s'":,]+|/tmp/[^\s'":,]*\bsock\w*\b|\S*\.sock)\b]],
  kernel = [[(?P<path>/(?:sys|proc)/[^\s'":,]+)]],
  file = [[(?:^|[\s'"=(:,<\[])(?P<path>~?/[^\s'":,]*[A-Za-z][^\s'":,]*)]],
  -- A name without a dot needs a port: else each word is one.
  peer = [[(?P<peer>(?:\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]+\]|[a-z][\w-]*(?:\.[\w-]+)+)(?::\d+)?|]] ..
    [[\[?[a-z][\w-]*\]?:\d+)]],
}

-- A line of an error that was handled, asked for, or is a setting.
local handled = [[(?i)\b(?:warn(?:ing)?|ignor(?:ed?|ing)|retry(?:ing)?|retries|will (?:try|be)|]] ..
  [[skip(?:ping|ped)?|fall(?:ing|s)? ?back|harmless|expected|suppressed|optional|instead|going (?:to|on)|]] ..
  [[continu(?:e|es|ing)|default(?:s|ing) to|assum(?:e|ing))\b]]
-- What makes it the report of a failure: an exception, or a word for it.
local fails = [[(?:[A-Z]\w*(?:Error|Exception)\b|\b(?i:error|fatal|fail(?:ed|ure)?|cannot|can't|]] ..
  [[could ?n[o']t|unable|abort(?:ed|ing)?|panic)\b)]]

-- Files that Python or a shell does not find have rules of their own.
local known = [[FileNotFoundError|Errno 2\]|can't open file|(?:bash|sh|env): |slurm_script: line]]

-- The error's text as libraries print it, and its number in Python, Go and Rust.
local function texts(words, number)
  local any = words
  if number then any = any .. [[|\[Errno ]] .. number .. [[\]|\(os error ]] .. number .. [[\)]] end
  return "(?:" .. any .. ")"
end

local errors = {
  busy = texts([[(?:[Dd]evice or )?[Rr]esource busy|device is busy|EBUSY\b]], 16),
  denied = texts([[[Pp]ermission denied|[Oo]peration not permitted|EACCES\b|EPERM\b]], 13),
  missing = texts([[[Nn]o such file or directory|ENOENT\b]], 2),
  no_device = texts([[[Nn]o such device(?: or address)?|ENODEV\b|ENXIO\b]], 19),
  no_memory = texts([[[Cc]annot allocate memory|ENOMEM\b]], 12),
  refused = texts([[[Cc]onnection refused|ECONNREFUSED\b]], 111),
  timed_out = texts([[[Cc]onnection timed out|connect: timeout|i/o timeout|ETIMEDOUT\b]], 110),
  no_route = texts([[[Nn]o route to host|[Nn]etwork is unreachable|[Hh]ost is (?:down|unreachable)|]] ..
    [[EHOSTUNREACH\b|ENETUNREACH\b]], 113),
  no_name = texts([[[Nn]ame or service not known|[Tt]emporary failure in name resolution|]] ..
    [[[Nn]o such host|[Uu]nknown host|[Cc]ould not resolve (?:host(?:name)?|address)|]] ..
      [[nodename nor servname provided|]] ..
    [=[\[Errno -[23]\]]=]),
  in_use = texts([[[Aa]ddress already in use|EADDRINUSE\b]], 98),
}

-- Error, object (nil: none named), class, title, remedy, an example. What storage, sockets and shared memory
-- answer has rules of its own (rules/storage).
local rows = {
  { "busy", "accelerator", "platform", "gpu", "Device is held by another process",
    "Find the process that holds it (fuser, lsof), end it, or reset the device; a container may hold it too.",
    "RuntimeError: cannot open /dev/davinci3: Device or resource busy",
    restart = "same" },
  { "busy", "file", "platform", "storage", "Path is in use",
    "Find out who holds it (fuser, lsof): a mount, another job, a process of the last run.",
    "OSError: cannot remove /mnt/scratch/job7: Device or resource busy",
    restart = "same" },
  { "denied", "accelerator", "platform", "driver", "User may not open the device",
    "Give the job the device: groups (video, render), the container's devices, the cgroup's device list.",
    "RuntimeError: failed to open /dev/kfd: Permission denied",
    restart = "elsewhere" },
  { "denied", "adapter", "platform", "network", "User may not use the network adapter",
    "Give the job /dev/infiniband/*: rights on the host, devices of the container.",
    "Error: open /dev/infiniband/uverbs0: Permission denied",
    restart = "elsewhere" },
  { "denied", "runtime", "platform", "platform", "Runtime folder or socket does not let the user in",
    "Correct owner and mode of that path on this host, or the user that the service runs as.",
    "error: mkdir /run/user/1007/enroot: Permission denied",
    restart = "never" },
  { "denied", "kernel", "platform", "host_kernel", "Kernel's interface does not let the process write",
    "Run it with the capability that it needs, or switch the setting off in the container.",
    "failed to write /sys/fs/cgroup/cgroup.procs: Permission denied",
    restart = "never" },
  { "denied", "shared_memory", "platform", "host_memory", "Shared memory of another user is in the way",
    "Remove what dead jobs left in /dev/shm, or let each job use names of its own.",
    "OSError: cannot open /dev/shm/sem.loader: Permission denied",
    restart = "elsewhere" },
  { "denied", "file", "user", "user_config", "User may not use the path",
    "Correct the path, or its owner and mode; compare with the user that the job runs as.",
    "error: cannot create /data/out/model.bin: Permission denied",
    restart = "never" },
  { "missing", "accelerator", "platform", "driver", "Device is not there",
    "Load the driver on this host; pass the device into the container.",
    "RuntimeError: failed to open /dev/nvidia-uvm: No such file or directory",
    restart = "elsewhere" },
  { "missing", "adapter", "platform", "network", "Network adapter is not there",
    "Load the RDMA driver on this host; pass /dev/infiniband into the container.",
    "fatal: open /dev/infiniband/rdma_cm: No such file or directory",
    restart = "elsewhere" },
  { "missing", "runtime", "platform", "platform", "Service of the host is not there",
    "Start the service that makes this socket or folder, or mount it into the container.",
    "failed to dial /run/containerd/containerd.sock: no such file or directory",
    restart = "elsewhere" },
  { "missing", "file", "user", "user_config", "Path does not exist",
    "Correct the path, and look whether the host or container mounts it.",
    "error: cannot open /data/train/index.bin: No such file or directory",
    restart = "never" },
  { "no_device", "accelerator", "platform", "driver", "Driver does not know the device",
    "Look at the kernel's log of this host: driver, device and its last errors.",
    "Error: could not open /dev/nvidia3: No such device",
    restart = "elsewhere" },
  { "no_memory", nil, "user", "host_memory", "Host memory could not be allocated",
    "Ask for more host memory, or load less at once; check the limits of the job.",
    "fatal: mmap of 4294967296 bytes failed: Cannot allocate memory",
    restart = { "never", "same" } },
  { "refused", "peer", "platform", "network", "Service does not listen",
    "Look whether the service runs on that host and port, and at the firewall.",
    "Error: dial tcp 10.0.0.4:7080: connect: connection refused",
    restart = "later" },
  { "timed_out", "peer", "platform", "network", "Host does not answer",
    "Look whether the host is up, and at route and firewall.",
    "fatal: connect to 10.0.0.4:6443: Connection timed out",
    restart = "later" },
  { "no_route", "peer", "platform", "network", "Host cannot be reached",
    "Check route, interface and firewall between the two hosts.",
    "failed to connect to 10.0.0.4:7080: No route to host",
    restart = "later" },
  { "no_name", "peer", "platform", "network", "Name cannot be resolved",
    "Check the name, and name resolution on this host (DNS, /etc/hosts).",
    "error: could not contact head-0.train.svc:6379: Name or service not known",
    restart = "later" },
  { "in_use", nil, "user", "user_config", "Port is in use",
    "Take another port, or end the process of the last run that holds it.",
    "fatal: bind to 0.0.0.0:8265 failed: Address already in use",
    restart = "same" },
}

for _, row in ipairs(rows) do
  local error, object = errors[row[1]], row[2] and objects[row[2]]
  -- The object before or behind the error, and the word for a failure anywhere before the later of the two.
  -- A repetition that is counted costs more than one that is not.
  local wordings
  if object then
    wordings = { fails .. [[.*?]] .. object .. [[.{0,120}?]] .. error,
      object .. [[.{0,40}]] .. fails .. [[.*?]] .. error,
      fails .. [[.*?]] .. error .. [[.{0,80}?]] .. object }
  else
    wordings = { fails .. [[.*?]] .. error, error .. [[.{0,80}]] .. fails }
  end
  -- A summary that counts none.
  local except = { handled, [[(?i)\b(?:fail(?:ed|ures?)?|errors?|denied|in use|refused)\s*[=:]\s*0\b]] }
  if row[1] == "missing" then except[#except + 1] = known end
  -- Paths that are more than a file.
  if row[2] == "file" then except[#except + 1] = [[(?:^|[\s'"=(:,<\[])/(?:dev|(?:var/)?run|sys|proc)/]] end
  rule {
    id = "process.errno." .. row[1] .. "." .. (row[2] or "any"), engine = 1, restart = row.restart,
    title = row[5], category = row[3],
    component = row[4], severity = "error", says = "errno", blames = "few",
    match = { regex = wordings, except = except },
      remedy = row[6], action = "check",
    examples = { hit = { row[7] }, miss = { row[7] .. ", retrying in 5 s", "errno table: " .. row[1] } },
  }
end
