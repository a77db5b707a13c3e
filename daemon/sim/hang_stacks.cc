// Stack dumps of each live process: py-spy's JSON and text, faulthandler, gdb, eu-stack.
#include <filesystem>

#include <fmt/format.h>

#include "base/hash.h"
#include "sim/files.h"
#include "sim/hang_state.h"

namespace culprit::sim {
namespace {

struct NativeFrame {
  std::string_view function, module, source;
};

// Leaves below Python, innermost first.
std::vector<NativeFrame> native_frames(HangPlace place, bool waits) {
  constexpr std::string_view kC = "/usr/lib/x86_64-linux-gnu/libc.so.6", kCuda = "/usr/lib/libcuda.so.1",
                             kRuntime = "/usr/lib/libcudart.so.12", kTorch = "/usr/lib/libtorch_cuda.so",
                             kPython = "/usr/bin/python3.11";
  if (waits)
    return {{"__sched_yield", kC, "../sysdeps/unix/syscall-template.S:120"},
            {"cuStreamSynchronize", kCuda, ""},
            {"cudaStreamSynchronize", kRuntime, ""},
            {place == HangPlace::kNorm || place == HangPlace::kBarrier || place == HangPlace::kEnd
                 ? "at::native::_local_scalar_dense_cuda"
                 : "THCPModule_cudaSynchronize",
             kTorch, ""}};
  switch (place) {
    case HangPlace::kLoader:
      return {{"__GI___poll", kC, "../sysdeps/unix/sysv/linux/poll.c:29"}, {"select_poll_poll", kPython, ""}};
    case HangPlace::kLock:
      return {{"__futex_abstimed_wait_common", kC, "./nptl/futex-internal.c:57"},
              {"sem_clockwait", kC, "./nptl/sem_clockwait.c:48"},
              {"PyThread_acquire_lock_timed", kPython, ""},
              {"lock_PyThread_acquire_lock", kPython, ""}};
    case HangPlace::kGarbage:
      return {{"subtract_refs", kPython, ""}, {"gc_collect_main", kPython, ""}, {"gc_collect", kPython, ""}};
    case HangPlace::kSave:
      return {{"__libc_write", kC, "../sysdeps/unix/sysv/linux/write.c:26"},
              {"caffe2::serialize::PyTorchStreamWriter::writeRecord", kTorch, ""}};
    case HangPlace::kTokenize:
      return {{"core::iter::traits::iterator::Iterator::try_fold", "/usr/lib/tokenizers.abi3.so", ""},
              {"tokenizers::models::bpe::model::BPE::merge_word", "/usr/lib/tokenizers.abi3.so", ""}};
    default:
      return {{"cuLaunchKernel", kCuda, ""},
              {"cudaLaunchKernel", kRuntime, ""},
              {"at::native::gemm_cuda", kTorch, ""}};
  }
}

class StackText {
 public:
  StackText(const HangState& hang_state, uint32_t rank)
      : s_(hang_state.site),
        r_(rank),
        place_(hang_state.place_of(rank)),
        waits_(hang_state.in_sync(rank)),
        frames_(hang_frames(s_, place_, waits_)),
        native_(native_frames(place_, waits_)) {}

  std::string make(StackForm form) {
    switch (form) {
      case StackForm::kPySpyJson:
        return py_spy_json();
      case StackForm::kPySpyText:
        return py_spy_text();
      case StackForm::kFaultHandler:
        return fault_handler();
      case StackForm::kGdb:
        return gdb();
      case StackForm::kEuStack:
        break;
    }
    return eu_stack();
  }

 private:
  uint32_t pid() const { return s_.pid_of(r_); }
  uint64_t thread(uint32_t n) const {
    return 0x7f0000000000ull + mix64(s_.seed, r_ * 8 + n) % 0xffffffffffull;
  }
  uint64_t address(std::string_view function) const {
    return 0x7f1000000000ull + mix64(s_.seed ^ r_, hash64(function)) % 0xfffffffffull;
  }
  // Whether the main thread runs (Python, or C code that does not sleep).
  bool active() const {
    return waits_ || place_ == HangPlace::kForward || place_ == HangPlace::kGarbage ||
           place_ == HangPlace::kTokenize;
  }
  std::string short_name(const std::string& file) const {
    const size_t at = file.find("site-packages/");
    return at == std::string::npos ? file.substr(file.rfind('/') + 1) : file.substr(at + 14);
  }

  std::string frame_json(const HangFrame& one) const {
    return fmt::format(
        "{{\"name\":\"{}\",\"filename\":\"{}\",\"module\":null,\"short_filename\":\"{}\",\"line\":{},"
        "\"locals\":null,\"is_entry\":false}}",
        one.function, one.file, short_name(one.file), one.line);
  }
  std::string thread_json(std::string_view name, uint32_t n, bool active,
                          const std::vector<HangFrame>& frames) const {
    std::string list;
    for (const HangFrame& one : frames) list += (list.empty() ? "" : ",") + frame_json(one);
    return fmt::format(
        "{{\"pid\":{},\"thread_id\":{},\"thread_name\":\"{}\",\"os_thread_id\":{},\"active\":{},"
        "\"owns_gil\":{},\"frames\":[{}],\"process_info\":null}}",
        pid(), thread(n), name, pid() + n, active, active && n == 0 && !waits_, list);
  }
  std::vector<HangFrame> helper() const {
    return {{"wait", "/usr/lib/python3.11/threading.py", 331},
            {"wait", "/usr/lib/python3.11/threading.py", 629},
            {"run", "/usr/lib/python3.11/site-packages/tqdm/_monitor.py", 60},
            {"_bootstrap_inner", "/usr/lib/python3.11/threading.py", 1045},
            {"_bootstrap", "/usr/lib/python3.11/threading.py", 1002}};
  }
  std::string py_spy_json() const {
    return fmt::format("[{},{}]\n", thread_json("MainThread", 0, active(), frames_),
                       thread_json("Thread-1", 1, false, helper()));
  }
  std::string py_spy_thread(std::string_view name, uint32_t n, std::string_view state,
                            const std::vector<HangFrame>& frames) const {
    std::string out = fmt::format("Thread 0x{:X} ({}): \"{}\"\n", thread(n), state, name);
    for (const HangFrame& one : frames)
      out += fmt::format("    {} ({}:{})\n", one.function, short_name(one.file), one.line);
    return out;
  }
  std::string py_spy_text() const {
    return fmt::format(
               "Process {}: /usr/bin/python3 -u run.py --config run.yaml\nPython v3.11.9 "
               "(/usr/bin/python3.11)\n\n",
               pid()) +
           py_spy_thread("MainThread", 0, active() ? (waits_ ? "active" : "active+gil") : "idle", frames_) +
           py_spy_thread("Thread-1", 1, "idle", helper());
  }
  std::string fault_thread(std::string_view title, const std::vector<HangFrame>& frames) const {
    std::string out = fmt::format("{} (most recent call first):\n", title);
    for (const HangFrame& one : frames)
      out += fmt::format("  File \"{}\", line {} in {}\n", one.file, one.line, one.function);
    return out;
  }
  std::string fault_handler() const {
    return fault_thread(fmt::format("Thread 0x{:016x}", thread(1)), helper()) + "\n" +
           fault_thread(fmt::format("Current thread 0x{:016x}", thread(0)), frames_);
  }
  std::string gdb_thread(uint32_t number, uint32_t n, std::string_view name,
                         const std::vector<NativeFrame>& frames) const {
    std::string out =
        fmt::format("\nThread {} (Thread 0x{:x} (LWP {}) \"{}\"):\n", number, thread(n), pid() + n, name);
    int at = 0;
    for (const NativeFrame& one : frames)
      out += fmt::format(
          "#{:<2} 0x{:016x} in {} (){}\n", at++, address(one.function), one.function,
          one.source.empty() ? fmt::format(" from {}", one.module) : fmt::format(" at {}", one.source));
    return out;
  }
  // Python is one function to a native stack.
  std::vector<NativeFrame> whole() const {
    std::vector<NativeFrame> out = native_;
    constexpr std::string_view kPython = "/usr/bin/python3.11";
    for (size_t i = 0; i < frames_.size() / 3 + 1; ++i) {
      out.push_back({"_PyEval_EvalFrameDefault", kPython, ""});
      out.push_back({"_PyFunction_Vectorcall", kPython, ""});
    }
    out.push_back({"Py_RunMain", kPython, ""});
    out.push_back({"Py_BytesMain", kPython, ""});
    out.push_back({"__libc_start_call_main", "/usr/lib/x86_64-linux-gnu/libc.so.6",
                   "../sysdeps/nptl/libc_start_call_main.h:58"});
    return out;
  }
  std::vector<NativeFrame> watchdog() const {
    constexpr std::string_view kC = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    return {{"__futex_abstimed_wait_common", kC, "./nptl/futex-internal.c:57"},
            {"___pthread_cond_clockwait64", kC, "./nptl/pthread_cond_wait.c:682"},
            {"c10d::ProcessGroupNCCL::watchdogHandler", "/usr/lib/libtorch_cuda.so", ""},
            {"start_thread", kC, "./nptl/pthread_create.c:442"}};
  }
  std::string gdb() const {
    return gdb_thread(2, 1, "pt_nccl_watchdg", watchdog()) + gdb_thread(1, 0, "python3", whole());
  }
  std::string eu_thread(uint32_t n, const std::vector<NativeFrame>& frames) const {
    std::string out = fmt::format("TID {}:\n", pid() + n);
    int at = 0;
    for (const NativeFrame& one : frames)
      out += fmt::format("#{:<2} 0x{:016x} {} - {}\n", at++, address(one.function), one.function, one.module);
    return out;
  }
  std::string eu_stack() const {
    return fmt::format("PID {} - process\n", pid()) + eu_thread(0, whole()) + eu_thread(1, watchdog());
  }

  const HangSite& s_;
  const uint32_t r_;
  const HangPlace place_;
  const bool waits_;
  const std::vector<HangFrame> frames_;
  const std::vector<NativeFrame> native_;
};

}  // namespace

Status write_hang_stacks(const HangState& c, const std::string& folder) {
  const HangSite& s = c.site;
  for (uint32_t r = 0; r < s.world; ++r) {
    const bool stopped = c.fault.end == HangEnd::kStopped && c.fault.is_at_fault(r);
    if (!c.captured[r] || c.fault.is_removed(r)) continue;
    // A stopped process does not run the handler of a signal.
    if (stopped && s.stack_form == StackForm::kFaultHandler) continue;
    const std::string own = fmt::format("{}/stacks/{}", folder, s.host_name(r));
    std::filesystem::create_directories(own);
    const std::string path =
        fmt::format("{}/rank_{}.{}", own, r, s.stack_form == StackForm::kPySpyJson ? "json" : "txt");
    if (Status status = write_text(path, StackText(c, r).make(s.stack_form)); !status) return status;
  }
  return {};
}

}  // namespace culprit::sim
