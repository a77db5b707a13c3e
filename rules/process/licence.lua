-- Licence servers that do not answer, or have no licence free at the moment.

rule {
  id = "process.licence", engine = 1, restart = "later",
  title = "Licence server gives no licence now", category = "platform", component = "platform",
  severity = "fatal", symptom = "launch_failure", blames = "job",
  match = { regex = {
    -- FlexNet: all in use; no connection; server down; time-outs.
    [[\bFlex(?:Net|LM) Licensing error: ?(?P<number>-(?:4|15|16|96|97|101)\b)]],
    [[(?i)(?:cannot|could ?n[o']t|unable to|failed to) (?:connect to|contact|reach) (?:the )?(?:\w+ )?]] ..
      [[licen[sc]e (?:server|manager|daemon)]],
    [[(?i)licensed number of users already reached]],
    [[(?i)\bno licen[sc]es? (?:is |are )?(?:currently |now )?(?:available|free)\b]] },
    except = { [[(?i)\b(?:retry(?:ing)?|warn(?:ing)?|waiting)\b]] } },
  remedy = "Check the licence server and the number of licences in use.", action = "retry",
  examples = { hit = { "FlexNet Licensing error:-15,570. System Error: 115",
      "Error: unable to connect to the license server at lic1:27000" },
    miss = { "FlexNet Licensing error:-5,357", "no license available, retrying in 60 s" } },
}
