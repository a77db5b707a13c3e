#include "core/diagnose/exceptions.h"

#include <algorithm>
#include <iterator>
#include <string>

namespace culprit::diagnose {
namespace {

using sv = std::string_view;

struct Row {
  sv name;  // "" any
  sv text;  // must stand in the line; lower case
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
    {"", "resource_exhausted", kMemory},
    {"", "out of memory", kMemory},
    {"", "no cuda gpus are available", kDriver},
    {"", "driver version", kDriver},
    {"", "nvml", kDriver},
    {"", "no cuda-capable device", kDriver},
    {"", "uncorrectable", kDevice},
    {"", "ecc error", kDevice},
    {"", "device-side assert", kCode},
    {"", "illegal memory access", kCode},
    {"", "version mismatch", kMismatch},
    {"", "mismatched versions", kMismatch},
    {"", "must match the size", kCode},
    {"", "shapes cannot be multiplied", kCode},
    {"", "size mismatch", kCode},
    {"OutOfMemoryError", "", kMemory},
    {"ModuleNotFoundError", "", kDependency},
    {"ImportError", "", kDependency},
    {"PackageNotFoundError", "", kDependency},
    {"", "undefined symbol", kDependency},
    {"", "[errno 28]", kStorage},
    {"", "[errno 116]", kStorage},
    {"", "[errno 5]", kStorage},
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
    {"", "nccl error", kPeer},
    {"", "ncclremoteerror", kPeer},
    {"", "ncclsystemerror", kPeer},
    {"", "ncclinternalerror", kPeer},
    {"DistBackendError", "", kPeer},
    {"DistNetworkError", "", kPeer},
    {"DistStoreError", "", kPeer},
    {"", "connection reset by peer", kPeer},
    {"", "connection closed by peer", kPeer},
    {"ConnectionResetError", "", kPeer},
    {"ConnectionRefusedError", "", kPeer},
    {"ConnectionError", "", kPeer},
    {"BrokenPipeError", "", kPeer},
    {"EOFError", "", kPeer},
    {"TimeoutError", "", kPeer},
    {"", "cuda error", kCuda},
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
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  for (const Row& row : kRows) {
    if (!row.name.empty() && name != row.name) continue;
    if (!row.text.empty() && lower.find(row.text) == sv::npos) continue;
    return row.kind;
  }
  return std::find(std::begin(kMistakes), std::end(kMistakes), name) != std::end(kMistakes) ? kCode
                                                                                            : kRuntime;
}

}  // namespace culprit::diagnose
