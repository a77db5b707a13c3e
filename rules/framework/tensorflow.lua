-- TensorFlow's errors by what they are about, and its estimators on TPUs. (Its other errors: jax.lua.)

local function tensorflow(row)
  rule {
    id = "framework.tensorflow." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", role = row.role,
    symptom = row.symptom, match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = row.action or "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

tensorflow {
  id = "device", title = "Program places an operation on a device that is not there: <device>",
  regex = { [[Cannot assign a device for operation .*explicit device specification '(?P<device>[^']*)']],
    [[\bDevice (?P<device>/job:\S+) (?:is )?(?:not found|unknown|does not exist)\b]] },
  remedy = "Correct the device's name, or allow soft placement; count the GPUs of the job.",
  hit = { "InvalidArgumentError: Cannot assign a device for operation model/dense/kernel: Could not " ..
    "satisfy " ..
    "explicit device specification '/device:GPU:7'" },
  miss = { "Placed operation model/dense/kernel on /device:GPU:0" },
}
tensorflow {
  id = "checkpoint", title = "Checkpoint lacks a variable of the model: <key>",
  regex = { [[NotFoundError: .*\bKey (?P<key>\S+) not found in checkpoint]],
    [[Assign requires shapes of both tensors to match]] },
  remedy = "Compare the model and its options with those of the checkpoint; take another model_dir.",
  hit = { "tensorflow.python.framework.errors_impl.NotFoundError: Key dense/kernel not found in checkpoint" },
  miss = { "restoring parameters from /ckpt/model.ckpt-100" },
}
tensorflow {
  id = "lame", restart = "same", title = "A TPU worker no longer answers: <worker>", category = "unknown",
  component = "platform", severity = "error", symptom = "crash", action = "retry",
  regex = { [[\blame workers found: HeartbeatManager\((?P<worker>[^)]*)\)]],
    [[\bWorker heartbeats? (?:failed|timed out|not supported by all workers)\b]] },
  remedy = "Look whether the TPU was preempted or is in maintenance; go on from the last checkpoint.",
  hit = { "ShutdownHook: lame workers found: HeartbeatManager(/job:worker/replica:0/task:0/device:CPU:0)" },
  miss = { "Starting the heartbeat of the workers" },
}
