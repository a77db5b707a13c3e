-- torch.compile, Inductor, Triton and just-in-time builds.

local function compiled(row)
  rule {
    id = "pytorch.compile." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "framework",
    component = row.component or "framework", severity = row.severity or "fatal", general = row.general,
    match = { regex = row.regex, except = row.except }, remedy = row.remedy, action = "mitigate",
    examples = { hit = row.hit, miss = row.miss },
  }
end

compiled {
  id = "backend", title = "Compiler behind torch.compile failed",
  regex = { [[\bBackendCompilerFailed: ]], [[\bInductorError: ]], [[\btorch\._inductor\.exc\.\w+: ]],
    [[\bLoweringException: ]],
    [[\btorch\._dynamo\.exc\.(?:InternalTorchDynamoError|TorchRuntimeError|BackendCompilerFailed)\b]],
    [[^LLVM ERROR: (?P<what>\S.*)]] },
  except = { [[Cannot find a working triton|Failed to find C compiler]] },
  remedy = "Run without torch.compile; clear the compile cache; try another version.",
  hit = { "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:",
    "torch._inductor.exc.InductorError: LoweringException: AssertionError:" },
  miss = { "torch._dynamo hit config.recompile_limit (8)" },
}
compiled {
  id = "graph", title = "Program cannot be captured by torch.compile", category = "user",
  component = "user_code",
  regex = { [[torch\._dynamo\.exc\.(?:Unsupported|UserError|UncapturedHigherOrderOpError|]] ..
    [[FailOnRecompileLimitHit)\b]],
    [[\bConstraintViolationError\b]], [[\bGuardOnDataDependentSymNode: ]] },
  remedy = "Leave the part out of the compiled region, or drop fullgraph.",
  hit = { "torch._dynamo.exc.Unsupported: call_function BuiltinVariable(print) in fullgraph mode" },
  miss = { "W torch/_dynamo/convert_frame.py:844] torch._dynamo hit config.cache_size_limit (8)" },
}
compiled {
  id = "triton", title = "Triton kernel could not be compiled or started",
  regex = { [[\btriton\.compiler\.errors\.\w+: ]], [[\bCompilationError: at \d+:\d+]], [[\bPTXASError: ]],
    [[Internal Triton PTX codegen error]], [[RuntimeError: PassManager::run failed]],
      [[triton\S*OutOfResources: out of resource: (?P<resource>[\w ]+)]],
    [[\bOutOfResources: out of resource: ]], [[Triton Error \[CUDA\]: (?P<what>\S.*)]] },
  except = { [[Triton Error \[CUDA\]: (?:an illegal memory access|out of memory|uncorrectable|]] ..
    [[unspecified launch)]] },
  remedy = "Lower block sizes or stages; take a Triton version that knows this GPU; clear its cache.",
  hit = { "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 180224, " ..
      "limit: 101376",
    "triton.compiler.errors.CompilationError: at 12:4:" },
  miss = { "A matching Triton is not available, some optimizations will not be enabled" },
}
compiled {
  id = "cache", restart = "same",
  title = "Shared cache of compiled kernels was written by several processes at once",
  category = "platform",
  component = "storage",
  regex = { [[(?:FileNotFoundError|OSError|PermissionError|FileExistsError|]] ..
    [[JSONDecodeError).*(?:\.triton/cache|torchinductor_|torch_extensions)]],
    [[ImportError: .*(?:torch_extensions|\.triton/cache).*(?:cannot open shared object|file too short)]],
    [[OSError: .*(?:torch_extensions|\.triton/cache|torchinductor_).*: (?:file too short|cannot open)]] },
  remedy = "Give each host a local cache folder (TRITON_CACHE_DIR, TORCH_EXTENSIONS_DIR, " ..
      "TORCHINDUCTOR_CACHE_DIR).",
  hit = { "FileNotFoundError: [Errno 2] No such file or directory: '/home/u/.triton/cache/9f2/kernel.ptx'",
    "ImportError: /home/u/.cache/torch_extensions/py310_cu121/fused_adam/fused_adam.so: file too short" },
  miss = { "Using /home/u/.cache/torch_extensions/py310_cu121 as PyTorch extensions root..." },
}
compiled {
  id = "cpp", title = "Host compiler for generated code is missing or failed", category = "user",
  component = "dependency",
  regex = { [[\bInvalidCxxCompiler: ]], [[CppCompileError: C\+\+ compile error]],
    [[RuntimeError: Failed to find C compiler]],
    [[Failed to find C compiler\. Please specify via CC]] },
  remedy = "Install gcc/g++ and the Python headers in the image, or set CC and CXX.",
  hit = { "RuntimeError: Failed to find C compiler. Please specify via CC environment variable." },
  miss = { "Detected compiler g++ 12" },
}
