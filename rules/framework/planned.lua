-- Changes that somebody planned, as trainers print them. They are no fault: numbers that move after them are
-- none either. Lines of the start-up that only repeat the configuration do not count.

local function planned(row)
  rule {
    id = "framework.planned." .. row.id, engine = 1, restart = row.restart or "same",
    title = row.title, category = "user",
    component = "user_config", severity = "info", action = "none", symptom = "other",
    match = { regex = row.regex, except = row.except }, remedy = "Nothing: it was planned.",
    examples = { hit = row.hit, miss = row.miss },
  }
end

planned {
  id = "resume", title = "The training goes on from a checkpoint",
  regex = { [[successfully loaded checkpoint from .{1,300} at iteration [1-9]\d*]], -- Megatron
    [[Restoring states from the checkpoint path at \S+step=[1-9]\d*]],              -- Lightning, NeMo
    [[Continuing training from global step [1-9]\d*]],                              -- HF Trainer
    [[Loading the checkpoint at step [1-9]\d*]],                                    -- torchtitan
    [[(?i)\bresum(?:ed|ing) (?:the )?(?:training )?from (?:the )?(?:checkpoint\b|(?:global )?]] ..
      [[(?:step|iteration) [1-9])]] },
  except = [[(?i)\b(?:not|no|cannot|could|fail\w*|unable|error)\b]],
  hit = { "successfully loaded checkpoint from /ckpt/run [ t 1/2, p 1/4 ] at iteration 42000",
    "Restoring states from the checkpoint path at /ckpt/megatron_gpt--val_loss=2.1-step=5000-last.ckpt",
    "  Continuing training from global step 12000", "Loading the checkpoint at step 500.",
    "Resuming from checkpoint /ckpt/global_step4000" },
  miss = { "  Continuing training from global step 0", "Loading the checkpoint at step 0.",
    "successfully saved checkpoint at iteration 42000", "Could not resume: not resuming from checkpoint" },
}
planned {
  id = "rate", title = "The learning rate is set to another value",
  regex = { [[> overriding (?:(?:max(?:imum)?|min(?:imum)?) )?learning rate value to \S+]], -- Megatron
    [[(?i)\b(?:learning[ _]rate|lr)\b.{0,20}\b(?:overrid\w+|changed|reset|reduced|lowered|raised)\b ]] ..
      [[(?:from \S+ )?(?:to|with) \d]],
    [[(?i)\b(?:overriding|changing|resetting|reducing) (?:the )?(?:learning[ _]rate|lr)\b.{0,40}\bto \d]] },
  hit = { " > overriding learning rate value to 3e-06", "learning rate changed from 0.0003 to 0.0001",
    "Epoch 00012: reducing learning rate of group 0 to 1.0000e-05." },
  miss = { " > overriding warmup iterations value to 2000",
    "learning rate: 3.000E-04 | global batch size: 512",
    " > using checkpoint value 0.0003 for learning rate" },
}
planned {
  id = "batch", title = "The batch size changes",
  regex = {
    [[(?i)\b(?:global |micro |train(?:ing)? )?batch[ _]size (?:was |is |has been )?]] ..
      [[(?:changed|increased|ramped(?: up)?|raised|reduced|decreased) (?:from \d+ )?to \d]],
    [[(?i)\b(?:changing|increasing|ramping up|updating|reducing) (?:the )?(?:global |micro )?]] ..
      [[batch[ _]size (?:from \d+ )?to \d]] },
  hit = { "global batch size changed from 512 to 1024", "ramping up global batch size from 256 to 512" },
  miss = { "setting global batch size to 512", "| global batch size:   512 | lm loss: 2.1E+00 |" },
}
