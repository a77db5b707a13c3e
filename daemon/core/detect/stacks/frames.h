// Classifies a stack frame: its normalized form, for comparison between ranks, and the kind of place, from
// general knowledge of Python, PyTorch, NCCL, MPI, CUDA and libc. Pure; any thread. Names are untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::stacks {

// Where a process is. kDevice (waits for its device) and kBackward (another thread computes) prove nothing: a
// device that waits in a collective makes its process wait too.
enum class Where : uint8_t {
  kHost,
  kCollective,
  kP2p,
  kStore,  // rendezvous, and waits for store keys
  kDevice,
  kBackward,
  kDeviceCall,  // a driver call that does not wait for device work
  kLoader,
  kFile,
  kSave,  // saves or loads a checkpoint
  kLock,
  kGarbage,
  kCompile,
  kSleep,
  kExit,
  kInput,   // waits for user input: a debugger's prompt, input()
  kStream,  // reads or writes a file, pipe, socket or terminal; which one is unknown
};
constexpr size_t kWheres = 17;
// "in a collective", "in the data loader", ...
std::string_view phrase(Where where);
// Waits for other ranks.
constexpr bool waits(Where w) { return w == Where::kCollective || w == Where::kP2p || w == Where::kStore; }
// Evidence neither for nor against the rank.
constexpr bool is_open(Where w) { return w == Where::kDevice || w == Where::kBackward; }

enum class FrameRole : uint8_t {
  kPlain,    // code of the program
  kLibrary,  // code of a library, which proves nothing
  kNeutral,  // a C library wait in which every kind of waiting ends
  kWeak,     // gives the place unless an outer frame is more specific
  kStrong,   // gives the place
  kHidden,   // machinery of the interpreter or of threads: never shown
};

struct FrameMeaning {
  FrameRole role = FrameRole::kPlain;
  Where where = Where::kHost;
  std::string op;       // of a collective: "all_reduce"
  bool helper = false;  // belongs to a process that trains nothing: a loader's worker, a launcher
};

// Removes addresses, symbol versions, template arguments and parameters; "?" if nothing is left.
std::string normal_function(std::string_view function, bool native);
// Removes installation folders: "torch/nn/modules/module.py", "train.py", "libcuda.so".
std::string normal_file(std::string_view file, bool native);

// Takes normalized names.
FrameMeaning meaning_of(std::string_view function, std::string_view file, bool native);

}  // namespace culprit::stacks
