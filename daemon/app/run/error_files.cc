#include "app/run/error_files.h"

#include <fmt/format.h>

#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

using json = nlohmann::json;

constexpr size_t kFilesSeen = 16'384, kErrorBytes = 1 << 20;

std::optional<uint32_t> whole_number(std::string_view text) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return n;
}

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_member(const json& object, const char* name) {
  const json* found = member(object, name);
  return found && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

std::string log_of_error(std::string_view text) {
  const json read = parse_json(text);
  const json* message = member(read, "message");
  if (!message) return {};
  if (message->is_string()) return message->get<std::string>() + "\n";
  std::string stack, time, out;
  if (const json* more = member(*message, "extraInfo")) {
    stack = text_member(*more, "py_callstack");
    time = text_member(*more, "timestamp");
  }
  if (const auto seconds = whole_number(time)) {
    const std::time_t at = *seconds;
    std::tm parts{};
    gmtime_r(&at, &parts);
    char shown[64];
    std::strftime(shown, sizeof shown, "%Y-%m-%dT%H:%M:%SZ", &parts);
    out = fmt::format("{} the exception of this rank, as torch.distributed.elastic recorded it\n", shown);
  }
  out += stack.empty() ? text_member(*message, "message") : stack;
  if (!out.ends_with('\n')) out += '\n';
  return out;
}

std::optional<uint32_t> first_rank_of(const std::vector<std::string>& command, const Lookup& variable) {
  const auto value = [&](std::string_view option, const char* name) {
    const auto given = option_of(command, option);
    return given ? given : variable(name);
  };
  const std::string nodes = value("nnodes", "PET_NNODES").value_or("1");
  if (nodes == "1" || nodes == "1:1") return 0;
  const auto node = whole_number(value("node-rank", "PET_NODE_RANK").value_or(""));
  const auto ranks = whole_number(value("nproc-per-node", "PET_NPROC_PER_NODE").value_or("1"));
  if (!node || !ranks) return std::nullopt;
  return *node * *ranks;
}

size_t replace_error_files(const std::string& torchrun, const HeldFolder& logs, uint32_t first_rank) {
  namespace fs = std::filesystem;
  std::map<std::pair<uint32_t, std::string>, fs::path> found;  // by rank, then attempt
  std::error_code error;
  size_t seen = 0;
  for (fs::recursive_directory_iterator it(torchrun, error), end; !error && it != end; it.increment(error)) {
    if (++seen > kFilesSeen) break;
    const fs::path& path = it->path();
    const auto local = whole_number(path.parent_path().filename().string());
    std::error_code none;
    if (path.filename() != "error.json" || !local || !it->is_regular_file(none)) continue;
    found[{first_rank + *local, path.parent_path().parent_path().string()}] = path;
  }
  std::map<uint32_t, std::string> texts;
  for (const auto& [place, path] : found) {
    std::ifstream in(path, std::ios::binary);
    std::string text(kErrorBytes, '\0');
    in.read(text.data(), kErrorBytes);
    text.resize(static_cast<size_t>(in.gcount()));
    texts[place.first] += log_of_error(text);
    fs::remove(path, error);
  }
  for (const auto& [rank, text] : texts)
    if (!text.empty()) (void)logs.write(fmt::format("rank_{}.error.log", rank), text);
  return found.size();
}

}  // namespace culprit::app
