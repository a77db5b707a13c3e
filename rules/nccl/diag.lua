-- What NCCL's own diagnostics (2.31 and later) and its monitor of progress (2.32) say. "[OK]" is no hint, and
-- "[INFO]" is no more than one: it ends no job.

local function hint(row)
  rule {
    id = "nccl.diag." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category,
    component = row.component, severity = row.severity or "warning", symptom = row.symptom or "other",
    blames = row.blames or "few", match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = "check", examples = { hit = row.hit, miss = row.miss },
  }
end

-- One line for each value. The ranks of a minority are those to look at.
hint {
  id = "environment", title = "Ranks have different settings of NCCL", category = "user",
  component = "user_config", blames = "job",
  regex = { [[NCCL DIAG \[INFO\] +NCCL environment: (?P<setting>NCCL_\w+=.*) on rank\(s\) ]] ..
    [[(?P<ranks>\{[^}]*\})]] },
  remedy = "Give all ranks the value that most of them have.",
  hit = { "n3:4152 NCCL DIAG [INFO] NCCL environment: NCCL_IB_HCA=mlx5_0 on rank(s) {0,1}" },
  miss = { "n3:4152 NCCL DIAG [OK]   NCCL environment: 12 variables agree on 16 ranks" },
}
hint {
  id = "p2p", restart = "elsewhere",
  title = "Direct access between some GPUs fails NCCL's test", category = "platform",
  component = "nvlink",
  regex = { [[NCCL DIAG \[INFO\] +p2p: only (?P<passed>\d+/\d+) GPU-to-GPU peer accesses passed]] },
  remedy = "The lines near it name the pair and its path: look at that link, then at IOMMU and ACS.",
  hit = { "NCCL DIAG [INFO] p2p: only 52/56 GPU-to-GPU peer accesses passed verification" },
  miss = { "NCCL DIAG [OK]   p2p: verified P2P access in both directions between every GPU pair (56 peer " ..
    "accesses)" },
}
for _, check in ipairs {
  { "ecc", "ECC", "NCCL found ECC errors of a GPU", "hardware", "gpu_memory" },
  { "xid", "Xid/SXid", "NCCL found Xid or SXid errors of a GPU", "hardware", "gpu" },
  { "nvlink", "NVLink", "NCCL found NVLink errors or links that are down", "hardware", "nvlink" },
  { "inventory", "GPU inventory", "NCCL found a host with other GPUs than the rest", "hardware", "gpu" },
  { "driver", "driver version", "NCCL found different drivers", "platform", "driver" },
  { "topology", "rdma_topo check", "NCCL found a PCIe layout unfit for GPUDirect RDMA", "platform", "pcie",
    "same" },
} do
  hint {
    id = check[1], restart = check[6] or "elsewhere", title = check[3],
    category = check[4], component = check[5],
    regex = { [[NCCL DIAG \[INFO\] +]] .. check[2] .. [[: ]] },
    remedy = "Read the line; the health of that part of the host decides.",
    hit = { "n3:4152 NCCL DIAG [INFO] " .. check[2] .. ": 1 of 16 ranks differs" },
    miss = { "n3:4152 NCCL DIAG [OK]   " .. check[2] .. ": 16 ranks agree" },
  }
end
hint {
  id = "progress", restart = "unknown",
  title = "GPU or its copy engine does not move data", category = "unknown",
  component = "gpu", severity = "error", symptom = "hang",
  regex = { [[NCCL progress counter monitor: counter DMA still pending after (?P<limit>[\d.]+ ?s) ]] ..
    [[\(cudaDev (?P<device>\d+)]] },
  remedy = "Look for Xids of this GPU; a copy that others make is quick, so reset the GPU if it hangs alone.",
  hit = { "NCCL progress counter monitor: counter DMA still pending after 12.3s (cudaDev 3, 4 comms); the " ..
    "GPU may hang" },
  miss = { "NCCL progress counter monitor: started (cudaDev 3, 4 comms)" },
}
