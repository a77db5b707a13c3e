-- NFS and other network mounts seen from the client: server silent, handle stale, mount lost.

-- A line of the kernel at a second, for examples.
local function at(second, text)
  return string.format("Nov 21 02:12:%02d node-3 kernel: %s\n", second, text)
end

local function nfs(row)
  rule {
    id = "storage." .. row.id, engine = 1, restart = row.restart or "later",
    title = row.title, category = row.category or "platform",
      component = "storage",
    severity = row.severity or "error", action = row.action or "check", general = row.general,
      role = row.role, symptom = row.symptom, recovery = row.recovery, blames = row.blames,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

nfs {
  id = "nfs.no_answer", title = "NFS server does not answer", symptom = "hang",
  recovery = { rule = "storage.nfs.ok", same = "server", within = "30s" },
  regex = { [[nfs: server (?P<server>\S+) not responding, (?:still trying|timed out)]],
    [[NFS server (?P<server>\S+) not responding]],
    [[lockd: server (?P<server>\S+) not responding]], [[rpcbind: server (?P<server>\S+) not responding]] },
  remedy = "Check the file server and the network to it; tasks that touch the mount stand still until it " ..
    "answers.",
  hit = { "nfs: server 10.1.0.5 not responding, still trying",
    "nfs: server filer3 not responding, timed out",
    at(0, "nfs: server filer3 not responding, still trying") .. at(50, "nfs: server filer3 OK"),
    at(0, "nfs: server filer3 not responding, still trying") .. at(9, "nfs: server filer4 OK") },
  miss = { "nfs: server 10.1.0.5 OK",
    at(0, "nfs: server filer3 not responding, still trying") .. at(9, "nfs: server filer3 OK") },
}
nfs {
  id = "nfs.ok", restart = "same", title = "NFS server answers again", severity = "info", action = "none",
  regex = { [[nfs: server (?P<server>\S+) OK]] },
  remedy = "None.",
  hit = { "nfs: server 10.1.0.5 OK" }, miss = { "nfs: server 10.1.0.5 not responding, still trying" },
}
nfs {
  -- The server or the mount, never the host that read from it.
  id = "nfs.stale", title = "File on a network mount is gone or was replaced (stale handle)",
    severity = "fatal", blames = "job",
  regex = { [[Stale (?:NFS )?file handle]], [[\[Errno 116\]|\bESTALE\b]] },
  remedy = "Open the file again: it was replaced or its export changed. Keep locks, logs and caches that " ..
    "many hosts write off NFS.",
  hit = { "OSError: [Errno 116] Stale file handle: '/nfs/run/train.log'",
    "ls: cannot access '/data': Stale NFS file handle" },
  miss = { "OSError: [Errno 2] No such file or directory: '/nfs/run/train.log'" },
}
nfs {
  id = "nfs.mount", title = "Network file system could not be mounted", severity = "fatal", action = "fix",
  regex = { [[mount\.(?:nfs4?|lustre|cifs|ceph|beegfs|gpfs): .*(?:timed out|access denied|failed|]] ..
    [[refused|No route to host|No such device|Protocol not supported)]],
    [[mount: .*(?:wrong fs type, bad option, bad superblock|special device \S+ does not exist|]] ..
      [[mount point does not exist)]],
    [[(?i)check_fs_mount(?:_rw)?: .*(?:not mounted|is not)]] },
  remedy = "Check the server's export, the mount's options and the network; drain the host until it is " ..
    "mounted.",
  hit = { "mount.nfs: access denied by server while mounting filer3:/export/data",
    "nhc: Health check failed: check_fs_mount: /scratch not mounted" },
  miss = { "mount.nfs: mounting 10.1.0.5:/data" },
}
nfs {
  id = "nfs.state", title = "NFS client lost its locks or its state",
  regex = { [[NFS: (?:state manager: .*failed|nfs4_reclaim_open_state: .*(?:Lock reclaim failed|]] ..
    [[unhandled error)|v4 server .* (?:returned a bad sequence-id|does not accept raw))]],
    [[nfs4_reclaim_open_state: Lock reclaim failed]], [[NFS: .*lost \d+ locks]] },
  remedy = "Restart what held the locks on this mount.",
  hit = { "NFS: nfs4_reclaim_open_state: Lock reclaim failed!",
    "NFS: state manager: lease expired failed on NFSv4 server filer3 with error 10038" },
  miss = { "NFS: Registering the id_resolver key type" },
}
nfs {
  -- A job whose locks have worked lost its lock server.
  id = "nfs.locks", restart = { "never", "later" },
  title = "File locks do not work on this file system", severity = "fatal", action = "fix",
  regex = { [[(?i)(?:flock|fcntl|lockf|file lock\w*|H5Fopen|]] ..
    [[unable to lock file).{0,60}(?:No locks available|Function not implemented|]] ..
      [[Operation not supported|errno = (?:37|38)\b)]],
    [[\[Errno 37\] No locks available]], [[\bNo locks available\b]] },
  remedy = "Put lock files on a local disk, or mount with locking (HDF5_USE_FILE_LOCKING=FALSE for HDF5).",
  hit = { "OSError: [Errno 37] No locks available",
    "OSError: unable to lock file, errno = 38, error message = 'Function not implemented'" },
  miss = { "acquired lock on /cache/x.lock",
    "BlockingIOError: unable to lock file, errno = 11, error message = 'Resource temporarily unavailable'" },
}
nfs {
  id = "endpoint", title = "Mount lost its server: end point closed", severity = "fatal",
  regex = { [[Transport endpoint is not connected]], [[Cannot send after transport endpoint shutdown]],
    [=[\[Errno 10[78]\]]=] },
  except = { [[(?i)socket|recv|tcp|peer]] },
  remedy = "Remount: the FUSE daemon died (107) or the client was evicted by Lustre (108).",
  hit = { "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/s3/data'",
    "OSError: [Errno 108] Cannot send after transport endpoint shutdown" },
  miss = { "socket shutdown: Transport endpoint is not connected" },
}
nfs {
  id = "ceph", title = "Ceph client cannot reach its cluster", symptom = "hang",
  regex = { [[ceph: mds\d+ (?:hung|rejected session|caps stale|reconnect denied)]],
    [[libceph: (?:osd|mds|mon)\d+ (?:\(\d+\)(?P<server>\S+) )?.*(?:socket (?:closed|error)|]] ..
      [[connect(?:ion)? (?:error|failed)|down)]],
    [[HEALTH_ERR]], [[\bceph\S*: .*(?:blocklisted|blacklisted|session was evicted)]],
      [[libceph: .*session lost]] },
  remedy = "Check the Ceph cluster's health and the storage network.",
  hit = { "ceph: mds0 hung", "libceph: osd14 (1)10.2.0.9:6801 socket error on write" },
    miss = { "libceph: mon0 (1)10.2.0.4:6789 session established" },
}
nfs {
  id = "parallel", title = "Parallel file system's client lost its servers", symptom = "hang",
  regex = { [[(?i:beegfs)(?:-client)?\S*: .*(?:Unable to connect|Connect(?:ion)? .*failed|]] ..
    [[Communication error|Retrying communication)]],
    [[(?i)\bweka\w*\b.{0,60}\b(?:disconnected|lost|timed out|unavailable|unreachable|IO hang|hung IO)\b]],
    [[\b\d-(?P<volume>\w[\w.-]*)-client-\d+: (?:server \S+ has not responded in the last|]] ..
      [[disconnected from|connection to \S+ failed)]],
      [[(?i)(?:orangefs|pvfs2|panfs|vastnfs)\S*: .*(?:timed out|lost connection|not responding)]],
    [[(?i)mfsmount\S*\[?.*(?:can't connect|connection lost|registration error|timeout)]] },
  remedy = "Check the storage servers and the network to them.",
  hit = { "beegfs-client[911]: Connect failed on all available routes: Retrying communication with " ..
    "storage node",
    "wekafs: lost connection to backend" },
  miss = { "beegfs-client[911]: Mount successful" },
}
nfs {
  id = "daos", restart = "never",
  title = "DAOS could not register a buffer with the network: its limit is reached",
    severity = "fatal", action = "mitigate",
  regex = { [[na_ofi_mem_register\(\).*failed]],
    [[DAOS\[.*(?:fi_mr_\w+\(\) failed|DER_(?:NOMEM|UNREACH|TIMEDOUT|NOSPACE|EXCLUDED))]] },
  remedy = "Use fewer, larger buffers for I/O or fewer ranks per node; no disk is full.",
  hit = { "DAOS[7567/7567/0] external ERR mercury->mem na_ofi_mem_register() fi_mr_enable() failed, rc: " ..
    "-28 (No space left on device), mr_reg_count: 15677" },
  miss = { "DAOS[7567/7567/0] external WARN mercury->cls hg_core_init retry" },
}
nfs {
  id = "object", title = "Object store refuses or loses requests", symptom = "slowdown",
  regex = { [[(?i)an error occurred \((?:SlowDown|503|RequestTimeout|InternalError|ServiceUnavailable)\)]],
    [[(?i)Please reduce your request rate]],
    [[(?i)(?:s3|gcs|obs|oss|blob)\S* .{0,60}(?:exceeded .{0,20}retries|too many requests|]] ..
      [[503 Service Unavailable)]] },
  remedy = "Lower the number of readers or spread the keys; retry with back-off.",
  hit = { "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject " ..
    "operation (reached max retries: 4): Please reduce your request rate." },
  miss = { "botocore.exceptions.ClientError: An error occurred (404) when calling the HeadObject " ..
    "operation: Not Found" },
}
