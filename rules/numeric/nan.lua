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
    [[(?i)(?P<place>\brank \d+: )?\bfound (?:nan|inf) in (?:local )?(?:forward loss|grad norm|param)]],
    [[Unexpected result (?:nan|inf|-inf) ?\(message=]], [[FloatingPointError: (?P<what>\S.*)]],
    [[Function '\w+' returned nan values in its \d+th output]],
    [[\bNanLossDuringTrainingError\b]], [[(?i)\bmodel diverged with loss ?= ?(?:nan|inf)]],
    [[(?i)loss (?:is|was|became) (?:nan|inf|non-?finite|not finite)[,!. ]+.{0,40}(?:stop|exit|abort|]] ..
        [[terminat)]], [[Detected nan and/or inf values in `?\S+]],
    [[(?i)(?:nan|inf|non-finite) (?:loss|grad(?:ient)?(?: norm)?)\b.{0,40}(?:encountered|detected|]] ..
        [[found).{0,40}(?:stop|exit|abort|terminat|rais)]] },
  except = { [[(?i)check_for_nan|nan_check|skipping (?:step|iteration|batch)|=True|=False]] },
  hit = { "AssertionError: Rank 3: found NaN in local forward loss calculation. Device: 3",
    "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
    "Loss is nan, stopping training", "ERROR:tensorflow:Model diverged with loss = NaN.",
    "FloatingPointError: invalid value (nan) encountered in jit(train_step)" },
  miss = { "check_for_nan_in_loss_and_grad ... True", "number of nan iterations:   0 |" },
}
