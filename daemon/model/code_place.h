// A place in a program's source: the frame in which an exception was raised.
#pragma once

#include <cstdint>
#include <string>

namespace culprit {

struct CodePlace {
  std::string file;  // as the program wrote it
  uint32_t line = 0;
  std::string function;  // empty: the file itself
};

// "f (tb.py:4)", "tb.py:4".
std::string to_string(const CodePlace& place);

}  // namespace culprit
