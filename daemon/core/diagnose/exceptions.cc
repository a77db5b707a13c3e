#include "core/diagnose/exceptions.h"

#include <algorithm>
#include <iterator>

namespace culprit::diagnose {
namespace {

using sv = std::string_view;

struct Row {
  sv name;  // "" any
  sv text;  // must stand in the line
  ExceptionKind kind;
};

constexpr ExceptionKind kCode{Category::kUser, Component::kUserCode, false, false};
constexpr ExceptionKind kConfig{Category::kUser, Component::kUserConfig, false, false};
constexpr ExceptionKind kData{Category::kUser, Component::kUserData, false, false};
constexpr ExceptionKind kDependency{Category::kUser, Component::kDependency, true, false};
constexpr ExceptionKind kMemory{Category::kUser, Component::kGpuMemory, false, false};
constexpr ExceptionKind kStorage{Category::kPlatform, Component::kStorage, true, false};
constexpr ExceptionKind kDriver{Category::kPlatform, Component::kDriver, true, false};
constexpr ExceptionKind kDevice{Category::kHardware, Component::kGpu, true, false};
constexpr ExceptionKind kRuntime{Category::kUnknown, Component::kUnknown, true, false};
constexpr ExceptionKind kMismatch{Category::kUser, Component::kNcclComm, true, false};
constexpr ExceptionKind kPeer{Category::kUnknown, Component::kNcclComm, false, true};
constexpr ExceptionKind kChild{Category::kUnknown, Component::kUnknown, false, true};
constexpr ExceptionKind kCuda{Category::kUnknown, Component::kCudaRuntime, true, false};
constexpr ExceptionKind kStopped{Category::kPlatform, Component::kPlatform, false, true};

// First match wins: what the message says before what the type says.
constexpr Row kRows[] = {
    {"", "CUDA out of memory", kMemory},
    {"", "RESOURCE_EXHAUSTED", kMemory},
    {"", "out of memory", kMemory},
    {"", "No CUDA GPUs are available", kDriver},
    {"", "driver version", kDriver},
    {"", "no CUDA-capable device", kDriver},
    {"", "uncorrectable", kDevice},
    {"", "ECC error", kDevice},
    {"", "device-side assert", kCode},
    {"", "illegal memory access", kCode},
    {"", "version mismatch", kMismatch},
    {"", "Mismatched versions", kMismatch},
    {"", "must match the size", kCode},
    {"", "shapes cannot be multiplied", kCode},
    {"", "size mismatch", kCode},
    {"OutOfMemoryError", "", kMemory},
    {"ModuleNotFoundError", "", kDependency},
    {"ImportError", "", kDependency},
    {"PackageNotFoundError", "", kDependency},
    {"", "undefined symbol", kDependency},
    {"", "[Errno 28]", kStorage},
    {"", "[Errno 116]", kStorage},
    {"", "[Errno 5]", kStorage},
    {"FileNotFoundError", "", kConfig},
    {"PermissionError", "", kConfig},
    {"NotADirectoryError", "", kConfig},
    {"ChildFailedError", "", kChild},
    {"CalledProcessError", "", kChild},
    {"ProcessExitedException", "", kChild},
    {"ProcessRaisedException", "", kChild},
    {"SignalException", "", kStopped},
    {"KeyboardInterrupt", "", kStopped},
    {"SystemExit", "", kChild},
    {"", "NCCL error", kPeer},
    {"", "ncclRemoteError", kPeer},
    {"", "ncclSystemError", kPeer},
    {"", "ncclInternalError", kPeer},
    {"DistBackendError", "", kPeer},
    {"DistNetworkError", "", kPeer},
    {"DistStoreError", "", kPeer},
    {"", "Connection reset by peer", kPeer},
    {"", "Connection closed by peer", kPeer},
    {"ConnectionResetError", "", kPeer},
    {"ConnectionRefusedError", "", kPeer},
    {"ConnectionError", "", kPeer},
    {"BrokenPipeError", "", kPeer},
    {"EOFError", "", kPeer},
    {"TimeoutError", "", kPeer},
    {"", "CUDA error", kCuda},
    {"AcceleratorError", "", kCuda},
    {"UnicodeDecodeError", "", kData},
    {"JSONDecodeError", "", kData},
    {"UnpicklingError", "", kData},
    {"ArgumentError", "", kConfig},
    {"ConfigError", "", kConfig},
    {"RuntimeError", "", kRuntime},
    {"XlaRuntimeError", "", kRuntime},
    {"OSError", "", kStorage},
    {"IOError", "", kStorage},
    {"LustreError", "", kStorage},
    {"ValidationError", "", kConfig},
};

// What a program's own mistakes raise; other kinds may come from anywhere.
constexpr sv kMistakes[] = {
    "TypeError",         "ValueError",      "KeyError",    "AttributeError",    "AssertionError",
    "IndexError",        "NameError",       "SyntaxError", "ZeroDivisionError", "NotImplementedError",
    "UnboundLocalError", "RecursionError",  "LookupError", "ArithmeticError",   "FloatingPointError",
    "StopIteration",     "IndentationError"};

}  // namespace

std::string_view exception_name(std::string_view text) {
  const sv name = text.substr(0, text.find(':'));
  const size_t dot = name.rfind('.');
  return dot == sv::npos ? name : name.substr(dot + 1);
}

ExceptionKind exception_kind(std::string_view text) {
  const sv name = exception_name(text);
  for (const Row& row : kRows) {
    if (!row.name.empty() && name != row.name) continue;
    if (!row.text.empty() && text.find(row.text) == sv::npos) continue;
    return row.kind;
  }
  return std::find(std::begin(kMistakes), std::end(kMistakes), name) != std::end(kMistakes) ? kCode
                                                                                            : kRuntime;
}

}  // namespace culprit::diagnose
