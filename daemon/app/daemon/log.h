// What the daemon says of itself: lines on standard error, as journald, a terminal or a file takes them.
// Sentences are made safe to show; a flood of them is cut and counted. Any thread.
#pragma once

#include <string_view>

#include "app/config.h"

namespace culprit::app {

class Log {
 public:
  // `journal`: each line begins with its priority as journald reads it ("<3>") instead of the time.
  Log(LogLevel level, bool journal);

  void set_level(LogLevel level);
  void error(std::string_view sentence);
  void warning(std::string_view sentence);
  void info(std::string_view sentence);
  void debug(std::string_view sentence);
};

}  // namespace culprit::app
