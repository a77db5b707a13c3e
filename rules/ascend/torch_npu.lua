-- torch_npu: the ERR line that ends its exceptions: "[ERROR] <time> (PID:.., Device:.., RankID:..) ERRmmnnn
-- PART text".
-- mm is the part (00 PTA, 01 OPS, 02 DIST, 03 GRAPH, 04 PROF), nnn the kind.

-- The header before it ("[ERROR] time (PID:.., Device:.., RankID:..)") is no part of the message.
local head = [[^ERR0\d]]

local function err(row)
  rule {
    id = "ascend.torch_npu." .. row.id, engine = 1, restart = row.restart or "unknown",
    title = row.title, category = row.category,
      component = row.component,
    severity = row.severity or "fatal", action = row.category == "user" and "fix" or "check", general = true,
      role = row.role,
    source = { "log" }, remedy = row.remedy, match = { regex = head .. row.kinds .. [[ [A-Z]{3,8}\b]] },
    examples = {
      hit = { "[ERROR] 2024-08-18-22:15:47 (PID:23232, Device:0, RankID:0) ERR02" .. row.sample .. " DIST " ..
        row.text },
      miss = { "[ERROR] 2024-08-18-22:15:47 (PID:23232, Device:0, RankID:0) ERR02" .. row.other .. "" ..
          " DIST other",
        "ERR02" .. row.sample },
    },
  }
end

err { id = "argument", restart = "never",
  title = "Program passed torch_npu something it does not take", category = "user",
  component = "user_code", kinds = "00[1-47]",
  sample = "002", text = "invalid type", other = "200",
    remedy = "Read the exception above: type, value or device of a tensor, or an operator without NPU " ..
      "support." }
err { id = "internal", title = "torch_npu inner error", category = "framework", component = "framework",
  kinds = "005",
  sample = "005", text = "internal error", other = "002", remedy = "Report it with the exception above." }
err { id = "memory", restart = { "never", "same" },
  title = "NPU memory is used up", category = "user", component = "gpu_memory",
  kinds = "006",
  sample = "006", text = "memory error", other = "002", remedy = "Lower batch or model per NPU." }
err { id = "missing", title = "A resource torch_npu needs is missing or busy", category = "platform",
  component = "dependency", kinds = "0(?:08|09|12)",
  sample = "008", text = "not found", other = "002",
    remedy = "Read the exception above: a file, a library, a permission." }
err { id = "system", restart = "same",
  title = "A system call or wait of torch_npu failed", category = "platform",
  component = "host_kernel", kinds = "01[01]", severity = "error",
  sample = "010", text = "system call failed", other = "002", remedy = "Read the exception above." }
err { id = "hccl", title = "Collective on the NPU failed", category = "platform", component = "nccl_comm",
  kinds = "200", severity = "error", role = "cascade",
  sample = "200", text = "call hccl api failed", other = "100",
    remedy = "Read the EI or EJ code above; find the rank that failed first." }
err { id = "acl", title = "NPU runtime call failed", category = "platform", component = "driver",
  kinds = "(?:100|300)", severity = "error", role = "cascade",
  sample = "100", text = "call acl api failed", other = "200",
    remedy = "Read the Ascend error message above." }

rule {
  id = "ascend.torch_npu.force_stop", restart = "same",
  engine = 1, title = "NPU was stopped on purpose and used again",
    role = "cascade",
  category = "framework", component = "framework", severity = "error", action = "check", source = { "log" },
  match = { regex = [[NPU function error: FORCE STOP]] },
  remedy = "Look for what stopped the device: the recovery service or a failed peer.",
  examples = { hit = { "RuntimeError: NPU function error: FORCE STOP., error code is 107022" },
    miss = { "FORCE START" } },
}
rule {
  id = "ascend.torch_npu.device_mix", restart = "never",
  engine = 1, title = "Operands are on the CPU and on the NPU",
    category = "user", component = "user_code", severity = "fatal", action = "fix",
  source = { "log" },
    match = { regex = [[Expected NPU tensor, please check whether the input tensor device is correct]] },
  remedy = "Move all operands to the same device.",
  examples = { hit = { "RuntimeError: Expected all tensors to be on the same device. Expected NPU tensor, " ..
    "please check whether the input tensor device is correct." },
    miss = { "Expected all good" } },
}
