-- Checkpoints: writing them, reading them back, and models that do not fit them.

local function checkpoint(row)
  rule {
    id = "pytorch.checkpoint." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", says = row.says,
      role = row.role,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = row.action or "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

checkpoint {
  id = "write", restart = "later",
  title = "Checkpoint could not be written", component = "storage", category = "platform",
  regex = { [[PytorchStreamWriter failed writing file(?: (?P<file>[^\s:]+))?]],
    [[\bunexpected pos \d+ vs \d+]],
    [[RuntimeError: \[enforce fail at inline_container\.cc:\d+\] \. PytorchStreamWriter]],
    [[basic_ios::clear: iostream error]] },
  remedy = "Check space, quota and health of the file system on that host; the file is not usable.",
  hit = { "RuntimeError: [enforce fail at inline_container.cc:595] . unexpected pos 64 vs 0",
    "RuntimeError: basic_ios::clear: iostream error" },
  miss = { "saving checkpoint at iteration 5000 to /ckpt" },
}
checkpoint {
  id = "damaged", restart = "older",
  title = "Checkpoint file is damaged or incomplete", component = "storage",
  category = "platform",
  regex = { [[PytorchStreamReader failed (?:reading|finding|locating)]], [[failed finding central directory]],
    [[\bInvalid magic number; corrupt file\?]], [[unexpected EOF, expected \d+ more bytes]],
    [[SafetensorError: (?P<what>\S.*)]], [[Error while deserializing header: (?P<what>\S.*)]],
    [[storage has wrong byte size: expected]],
    [[RuntimeError: PytorchStreamReader .* file (?:not found|is corrupt)]],
    [[Unable to load weights from pytorch checkpoint file for '(?P<file>[^']+)']] },
  except = { [[(?i)no space left|StorageFull|quota exceeded|file too large|permission denied]],
    [[HeaderTooLarge|HeaderTooSmall|InvalidHeader\b|InvalidHeaderStart|does not contain tensor]] },
  remedy = "Load an earlier checkpoint; find out what interrupted the writing of this one.",
  action = "rollback",
  hit = { "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
    "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer" },
  miss = { "successfully loaded checkpoint from /ckpt at iteration 5000" },
}
checkpoint {
  id = "mismatch", title = "Checkpoint and model do not fit each other",
  regex = { [[Error\(s\) in loading state_dict for (?P<model>\w+)]],
    [[size mismatch for (?P<parameter>[\w.]+): copying a param with shape]],
    [[Missing key\(s\) in state_dict: ]], [[Unexpected key\(s\) in state_dict: ]],
    [[(?i)(?:ValueError|RuntimeError): .*loaded state dict (?:contains a parameter group|]] ..
      [[has a different number of parameter groups)]],
    [[CheckpointException.*(?:Missing key in checkpoint state_dict|[Ss]ize mismatch)]],
    [[Missing key in checkpoint state_dict: ]],
    [[SafetensorError: (?P<what>File does not contain tensor \S+)]] },
  remedy = "Compare model options, vocabulary and parallel layout with those of the checkpoint.",
  hit = { "RuntimeError: Error(s) in loading state_dict for GPTModel:",
    "\tsize mismatch for lm_head.weight: copying a param with shape torch.Size([32000, 4096]) from " ..
        "checkpoint" },
  miss = { "Some weights of BertModel were not initialized from the model checkpoint at bert-base" },
}
checkpoint {
  id = "unsafe", title = "Checkpoint holds objects that the loader refuses",
  regex = { [[Weights only load failed]], [[WeightsUnpickler error: Unsupported]],
    [[upgrade torch to at least v?2\.6 in order to use the function]] },
  remedy = "Allow the classes named, or load with weights_only=False if the file is trusted.",
  hit = { "_pickle.UnpicklingError: Weights only load failed. This file can still be loaded, to do so" },
  miss = { "FutureWarning: You are using `torch.load` with `weights_only=False`" },
}
checkpoint {
  id = "device", title = "Checkpoint was saved on a device that is not here",
  regex = { [[Attempting to deserialize object on (?:a )?(?:CUDA|MPS|NPU) device]],
    [[RuntimeError: don't know how to restore data location of]] },
  remedy = "Load with map_location, or see why this host has no (or fewer) devices.",
  hit = { "RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() " ..
      "is False.",
    "RuntimeError: Attempting to deserialize object on CUDA device 5 but torch.cuda.device_count() is 4." },
  miss = { "Loading checkpoint on device cuda:0" },
}
checkpoint {
  id = "format", title = "File is no safetensors file: <what>", component = "user_data",
  regex = { [[SafetensorError: (?P<what>.*(?:HeaderTooLarge|HeaderTooSmall|InvalidHeader\w*).*)]] },
  remedy = "Look at the first bytes of the file: a pickle, a pointer of LFS or a web page; load it as " ..
    "what " ..
    "it is, or fetch it again.",
  hit = { "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge" },
  miss = { "safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer" },
}
checkpoint {
  id = "distributed", restart = "same",
  title = "Distributed checkpoint failed on some ranks", role = "cascade",
  category = "unknown", component = "storage", severity = "error", action = "check",
  regex = { [[\bCheckpointException ranks:dict_keys\(\[(?P<ranks>[\d, ]+)\]\)]] },
  remedy = "Read the exceptions of the ranks that it lists below.",
  hit = { "torch.distributed.checkpoint.api.CheckpointException: CheckpointException " ..
    "ranks:dict_keys([0, 3])" },
  miss = { "except CheckpointException:" },
}
