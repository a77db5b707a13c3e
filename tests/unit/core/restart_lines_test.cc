// What must differ for the next attempt, for short logs of many kinds of failures: a service that is away, a
// file system, a lock, a port, a race, a broken download, a device with the program's traceback.
#include <fmt/format.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "core/engine.h"

using namespace culprit;
using namespace culprit::core;

namespace {

struct LoggedFile {
  std::string name, text;
};

// "elsewhere gpu-4 0000:9b:00"; "-": no advice.
std::string advice_of(const std::vector<LoggedFile>& files) {
  static const auto rules = rules::Ruleset::shipped();
  EngineOptions options;
  options.rules = rules;
  Engine engine(std::move(options));
  logs::LineParser parser{logs::ParseOptions{}, engine.make_scanner()};
  logs::LogBatch batch;
  for (size_t i = 0; i < files.size(); ++i) {
    SourceInfo info;
    info.file = files[i].name;
    Input opened = SourceOpened{info};
    engine.step({&opened, 1}, kNoTime);
    parser.parse({static_cast<SourceId>(i), 0, 0, files[i].text, files[i].text.size(), true}, info, batch);
    Input lines = LogInput{&batch};
    engine.step({&lines, 1}, kNoTime);
  }
  const Report report = engine.report();
  if (!report.restart) return "-";
  std::string out(to_string(report.restart->kind));
  for (const auto* names : {&report.restart->hosts, &report.restart->devices})
    for (const std::string& name : *names) out += " " + name;
  return out;
}

std::string steps_of_a_job(size_t n) {
  std::string text = "2026-11-21 01:59:59,000 INFO starting\n";
  for (size_t s = 0; s < n; ++s)
    text += fmt::format("2026-11-21 02:{:02}:{:02},000 INFO step={} loss=2.{}\n", s / 60, s % 60, s, s % 10);
  return text;
}

// A traceback through a module of a library.
std::string raised_in(const char* module, const char* exception) {
  return fmt::format(
      "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 88, in main\n    load()\n"
      "  File \"/opt/venv/lib/python3.11/site-packages/{}\", line 120, in get\n    return "
      "self._call(x)\n{}\n",
      module, exception);
}

const struct {
  size_t steps;
  const char* module;
  const char* exception;
  const char* wanted;
} kRaised[] = {
    {0, "urllib3/connection.py", "ConnectionRefusedError: [Errno 111] Connection refused", "later"},
    {60, "redis/connection.py",
     "redis.exceptions.ConnectionError: Error 111 connecting to cache-1:6379. Connection refused.", "later"},
    {0, "psycopg2/__init__.py",
     "psycopg2.OperationalError: connection to server at \"10.2.0.9\", port 5432 failed: Connection "
     "refused",
     "later"},
    {0, "transformers/utils/hub.py",
     "OSError: We couldn't connect to 'https://huggingface.co' to load this file", "later"},
    {0, "datasets/load.py", "ConnectionError: Couldn't reach 'org/set' on the Hub (ConnectTimeout)", "later"},
    {60, "botocore/httpsession.py",
     "botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "
     "\"https://b.s3.example.org/ckpt\"",
     "later"},
    {60, "botocore/client.py",
     "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation "
     "(reached max retries: 4): Please reduce your request rate.",
     "later"},
    {60, "botocore/httpsession.py",
     "botocore.exceptions.ReadTimeoutError: Read timeout on endpoint URL: \"https://b.s3.example.org/a\"",
     "later"},
    {60, "requests/models.py",
     "requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://track.example.org/api",
     "later"},
    {60, "train/io.py", "OSError: [Errno 107] Transport endpoint is not connected: '/mnt/bucket/a'", "later"},
    {60, "train/io.py", "OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/a'",
     "later"},
    {60, "train/io.py", "OSError: [Errno 121] Remote I/O error: '/beegfs/run/ckpt.pt'", "later"},
    {60, "train/io.py", "OSError: [Errno 116] Stale file handle", "later"},
    {60, "train/io.py", "OSError: [Errno 37] No locks available: '/nfs/run7/state.lock'", "later"},
    {0, "filelock/_api.py",
     "filelock._error.Timeout: The file lock '/home/u/.cache/hub/model.lock' could not be acquired.", "same"},
    {0, "h5py/_hl/files.py",
     "BlockingIOError: [Errno 11] Unable to synchronously open file (unable to lock file, errno = 11, "
     "error "
     "message = 'Resource temporarily unavailable')",
     "same"},
    {60, "optuna/storages/_rdb.py", "sqlite3.OperationalError: database is locked", "same"},
    {60, "train/io.py",
     "FileNotFoundError: [Errno 2] No such file or directory: '/scratch/state.json.tmp.4' -> "
     "'/scratch/state.json'",
     "same"},
    {0, "train/io.py", "FileExistsError: [Errno 17] File exists: '/scratch/run7/cache'", "unknown"},
    {0, "train/io.py", "OSError: [Errno 98] Address already in use", "same"},
    {0, "huggingface_hub/hf_api.py",
     "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 9001 (char 9000)",
     "unknown"},
    {0, "gzip.py", "EOFError: Compressed file ended before the end-of-stream marker was reached", "unknown"},
    {0, "torch/serialization.py", "_pickle.UnpicklingError: pickle data was truncated", "unknown"},
    {0, "torch/serialization.py",
     "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
     "older"},
    {60, "train/io.py", "ConnectionResetError: [Errno 104] Connection reset by peer", "same"},
    {0, "torch/cuda/__init__.py",
     "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable", "same"},
    {0, "torch/nn/modules/module.py",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
     "of "
     "79.15 GiB with 12.00 MiB free. Process 41233 has 70.10 GiB memory in use. Including "
     "non-PyTorch "
     "memory, this process has 9.00 GiB memory in use.",
     "same"},
    // What a person must change.
    {0, "torch/nn/modules/module.py",
     "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity "
     "of "
     "79.15 GiB with 12.00 MiB free. Including non-PyTorch memory, this process has 79.00 GiB "
     "memory "
     "in use.",
     "never"},
    {0, "train/io.py", "ModuleNotFoundError: No module named 'apex'", "never"},
    {0, "train/io.py", "KeyError: 'hidden'", "never"},
    {0, "train/io.py", "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.txt'", "never"},
    {0, "train/io.py", "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 3 column 5 (char 40)",
     "never"},
    {0, "zipfile.py", "zipfile.BadZipFile: File is not a zip file", "never"},
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_service_a_lock_or_a_race_stops_no_job) {
  for (const auto& row : kRaised)
    BOOST_TEST(advice_of({{"train.log", steps_of_a_job(row.steps) + raised_in(row.module, row.exception)}}) ==
                   row.wanted,
               row.exception);
}

BOOST_AUTO_TEST_CASE(a_line_of_a_service_that_is_away_stops_no_job) {
  const struct {
    const char* line;
    const char* wanted;
  } rows[] = {
      {"Error: dial tcp 10.0.0.4:7080: connect: connection refused", "later"},
      {"fatal: unable to access 'https://git.example.org/a.git/': Could not resolve host: git.example.org",
       "later"},
      {"docker: Error response from daemon: Get \"https://reg.example.org/v2/\": net/http: request canceled "
       "while waiting for connection (Client.Timeout exceeded while awaiting headers).",
       "later"},
      {"docker: Error response from daemon: toomanyrequests: You have reached your pull rate limit.",
       "later"},
      {"FATAL: FlexNet Licensing error:-15,570. System Error: 115", "later"},
      {"Downloading shards.zip:  73%|#######   | 730M/1.0G\nzipfile.BadZipFile: File is not a zip file",
       "later"},
  };
  for (const auto& row : rows)
    BOOST_TEST(advice_of({{"train.log", steps_of_a_job(0) + row.line + "\n"}}) == row.wanted, row.line);
}

BOOST_AUTO_TEST_CASE(a_device_that_the_kernel_reports_leads_what_the_program_raised) {
  // A traceback has the time of the last step above it; the kernel's line may be much later.
  for (const char* what : {"unspecified launch failure", "an illegal memory access was encountered",
                           "misaligned address", "an illegal instruction was encountered"})
    for (const char* second : {"01:01", "01:40"}) {
      const std::string kernel = fmt::format(
          "2026-11-21T02:{}+00:00 gpu-4 kernel: NVRM: Xid (PCI:0000:9b:00): 79, pid=4121, GPU has fallen off "
          "the "
          "bus.\n",
          second);
      const std::string raised = fmt::format("RuntimeError: CUDA error: {}", what);
      BOOST_TEST(advice_of({{"train.log",
                             steps_of_a_job(60) + raised_in("torch/nn/modules/linear.py", raised.c_str())},
                            {"kernel.log", kernel}}) == "elsewhere gpu-4 0000:9b:00",
                 what << " " << second);
    }
}

BOOST_AUTO_TEST_CASE(the_host_of_a_shell_is_left_out_unless_the_command_ran_elsewhere) {
  const char* broken = "Failed to initialize NVML: Driver/library version mismatch\n";
  const struct {
    const char* prompt;
    const char* wanted;
  } rows[] = {{"[maria@node-7 ~]$ nvidia-smi\n", "elsewhere node-7"},
              {"maria@atlas:~$ nvidia-smi\n", "elsewhere atlas"},
              {"node7:~$ sudo nvidia-smi\n", "elsewhere node7"},
              {"[maria@login-1 ~]$ srun -N 4 nvidia-smi\n", "elsewhere"},
              {"root@3f2a1b4c5d6e:/# nvidia-smi\n", "elsewhere"}};
  for (const auto& row : rows)
    BOOST_TEST(advice_of({{"shell.txt", std::string(row.prompt) + broken}}) == row.wanted, row.prompt);
}

BOOST_AUTO_TEST_CASE(the_only_worker_that_a_runtime_lost_is_left_out_if_the_fault_names_none) {
  const std::string fault =
      "Detected failure SLICE_FAILURE_CHIP_DRIVER_ERROR in session e6c8; Start failure\n";
  const auto lost = [](int worker) {
    return fmt::format("The task with address tpu-job-{}.svc:8471 missed 1 health checks.\n", worker);
  };
  BOOST_TEST(advice_of({{"train.log", lost(38) + fault}}) == "elsewhere tpu-job-38.svc");
  BOOST_TEST(advice_of({{"train.log", lost(38) + lost(39) + fault}}) == "elsewhere");
}
