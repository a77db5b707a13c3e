-- Intel Gaudi: the habanalabs driver in the kernel's log.

-- A hard reset: processes that use the card are ended. (Resets between programs are debug messages.)
rule {
  id = "intel.gaudi.reset", engine = 1, title = "Gaudi card is reset by its driver", category = "hardware",
  component = "gpu", severity = "fatal", action = "isolate", source = { "log", "kernel" },
  match = { regex = { [[habanalabs (?P<card>\S+): Going to (?:reset device$|RESET device!)]] } },
  remedy = "Read the driver's lines before it; isolate the host, and replace the card if it is reset again.",
  examples = {
    hit = { "habanalabs hl0: Going to reset device", "habanalabs hl3: Going to RESET device!" },
    miss = { "habanalabs hl0: Going to reset device after release by user",
      "habanalabs hl0: Successfully loaded firmware to device" },
  },
}
