-- Loss scales at their end, steps that are skipped for ever, gradients that explode. The first overflows of a
-- run are how a scale is found: they only count with what follows.

local function scale(row)
  rule {
    id = "numeric." .. row.id, engine = 1, restart = row.restart or { "never", "older" },
    title = row.title, category = "user", component = "numeric",
    severity = row.severity or "fatal", symptom = "numeric", window = row.window, when = row.when,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy or
      "Go back to the last good checkpoint; lower the learning rate, look at the data of those steps, or " ..
          "use bf16.",
    action = row.action or "rollback", examples = { hit = row.hit, miss = row.miss },
  }
end

scale {
  id = "scale.exhausted", title = "Loss scale is at its minimum and gradients still overflow",
  regex = { [[(?i)loss scale already at minimum - cannot decrease scale]],
    [[(?i)minimum loss scale reached \(]],
    [[(?i)loss scale (?:has )?(?:reached|hit|fell (?:below|to)) (?:the |its )?minimum]],
    [[Your loss is probably exploding\. Try lowering the learning rate]] },
  hit = { "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
    "FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding." },
  miss = { "[deepscale] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 256, reducing to 128.0" },
}
scale {
  id = "scale.overflow", restart = "same",
  title = "Steps were skipped for overflow", severity = "info", action = "none",
  regex = { [[OVERFLOW!.*Skipping step]], [[Gradient overflow\.\s+Skipping step]],
    [[number of skipped iterations:\s+[1-9]\d*]] },
  remedy = "Normal in a run's first steps.",
  hit = { "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768" },
  miss = { "number of skipped iterations:   0 |" },
}
-- Megatron's progress line. A loss near that of an untrained model (a vocabulary's log is 10 to 12) together
-- with a gradient norm beyond 1e5, long after the start: the run diverges. Clipping makes norms this large
-- harmless only while the loss stays low, so both are asked for; norms of healthy fp16 runs reach some 1e4.
scale {
  id = "gradient.explosion", restart = "older",
  title = "Loss is back at its start and gradients explode", severity = "error",
  regex = { [[iteration\s+(?P<iteration>\d+)/.*\|\s*(?:lm )?loss: (?P<loss>[\d.]+E[+-]\d+) \|.*grad ]] ..
      [[norm: (?P<norm>\d+\.\d+)]] },
  when = function(event)
    local iteration, loss, norm = text.number(event.iteration), text.number(event.loss),
    text.number(event.norm)
    return iteration ~= nil and loss ~= nil and norm ~= nil and iteration > 1000 and loss > 6.5 and norm > 1e5
  end,
  hit = { " iteration     7010/  159576 | consumed samples: 2618 | learning rate: 6.000E-05 | lm loss: " ..
      "1.142026E+01 | loss scale: 2048.0 | grad norm: 219645.978 | num zeros: 0.0 |" },
  miss = { " iteration    43680/  311541 | consumed samples: 2570 | learning rate: 9.135E-05 | lm " ..
      "loss: 2.635663E+00 | loss scale: 131072.0 | grad norm: 17224.723 | num zeros: 0.0 |" },
}
-- After the first thousand iterations a printed interval whose loss is left out had only skipped steps.
scale {
  id = "scale.no_loss", title = "No step of a whole interval counted: all were skipped", severity = "error",
  window = { by = "rank", span = "2h", at_least = 3 },
  regex = { [[iteration\s+(?P<iteration>\d{4,})/.*\| global batch size:\s+\d+ \| loss scale: \S+ \|]] ..
      [[.*number of skipped iterations:\s+[1-9]\d*]] },
  hit = { " iteration 9027/ 159576 | x | global batch size:   192 | loss scale: 8192.0 | grad norm: " ..
      "2.1 | number of skipped iterations:   1 |\n" ..
    " iteration 9028/ 159576 | x | global batch size:   192 | loss scale: 4096.0 | grad norm: 2.1 | " ..
        "number of skipped iterations:   1 |\n" ..
    " iteration 9029/ 159576 | x | global batch size:   192 | loss scale: 2048.0 | grad norm: 2.1 | " ..
        "number of skipped iterations:   1 |" },
  miss = { " iteration 3/ 159576 | x | global batch size:   192 | loss scale: 8192.0 | grad norm: 2.1 " ..
      "| number of skipped iterations:   1 |" },
}
