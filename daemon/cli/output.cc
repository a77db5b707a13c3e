#include <cerrno>
#include <cstdio>

#include "base/text.h"
#include "cli/verbs.h"

namespace culprit::cli {

void complain(const std::string& sentence) {
  std::fprintf(stderr, "culprit: %s\n", to_terminal(sentence).c_str());
}

bool print(const std::string& text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  return whole || errno == EPIPE;
}

}  // namespace culprit::cli
