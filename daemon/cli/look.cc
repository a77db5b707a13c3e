#include "cli/look.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/offline/file_tool.h"
#include "base/shell.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kLinesAround = 5;

// First and last line of a record, such as a traceback, with some lines around it.
std::pair<uint64_t, uint64_t> lines_around(const Evidence& e) {
  const auto more = static_cast<uint64_t>(std::ranges::count(e.text, '\n'));
  return {*e.line > kLinesAround ? *e.line - kLinesAround : 1, *e.line + kLinesAround + more};
}

// Joins a value that begins with '-', which would otherwise be read as an option.
std::string option(std::string_view name, std::string_view value) {
  return fmt::format("{}{}{}", name, value.starts_with('-') ? '=' : ' ', shell_word(value));
}

}  // namespace

std::string look_in_file(const Evidence& e) {
  if (!e.line || e.file.empty() || e.file == "-") return "";
  const auto tool = app::decompressor_of(e.file);
  if (!tool) return "";
  const auto [first, last] = lines_around(e);
  const std::string file = shell_word(e.file.starts_with('-') ? "./" + e.file : e.file);
  const std::string show = fmt::format("sed -n '{},{}p;{}q'", first, last, last);
  return tool->empty() ? show + " " + file : fmt::format("{} -dc < {} | {}", *tool, file, show);
}

std::string look_at_daemon(const Evidence& e, std::string_view job, const app::ClientOptions& options) {
  if (!e.line || e.file.empty() || job.empty()) return "";
  std::string out = "culprit evidence cat" + option(" --job", job);
  if (e.host) out += option(" --host", *e.host);
  out += option(" --path", e.file) + fmt::format(" --line {}", *e.line);
  if (!options.server.empty()) out += " --server " + shell_word(options.server);
  if (!options.token_file.empty()) out += " --token-file " + shell_word(options.token_file);
  if (!options.ca_file.empty()) out += " --ca-file " + shell_word(options.ca_file);
  return out;
}

}  // namespace culprit::cli
