// What a plugin saved of itself, over a stop of the daemon: FOLDER/NAME.state. It is taken once: after a
// crash it would be of another time, and perhaps the cause. Blocking; one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::plughost {

class StateFile {
 public:
  // An empty folder: nothing is kept.
  StateFile(std::string folder, const std::string& plugin);

  // Reads and removes it. Empty: there is none; it is damaged or too large; it is no regular file of this
  // user; or it cannot be removed, so that it would come back.
  std::string take() const;
  // Replaces it. An empty state leaves none.
  Status keep(std::string_view state) const;
  void remove() const;

 private:
  const std::string folder_, path_;
};

}  // namespace culprit::plughost
