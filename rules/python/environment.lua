-- The environment a program starts in: modules, conda, locale, threading libraries, static TLS.

local function environment(row)
  rule {
    id = "python.environment." .. row.id, engine = 1, restart = row.restart or "never",
    title = row.title, category = row.category or "user",
    component = row.component or "user_config", severity = row.severity or "fatal", general = row.general,
    symptom = "launch_failure", match = { regex = row.regex, except = row.except }, remedy = row.remedy,
    action = "fix", examples = { hit = row.hit, miss = row.miss },
  }
end

environment {
  id = "conda", title = "Conda environment cannot be used", severity = "error",
  regex = { [[EnvironmentNameNotFound: (?P<what>.*)]], [[EnvironmentLocationNotFound: (?P<what>.*)]],
    [[CommandNotFoundError: Your shell has not been properly configured to use 'conda activate']],
    [[Could not find conda environment: (?P<name>\S+)]] },
  remedy = "Name an environment of this host, and run `conda init` or source conda.sh in the script.",
  hit = { "EnvironmentNameNotFound: Could not find conda environment: train39" },
  miss = { "Collecting package metadata (current_repodata.json): done" },
}
environment {
  id = "module", title = "Environment module does not exist", severity = "error",
  regex = { [[Unable to locate a modulefile for '(?P<module>[^']+)']],
    [[The following module\(s\) are unknown: (?P<module>\S.*)]],
    [[These module\(s\) or extension\(s\) exist but cannot be loaded as requested: (?P<module>\S.*)]] },
  remedy = "List the modules of this cluster (module avail) and load one that is there.",
  hit = { "ERROR: Unable to locate a modulefile for 'cuda/12.9'",
    [[Lmod has detected the following error: The following module(s) are unknown: "nccl/2.99"]] },
  miss = { "Loading module cuda/12.2" },
}
environment {
  id = "tls", title = "Library cannot be loaded: no room for its thread-local variables",
  component = "dependency",
  regex = { [[(?P<library>\S+\.so\S*): cannot allocate memory in static TLS block]] },
  remedy = "Import this library first, or preload it (LD_PRELOAD).",
  hit = { "ImportError: /lib/aarch64-linux-gnu/libgomp.so.1: cannot allocate memory in static TLS block" },
  miss = { "RuntimeError: cannot allocate memory" },
}
environment {
  id = "openmp", title = "Two OpenMP runtimes are loaded into one process", component = "dependency",
  regex = { [[OMP: Error #15: Initializing (?P<library>\S+), but found]],
    [[MKL_THREADING_LAYER=(?P<layer>\w+) is incompatible with (?P<library>\S+) library]] },
  remedy = "Keep one OpenMP runtime: take NumPy, MKL and torch from one channel.",
  hit = { "OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.",
    "Error: mkl-service + Intel(R) MKL: MKL_THREADING_LAYER=INTEL is incompatible with libgomp.so.1 " ..
      "library." },
  miss = { "OMP: Info #155: KMP_AFFINITY: Initial OS proc set respected: 0-15" },
}
environment {
  id = "locale", title = "Locale or encoding of the environment cannot be used",
  regex = { [[locale\.Error: unsupported locale setting]],
    [[Click will abort further execution because Python (?:3 )?was configured to use ASCII]],
    [[Fatal Python error: (?:init_fs_encoding|initfsencoding|init_import_site)\b.*]] },
  remedy = "Set LANG and LC_ALL to a locale of the image (C.UTF-8); unset a foreign PYTHONHOME.",
  hit = { "locale.Error: unsupported locale setting",
    "Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding" },
  miss = { "perl: warning: Setting locale failed." },
}
environment {
  id = "loader", title = "Program loader found libraries that do not fit each other",
  component = "dependency",
  regex = { [[Inconsistency detected by ld\.so: ]], [[ELF load command alignment not page-aligned]],
    [[ELF file's phentsize not the expected size]], [[: (?:file too short|invalid ELF header)\b]] },
  remedy = "Reinstall the library named; take all of them from one image; the file may be half written.",
  hit = { "Inconsistency detected by ld.so: dl-version.c: 205: _dl_check_map_versions: Assertion failed!",
    "ImportError: /env/lib/libmkl_core.so: file too short" },
  miss = { "ld.so.cache rebuilt" },
}
environment {
  id = "panic", title = "Native (Rust) part of a Python package stopped", category = "framework",
  component = "framework",
  regex = { [[pyo3_runtime\.PanicException: (?P<what>\S.*)]],
    [[thread '[^']*' (?:\(\d+\) )?panicked at (?P<what>\S.*)]] },
  remedy = "Read the panic's message; try another version of the package (tokenizers, safetensors, polars).",
  hit = { "thread '<unnamed>' panicked at src/models/bpe/model.rs:512:43:",
    "pyo3_runtime.PanicException: called `Result::unwrap()` on an `Err` value" },
  miss = { "kernel panic disabled" },
}
environment {
  id = "container_access", title = "User may not use the container engine or the image is not there",
  regex = { [[permission denied while trying to connect to the [Dd]ocker daemon socket]],
    [[pull access denied for (?P<image>[^,\s]+)]], [[manifest for (?P<image>\S+) not found]],
    [[docker: Error response from daemon: (?P<what>.*(?:not found|denied|unknown).*)]] },
  except = { [[unknown or invalid runtime name]] },
  remedy = "Correct the image's name, log in to the registry, or ask for the right to run containers.",
  hit = { "docker: Error response from daemon: pull access denied for acme/train, repository does not exist",
    "Error response from daemon: manifest for nvcr.io/nvidia/pytorch:99.01-py3 not found: manifest unknown" },
  miss = { "Status: Downloaded newer image for nvcr.io/nvidia/pytorch:24.04-py3" },
}
