// A plugin's saved state while the daemon is stopped: FOLDER/NAME.state. It is read once and removed: after
// a crash it would be outdated, and perhaps the cause. Blocking; one thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace culprit::plughost {

class StateFile {
 public:
  // An empty folder: nothing is kept.
  StateFile(std::string folder, const std::string& plugin);

  // Reads and removes the state. Empty if there is no file, it is damaged or too large, it is no regular
  // file of this user, or it cannot be removed (it would be read again).
  std::string take() const;
  // Replaces it. An empty state leaves none.
  Status keep(std::string_view state) const;
  void remove() const;

 private:
  const std::string folder_, path_;
};

}  // namespace culprit::plughost
