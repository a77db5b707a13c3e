// Names the rule or plugin that ran when the process died. The record is a page of a file, mapped shared, so
// it survives any end of the process. It is written before a rule's function or an in-process plugin runs and
// cleared afterwards; the next start reads it. A write costs some nanoseconds and cannot fail: the page is
// allocated when the file is created, so a full disk cannot cause SIGBUS.
//
// Threads: the engine's thread calls enter() and leave(). The start calls open() and read_and_reset(). The
// loop calls mark_over_time() when the engine hangs, and leave() when the process ends for another reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::app {

class BlackBox {
 public:
  enum class Kind : uint32_t { kNone = 0, kRule = 1, kPlugin = 2 };
  struct Crashed {
    Kind kind = Kind::kNone;
    std::string id;
    uint64_t text_hash = 0;  // of the rule's text at that time
    bool over_time = false;  // it ran longer than the watchdog allows
  };

  // Creates the file if it is missing; replaces a file that is no black box.
  static Result<BlackBox> open(const std::string& path);
  BlackBox() = default;  // without a file: nothing is kept
  ~BlackBox();
  BlackBox(BlackBox&& other) noexcept;
  BlackBox& operator=(BlackBox&& other) noexcept;

  // The rule or plugin that the previous process died in; returned once.
  std::optional<Crashed> read_and_reset();

  void enter(Kind kind, std::string_view id, uint64_t text_hash) noexcept;
  void leave() noexcept;
  // Marks the rule or plugin that runs now, if any, as the cause of the hang.
  void mark_over_time() noexcept;

 private:
  struct Page;
  Page* page_ = nullptr;
};

}  // namespace culprit::app
