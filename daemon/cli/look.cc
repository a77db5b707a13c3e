#include "cli/look.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/offline/file_tool.h"
#include "base/text.h"

namespace culprit::cli {
namespace {

constexpr uint64_t kLinesAround = 5;

// First and last line: those of a record, such as a traceback, and some around.
std::pair<uint64_t, uint64_t> lines_around(const Evidence& e) {
  const auto more = static_cast<uint64_t>(std::ranges::count(e.text, '\n'));
  return {*e.line > kLinesAround ? *e.line - kLinesAround : 1, *e.line + kLinesAround + more};
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain = "_-./:@%+=,";
  const auto plain = [&](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(static_cast<char>(c)) != kPlain.npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return std::string(text);
  const bool visible = to_terminal(text) == text && text.find('\t') == text.npos;
  std::string out = visible ? "'" : "$'";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (visible)
      out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    else if (byte < 0x20 || byte > 0x7e || c == '\'' || c == '\\')
      out += fmt::format("\\{:03o}", byte);
    else
      out += c;
  }
  return out + "'";
}

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
  std::string out = "culprit evidence cat --job " + shell_word(job);
  if (e.host) out += " --host " + shell_word(*e.host);
  out += fmt::format(" --path {} --line {}", shell_word(e.file), *e.line);
  if (!options.server.empty()) out += " --server " + shell_word(options.server);
  if (!options.token_file.empty()) out += " --token-file " + shell_word(options.token_file);
  if (!options.ca_file.empty()) out += " --ca-file " + shell_word(options.ca_file);
  return out;
}

}  // namespace culprit::cli
