-- Local disks and file systems: the kernel's block layer, NVMe, ext4, XFS, Btrfs, MD.

local function disk(row)
  rule {
    id = "kernel.fs." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = row.component or "storage",
    severity = row.severity or "error", action = row.action or "isolate", general = row.general,
      role = row.role, symptom = row.symptom,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

disk {
  id = "io_error", title = "A disk returned I/O errors",
  regex = { [[(?:blk_update_request: )?(?:critical (?:medium|target) error|I/O error), dev ]] ..
    [[(?P<disk>[a-z0-9]+), sector \d+]],
    [[Buffer I/O error on (?:dev|device) ]], [[lost async page write]], [[Medium Error]] },
  except = [[dev (?:loop|sr|fd|nbd)\d]],
  remedy = "Drain the host, check the disk's SMART data and replace it.",
  hit = { "blk_update_request: I/O error, dev sda, sector 1048576 op 0x0:(READ) flags 0x80700",
    "I/O error, dev nvme0n1, sector 8912 op 0x1:(WRITE)",
    "Buffer I/O error on dev dm-3, logical block 0, lost async page write" },
  miss = { "blk_update_request: I/O error, dev loop0, sector 0", "sd 0:0:0:0: [sda] Attached SCSI disk" },
}
disk {
  id = "nvme", title = "NVMe drive stopped answering", severity = "fatal",
  regex = { [[nvme (?P<disk>nvme\d+): (?:controller is down; will reset|Device not ready; aborting|]] ..
    [[Removing after probe failure|Device shutdown incomplete|Disabling device after reset failure|]] ..
    [[failed to set APST)]],
    [[nvme (?P<disk>nvme\d+): I/O (?:tag )?\d+ .*QID \d+ timeout, (?:disable controller|completion polled$)]],
      [[nvme nvme\d+: Abort status: 0x371]] },
  remedy = "Drain the host; update the drive's firmware or replace it.",
  hit = { "nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0x10",
    "nvme nvme2: Removing after probe failure status: -19" },
  miss = { "nvme nvme0: 64/0/0 default/read/poll queues" },
}
disk {
  id = "nvme_timeout", title = "NVMe drive answers late", severity = "warning", action = "check",
    symptom = "slowdown",
  regex = { [[nvme (?P<disk>nvme\d+): I/O (?:tag )?\d+ .*QID \d+ timeout, (?:aborting|reset controller|]] ..
    [[completion polled)]] },
  remedy = "Watch this drive; update its firmware.",
  hit = { "nvme nvme1: I/O 121 QID 4 timeout, aborting" }, miss = { "nvme nvme1: pci function 0000:c1:00.0" },
}
disk {
  id = "scsi", title = "SCSI or SATA disk fails", action = "check",
  regex = { [[ata\d+(?:\.\d+)?: (?:failed command|disabled|hard resetting link|exception Emask .*frozen)]],
    [[rejecting I/O to (?:offline|dead) device]],
    [[\[sd[a-z]+\] .*FAILED Result: hostbyte=DID_(?:NO_CONNECT|ERROR|TIME_OUT|BAD_TARGET)]],
      [[Device offlined - not ready after error recovery]] },
  remedy = "Check cable and disk; replace the disk if it fails again.",
  hit = { "ata3.00: failed command: READ FPDMA QUEUED", "sd 2:0:0:0: rejecting I/O to offline device" },
    miss = { "ata3: SATA link up 6.0 Gbps (SStatus 133 SControl 300)" },
}
disk {
  id = "readonly", title = "File system turned read-only after an error", severity = "fatal",
  regex = { [[[Rr]emounting filesystem read-only]], [[Aborting journal on device]], [[forced readonly]] },
  remedy = "Drain the host, check the disk under this file system, then repair it.",
  hit = { "EXT4-fs (sda2): Remounting filesystem read-only", "BTRFS info (device sdb): forced readonly" },
  miss = { "EXT4-fs (sda2): re-mounted. Opts: errors=remount-ro", "SQUASHFS: mounted read-only" },
}
disk {
  id = "corrupt", title = "File system is damaged",
  regex = { [[EXT[234]-fs error \(device (?P<disk>\S+)\)]],
    [[EXT4-fs \(\S+\): .*(?:Corrupt|corruption|checksum invalid)]],
    [[XFS \((?P<disk>\S+)\): .*(?:Corruption (?:detected|of in-memory data)|[Mm]etadata (?:corruption|]] ..
      [[CRC error)|log I/O error|Filesystem has been shut down|shutting down filesystem|]] ..
      [[xfs_do_force_shutdown)]],
    [[BTRFS (?:critical|error) \(device]], [[JBD2: .*(?:error|Error) ]],
      [[SQUASHFS error: (?:unable to read|zlib|xz|lzo|zstd)]] },
  remedy = "Drain the host, unmount and repair the file system; check the disk.",
  hit = { "EXT4-fs error (device sda2): ext4_find_entry:1455: inode #2: comm python3: reading directory " ..
    "lblock 0",
    "XFS (nvme0n1p1): Corruption of in-memory data (0x8) detected at xfs_trans_cancel. Shutting down " ..
      "filesystem.",
      "XFS (dm-0): log I/O error -5" },
  miss = { "EXT4-fs (sda2): mounted filesystem with ordered data mode",
    "XFS (nvme0n1p1): Ending clean mount" },
}
disk {
  id = "raid", title = "A RAID array lost a disk", action = "check",
  regex = { [[md/raid\S*: Disk failure on (?P<disk>\S+), disabling device]],
    [[md/raid\S*: .*(?:not enough operational|cannot start dirty degraded)]],
    [[(?i)megaraid\S*: .*(?:PD|VD) .*(?:failed|degraded|offline)]] },
  remedy = "Replace the disk and rebuild.",
  hit = { "md/raid1:md0: Disk failure on nvme1n1p2, disabling device." },
    miss = { "md/raid1:md0: active with 2 out of 2 mirrors" },
}
disk {
  id = "smart", title = "A disk predicts its failure", action = "check",
  regex = { [[smartd\S*: .*(?:FAILED SMART self-check|SMART Failure|Currently unreadable \(pending\)|]] ..
    [[Critical Warning)]] },
  remedy = "Replace the disk before it fails.",
  hit = { "smartd[901]: Device: /dev/sda [SAT], FAILED SMART self-check. BACK UP DATA NOW!" },
    miss = { "smartd[901]: Device: /dev/sda, SMART Usage Attribute: 194 Temperature_Celsius changed" },
}
