#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/text.h"
#include "cli/verbs.h"

namespace culprit::cli {

void complain(const std::string& sentence) {
  std::fprintf(stderr, "culprit: %s\n", to_terminal(sentence).c_str());
}

bool print(const std::string& text) {
  const bool whole =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (whole || errno == EPIPE) return true;
  complain("standard output: " + std::generic_category().message(errno));
  return false;
}

Status write_file(const std::string& path, const std::string& text) {
  const std::string part = path + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << text;
    file.flush();
    if (!file) {
      const std::string why = std::generic_category().message(errno);
      std::error_code ignored;
      std::filesystem::remove(part, ignored);
      return fail(ErrorCode::kIo, fmt::format("{}: {}", path, why));
    }
  }
  std::error_code error;
  std::filesystem::rename(part, path, error);
  if (error) return fail(ErrorCode::kIo, fmt::format("{}: {}", path, error.message()));
  return {};
}

}  // namespace culprit::cli
