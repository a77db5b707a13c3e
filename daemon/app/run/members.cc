#include "app/run/members.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/run/folder.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr size_t kMembersSeen = 100'000;
constexpr std::streamsize kEndBytes = 4096;

}  // namespace

Members::Members(std::string folder, const Launch& launch, bool shared)
    : folder_(std::move(folder)),
      member_(launch.member),
      expected_(shared ? launch.members : launch.local_members),
      host_(launch.host),
      shared_(shared) {}

Status Members::tell(const CommandEnd& end) {
  const json text = {
      {"member", member_}, {"host", host_}, {"status", end.status()}, {"interrupted", end.interrupted}};
  return write_run_file(fmt::format("{}/{}.{}.end", folder_, host_, member_), text.dump() + "\n");
}

std::vector<MemberEnd> Members::ends() const {
  std::vector<MemberEnd> out;
  std::error_code error;
  for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".end" || out.size() >= kMembersSeen) continue;
    // "<host>.<member>.end"
    if (!shared_ && it->path().stem().stem().string() != host_) continue;
    std::ifstream in(it->path(), std::ios::binary);
    std::string text(kEndBytes, '\0');
    in.read(text.data(), kEndBytes);
    text.resize(static_cast<size_t>(in.gcount()));
    const json read = parse_json(text);
    MemberEnd one;
    // A file that is not as ours still counts as an end: it has its name by a rename.
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
  const std::string path = folder_ + "/" + (shared_ ? "" : host_ + ".") + "reports";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

}  // namespace culprit::app
