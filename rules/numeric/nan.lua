-- Losses and gradients that are no numbers, where the program or framework says so.

local function number(row)
  rule {
    id = "numeric." .. row.id, engine = 1, restart = row.restart or { "never", "older" },
    title = row.title, category = "user", component = "numeric",
    severity = row.severity or "fatal", symptom = "numeric", general = row.general, says = row.says,
    window = row.window,
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
    [[Unexpected result (?:nan|inf|-inf) ?\(message=]], [[FloatingPointError: (?P<what>\S.*)]],
    [[Function '\w+' returned nan values in its \d+th output]],
    -- Sampling from what a diverged model gives.
    [[probability tensor contains either `inf`, `nan` or element < 0]],
    [[to satisfy the constraint \w+\(.*, but found invalid values]],
    [[\bNanLossDuringTrainingError\b]], [[(?i)\bmodel diverged with loss ?= ?(?:nan|inf)]],
    [[(?i)loss (?:is|was|became) (?:nan|inf|non-?finite|not finite)[,!. ]+.{0,40}(?:stop|exit|abort|]] ..
      [[terminat)]], [[Detected nan and/or inf values in `?\S+]],
    [[(?i)(?:nan|inf|non-finite) (?:loss|grad(?:ient)?(?: norm)?)\b.{0,40}(?:encountered|detected|]] ..
      [[found).{0,40}(?:stop|exit|abort|terminat|rais)]] },
  except = { [[(?i)check_for_nan|nan_check|skipping (?:step|iteration|batch)|=True|=False]] },
  hit = { "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    "Loss is nan, stopping training", "ERROR:tensorflow:Model diverged with loss = NaN.",
    "FloatingPointError: invalid value (nan) encountered in jit(train_step)" },
  miss = { "check_for_nan_in_loss_and_grad ... True", "number of nan iterations:   0 |" },
}
-- A check of one rank's own values, before they are shared: a sample, or a GPU that computes wrongly.
number {
  id = "nan.local", restart = { "unknown", "older" },
  title = "A rank found that its own loss or gradients are no numbers",
  regex = { [[(?i)(?P<place>\brank \d+: )?\bfound (?:nan|inf) in (?:local )?(?:forward loss|grad norm|]] ..
    [[param)]] },
  except = { [[(?i)check_for_nan|nan_check|skipping (?:step|iteration|batch)|=True|=False]] },
  hit = { "AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3" },
  miss = { "check_for_nan_in_loss_and_grad ... True" },
}
-- Trainers' lines of numbers: {'loss': 0.0, 'grad_norm': nan, ...}, "grad_norm": "nan", grad_norm=NaN. One
-- step whose gradient is no number is how mixed precision finds its loss scale. It is a fault with a loss
-- that is none either (0.0 is what a filter of NaN prints, a large one what came before), or in line after
-- line.
local norm = [[(?i)\b(?:grad(?:ient)?s?[ _/]?norm|gnorm|global_norm)\b["']?(?:\s*[:=]\s*|]] ..
  [[\s+)["']?(?:tensor\()?]]
local no_loss = [[(?:nan|-?inf|0(?:\.0+)?|[1-9]\d{4,}(?:\.\d+)?|\d(?:\.\d+)?e\+?(?:0?[5-9]|[1-9]\d))]]
number {
  id = "nan.step", title = "Loss and gradient norm are no numbers",
  regex = { [[(?i)\bloss["']?\s*[:=]\s*["']?(?:tensor\()?]] .. no_loss .. [[(?:[^\w.].{0,80})??]] .. norm ..
    [[nan\b]] },
  hit = { "{'loss': 0.0, 'grad_norm': nan, 'learning_rate': 0.000265, 'epoch': 5.27}",
    "{\"loss\": \"153204.2\", \"grad_norm\": \"nan\", \"learning_rate\": \"0.0002\"}",
    "step: 10 | loss: nan | grad_norm=NaN", "{'loss': 1.2e+08, 'grad_norm': nan, 'epoch': 0.02}" },
  miss = { "{'loss': 2.31, 'grad_norm': nan, 'learning_rate': 0.000265, 'epoch': 0.01}",
    "{'loss': 0.0, 'grad_norm': 1.2e-09, 'learning_rate': 0.000265}",
    "{'loss': 0.013, 'grad_norm': nan, 'learning_rate': 0.000265}" },
}
number {
  id = "nan.once", restart = "same",
  title = "Gradient norm was no number", severity = "warning", says = "notice",
  regex = { norm .. [[nan\b]] },
  remedy = "Mixed precision skips such a step now and then; if it comes again, look at the learning " ..
    "rate, the " ..
    "data of that step, and precision.",
  hit = { "{'loss': 0.2096, 'grad_norm': nan, 'learning_rate': 0.00026, 'epoch': 5.38}",
    "'grad_norm': nan," },
  miss = { "{'loss': 0.2096, 'grad_norm': 1.5, 'learning_rate': 0.00026}" },
}
number {
  id = "nan.gradient", title = "Gradient norm is no number in step after step", severity = "error",
    general = true,
  window = { by = "rank", span = "24h", at_least = 3 },
  regex = { norm .. [[nan\b]] },
  hit = { string.sub(([[
{'loss': 2.31, 'grad_norm': nan, 'learning_rate': 0.000265, 'epoch': 0.01}
{'loss': 2.29, 'grad_norm': nan, 'learning_rate': 0.000265, 'epoch': 0.02}
{'loss': 2.28, 'grad_norm': nan, 'learning_rate': 0.000265, 'epoch': 0.03}
]]), 1, -2), "step 1 gnorm nan\nstep 2 gnorm nan\nstep 3 gnorm nan" },
  miss = { "{'loss': 2.31, 'grad_norm': nan, 'epoch': 0.01}\n{'loss': 2.3, 'grad_norm': 1.7, 'epoch': 0.02}",
    "step 1 grad_norm inf\nstep 2 grad_norm inf\nstep 3 grad_norm inf",
    "check_nan_in_grad_norm: True\ncheck_nan_in_grad_norm: True\ncheck_nan_in_grad_norm: True" },
}
