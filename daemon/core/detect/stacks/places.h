// Where a process is at the time of a dump: the thread that matters, and the frame that tells. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/detect/stacks/samples.h"

namespace culprit::stacks {

struct Found {
  Where where = Where::kHost;
  std::string op;                 // of a collective
  std::vector<CodePlace> frames;  // of the thread that matters from the telling frame on, innermost first
  size_t tells = 0;               // index of the telling frame in `frames`: those before it are its own
  bool proven = false;            // a frame tells it; false: code of the program is all that is known
  bool blind = false;             // no frame has a name: it may be anywhere
  bool whole = false;             // the innermost call is seen: no hidden one can be a wait for the device
  bool helper = false;            // the process is no rank's own: a loader's worker, a launcher
  bool stopped = false;           // by a signal, a debugger or a frozen cgroup
  bool in_loader = false;         // kFile: read for the data loader
  bool in_save = false;           // kFile: of a checkpoint
  std::string site;               // of a collective: the program's line that called it
};

// Whether it says anything: without a frame only the kernel's state does.
inline bool is_usable(const Found& found) {
  return !found.frames.empty() || found.stopped || (found.where == Where::kFile && found.proven);
}
// Whether the process is known to be there, and not in a call that Python's stack does not show.
inline bool is_sure(const Found& found) { return found.proven || found.stopped || found.whole; }

// Where the thread with this path stands.
Found place_of(const Samples& samples, PathId path);
// Of the main thread; where that waits for the backward pass, of the thread that computes it.
Found place_of(const Samples& samples, const Sample& sample);

// "distributed_c10d.py:all_reduce:2805".
std::string shown(const Frame& frame, uint32_t line);

}  // namespace culprit::stacks
