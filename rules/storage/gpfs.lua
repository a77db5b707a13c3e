-- IBM Storage Scale (GPFS): expelled from the cluster, leases, unmounts, disks, waiters.

local function gpfs(row)
  rule {
    id = "storage.gpfs." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = "platform",
      component = "storage",
    severity = row.severity or "error", action = row.action or "check", role = row.role,
      symptom = row.symptom or "crash",
    source = { "log", "kernel" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

gpfs {
  id = "expelled", title = "Host was expelled from the GPFS cluster", severity = "fatal", action = "isolate",
  regex = { [[(?i)Lost membership in cluster]],
    [[(?i)The node \S+(?: \S+)? (?:in cluster \S+ )?(?:has been|is being|was) expelled]],
    [[(?i)This node (?:has been|was) expelled from (?:the )?cluster]],
    [[(?i)Unable to contact any quorum nodes]] },
  remedy = "Check the network between this host and the cluster manager, then start GPFS again on it.",
  hit = { "mmfs: [E] Lost membership in cluster gpfs.site. Unmounting file systems.",
    "mmfs: [E] The node 10.3.0.7 gpu07 in cluster gpfs.site has been expelled from the cluster" },
  miss = { "mmfs: [N] Node 10.3.0.7 (gpu07) joined the cluster." },
}
gpfs {
  id = "lease", title = "GPFS lease of this host ran out", symptom = "hang",
  regex = { [[(?i)Disk lease (?:period )?(?:expired|overdue)]], [[(?i)lease renewal is overdue]],
    [[(?i)mmfs\S* .*Bad TCP state detected]] },
  remedy = "Check the storage network of this host; it will be expelled if the lease is not renewed.",
  hit = { "mmfs: [N] Disk lease period expired 1.320 seconds ago in cluster gpfs.site. Attempting to " ..
    "reacquire the lease." },
  miss = { "mmfs: [N] Disk lease reacquired in cluster gpfs.site." },
}
gpfs {
  id = "unmounted", title = "GPFS unmounted a file system after an error", severity = "fatal",
  regex = { [[(?i)File System (?P<fs>\S+) (?:was )?unmounted by the system with return code]],
    [[(?i)GPFS: 6027-\d+ .*unmounted]], [[(?i)mmfs.*MMFS_FSSTRUCT]] },
  remedy = "Read the return code, check disks (mmlsdisk) and mount again.",
  hit = { "mmfs: [E] File System scratch unmounted by the system with return code 217 reason code 0" },
    miss = { "mmfs: [I] Command: mount scratch" },
}
gpfs {
  id = "disk", restart = "later", title = "GPFS lost a disk",
  regex = { [[(?i)mmfs\S* .*Disk failure\. +Volume]], [[(?i)Too many disks are unavailable]],
    [[(?i)MMFS_DISKFAIL]] },
  remedy = "Check the server of this disk (mmlsdisk, mmnsddiscover).",
  hit = { "mmfs: [E] Disk failure. Volume scratch. rc = 5. Physical volume nsd12." },
    miss = { "mmfs: [I] Disk nsd12 is up" },
}
gpfs {
  id = "waiters", restart = "later", title = "GPFS operations wait for very long", symptom = "hang",
  regex = { [[(?i)Unexpected long waiters? detected]], [[(?i)mmfs\S* .*deadlock detected]],
    [[Deadlock detected.*GPFS]] },
  remedy = "Look at mmdiag --waiters on the node in the line and at the load of the disks.",
  hit = { "mmfs: [A] Unexpected long waiters detected: 0x7F1 thread 3211 RPC wait",
    "mmfsd: [A] Deadlock detected" }, miss = { "mmfs: waiters: none" },
}
