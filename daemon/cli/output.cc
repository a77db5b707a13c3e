#include <cerrno>
#include <cstdio>
#include <system_error>

#include "base/text.h"
#include "cli/new_file.h"
#include "cli/verbs.h"

namespace culprit::cli {

void report_error(const std::string& sentence) {
  std::fprintf(stderr, "culprit: %s\n", to_terminal(sentence).c_str());
}

bool print(const std::string& text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (whole || errno == EPIPE) return true;
  report_error("standard output: " + std::generic_category().message(errno));
  return false;
}

Status write_file(const std::string& path, const std::string& text) {
  auto file = NewFile::create(path, 0666);
  if (!file) return tl::unexpected(file.error());
  if (const Status written = file->write(text); !written) return written;
  return file->finish();
}

}  // namespace culprit::cli
