-- Losses and gradients that are no numbers, where the program or framework says so.

local function number(row)
  rule {
    id = "numeric." .. row.id, engine = 1, title = row.title, category = "user", component = "numeric",
    severity = row.severity or "fatal", symptom = "numeric", general = row.general, window = row.window,
    when = row.when,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy or
      "Go back to the last good checkpoint; look at the data of that step, learning rate and precision; " ..
          "one rank alone: check its GPU.",
    action = "rollback", examples = { hit = row.hit, miss = row.miss },
  }
end

number {
  id = "nan.detected", title = "Program stopped because loss or gradients are no numbers",
  regex = { [[(?i)(?:Error|Exception|assert)\w*: .{0,120}\b(?:loss|grad(?:ient)?s?|norm|output|]] ..
      [[activation)\w*\b.{0,60}\b(?:is |are |returned |contains? |has |became )?(?:nan|inf|non-?finite|]] ..
      [[not finite)\b]],
    [[(?i)\bfound (?:nan|inf) in (?:local )?(?:forward loss|grad norm|param)]],
    [[Unexpected result (?:nan|inf|-inf) ?\(message=]], [[FloatingPointError: (?P<what>\S.*)]],
    [[Function '\w+' returned nan values in its \d+th output]],
    [[(?i)loss (?:is|was|became) (?:nan|inf|non-?finite|not finite)[,!. ]+.{0,40}(?:stop|exit|abort|]] ..
        [[terminat)]], [[Detected nan and/or inf values in `?\S+]],
    [[(?i)(?:nan|inf|non-finite) (?:loss|grad(?:ient)?(?: norm)?)\b.{0,40}(?:encountered|detected|]] ..
        [[found).{0,40}(?:stop|exit|abort|terminat|rais)]] },
  except = { [[(?i)check_for_nan|nan_check|skipping (?:step|iteration|batch)|=True|=False]] },
  hit = { "AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3",
    "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    "Loss is nan, stopping training",
    "FloatingPointError: invalid value (nan) encountered in jit(train_step)" },
  miss = { "check_for_nan_in_loss_and_grad ... True", "number of nan iterations:   0 |" },
}
-- One line may be a skipped step; it has to stay so. Progress lines come from one rank or from all of them.
-- The separators are written out: "loss: nan" is a rare literal, "loss" stands in every progress line.
number {
  id = "nan.stays", title = "Loss stays NaN or infinite", severity = "error",
  window = { by = "rank", span = "30m", at_least = 3 },
  regex = { [[(?i)loss(?:: |=| = |': |": |:)(?:nan|inf)\b]], [[(?i)loss(?:: |=)(?:tensor\(|-)(?:nan|inf)\b]],
    [[(?i)loss (?:is|was|became|value:|value =) (?:nan|inf)\b]], [[(?i)\bnon-?finite (?:training )?loss\b]] },
  hit = { "step 101 loss: nan\nstep 102 loss: nan\nstep 103 loss: nan\nstep 104 loss: nan\nstep 105 " ..
      "loss: nan",
    "{'loss': nan, 'step': 1}\n{'loss': nan, 'step': 2}\n{'loss': nan, 'step': 3}\n{'loss': nan, " ..
        "'step': 4}\n{'loss': nan, 'step': 5}" },
  miss = { "step 101 loss: nan\nstep 102 loss: 2.31", "loss: infinitesimal" },
}
number {
  id = "nan.gradient", title = "Gradient norm stays NaN or infinite", severity = "error",
  window = { by = "rank", span = "30m", at_least = 5 },
  regex = { [[(?i)grad\w*[ _]?norm(?:: |=| = |': |": )(?:nan|inf)\b]],
    [[(?i)grad(?:ient)?s (?:are|became) (?:nan|inf|non-?finite)\b]] },
  hit = { "grad norm: nan |\ngrad norm: nan |\ngrad norm: nan |\ngrad norm: nan |\ngrad norm: nan " ..
      "|\ngrad norm: nan |\n" ..
    "grad norm: nan |\ngrad norm: nan |\ngrad norm: nan |\ngrad norm: nan |" },
  miss = { "grad norm: inf |\ngrad norm: 3.1 |" },
}
number {
  id = "nan.iterations", title = "Iterations with NaN are counted", severity = "error",
  window = { by = "rank", span = "30m", at_least = 3 },
  regex = { [[number of nan iterations:\s+(?P<n>[1-9]\d*)]] },
  hit = { "number of nan iterations:   1 |\nnumber of nan iterations:   2 |\nnumber of nan iterations: " ..
      "  3 |" },
  miss = { "number of nan iterations:   0 |\nnumber of nan iterations:   0 |\nnumber of nan " ..
      "iterations:   0 |" },
}
-- A loss of zero in all digits while the gradient is gone is fp16 that overflowed (transformers prints it
-- so).
number {
  id = "nan.zero_loss", title = "Loss is exactly zero and the gradient no number", severity = "error",
  window = { by = "rank", span = "30m", at_least = 3 },
  regex = { [['loss': 0\.0, 'grad_norm': (?:nan|inf|0\.0)\b]] },
  hit = { "{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.1}\n{'loss': 0.0, 'grad_norm': nan, 'epoch': " ..
      "0.2}\n{'loss': 0.0, 'grad_norm': nan, 'epoch': 0.3}" },
  miss = { "{'loss': 2.1, 'grad_norm': 0.7, 'epoch': 0.1}" },
}
