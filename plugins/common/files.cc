#include "common/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace health {

std::optional<std::string> read_text(const std::string& path, size_t bytes_max) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while (text.size() < bytes_max && (got = read(file, buffer, sizeof buffer)) > 0) text.append(buffer, got);
  close(file);
  if (got < 0 && text.empty()) return std::nullopt;
  text.resize(std::min(text.size(), bytes_max));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::optional<uint64_t> number(std::string_view text) {
  const std::string copy(text.substr(0, 32));
  const bool hexadecimal = copy.compare(0, 2, "0x") == 0;
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(copy.c_str(), &end, hexadecimal ? 16 : 10);
  const bool whole = *end == '\0' || *end == ' ' || *end == '\n' || *end == '\t';
  if (end == copy.c_str() || !whole || errno != 0 || copy.find('-') < size_t(end - copy.c_str())) {
    return std::nullopt;
  }
  return value;
}

std::optional<uint64_t> read_number(const std::string& path) {
  const auto text = read_text(path, 64);
  return text ? number(*text) : std::nullopt;
}

std::optional<double> real(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str()) return std::nullopt;
  return value;
}

std::vector<std::string> list(const std::string& folder) {
  std::vector<std::string> names;
  DIR* opened = opendir(folder.c_str());
  if (!opened) return names;
  while (const dirent* entry = readdir(opened)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(opened);
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::string link_name(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t length = readlink(path.c_str(), target, sizeof target);
  if (length <= 0) return {};
  const std::string text(target, length);
  return text.substr(text.rfind('/') + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> found;
  size_t at = 0;
  while ((at = text.find_first_not_of(" \t", at)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(" \t", at), text.size());
    found.push_back(text.substr(at, end - at));
    at = end;
  }
  return found;
}

std::string format(const char* format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return std::string(buffer, std::clamp(length, 0, int(sizeof buffer) - 1));
}

}  // namespace health
