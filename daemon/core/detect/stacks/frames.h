// What a frame of a stack says: its normal form, by which stacks of different ranks compare, and the kind of
// place that it is, from general knowledge of Python, PyTorch, NCCL, MPI, CUDA and libc. Pure; any thread.
// Names are untrusted.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace culprit::stacks {

// Where a process is. Of kDevice (it waits for its device) and kBackward (another thread computes) nothing
// follows: a device that waits in a collective makes its process wait as well.
enum class Where : uint8_t {
  kHost,
  kCollective,
  kP2p,
  kStore,  // rendezvous, and waits for keys of a store
  kDevice,
  kBackward,
  kDeviceCall,  // a call of the driver that does not wait for work of the device
  kLoader,
  kFile,
  kSave,  // saves or loads a checkpoint
  kLock,
  kGarbage,
  kCompile,
  kSleep,
  kExit,
  kInput,   // of a person: a debugger's prompt, input()
  kStream,  // reads or writes a file, a pipe, a socket or a terminal: which one is not known
};
constexpr size_t kWheres = 17;
// "in a collective", "in the data loader", ...
std::string_view phrase(Where where);
// Waits for other ranks.
constexpr bool waits(Where w) { return w == Where::kCollective || w == Where::kP2p || w == Where::kStore; }
// Says nothing for or against the rank.
constexpr bool is_open(Where w) { return w == Where::kDevice || w == Where::kBackward; }

enum class FrameRole : uint8_t {
  kPlain,    // code of the program
  kLibrary,  // code of a library, which proves nothing
  kNeutral,  // a wait of the C library that every kind of waiting ends in
  kWeak,     // tells where it is unless a frame outside of it tells more
  kStrong,   // tells where it is
  kHidden,   // machinery of the interpreter or of threads: never shown
};

struct FrameMeaning {
  FrameRole role = FrameRole::kPlain;
  Where where = Where::kHost;
  std::string op;       // of a collective: "all_reduce"
  bool helper = false;  // of a process that trains nothing: a loader's worker, a launcher
};

// Without addresses, versions of symbols, template arguments and parameters; "?" if nothing is left.
std::string normal_function(std::string_view function, bool native);
// Without the folders of an installation: "torch/nn/modules/module.py", "train.py", "libcuda.so".
std::string normal_file(std::string_view file, bool native);

// Of normal names.
FrameMeaning meaning_of(std::string_view function, std::string_view file, bool native);

}  // namespace culprit::stacks
