#include "app/run/members.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "model/json_text.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr size_t kMemberFilesSeen = 100'000;
constexpr size_t kEndBytes = 4096;

}  // namespace

Members::Members(const HeldFolder& folder, const Launch& launch, bool shared)
    : folder_(folder),
      member_(launch.member),
      expected_(shared ? launch.members : launch.local_members),
      host_(launch.host),
      shared_(shared) {}

Status Members::tell(const CommandEnd& end) {
  const json text = {
      {"member", member_}, {"host", host_}, {"status", end.status()}, {"interrupted", end.interrupted}};
  return folder_.write(fmt::format("{}.{}.end", host_, member_), text.dump() + "\n");
}

std::vector<MemberEnd> Members::ends() const {
  std::vector<MemberEnd> out;
  for (const std::string& entry : folder_.names(kMemberFilesSeen)) {
    // "<host>.<member>.end"
    const fs::path path(entry);
    if (path.extension() != ".end" || (!shared_ && path.stem().stem().string() != host_)) continue;
    const json read = parse_json(folder_.read(entry, kEndBytes).value_or(""));
    MemberEnd one;
    // A file in another format still counts as an end, since a rename gave it its name.
    if (read.is_object()) {
      const auto number = [&](const char* name) {
        const auto found = read.find(name);
        return found != read.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
      };
      one.member = static_cast<uint32_t>(number("member"));
      one.status = static_cast<int>(number("status"));
      if (const auto host = read.find("host"); host != read.end() && host->is_string())
        one.host = host->get<std::string>();
      if (const auto was = read.find("interrupted"); was != read.end() && was->is_boolean())
        one.interrupted = was->get<bool>();
    }
    out.push_back(std::move(one));
  }
  return out;
}

bool Members::claim() const {
  return folder_.open_file((shared_ ? "" : host_ + ".") + "reports", O_WRONLY | O_CREAT | O_EXCL).has_value();
}

}  // namespace culprit::app
