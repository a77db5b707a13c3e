-- Packages that are missing, do not fit each other, or were built for something else.

local function package(row)
  rule {
    id = "python.import." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "dependency", severity = "fatal", symptom = "launch_failure",
    general = row.general, match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

-- Many programs try an import and go on without: those tell of it in a sentence of their own.
local optional = { [[(?i)\b(?:warn(?:ing)?|ignor(?:ed?|ing)|optional|skip(?:ping|ped)?|disabl(?:ed|ing))\b]],
  [[(?i)fail(?:ed|ure) to (?:import|load)]], [[(?i)fall(?:ing)? ?back]] }

package {
  id = "module", title = "Python module is not installed or not on the path", except = optional,
  regex = [[\b(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[\w.]+)]],
  remedy = "Install the module in the environment of every host; check PYTHONPATH and the working folder.",
  hit = { "ModuleNotFoundError: No module named 'einops'", "ImportError: No module named apex" },
  miss = { [[Failed to import from pkg._C with ModuleNotFoundError("No module named 'pkg._C'")]],
    "Optional: ModuleNotFoundError: No module named 'wandb', logging is off" },
}
package {
  id = "source_tree", title = "Package was imported from its source folder, without its built part",
  regex = [[\b(?:ModuleNotFoundError|ImportError): No module named '?\w+\._C\b]], except = optional,
  remedy = "Start from another folder, or build the extension in place.",
  hit = { "ModuleNotFoundError: No module named 'mylib._C'" },
  miss = { "ModuleNotFoundError: No module named 'einops'" },
}
package {
  id = "circular", title = "Modules import each other in a circle", component = "user_code",
  regex = { [[cannot import name '?\w+'? from partially initialized module]],
    [[partially initialized module '[\w.]+' has no attribute]] },
  remedy = "Break the circle; or rename a file of yours that hides a library's module.",
  hit = { "ImportError: cannot import name 'log' from partially initialized module 'evaluation' (most " ..
      "likely)",
    "AttributeError: partially initialized module 'random' has no attribute 'seed'" },
  miss = { "ImportError: cannot import name 'log' from 'evaluation' (/a/evaluation/__init__.py)" },
}
package {
  id = "name", title = "Installed version of a package lacks what the program imports", except = optional,
  regex = [[\bImportError: cannot import name '?(?P<name>\w+)'? from '?(?P<module>[\w.]+)]], general = true,
  remedy = "Align the versions of the two packages; pin them.",
  hit = { "ImportError: cannot import name 'is_flash_attn_available' from 'transformers.utils' (/p/u.py)" },
  miss = { "WARNING cannot import name 'xformers', optional" },
}
package {
  id = "library", title = "Shared library is missing",
  -- Slurm's own; and what TensorFlow tries to load, with its reason behind `dlerror`.
  except = { optional[1], optional[2], optional[3], [[plugin_load_from_file]], [[; dlerror: ]] },
  regex = { [[(?P<library>lib[\w.+-]+\.so[\w.]*): cannot open shared object file]],
    [[error while loading shared libraries: (?P<library>\S+):]],
    [[Unable to load any of \{?libcudnn]], [[Could not load library (?P<library>lib[\w.+-]+)\b.*[Ee]rror]],
    [[Intel MKL FATAL ERROR: Cannot load (?P<library>\S+)]],
    [[AssertionError: (?P<library>libcuda\.so) cannot found]], [[libdevice not found at]] },
  remedy = "Install the library's package at the version that the binary needs; check LD_LIBRARY_PATH.",
  hit = { "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
    "./train: error while loading shared libraries: libmpi.so.40: cannot open shared object file: No " ..
        "such file",
    "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so: cannot open shared object file",
    "Intel MKL FATAL ERROR: Cannot load libmkl_avx512.so.2 or libmkl_def.so.2." },
  miss = { "W dso_loader.cc:64] Could not load library libnvinfer.so.7, it is optional",
    "W dso_loader.cc:64] libnvinfer.so.7 was not found; dlerror: none. Ignore this warning" },
}
package {
  id = "symbol", title = "Libraries were built against different versions",
  regex = { [[(?P<library>[^\s/:,]+\.so[\w.]*)\W{1,4}undefined symbol: (?P<symbol>\w+)]],
    [[undefined symbol: (?P<symbol>\w+)]], [[symbol lookup error: ]],
    [[version `?(?P<version>[A-Z]\w*_[\d.]+)'? not found \(required by]],
    [[symbol \w+ version \S+ not defined in file]] },
  remedy = "Reinstall the extension for the installed version of torch, CUDA, NCCL or glibc.",
  hit = { "ImportError: /p/flash_attn_2_cuda.cpython-310.so: undefined symbol: _ZN3c105ErrorC2ENS_14SourceE",
    "python: symbol lookup error: /usr/lib/libnccl-net.so: undefined symbol: fi_dupinfo",
    "ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /p/_C.so)" },
  miss = { "ld: warning: symbols not stripped" },
}
package {
  id = "abi", title = "Compiled module does not fit the installed packages",
  regex = { [[numpy\.(?:dtype|ndarray|ufunc) size changed, may indicate binary incompat]],
    [[A module that was compiled using NumPy 1\.x cannot be run in]],
    [[numpy\.core\.multiarray failed to import]],
    [[was compiled (?:against|for) (?:a different|another) version of (?:PyTorch|CUDA|Python)]],
    [[module compiled against API version 0x\w+ but this version of numpy is]],
    [[Detected that PyTorch and \w+ were compiled with different CUDA versions]],
    [[The detected CUDA version \([\d.]+\) mismatches the version that was used to compile]] },
  remedy = "Reinstall the module for the installed NumPy, PyTorch and CUDA; pin their versions.",
  hit = { "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C " ..
      "header",
    "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA versions." },
  miss = { "numpy version 1.26.4" },
}
package {
  id = "protobuf", title = "protobuf is too new for the generated code of a package",
  regex = { [[Descriptors cannot (?:not )?be created directly]],
    [[Detected incompatible Protobuf Gencode/Runtime]],
    [[cannot import name '\w+' from 'google\.protobuf]] },
  remedy = "Install the protobuf version that the package asks for.",
  hit = { "TypeError: Descriptors cannot not be created directly." },
  miss = { "google.protobuf.message.DecodeError: Error parsing message" },
}
package {
  id = "removed", title = "Installed version of a library no longer has this function",
  regex = { [[AttributeError: (?:partially )?module '(?P<module>numpy|torch|jax|tensorflow|transformers|]] ..
      [[scipy|pandas|pkg_resources|PIL|collections|inspect|deepspeed|apex|xformers|triton|tensorboard|]] ..
      [[distutils|PIL\.Image)(?:\.[\w.]+)?' has no attribute]],
    [[module 'numpy' has no attribute]], [[`(?P<name>np\.\w+)` was removed in the NumPy 2\.0 release]],
    [[module 'numpy' has no attribute '(?P<attribute>\w+)']] },
  remedy = "Pin the library to the version that the program was written for.",
  hit = { "AttributeError: module 'numpy' has no attribute 'bool'.",
    "AttributeError: module 'torch.library' has no attribute 'register_fake'" },
  miss = { "AttributeError: module 'config' has no attribute 'lr'" },
}
package {
  id = "keyword", title = "Versions of program and library do not fit: unknown keyword argument",
  regex = [[TypeError: (?P<call>[\w.<>]+)\(\) got an unexpected keyword argument]],
  remedy = "Compare the library's version with the one that wrote the configuration or calls the function.",
  hit = { "TypeError: __init__() got an unexpected keyword argument 'rope_scaling'" },
  miss = { "TypeError: forward() missing 1 required positional argument: 'x'" },
}
package {
  id = "requirement", title = "Required version of a package is not installed",
  regex = { [[\bVersionConflict: \(]], [[DistributionNotFound: The '\S+' distribution was not found]],
    [[PackageNotFoundError: (?:No package metadata was found for )?\S+]],
    [[ImportError: .* requires? .{1,80} but (?:found|got|it was not found)]],
    [[ImportError: [\w .`'-]*[<>=]=?[\w.,<>=]+[\w .]* is required for a normal functioning]],
    [[ImportError: Using .{1,80} requires? .{1,80}(?:pip install|[<>=]=)]] },
  remedy = "Install the version that the message asks for.",
  hit = { "ImportError: tokenizers>=0.14,<0.19 is required for a normal functioning of this module, but " ..
      "found 0.20",
    "importlib.metadata.PackageNotFoundError: No package metadata was found for bitsandbytes",
    "ImportError: Using `low_cpu_mem_usage=True` requires Accelerate: `pip install accelerate`" },
  miss = { "Requirement already satisfied: numpy<2 in /usr/lib/python3" },
}
package {
  id = "companions", title = "Packages that belong together are of different builds",
  regex = { [[Detected that PyTorch and (?P<package>\w+) were compiled with different CUDA]],
    [[RuntimeError: operator (?P<operator>torchvision::\w+|torchaudio::\w+) does not exist]],
    [[RuntimeError: Numpy is not available]],
    [[A module that was compiled using NumPy 1\.x cannot be run in]] },
  remedy = "Install torch, torchvision, torchaudio and NumPy in versions that belong together.",
  hit = { "RuntimeError: operator torchvision::nms does not exist", "RuntimeError: Numpy is not available" },
  miss = { "torchvision 0.19.0 loaded" },
}
package {
  id = "resolver", title = "Packages could not be installed together",
  regex = { [[Could not find a version that satisfies the requirement]],
    [[No matching distribution found]],
    [[Cannot install .* because these package versions have conflicting]], [[ResolutionImpossible]],
    [[Failed building wheel for (?P<package>\S+)]], [[Could not build wheels for ]] ..
      [[(?P<package>[^,\s]+)]], [[\bsubprocess-exited-with-error\b]],
    [[UnsatisfiableError: The following specifications were found]],
    [[No solution found when resolving dependencies]] },
  remedy = "Loosen or pin the versions named; check that a wheel exists for this Python.",
  hit = { "ERROR: Could not find a version that satisfies the requirement tensorflow==2.9.0 (from " ..
      "versions: 2.16)",
    "ERROR: ResolutionImpossible: for help visit https://pip.pypa.io" },
  miss = { "WARNING: Running pip as the 'root' user can result in broken permissions",
    "ERROR: pip's dependency resolver does not currently take into account all the packages" },
}
package {
  id = "isa", title = "Wheel or library was built for another processor", component = "dependency",
  regex = { [[cannot open shared object file: .*wrong ELF class]], [[: wrong ELF class: ELFCLASS\d+]],
    [[(?:Exec format error|cannot execute binary file)]], [[is not a supported wheel on this platform]] },
  remedy = "Take the build for this machine's architecture.",
  hit = { "exec /usr/bin/python: Exec format error", "OSError: /p/libx.so: wrong ELF class: ELFCLASS32" },
  miss = { "INFO: format executed" },
}
package {
  id = "build", title = "Extension could not be compiled",
  regex = { [[Error building extension '(?P<extension>\w+)']], [[ninja: build stopped: subcommand failed]],
    [[FileNotFoundError: \[Errno 2\] No such file or directory: '(?P<tool>\S*(?:nvcc|ninja|gcc|g\+\+))']],
    [[ninja: error: loading 'build\.ninja']],
    [[RuntimeError: Error compiling objects for extension]], [[\bFailed to find C compiler\b]],
    [[Cannot find a working triton installation]],
    [[CalledProcessError: Command '\['\S*(?P<tool2>gcc|g\+\+|cc|clang|nvcc|ninja)']],
    [[CUDA_HOME environment variable is not set\. Please set it to your CUDA install root]],
    [[nvcc fatal\s+:]], [[/ld: cannot find (?P<library>-l\w+)]],
    [[error: command '\S*(?:gcc|g\+\+|cc|nvcc)' failed with exit (?:status|code) \d]],
    [[error: [Mm]icrosoft Visual C\+\+ 14\.0 or greater is required]],
    [[fatal error: (?P<header>[\w/.]+\.h(?:pp)?): No such file or directory]] },
  remedy = "Install the compiler, CUDA toolkit and headers; remove the stale build folder; build once, " ..
      "on one rank.",
  hit = { "RuntimeError: Error building extension 'fused_adam'", "ninja: build stopped: subcommand failed.",
    "nvcc fatal   : Unsupported gpu architecture 'compute_90'", "/usr/bin/ld: cannot find -lcuda",
    "/env/include/python_headers.h:12:10: fatal error: Python.h: No such file or directory" },
  miss = { "Building extension module fused_adam...", "ninja: no work to do." },
}
