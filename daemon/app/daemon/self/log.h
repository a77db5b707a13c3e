// The daemon's own log on standard error, for journald, a terminal or a file. Control characters are escaped;
// a flood of lines is cut and counted. Any thread.
#pragma once

#include <string_view>

#include "app/config/config.h"

namespace culprit::app {

class Log {
 public:
  // `journal`: each line starts with its priority in journald's form ("<3>") instead of the time.
  Log(LogLevel level, bool journal);

  void set_level(LogLevel level);
  void error(std::string_view sentence);
  void warning(std::string_view sentence);
  void info(std::string_view sentence);
  void debug(std::string_view sentence);
};

}  // namespace culprit::app
