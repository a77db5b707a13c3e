-- Files, options and configuration: a name or value given to the program does not exist or does not fit.

local function given(row)
  rule {
    id = "python." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal",
    symptom = row.symptom, general = row.general, says = row.says,
    match = { regex = row.regex, except = row.except },
    remedy = row.remedy, action = "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

local handled = { [[(?i)\b(?:warn(?:ing)?|ignor(?:ed?|ing)|retry(?:ing)?|skip(?:ping|ped)?)\b]] }

given {
  id = "file.missing", title = "File or folder does not exist", says = "errno",
  except = { handled[1], [[: '[^']+' -> '[^']+'$]] },
  regex = { [[\bFileNotFoundError: (?:\[Errno 2\] )?(?P<what>\S.*)]],
    [[\b(?:OSError|IOError): \[Errno 2\] No such file or directory: (?P<path>\S+)]],
    [[\bNotADirectoryError: (?P<what>\S.*)]], [[\bIsADirectoryError: (?P<what>\S.*)]],
    [[can't open file '?(?P<path>[^']+)'?: \[Errno 2\] No such file or directory]] },
  remedy = "Correct the path; check that the file system is mounted on every host.",
  hit = { "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'",
    "python: can't open file '/code/train.py': [Errno 2] No such file or directory" },
  miss = { "WARNING: FileNotFoundError: no cache yet, ignored" },
}
-- Two processes write one temporary file, and one has renamed it.
given {
  id = "file.renamed", restart = "same", title = "File was gone before it could be renamed", says = "errno",
  category = "framework", component = "framework", except = handled,
  regex = { [[\bFileNotFoundError: \[Errno 2\] No such file or directory: '(?P<path>[^']+)' -> '[^']+'$]] },
  remedy = "Give each process a temporary name of its own, or let one rank write.",
  hit = { "FileNotFoundError: [Errno 2] No such file or directory: '/run7/state.tmp' -> '/run7/state.json'" },
  miss = { "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.bin'" },
}
-- The system's own answer: ranks that make one folder at once get it as well.
given {
  id = "file.made", restart = "unknown", title = "Folder or file is there already, or another rank made it",
  except = handled, says = "errno",
  regex = { [[\bFileExistsError: \[Errno 17\] (?P<what>\S.*)]] },
  remedy = "Allow overwriting or resuming, or take another folder; create it on one rank only.",
  hit = { "FileExistsError: [Errno 17] File exists: '/out/run1'" },
  miss = { "FileExistsError: /out/run1 is not empty" },
}
-- Somebody else has the lock: a process that is left from the last attempt, or another job.
given {
  id = "file.locked", restart = "same", title = "Another process holds a lock of a file",
  category = "platform", component = "storage", except = handled,
  regex = { [[\bTimeout: The file lock '(?P<path>[^']+)' could not be acquired]],
    [[unable to lock file, errno = 11\b]] },
  remedy = "End the processes of the last run that hold it; a stale lock file may be deleted.",
  hit = { "filelock._error.Timeout: The file lock '/home/u/.cache/model.lock' could not be acquired.",
    "BlockingIOError: unable to lock file, errno = 11, error message = 'Resource temporarily unavailable'" },
  miss = { "OSError: unable to lock file, errno = 37, error message = 'No locks available'" },
}
given {
  id = "file.exists", title = "Output folder or file is there already", except = handled,
  regex = { [=[\bFileExistsError: (?P<what>[^\s\[].*)]=],
    [[(?:ValueError|RuntimeError): Output directory .* already exists and is not empty]] },
  remedy = "Allow overwriting or resuming, or take another folder; create it on one rank only.",
  hit = { "FileExistsError: /out/run1 is not empty",
    "ValueError: Output directory (/out/run1) already exists and is not empty. Use --overwrite_output_dir" },
  miss = { "os.makedirs(path, exist_ok=True)" },
}
given {
  id = "file.permission", title = "No right to read or write a file", component = "storage",
  category = "platform",
  regex = { [[\bPermissionError: (?:\[Errno 1?3?\d*\] )?(?P<what>\S.*)]],
    [[\b(?:OSError|IOError): \[Errno 13\] Permission denied]] }, except = handled,
  remedy = "Check owner, mode, quota group and how the file system is mounted, on the host that says it.",
  hit = { "PermissionError: [Errno 13] Permission denied: '/scratch/out/ckpt.pt'",
    "IOError: [Errno 13] Permission denied: '/cache'" },
  miss = { "RuntimeError: CUDA error: operation not permitted" },
}
given {
  id = "arguments", title = "Program was started with wrong options", symptom = "launch_failure",
  regex = { [[: error: unrecognized arguments: (?P<what>\S.*)]],
    [[: error: the following arguments are required: ]],
    [[: error: argument (?P<name>[-\w/, ]+): (?:invalid|expected|not allowed|unrecognized)]],
    [[Error: No such option: ]], [[Error: Missing (?:option|argument|parameter) ]],
    [[Error: Invalid value for ]],
    [[FATAL Flags parsing error:]], [[Unrecognized flag '?--]],
    [[ValueError: Some specified arguments are not used by the HfArgumentParser]] },
  remedy = "Correct the command line; options change between versions.",
  hit = { "train.py: error: unrecognized arguments: --use-flash-attn-v3",
    "pretrain.py: error: argument --tp: invalid int value: 'auto'", "Error: No such option: --lr" },
  miss = { "usage: train.py [-h] --model MODEL", "slurmstepd: error: *** JOB 17 CANCELLED ***" },
}
given {
  id = "config", title = "Configuration is not accepted", symptom = "launch_failure",
  regex = { [[\b(?:ConfigAttributeError|ConfigKeyError|ConfigCompositionException|]] ..
      [[MissingConfigException): ?]],
    [[\bomegaconf\.errors\.\w+: ]], [[\bhydra\.errors\.\w+: ]],
    [[InstantiationException: Error (?:in call to|locating) target]],
    [[Could not override '\S+'\.]], [[\bpydantic\S*ValidationError: ]], [[\b\d+ validation errors? for \w+]],
    [[\byaml\.(?:scanner\.ScannerError|parser\.ParserError|constructor\.ConstructorError): ]],
    [[\btoml\S*DecodeError: ]], [[\bMissingMandatoryValue: ]],
    [[ValidationError: .*(?:is not of type|is a required property)]],
    [[\bconfigparser\.\w+Error: ]], [[InterpolationKeyError: ]], [[jsonargparse\S*: error: ]] },
  remedy = "Correct the key or value named; compare with the configuration of the installed version.",
  hit = { "omegaconf.errors.ConfigAttributeError: Key 'lr' is not in struct",
    "pydantic_core._pydantic_core.ValidationError: 1 validation error for TrainConfig",
    "yaml.scanner.ScannerError: mapping values are not allowed here" },
  miss = { "[INFO] [config.py:752:print]   checkpoint_tag_validation_fail  False" },
}
given {
  id = "parallelism", title = "Batch, model and number of ranks do not divide",
  regex = { [[(?i)(?:world[_ ]size|number of (?:gpus|devices|ranks)|num[_ ]gpus)\b.{0,80}(?:not|must be|]] ..
      [[should be|is not) (?:be )?(?:divisible|a multiple)]],
    [[(?i)(?:batch[_ ]?size|num_layers|hidden[_ ]?size|num[_ ]attention[_ ]heads|vocab[_ ]?size|seq[_]] ..
        [[ ]?len(?:gth)?)\b.{0,80}(?:not|must be|should be) (?:be )?(?:evenly )?(?:divisible|a multiple)]],
    [[(?:AssertionError|ValueError): (?P<number>\d+) (?:is )?not divisible by (?P<by>\d+)]],
    [[(?:AssertionError|ValueError|RuntimeError): .{0,120}\b(?:divisible by|multiple of|divide evenly)\b]] ..
      [[.{0,40}(?i:parallel|world|degree|gpus?\b|ranks?\b|heads|stages?\b|devices|\b[tpdce]p\b)]],
    [[(?i)\b(?:mpi|world)_?size\b ?[!=]= ?(?:tp|pp|dp|tensor|pipeline|data)]],
    [[(?:RuntimeError|ValueError|AssertionError): .{0,60}sequence parallel\w* without tensor parallel]],
    [[(?:RuntimeError|ValueError): Mesh should not be bigger than default world size]],
    [[(?:RuntimeError|ValueError|KeyError): .*\b[Mm]esh (?:dim(?:ension)?s?\b.*(?:not|must|should)|]] ..
      [[shape .*(?:not|must))]],
    [[(?i)check batch related parameters\. train_batch_size is not equal to micro_batch]] },
  remedy = "Choose sizes whose product fits the number of ranks.",
  hit = { "RuntimeError: world_size (24) is not divisible by tensor_model_parallel_size (16)",
    "AssertionError: 30522 is not divisible by 4",
    "AssertionError: global batch size (100) must be divisible by micro batch size (3) times data " ..
        "parallel (8)",
    "AssertionError: first dimension of the input should be divisible by tensor parallel size",
    "Assertion failed: worldSize == tp * pp * cp" },
  miss = { "Padded vocab (size: 50257) with 943 dummy tokens (new size: 51200), a multiple of 128" },
}
given {
  id = "address.inuse", restart = "same",
  title = "Port for the job's meeting point is taken", symptom = "launch_failure",
  -- A server's bind that failed on one address is tried on the next; only the summary of all is an end.
  regex = { [[The server socket has failed to listen on any local network address\.? ]] ..
      [[(?:port: |The server socket has failed to bind to \S*:)(?P<port>\d+)]],
    [[(?:RuntimeError|OSError|DistNetworkError|DistStoreError): .*(?:\[Errno 98\] |EADDRINUSE|]] ..
        [[[Aa]ddress already in use)(?:.*\bport:? (?P<port2>\d+))?]] },
  remedy = "End what is left of the earlier run, or choose another port (MASTER_PORT, --rdzv-endpoint).",
  hit = { "RuntimeError: The server socket has failed to listen on any local network address. port: 29500",
    "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network " ..
      "address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).",
    "OSError: [Errno 98] Address already in use" },
  miss = { "[W socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - " ..
      "Address already in use).",
    "WARN Call to bind failed: Address already in use" },
}
-- c10d logs it without the port before it raises it.
given {
  id = "address.listen", restart = "same",
  title = "Port for the job's meeting point cannot be opened", general = true,
  symptom = "launch_failure",
  regex = { [[The server socket has failed to listen on any local network address]] },
  remedy = "End what is left of the earlier run, or choose another port (MASTER_PORT, --rdzv-endpoint).",
  hit = { "[E socket.cpp:472] [c10d] The server socket has failed to listen on any local network address." },
  miss = { "[I socket.cpp:480] [c10d] The server socket has started to listen on [::]:29500." },
}
given {
  id = "environment", title = "Environment variable is missing", symptom = "launch_failure",
  regex = { [[environment variable (?P<name>[A-Z_]+) expected, but not set]],
    [[KeyError: '(?P<name>RANK|LOCAL_RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|SLURM_\w+|]] ..
        [[OMPI_COMM_WORLD_\w+)']] },
  remedy = "Start through the launcher (torchrun, srun), or export the variable.",
  hit = { "ValueError: Error initializing torch.distributed using env:// rendezvous: environment " ..
      "variable RANK expected, but not set",
    "KeyError: 'LOCAL_RANK'" },
  miss = { "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default" },
}
given {
  id = "tracker", title = "Experiment tracker stopped the run", severity = "error",
  regex = { [[wandb\.errors\S*\.(?:UsageError|CommError|AuthenticationError): ]],
    [[wandb: ERROR (?:api_key|Error while calling W&B|Run initialization has timed out)]],
    [[wandb\.sdk\.service\S*\.Service\w*Error: ]],
    [[mlflow\.exceptions\.\w+: ]] },
  except = { [[(?i)timed out|timeout|network error|Max retries|connection]] },
  remedy = "Log in, or run the tracker offline; training should not depend on it.",
  hit = { "wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])" },
  miss = { "wandb: WARNING Calling wandb.login() after wandb.init() has no effect." },
}
given {
  id = "tracker.unreachable", restart = "later",
  title = "Experiment tracker does not answer: <what>", severity = "error",
  category = "platform", component = "network",
  regex = { [[(?P<what>wandb\.errors\S*\.\w*Error: .*(?i:timed out|timeout|network error|connection).*)]],
    [[(?P<what>wandb: ERROR (?:Run initialization has timed out|Network error)\b.*)]],
    [[(?P<what>mlflow\.exceptions\.\w+: .*(?i:timed out|timeout|Max retries|connection).*)]],
    [[\bneptune\S*\.NeptuneConnectionLostException\b(?:: (?P<what>.*))?]] },
  remedy = "Run the tracker offline and sync later; check proxy and the way out of the hosts.",
  hit = { "wandb.errors.CommError: Run initialization has timed out after 90.0 sec." },
  miss = { "wandb: Network error (ConnectionError), entering retry loop." },
}
given {
  id = "address.foreign", title = "Address that the program opens is none of this host",
  symptom = "launch_failure",
  regex = { [=[\bOSError: \[Errno 99\] (?P<what>.*)]=], [[\bCannot assign requested address\b]] },
  except = { [[(?i)\bwarn|\[W|retry]] },
  remedy = "Correct address, interface or host name; see that names resolve to an address of the host.",
  hit = { "OSError: [Errno 99] Cannot assign requested address" },
  miss = { "[W socket.cpp:464] [c10d] bind failed: Cannot assign requested address, retrying" },
}
