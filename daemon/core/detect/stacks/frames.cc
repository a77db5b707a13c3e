#include "core/detect/stacks/frames.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "base/ascii.h"

namespace culprit::stacks {
namespace {

bool has_part(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

template <size_t n>
bool is_one_of(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}
template <size_t n>
bool begins_with_one(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return text.starts_with(w); });
}
template <size_t n>
bool has_one(std::string_view text, const std::array<std::string_view, n>& words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view w) { return has_part(text, w); });
}

std::string_view base_name_of(std::string_view file) { return file.substr(file.rfind('/') + 1); }

// Lower case without word separators: "ncclAllReduce" and "MPI_Allreduce" both contain "allreduce".
std::string squeezed(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != '_') out += lower(c);
  return out;
}

struct Op {
  std::string_view squeezed, name;
};
// Longest first, so that "allgatherintotensor" does not match gather.
constexpr Op kOps[] = {
    {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
    {"allreduce", "all_reduce"}, {"alltoall", "all_to_all"},
    {"broadcast", "broadcast"},  {"bcast", "broadcast"},
    {"barrier", "barrier"},      {"gather", "gather"},
    {"scatter", "scatter"},      {"reduce", "reduce"},
};
constexpr Op kP2pOps[] = {
    {"batchisendirecv", "batch_isend_irecv"},
    {"sendrecv", "send_recv"},
    {"isend", "send"},
    {"irecv", "recv"},
    {"send", "send"},
    {"recv", "recv"},
};

// The operation that a name contains; empty: none.
std::string_view op_in(std::string_view squeezed_name, std::span<const Op> ops) {
  for (const Op& op : ops)
    if (has_part(squeezed_name, op.squeezed)) return op.name;
  return {};
}

FrameMeaning strong(Where where, std::string_view op = {}) {
  return {FrameRole::kStrong, where, std::string(op)};
}
FrameMeaning weak(Where where) { return {FrameRole::kWeak, where, {}}; }
FrameMeaning of_role(FrameRole role) { return {role, Where::kHost, {}}; }
// Whether the library communicates through pipes and sockets.
FrameMeaning of_stream() { return {FrameRole::kLibrary, Where::kStream, {}}; }

// A collective by function name alone, for libraries in which every such name is a collective.
FrameMeaning communication(std::string_view name) {
  const std::string word = squeezed(name);
  if (const auto op = op_in(word, kOps); !op.empty()) return strong(Where::kCollective, op);
  if (const auto op = op_in(word, kP2pOps); !op.empty()) return strong(Where::kP2p, op);
  return of_role(FrameRole::kLibrary);
}

// ---- Python

bool is_distributed_file(std::string_view file, std::string_view base) {
  static constexpr std::array<std::string_view, 3> kBases = {"distributed_c10d.py", "c10d_logger.py",
                                                             "_functional_collectives.py"};
  static constexpr std::array<std::string_view, 5> kFolders = {"torch/distributed/nn/", "deepspeed/comm/",
                                                               "horovod/", "mpi4py/", "p2p_communication.py"};
  return is_one_of(base, kBases) || has_one(file, kFolders);
}

FrameMeaning distributed_python(std::string_view function) {
  if (has_part(function, "object_to_tensor") || has_part(function, "tensor_to_object")) return {};
  if (has_part(function, "_store_based_barrier")) return strong(Where::kStore);
  if (has_part(function, "init_process_group") || function == "_new_process_group_helper" ||
      has_part(function, "new_group"))
    return strong(Where::kStore);
  if (has_part(function, "destroy_process_group")) return strong(Where::kCollective, "destroy_process_group");
  return communication(function);
}

bool is_pipeline_transfer(std::string_view function) {
  return function.starts_with("send_forward") || function.starts_with("recv_forward") ||
         function.starts_with("send_backward") || function.starts_with("recv_backward");
}

// A program's own wrapper of an operation, as the innermost frame.
bool is_named_as_collective(std::string_view function) {
  const std::string word = squeezed(function);
  return word.starts_with("allreduce") || word.starts_with("reducescatter") ||
         word.starts_with("allgather") || word.starts_with("alltoall");
}

bool is_loader(std::string_view function, std::string_view file, std::string_view base) {
  static constexpr std::array<std::string_view, 4> kFolders = {"torch/utils/data/", "webdataset/",
                                                               "nvidia/dali/", "streaming/base/"};
  static constexpr std::array<std::string_view, 3> kBases = {"dataloader", "data_loader", "data_sampler"};
  static constexpr std::array<std::string_view, 6> kFunctions = {
      "next_batch", "get_batch", "load_batch", "_next_data", "_try_get_data", "get_next_batch"};
  // Only sample access counts as the data set's; its preparation is program work.
  static constexpr std::array<std::string_view, 4> kAccess = {"__getitem__", "__iter__", "__next__",
                                                              "__getitems__"};
  return has_one(file, kFolders) || has_one(base, kBases) || is_one_of(function, kFunctions) ||
         (has_part(base, "dataset") && is_one_of(function, kAccess));
}

bool is_checkpoint(std::string_view function, std::string_view file, std::string_view base) {
  if (file.ends_with("torch/utils/checkpoint.py")) return false;  // recomputes activations
  if (has_part(file, "distributed/checkpoint/")) return true;
  if (base == "serialization.py") return has_part(function, "save") || has_part(function, "load");
  return has_part(function, "save_checkpoint") || has_part(function, "load_checkpoint") ||
         (has_part(base, "checkpoint") && (has_part(function, "save") || has_part(function, "load")));
}

bool is_compiler(std::string_view file, std::string_view base) {
  static constexpr std::array<std::string_view, 9> kPlaces = {
      "torch/_inductor/compile_fx", "torch/_inductor/graph",          "torch/_inductor/scheduler",
      "torch/_inductor/codegen/",   "torch/_inductor/codecache",      "torch/_dynamo/convert_frame",
      "torch/_dynamo/output_graph", "torch/_dynamo/symbolic_convert", "triton/compiler/"};
  return has_one(file, kPlaces) || base == "cpp_extension.py";
}

FrameMeaning synchronisation(std::string_view function, std::string_view file, std::string_view base) {
  static constexpr std::array<std::string_view, 5> kWaits = {"wait", "acquire", "join", "__enter__",
                                                             "_wait_for_tstate_lock"};
  if (base == "threading.py" && function == "_shutdown") return strong(Where::kExit);
  if ((base == "threading.py" || base == "synchronize.py" || base == "locks.py") &&
      is_one_of(function, kWaits))
    return weak(Where::kLock);
  if (function == "acquire") return weak(Where::kLock);
  if (base == "queue.py" || base == "queues.py") return weak(Where::kLock);
  static constexpr std::array<std::string_view, 8> kFiles = {
      "connection.py", "selectors.py", "popen_fork.py", "process.py",
      "subprocess.py", "socket.py",    "ssl.py",        "client.py"};
  if (!is_one_of(base, kFiles) || has_part(file, "/site-packages/")) return {};
  // Python's own files are outside of packages.
  static constexpr std::array<std::string_view, 3> kBlocking = {"subprocess.py", "socket.py", "ssl.py"};
  const bool waits_for = has_part(function, "wait") || has_part(function, "communicate") ||
                         has_part(function, "read") || has_part(function, "recv") ||
                         has_part(function, "connect") || has_part(function, "accept");
  if (is_one_of(file, kBlocking) && waits_for) return weak(Where::kStream);
  return of_stream();
}

bool is_library_python(std::string_view file, std::string_view base) {
  static constexpr std::array<std::string_view, 6> kFolders = {"torch/",    "megatron/",   "deepspeed/",
                                                               "lightning", "accelerate/", "transformers/"};
  static constexpr std::array<std::string_view, 6> kBases = {
      "contextlib.py", "functools.py", "_contextlib.py", "runpy.py", "decorators.py", "_ops.py"};
  return begins_with_one(file, kFolders) || is_one_of(base, kBases);
}

FrameMeaning python_meaning(std::string_view function, std::string_view file) {
  const std::string_view base = base_name_of(file);
  if (base == "threading.py" && (has_part(function, "_bootstrap") || function == "run"))
    return of_role(FrameRole::kHidden);
  // Our own wrapper of an operation does not count as program code inside the operation.
  if (file == "culprit/distributed.py") return of_role(FrameRole::kHidden);
  if (base.starts_with("<frozen") || base == "runpy.py") return of_role(FrameRole::kHidden);
  static constexpr std::array<std::string_view, 3> kPrompts = {"pdb.py", "cmd.py", "bdb.py"};
  if (is_one_of(file, kPrompts) || file.starts_with("IPython/terminal/")) return strong(Where::kInput);
  // Transfers between pipeline stages, under the trainers' names.
  if ((function == "_communicate" && base != "subprocess.py") || is_pipeline_transfer(function))
    return strong(Where::kP2p, "send_recv");
  if (is_distributed_file(file, base)) return distributed_python(function);
  if (base == "rendezvous.py" || (has_part(file, "torch/distributed/") && has_part(base, "store")))
    return strong(Where::kStore);
  if (FrameMeaning m = synchronisation(function, file, base); m.role != FrameRole::kPlain) return m;
  if (has_part(file, "torch/cuda/") || has_part(file, "torch_npu/") || has_part(file, "torch/xpu/"))
    return has_part(function, "synchronize") || has_part(function, "wait") ? weak(Where::kDevice)
                                                                           : of_role(FrameRole::kLibrary);
  if (has_part(file, "torch/autograd/") || base == "graph.py")
    if (has_part(function, "run_backward") || (function == "backward" && base == "__init__.py") ||
        (function == "grad" && base == "__init__.py"))
      return weak(Where::kBackward);
  if (is_loader(function, file, base)) return strong(Where::kLoader);
  if (is_checkpoint(function, file, base)) return strong(Where::kSave);
  if (is_compiler(file, base)) return strong(Where::kCompile);
  if (has_part(function, "collect") && (base.starts_with("gc") || has_part(base, "_gc")))
    return strong(Where::kGarbage);
  if (is_named_as_collective(function)) return communication(function);
  return of_role(is_library_python(file, base) ? FrameRole::kLibrary : FrameRole::kPlain);
}

// Helper processes of a rank: they may have its variables and its position in a list of dumps.
bool is_of_helper(std::string_view function, std::string_view file) {
  static constexpr std::array<std::string_view, 5> kFiles = {
      "torch/distributed/elastic/agent/", "torch/distributed/launcher/", "torch/distributed/run.py",
      "multiprocessing/resource_tracker.py", "multiprocessing/forkserver.py"};
  return (function == "_worker_loop" && file.ends_with("torch/utils/data/_utils/worker.py")) ||
         begins_with_one(file, kFiles);
}

// ---- native

bool is_interpreter(std::string_view bare) {
  static constexpr std::array<std::string_view, 18> kBegins = {
      "PyEval",     "PyObject",     "PyFunction",   "PyCFunction",   "PyVectorcall", "PyRun",
      "Py_RunMain", "Py_BytesMain", "PyMethod",     "pymain",        "cfunction",    "method_vectorcall",
      "slot_tp",    "libc_start",   "start_thread", "object_vacall", "run_mod",      "pyrun"};
  static constexpr std::array<std::string_view, 5> kNames = {"start", "clone", "clone3", "main",
                                                             "thread_run"};
  return begins_with_one(bare, kBegins) || is_one_of(bare, kNames) ||
         has_part(bare, "pybind11::cpp_function");
}

bool is_neutral_wait(std::string_view bare) {
  static constexpr std::array<std::string_view, 14> kBegins = {
      "poll",    "epoll",        "select",           "pselect",
      "futex",   "pthread_cond", "do_futex",         "sched_yield",
      "syscall", "new_sem_wait", "internal_syscall", "lll_lock_wait",
      "recvmsg", "ppoll"};
  return begins_with_one(bare, kBegins) || has_part(bare, "condition_variable");
}

// On a file, pipe, socket or terminal.
bool is_stream_call(std::string_view bare) {
  return bare == "read" || bare == "readv" || bare == "write" || bare == "writev" || bare == "close";
}

bool is_prompt(std::string_view bare) {
  return bare.starts_with("builtin_input") || bare.starts_with("PyOS_Readline") ||
         bare.starts_with("PyOS_StdioReadline") || bare == "rl_getc" || bare == "rl_read_key" ||
         bare == "readline_until_enter_or_signal";
}

bool is_file_call(std::string_view bare) {
  static constexpr std::array<std::string_view, 15> kNames = {
      "pread",     "pread64",         "pwrite", "pwrite64", "open",  "open64",     "openat", "fsync",
      "fdatasync", "sync_file_range", "stat",   "fstatat",  "lstat", "getdents64", "unlink"};
  return is_one_of(bare, kNames) || bare.starts_with("openat") || bare.starts_with("fstatat");
}

FrameMeaning cuda_meaning(std::string_view bare) {
  static constexpr std::array<std::string_view, 9> kWaits = {"Synchronize", "Memcpy",      "LaunchKernel",
                                                             "EventQuery",  "StreamQuery", "Free",
                                                             "Memset",      "Launch",      "StreamWait"};
  static constexpr std::array<std::string_view, 4> kFamilies = {"cuda", "cu", "hip", "aclrt"};
  for (const std::string_view family : kFamilies)
    if (bare.starts_with(family) && bare.size() > family.size() && upper(bare[family.size()]))
      return weak(has_one(bare, kWaits) ? Where::kDevice : Where::kDeviceCall);
  if (bare.starts_with("nvml")) return weak(Where::kDeviceCall);
  return {};
}

FrameMeaning native_communication(std::string_view function, std::string_view bare, std::string_view file) {
  if (has_part(function, "TCPStore") || has_part(function, "PrefixStore") || has_part(function, "FileStore"))
    return strong(Where::kStore);
  if (bare.starts_with("ncclCommInit") || has_part(bare, "bootstrapInit") || bare.starts_with("HcclCommInit"))
    return strong(Where::kCollective, "communicator init");
  if (bare.starts_with("MPI_") || bare.starts_with("PMPI_") || bare.starts_with("ompi_coll")) {
    if (has_part(bare, "_Wait")) return strong(Where::kCollective, "wait");
    if (has_part(bare, "Finalize")) return strong(Where::kCollective, "finalize");
    return communication(bare.substr(bare.find('_') + 1));
  }
  if (bare.starts_with("ncclGroupEnd")) return strong(Where::kCollective, "group call");
  if (bare.starts_with("nccl") || bare.starts_with("Hccl") || bare.starts_with("pnccl"))
    return communication(bare);
  if (has_part(function, "c10d::") && (has_part(function, "Work") || has_part(function, "ProcessGroup"))) {
    const FrameMeaning named = communication(bare.substr(bare.rfind(':') + 1));
    if (named.role == FrameRole::kStrong) return named;
    if (has_part(function, "wait") || has_part(function, "synchronize"))
      return strong(Where::kCollective, "wait");
    return of_role(FrameRole::kLibrary);
  }
  if (function.starts_with("gloo::") || has_part(file, "libgloo")) {
    const FrameMeaning named = communication(function);
    return named.role == FrameRole::kStrong && !has_part(function, "transport")
               ? named
               : of_role(FrameRole::kLibrary);
  }
  return {};
}

FrameMeaning native_meaning(std::string_view function, std::string_view file) {
  std::string_view bare = function;
  if (bare.starts_with("__GI_")) bare.remove_prefix(5);
  while (bare.starts_with('_')) bare.remove_prefix(1);
  if (function == "?" || is_interpreter(bare)) return of_role(FrameRole::kHidden);
  if (bare.starts_with("libc_")) bare.remove_prefix(5);
  if (is_neutral_wait(bare)) return of_role(FrameRole::kNeutral);
  if (FrameMeaning m = native_communication(function, bare, file); m.role != FrameRole::kPlain) return m;
  if (FrameMeaning m = cuda_meaning(bare); m.role != FrameRole::kPlain) return m;
  if (bare.starts_with("PyThread_acquire_lock") || bare.starts_with("pthread_mutex") ||
      bare.starts_with("pthread_rwlock") || bare.starts_with("sem_"))
    return weak(Where::kLock);
  if (bare == "nanosleep" || bare == "clock_nanosleep" || bare == "usleep" || bare == "sleep")
    return weak(Where::kSleep);
  if (is_prompt(bare)) return weak(Where::kInput);
  if (is_stream_call(bare)) return weak(Where::kStream);
  if (is_file_call(bare)) return weak(Where::kFile);
  if (bare == "ioctl") return weak(Where::kDeviceCall);
  if (bare.starts_with("gc_collect") || bare.starts_with("PyGC")) return strong(Where::kGarbage);
  if (bare.starts_with("Py_Finalize") || bare == "exit") return strong(Where::kExit);
  if (has_part(function, "autograd::Engine::execute") || has_part(function, "PythonEngine::execute"))
    return weak(Where::kBackward);
  return of_role(FrameRole::kLibrary);
}

// Removes balanced groups of `open` and `close`; "(anonymous namespace)" stays as a word.
std::string without_groups(std::string_view text, char open, char close) {
  std::string out;
  size_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool arrow = c == '>' && i > 0 && text[i - 1] == '-';
    if (c == open && text.substr(i).starts_with("(anonymous namespace)") && depth == 0) {
      out += "{anonymous}";
      i += 20;
    } else if (c == open) {
      ++depth;
    } else if (c == close && depth > 0 && !arrow) {
      --depth;
    } else if (depth == 0) {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string_view phrase(Where where) {
  constexpr std::string_view kPhrases[kWheres] = {"in host code",
                                                  "in a collective",
                                                  "in a send or receive",
                                                  "in a rendezvous",
                                                  "waiting for its device",
                                                  "in the backward pass",
                                                  "in a call of the device driver",
                                                  "in the data loader",
                                                  "in a call of the file system",
                                                  "saving or loading a checkpoint",
                                                  "waiting for a lock",
                                                  "in the garbage collector",
                                                  "compiling",
                                                  "sleeping",
                                                  "at the end of its program",
                                                  "waiting for input",
                                                  "in a read or write of a file, pipe or socket"};
  return kPhrases[static_cast<size_t>(where)];
}

std::string normal_function(std::string_view function, bool native) {
  if (!native) return function.empty() ? "?" : std::string(function);
  if (const size_t at = function.find('@'); at != function.npos && at > 0) function = function.substr(0, at);
  if (const size_t at = function.rfind("+0x"); at != function.npos && at > 0)
    function = function.substr(0, at);
  if (function.starts_with("0x") || function == "??") return "?";
  std::string out = without_groups(function, '(', ')');
  if (!has_part(out, "operator")) out = without_groups(out, '<', '>');
  for (const std::string_view suffix : {" const", ".cold"})
    if (out.ends_with(suffix)) out.erase(out.size() - suffix.size());
  for (const std::string_view clone : {".constprop", ".isra", ".part", "[clone", "[abi:"})
    if (const size_t at = out.find(clone); at != out.npos && at > 0) out.erase(at);
  while (out.ends_with(' ')) out.pop_back();
  // A function template's return type precedes its name.
  if (const size_t blank = out.rfind(' '); blank != out.npos && !has_part(out, "operator"))
    out.erase(0, blank + 1);
  return out.empty() ? "?" : out;
}

std::string normal_file(std::string_view file, bool native) {
  if (native) {
    std::string_view base = base_name_of(file);
    if (const size_t so = base.find(".so."); so != base.npos) base = base.substr(0, so + 3);
    return std::string(base);
  }
  for (const std::string_view mark : {"site-packages/", "dist-packages/"})
    if (const size_t at = file.rfind(mark); at != file.npos)
      return std::string(file.substr(at + mark.size()));
  for (const std::string_view package : {"torch/", "megatron/", "deepspeed/", "culprit/"}) {
    if (file.starts_with(package)) return std::string(file);
    if (const size_t at = file.rfind(std::string("/") + std::string(package)); at != file.npos)
      return std::string(file.substr(at + 1));
  }
  // The standard library.
  if (const size_t at = file.rfind("/python3."); at != file.npos)
    if (const size_t end = file.find('/', at + 1); end != file.npos) return std::string(file.substr(end + 1));
  return std::string(base_name_of(file));
}

FrameMeaning meaning_of(std::string_view function, std::string_view file, bool native) {
  if (native) return native_meaning(function, file);
  FrameMeaning out = python_meaning(function, file);
  out.helper = is_of_helper(function, file);
  return out;
}

}  // namespace culprit::stacks
