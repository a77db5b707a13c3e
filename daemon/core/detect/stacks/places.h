// The place of a process at the time of a dump: the relevant thread and the telling frame. Pure.
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
  std::vector<CodePlace> frames;  // of the relevant thread, from the telling frame on, innermost first
  size_t tells = 0;               // index of the telling frame in `frames`; those before it are its callees
  bool proven = false;            // a frame gives the place; false: only program code is known
  bool blind = false;             // no frame has a name: the place is unknown
  bool whole = false;             // the innermost call is visible: no hidden call can be a device wait
  bool helper = false;            // not a rank's own process: a loader's worker, a launcher
  bool stopped = false;           // by a signal, a debugger or a frozen cgroup
  bool in_loader = false;         // kFile: read for the data loader
  bool in_save = false;           // kFile: of a checkpoint
  std::string site;               // the program's line that called the collective
};

// Whether the place is evidence: without a frame, only the kernel's state is.
inline bool is_usable(const Found& found) {
  return !found.frames.empty() || found.stopped || (found.where == Where::kFile && found.proven);
}
// Whether the process is certainly at this place, and not in a call that Python's stack hides.
inline bool is_sure(const Found& found) { return found.proven || found.stopped || found.whole; }

// The place of the thread with this path.
Found place_of(const Samples& samples, PathId path);
// The place of the main thread; if it waits for the backward pass, that of the computing thread.
Found place_of(const Samples& samples, const Sample& sample);

// "distributed_c10d.py:all_reduce:2805".
std::string shown(const Frame& frame, uint32_t line);

}  // namespace culprit::stacks
