#include "sim/files.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace culprit::sim {

Status check_empty(const std::string& out) {
  std::error_code error;
  const bool there = std::filesystem::exists(out, error);
  if (error) return fail(ErrorCode::kIo, out + ": " + error.message());
  if (!there) return {};
  if (!std::filesystem::is_directory(out, error)) return fail(ErrorCode::kInvalid, out + ": is not a folder");
  const bool empty = std::filesystem::is_empty(out, error);
  if (error) return fail(ErrorCode::kIo, out + ": " + error.message());
  if (!empty) return fail(ErrorCode::kInvalid, out + ": is not empty");
  return {};
}

Status write_text(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return fail(ErrorCode::kIo, path + ": cannot be written");
  return {};
}

}  // namespace culprit::sim
