// Records which rule or plugin ran when the process died. If memory ran out, also the engine's job and the
// inputs being read. The record is a page of a file, mapped shared, so it survives any end of the process. It
// is set before a rule's function, an in-process plugin, an engine or a reader runs and cleared afterwards;
// the next start reads it. A write costs some nanoseconds and cannot fail: the page is allocated when the
// file is created, so a full disk cannot cause SIGBUS.
//
// Threads: the engine's thread calls enter(), leave() and enter_job(); each reader's thread calls
// enter_input() with its own Reader. The start calls open(), read_and_reset(), begin_run() and
// record_failed_allocations(). The loop calls beat(), mark_over_time() when the engine hangs, and leave() and
// end_run() when the process ends for another reason.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::app {

class BlackBox {
 public:
  enum class Kind : uint32_t { kNone = 0, kRule = 1, kPlugin = 2, kJob = 3, kInput = 4 };
  // Readers of input from other programs.
  enum class Reader : uint32_t { kDumps = 0, kRas = 1 };
  static constexpr size_t kReaders = 2;
  static constexpr size_t kInputBytes = 1024;  // limit of an input's name; longer names are cut
  struct Crashed {
    Kind kind = Kind::kNone;
    std::string id;
    uint64_t text_hash = 0;  // hash of the rule's text at that time
    bool over_time = false;  // the rule ran longer than the watchdog allows
  };

  // Creates the file if it is missing; replaces a file that is no black box.
  static Result<BlackBox> open(const std::string& path);
  BlackBox() = default;  // without a file: records nothing
  ~BlackBox();
  BlackBox(BlackBox&& other) noexcept;
  BlackBox& operator=(BlackBox&& other) noexcept;

  // The rule or plugin that the previous process died in; returned once.
  std::optional<Crashed> read_and_reset();

  void enter(Kind kind, std::string_view id, uint64_t text_hash) noexcept;
  void leave() noexcept;
  // Marks the rule or plugin that runs now, if any, as the cause of the hang.
  void mark_over_time() noexcept;

  // How the previous process ended, if it did not call end_run().
  struct UncleanEnd {
    bool out_of_memory = false;  // an allocation failed, or the kernel killed a process for lack of memory
                                 // meanwhile
    std::string job;             // job that an engine worked on; empty: none
    std::array<std::string, kReaders> inputs = {};  // inputs being read, by Reader; empty: none
  };
  // Begins this process's run. `oom_kills`: kills by the kernel for lack of memory, of the whole host.
  std::optional<UncleanEnd> begin_run(uint64_t oom_kills);
  // Sign of life of this process: earlier kills hit other processes.
  void beat(uint64_t oom_kills) noexcept;
  void end_run() noexcept;
  // The job that the engine works on; empty: none.
  void enter_job(std::string_view job) noexcept;
  // The input that is read now; empty: none.
  void enter_input(Reader reader, std::string_view name) noexcept;
  // From now on records each failed allocation by `new` here. Call for only one box per process.
  void record_failed_allocations() noexcept;

 private:
  struct Page;
  Page* page_ = nullptr;
};

}  // namespace culprit::app
