// System calls of the daemon's code that fail on request. The linker's --wrap leads every such call of
// fault_sweep's objects here; the calls of the C++ library, with which a scenario changes files, stay as they
// are. Only calls while `running` are counted. One thread.
#pragma once

#include <cstdint>
#include <functional>

namespace culprit::fault {

enum class Calls : uint8_t {
  kAll,
  kWrites,         // those that need room on a disk
  kInterruptible,  // those that a signal may interrupt
  kTransfers,      // those that may transfer fewer bytes than requested
};

struct Plan {
  Calls calls = Calls::kAll;
  uint64_t nth = 0;                   // the first call that fails, from 1; 0: none
  uint64_t count = 1;                 // how many calls from there on are in the plan; 0: all
  uint64_t each = 1;                  // 2: every second one of them fails
  std::function<void()> before = {};  // called instead: the calls work
  int error = 0;                      // errno; 0: half of the bytes are transferred
  bool ends = false;  // kill -9: none of these calls changes anything; half of the first write is written
};

void arm(const Plan& plan);
uint64_t counted();  // calls of the plan's kind since arm()
bool fired();        // whether one failed since arm()
bool killed();       // a plan that `ends` has fired
extern bool running;

}  // namespace culprit::fault
