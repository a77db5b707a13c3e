-- Space, quota, read-only and I/O errors as programs see them. Local disks as the kernel sees them:
-- rules/kernel/filesystem.lua.

local function disk(row)
  rule {
    id = "storage.disk." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "platform",
      component = row.component or "storage",
    severity = row.severity or "fatal", action = row.action or "fix", general = row.general, role = row.role,
      symptom = row.symptom, blames = row.blames,
    source = { "log", "kernel" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

-- "No space left on device" is only errno 28: other things than disks run out of space too, and have rules of
-- their own.
disk {
  id = "full", title = "File system is full",
  regex = { [[[Nn]o space left on (?:device|disk)]],
    [[not enough (?:free )?(?:disk )?space on (?:the )?disk]],
    [[\[Errno 28\]|\bENOSPC\b]],
    [[(?i)disk (?:is )?full(?:\b|$)]], [[(?i)DiskPressure.*(?:true|evict)]] },
  except = { [[cpuset\.|cgroup|\.(?:service|slice|scope)' to ']],
    [[(?i)inotify|epoll|semget|shmget|sem_open|msgget]],
    [[fi_mr_|mr_reg_count|ibv_|na_ofi|DEREG_MR|(?:QP|CQ|MR)s?\b]], [[/dev/shm|shm_open|shared memory]] },
  remedy = "Free space or move checkpoints, caches and /tmp elsewhere (TMPDIR, HF_HOME, " ..
    "TRITON_CACHE_DIR); check inodes too (df -i).",
  hit = { "OSError: [Errno 28] No space left on device: '/scratch/ckpt/iter_0001000'",
    "tar: write error: No space left on device",
    "write /var/lib/docker/tmp/GetImageBlob1234: no space left on device" },
  miss = { "fi_mr_reg failed: No space left on device",
    "Failed to set 'cpuset.cpus' attribute: No space left on device",
    "inotify_add_watch: No space left on device" },
}
-- `culprit run` asks the file systems that the last lines name.
disk {
  id = "no_inode", title = "File system of <path> has no free inode",
  regex = { [[^culprit run: the file system of (?P<path>\S+) has no free inode\b]] },
  remedy = "Delete or pack small files (df -i shows the count): its bytes are not what is used up.",
  hit = { "culprit run: the file system of /scratch has no free inode: 0 of 65536; 1.2 GB of 20 GB free" },
  miss = { "culprit run: the file system of /scratch has no room: 0 B of 20 GB free" },
}
disk {
  id = "has_room", title = "File system of <path> has room: a quota or another limit stopped the write",
  category = "user", severity = "error", general = true,
  regex = { [[^culprit run: the file system of (?P<path>\S+) has room\b]] },
  remedy = "Look at the quota of user, group and project (quota -s, lfs quota) and at the container's " ..
    "limits.",
  hit = { "culprit run: the file system of /scratch has room: 1.2 TB of 20 TB free" },
  miss = { "culprit run: the file system of /scratch has no room: 0 B of 20 GB free" },
}
disk {
  id = "shm", title = "Shared memory (/dev/shm) is full", component = "host_memory",
  regex = { [[(?:/dev/shm|shm_open|shared memory).{0,120}No space left on device]],
    [[No space left on device.{0,80}(?:/dev/shm|shared memory)]],
    [[failed to extend (?P<file>/dev/shm/\S+)]],
    [[unable to (?:write to file|mmap \d+ bytes from file) </torch_]] },
  remedy = "Give the container more shared memory (--shm-size, an emptyDir of medium Memory, --ipc=host) " ..
    "and clear files of dead jobs.",
  hit = { "NCCL WARN Error: failed to extend /dev/shm/nccl-03v824 to 4194660 bytes",
    "RuntimeError: unable to write to file </torch_4811_2907_0>: No space left on device (28)" },
  miss = { "df: /dev/shm 503G 1% used" },
}
disk {
  id = "quota", title = "Quota of the file system is used up", category = "user",
  regex = { [[Disk quota exceeded]], [[\[Errno 122\]|\bEDQUOT\b]],
    [[(?i)(?:block|file|inode) (?:limit|quota) (?:reached|exceeded)]], [[(?i)quota exceeded (?:for|on) ]] },
  except = { [[(?i)insufficient quota|exceeded quota: |api|tokens per]] },
  remedy = "Delete old checkpoints or have the quota raised; check the number of files as well as " ..
      "their size.",
  hit = { "OSError: [Errno 122] Disk quota exceeded: '/home/user/.cache/huggingface'",
    "write failed, group block limit reached." },
  miss = { "pods is forbidden: exceeded quota: team-a" },
}
disk {
  id = "readonly", restart = "elsewhere", title = "File system is read-only",
  regex = { [[Read-only file system]], [[\[Errno 30\]|\bEROFS\b]] },
  except = { [[(?i)sysctl|/proc/|/sys/|setting key]] },  -- usual in containers
  remedy = "If it should be writable: drain the host and check its disk. In a container: write to a " ..
    "mounted volume.",
  hit = { "OSError: [Errno 30] Read-only file system: '/opt/cache'" },
    miss = { "PermissionError: [Errno 13] Permission denied: '/opt/cache'" },
}
disk {
  id = "io", restart = "same", title = "Reading or writing a file failed with an I/O error", action = "check",
  regex = { [[\[Errno 5\] Input/output error]],
    [[(?:read|write|open|close|stat|fsync|access|cannot \w+) ?\S*.{0,80}: Input/output error]] },
  remedy = "Check the disk or the file server behind the path; copy what can still be read.",
  hit = { "OSError: [Errno 5] Input/output error: '/data/shard-00017.bin'",
    "cp: error reading '/data/x': Input/output error" },
  miss = { "MPICH: OFI: Input/output error on endpoint" },
}
-- The server reports it, not a disk of this host.
disk {
  id = "remote_io", restart = "later", title = "File server failed to read or write a file", action = "check",
  blames = "job",
  regex = { [[\bRemote I/O error\b]], [=[\[Errno 121\]]=] },
  remedy = "Check the file server behind the path and the network to it.",
  hit = { "OSError: [Errno 121] Remote I/O error: '/beegfs/run/ckpt.pt'" },
  miss = { "OSError: [Errno 5] Input/output error: '/data/shard-00017.bin'" },
}
disk {
  id = "no_device", restart = "elsewhere",
  title = "File's device or mount is gone", action = "check", severity = "error",
  regex = { [[\[Errno (?:6|19|112)\] (?:No such device(?: or address)?|Host is down)]], [[: Host is down$]] },
  remedy = "Mount the file system again; check the device.",
  hit = { "OSError: [Errno 112] Host is down: '/mnt/share/data'" },
    miss = { "[Errno 2] No such file or directory" },
}
-- (PyTorch's zip writer: rules/pytorch/checkpoint.lua.)
disk {
  id = "short_write", restart = "later", title = "File could not be written in full",
  regex = { [[(?i)\bshort write\b.{0,60}(?:bytes|expected)]], [[(?i)wrote only \d+ of \d+ bytes]] },
  remedy = "Check space and quota; write to a local disk and copy, or use the old serialisation, if the " ..
    "file system breaks seeks.",
  hit = { "OSError: short write: 4096 of 8192 bytes", "write failed: wrote only 4096 of 8192 bytes" },
  miss = { "PytorchStreamReader failed reading zip archive: failed finding central directory" },
}
disk {
  id = "health", title = "Health check found too little free space", severity = "error",
  regex = { [[(?i)check_fs_(?:free|used|size|inodes|ifree)\w*: .{0,80}(?:full|has only|less than|more ]] ..
    [[than|only)]],
    [[(?i)node .{0,40}(?:has|condition) DiskPressure]] },
  remedy = "Clean the file system in the line before jobs start on this host.",
  hit = { "nhc: Health check failed: check_fs_free: /tmp has only 112kB free (4096kB minimum)" },
    miss = { "check_fs_free: ok" },
}
