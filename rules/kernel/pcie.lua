-- PCI Express: Advanced Error Reporting, containment, hot plug, POWER's EEH, address translation.
-- Corrected errors are the link doing its work; they warn at most. "Device recovery successful" proves
-- nothing about the job.

local function pcie(row)
  rule {
    id = "kernel.pcie." .. row.id, engine = 1, restart = row.restart or "elsewhere",
    title = row.title, category = row.category or "hardware",
      component = row.component or "pcie",
    severity = row.severity or "fatal", action = row.action or "isolate", general = row.general,
      role = row.role, symptom = row.symptom,
    source = { "kernel", "log" }, remedy = row.remedy, match = { regex = row.regex, except = row.except },
    examples = { hit = row.hit, miss = row.miss },
  }
end

pcie {
  id = "aer_fatal", title = "Fatal PCIe error",
  regex = { [[(?:(?P<pci>[0-9a-f]{4}:[0-9a-f:.]+): (?:AER: )?)?PCIe Bus Error: ]] ..
      [[severity=Uncorrect(?:ed|able) \(Fatal\)]],
    [[AER: .*Uncorrect(?:ed|able) \(Fatal\) error (?:message )?received(?: from|:)? ?(?P<pci2>[0-9a-f:.]*)]],
    [[\[Hardware Error\]: +aer_uncor_severity.*fatal]] },
  remedy = "Drain the host; reseat or replace the device at this address, its riser or cable.",
  hit = { "nvidia 0000:3b:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction " ..
    "Layer, (Requester ID)",
    "pcieport 0000:3a:00.0: AER: Uncorrectable (Fatal) error message received from 0000:3b:00.0" },
  miss = { "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0" },
}
pcie {
  id = "aer_nonfatal", title = "Uncorrected PCIe error", severity = "error", action = "check",
  regex = { [[(?:(?P<pci>[0-9a-f]{4}:[0-9a-f:.]+): (?:AER: )?)?PCIe Bus Error: ]] ..
      [[severity=Uncorrect(?:ed|able) \(Non-Fatal\)]],
    [[AER: .*Uncorrect(?:ed|able) \(Non-Fatal\) error (?:message )?received(?: from|:)? ?]] ..
      [[(?P<pci2>[0-9a-f:.]*)]],
    [[AER: +\[ ?\d+\] (?:CmpltTO|MalfTLP|PoisonTLPBlocked|DLP|SDES|FCP|RxOF|CmpltAbrt|ECRC)\b]] },
  remedy = "Drain the host at the next chance; a power cycle, not the driver's recovery, is what clears it.",
  hit = { "pcieport 0000:00:01.0: AER: Uncorrected (Non-Fatal) error received: 0000:01:00.0",
    "mlx5_core 0000:01:00.0: AER: PCIe Bus Error: severity=Uncorrectable (Non-Fatal), type=Transaction Layer",
      "AER:    [14] CmpltTO                (First)" },
  miss = { "nvme 0000:02:00.0: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
    "AER:    [ 0] RxErr                  (First)" },
}
pcie {
  id = "aer_corrected", restart = "same", title = "Corrected PCIe errors", severity = "info", action = "none",
  regex = { [[PCIe Bus Error: severity=Correct(?:ed|able)]],
    [[AER: .*Correct(?:ed|able) error (?:message )?received]], [[AER: Multiple Corrected error]] },
  remedy = "None; check the link if they come in thousands.",
  hit = { "pcieport 0000:00:01.0: AER: Corrected error received: 0000:01:00.0",
    "PCIe Bus Error: severity=Corrected, type=Data Link Layer" },
  miss = { "PCIe Bus Error: severity=Uncorrected (Fatal)" },
}
pcie {
  id = "recovery_failed", title = "PCIe device did not recover",
  regex = { [[(?:AER|pcieport|DPC).*[Dd]evice recovery failed]], [[AER: can't recover]],
    [[pcie.*(?:link (?:reset|retraining) .*failed|broken device, retraining non-functional)]],
    [[PCIe link lost]], [[device is (?:not accessible|inaccessible|no longer accessible)]] },
  remedy = "Power-cycle the host; replace the device if it does not come back.",
  hit = { "pcieport 0000:80:02.0: AER: device recovery failed",
    "igb 0000:05:00.0 enp5s0: PCIe link lost, device now detached" },
  miss = { "pcieport 0000:80:02.0: AER: device recovery successful" },
}
pcie {
  id = "dpc", title = "PCIe port was shut to contain an error", severity = "fatal",
  regex = { [[DPC: containment event, status]],
    [[DPC: (?:unmasked uncorrectable|ERR_FATAL|ERR_NONFATAL|RP PIO) (?:error )?(?:detected|received)]] },
  remedy = "Drain the host; the device below this port is cut off until a reset.",
  hit = { "pcieport 0000:16:01.0: DPC: containment event, status:0x1f01 source:0x0000" },
  miss = { "pcieport 0000:16:01.0: DPC: error containment capabilities: Int Msg #0, RPExt+" },
}
pcie {
  id = "hotplug", title = "PCIe device went away",
  regex = { [[pciehp: Slot\(\S+\): (?:Link Down|Card not present|Power fault)]],
    [[pciehp \S+: .*(?:surprise|Surprise) (?:link )?down]] },
  remedy = "Reseat the device or its cable; look for loss of power.",
  hit = { "pcieport 0000:c0:01.1: pciehp: Slot(12): Link Down" },
    miss = { "pcieport 0000:c0:01.1: pciehp: Slot(12): Link Up" },
}
pcie {
  id = "no_config_space", title = "PCIe device answers no more",
  regex = { [[can't change power state from \S+ to \S+ \(config space inaccessible\)]],
    [[not ready \d+ms after .*; giving up]],
    [[Unable to change power state from \S+ to \S+, device inaccessible]] },
  remedy = "Power-cycle the host; reseat or replace the device.",
  hit = { "nvidia 0000:3b:00.0: can't change power state from D3cold to D0 (config space inaccessible)",
    "pci 0000:07:00.0: not ready 65535ms after FLR; giving up" },
  miss = { "pci 0000:07:00.0: PME# supported from D0 D3hot" },
}
pcie {
  id = "eeh", title = "POWER host froze a PCIe device after an error",
  regex = { [[EEH: (?:Frozen PHB|Recovering PHB|Unable to recover from failure|This PCI device has ]] ..
    [[failed \d+ times)]],
    [[EEH: Fenced PHB]] },
  remedy = "Read the firmware's log; replace the adapter if it freezes again.",
  hit = { "EEH: Frozen PHB#6-PE#0 detected" }, miss = { "EEH: PowerNV platform initialized" },
}
pcie {
  id = "iommu", restart = "same",
  title = "Device reached for memory it may not access", category = "platform",
    severity = "error", action = "check",
  regex = { [=[DMAR: \[(?:DMA|INTR)[^\]]*\] .*(?:Request|fault)]=], [[AMD-Vi: Event logged \[IO_PAGE_FAULT]],
    [[arm-smmu-v3 \S+: event 0x\w+ received]] },
  remedy = "Check IOMMU and ACS settings and the drivers; GPUDirect needs pass-through mode.",
  hit = { "DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x3cff0000 [fault reason 0x06] " ..
    "PTE Read access is not set",
    "nvidia 0000:41:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0023 address=0xfffffffdf8000000 " ..
      "flags=0x0008]" },
  miss = { "DMAR: IOMMU enabled", "AMD-Vi: Interrupt remapping enabled" },
}
-- Printed at boot for every device whose slot is narrower than the card; GPUs also clock the link down when
-- idle.
pcie {
  id = "limited", restart = "same",
  title = "PCIe device has less bandwidth than it could", severity = "info", action = "none",
    symptom = "slowdown",
  regex = { [[available PCIe bandwidth, limited by]] },
  remedy = "Compare with the other hosts; reseat the card where only one differs.",
  hit = { "mlx5_core 0000:5e:00.0: 63.008 Gb/s available PCIe bandwidth, limited by 8.0 GT/s PCIe x8 link " ..
    "at 0000:5d:00.0 (capable of 252.048 Gb/s)" },
  miss = { "mlx5_core 0000:5e:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)" },
}
