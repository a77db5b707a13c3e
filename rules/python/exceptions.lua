-- Exceptions that end a Python program, by kind. All are `general`: a line that a rule for its wording also
-- knows (CUDA, NCCL, a library) belongs to that one. What the program's author wrote wrong, `user_code`.

-- An exception's line that a program only tells of: it was caught, and the work went on.
local handled = {
  [[(?i)\b(?:warn(?:ing)?|ignor(?:ed?|ing)|retry(?:ing)?|retries|skip(?:ping|ped)?|fall(?:ing)? ?back)\b]],
  [[(?i)\b(?:will be|safely|harmless|suppressed|deprecated|failed to import)\b]],
}

local function exception(row)
  rule {
    id = "python." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title .. ": <what>", category = "user",
    component = row.component or "user_code", severity = row.severity or "fatal", general = true,
    blames = row.blames,
    match = { regex = row.regex, except = { handled[1], handled[2], row.except } }, remedy = row.remedy,
    action = "fix",
    examples = { hit = row.hit, miss = row.miss },
  }
end

-- Mistakes that the interpreter itself finds: the text behind the colon is of little use to tell them apart.
local mistakes = {
  { "NameError", "Name is not defined", "name 'defaultdict' is not defined" },
  { "UnboundLocalError", "Local variable is used before it has a value",
    "cannot access local variable 'loss' where it is not associated with a value" },
  { "TypeError", "Value of the wrong type", "unsupported operand type(s) for -: 'float' and 'list'" },
  { "AttributeError", "Object lacks an attribute", "'NoneType' object has no attribute 'shape'" },
  { "IndexError", "Index beyond the end", "list index out of range" },
  { "ZeroDivisionError", "Division by zero", "division by zero" },
  { "ValueError", "Value that the program does not accept", "too many values to unpack (expected 2)" },
  { "NotImplementedError", "Function is not implemented", "model type 'rnn'" },
  { "RecursionError", "Recursion without an end", "maximum recursion depth exceeded" },
  { "StopIteration", "Iterator is exhausted", "next batch" },
  { "OverflowError", "Number too large for its type", "int too big to convert" },
}
for _, m in ipairs(mistakes) do
  exception {
    id = "mistake." .. string.lower(m[1]), title = m[2],
    regex = [[(?:^|[^\w'"(])]] .. m[1] .. [[: (?P<what>.+)]],
    remedy = "Read the last lines of the traceback: they name the place in the program.",
    hit = { m[1] .. ": " .. m[3], "[rank3]: " .. m[1] .. ": " .. m[3] },
    miss = { "raise " .. m[1] .. "(message)", "WARNING: caught " .. m[1] .. ": " .. m[3] .. ", retrying" },
  }
end

exception {
  id = "mistake.keyerror", title = "Key is missing in a dictionary",
  regex = [[(?:^|[^\w'"(])KeyError: (?P<what>['"\d(].*)]],
  remedy = "Find out which table lacks the key: a column of the data set, an option, a checkpoint.",
  hit = { "KeyError: 'targets'", "[rank0]: KeyError: 50304" },
  miss = { "except KeyError:", "KeyError handling enabled" },
}
exception {
  id = "mistake.syntax", title = "Program text is not valid Python",
  regex = [[(?:^|[^\w'"(])(?:SyntaxError|IndentationError|TabError): (?P<what>.+)]],
  remedy = "Correct the file and line above; compare the Python version with the one the code needs.",
  hit = { "SyntaxError: invalid syntax", "IndentationError: expected an indented block" },
  miss = { "SyntaxWarning: invalid escape sequence '\\d'" },
}
exception {
  id = "assertion", title = "Assertion in the program failed",
  regex = { [[(?:^|[^\w'"(.])AssertionError(?:: (?P<what>.+)|\s*$)]] },
  remedy = "Read the assert line above the message: it names the condition.",
  hit = { "AssertionError", "[rank0]: AssertionError: sequence length must be divisible by 8" },
  miss = { "raise AssertionError(msg)" },
}
-- A connection's other end is gone: its own log tells why.
rule {
  id = "python.peer", restart = "same",
  engine = 1, title = "A peer's process is gone: <what>", category = "unknown",
  component = "unknown", severity = "error", role = "cascade", general = true,
  match = { regex = [[\b(?:DistError|DistBackendError|DistNetworkError|DistStoreError|]] ..
    [[ConnectionResetError|BrokenPipeError|EOFError)(?:: (?P<what>\S.*)|\s*$)]], except = handled },
  remedy = "Look for the process that failed first.", action = "check",
  examples = { hit = { "torch.distributed.DistBackendError: the backend of rank 4 went away" },
    miss = { "except EOFError:" } },
}

-- Raised again in the parent, where the child's traceback stands above: the kind there is what counts.
rule {
  id = "python.worker.reraised", restart = "unknown",
  engine = 1, title = "Exception in a worker process was raised again",
  category = "user", component = "user_code", severity = "error", role = "cascade",
  match = { regex = { [[\w+: Caught \w+ in (?:DataLoader worker process|replica|pin memory thread)]],
    [[-- Process \d+ terminated with the following error:]] } },
  remedy = "Look at the exception below `Original Traceback`.", action = "fix",
  examples = { hit = { "AttributeError: Caught AttributeError in DataLoader worker process 0.",
      "-- Process 2 terminated with the following error:" },
    miss = { "AttributeError: 'list' object has no attribute 'size'" } },
}

-- Stopped by hand (Ctrl-C, or a launcher's SIGINT): no fault, but it ends the run.
rule {
  id = "python.interrupt", restart = "never",
  engine = 1, title = "Program was interrupted (SIGINT)", category = "user",
  component = "platform", severity = "error", role = "cascade",
  match = { regex = [[(?:^|[\]\s:])KeyboardInterrupt\s*$|^Detected KeyboardInterrupt\b]] },
  remedy = "Nothing to mend if somebody stopped it; else ask what sent SIGINT.",
  examples = { hit = { "KeyboardInterrupt", "[rank2]: KeyboardInterrupt",
    "Detected KeyboardInterrupt, attempting graceful shutdown ..." },
    miss = { "except KeyboardInterrupt:" } },
}
rule {
  id = "python.memory", restart = { "never", "same" },
  engine = 1, title = "Host memory could not be allocated", category = "user",
  component = "host_memory", severity = "fatal",
  match = { regex = { [[(?:^|[^\w'"(.])MemoryError(?:: (?P<what>.+)|\s*$)]],
    [[\b_exceptions\.(?:_Array)?MemoryError: (?P<what>.+)]], [[\bArrowMemoryError: (?P<what>.+)]],
    [[\bComputeError: (?P<what>memory allocation failed.*)]],
      [[\bjava\.lang\.OutOfMemoryError: (?P<what>.+)]],
    [[\b(?P<what>Container .{0,80}(?:exceeding|beyond)\b.{0,40}memory limits?\b.*)]],
    [[DefaultCPUAllocator: (?:can't allocate memory|not enough memory)]],
    [[OSError: \[Errno 12\] Cannot allocate memory]] } },
  remedy = "Ask for more host memory, or load less at once (memory map, fewer workers, less offload).",
  action = "fix",
  examples = { hit = { "MemoryError",
      "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 48.8 GiB for an array with shape (1, 2)",
      "RuntimeError: [enforce fail at alloc_cpu.cpp:83] err == 0. DefaultCPUAllocator: can't allocate " ..
          "memory" },
    miss = { "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB" } },
}
