#include "core/diagnose/exceptions.h"

#include <cstdint>

namespace culprit::diagnose {
namespace {

using sv = std::string_view;

struct Row {
  sv name;  // "" any
  sv text;  // must stand in the line
  ExceptionKind kind;
};

constexpr ExceptionKind kCode{Category::kUser, Component::kUserCode, false};
constexpr ExceptionKind kConfig{Category::kUser, Component::kUserConfig, false};
constexpr ExceptionKind kData{Category::kUser, Component::kUserData, false};
constexpr ExceptionKind kDependency{Category::kUser, Component::kDependency, false};
constexpr ExceptionKind kMemory{Category::kUser, Component::kGpuMemory, false};
constexpr ExceptionKind kStorage{Category::kPlatform, Component::kStorage, false};
constexpr ExceptionKind kPeer{Category::kUnknown, Component::kNcclComm, true};
constexpr ExceptionKind kChild{Category::kUnknown, Component::kUnknown, true};
constexpr ExceptionKind kCuda{Category::kUnknown, Component::kCudaRuntime, false};
constexpr ExceptionKind kStopped{Category::kPlatform, Component::kPlatform, true};

// First match wins: what the message says before what the type says.
constexpr Row kRows[] = {
    {"", "CUDA out of memory", kMemory},
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
    {"ValidationError", "", kConfig},
};

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
  return kCode;
}

}  // namespace culprit::diagnose
