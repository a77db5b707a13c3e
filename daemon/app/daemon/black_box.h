// Who was running when the process died. A page of a file, mapped and shared with the kernel: what is
// written to it outlives the process, however it ends. Written before a rule's function or an in-process
// plugin runs, and cleared behind it; read at the next start. Writing costs some nanoseconds and never fails:
// the page is allocated when the file is made, so that a full disk cannot kill with SIGBUS.
//
// One thread enters and leaves (the engine's); opening and reading belong to the start. mark_over_time() is
// the loop's, which sees the engine stand still; leave() too, where the process ends for another reason.
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
    uint64_t text_hash = 0;  // of the rule, as it was
    bool over_time = false;  // it had stood still for longer than the watchdog lets it
  };

  // Makes the file where there is none; what is no black box is made one anew.
  static Result<BlackBox> open(const std::string& path);
  BlackBox() = default;  // none: nothing is kept
  ~BlackBox();
  BlackBox(BlackBox&& other) noexcept;
  BlackBox& operator=(BlackBox&& other) noexcept;

  // Whoever had entered when the process before ended, once.
  std::optional<Crashed> read_and_reset();

  void enter(Kind kind, std::string_view id, uint64_t text_hash) noexcept;
  void leave() noexcept;
  // Whoever has entered, if anybody, is why nothing gets on.
  void mark_over_time() noexcept;

 private:
  struct Page;
  Page* page_ = nullptr;
};

}  // namespace culprit::app
