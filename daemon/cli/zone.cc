#include "cli/zone.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

namespace culprit::cli {
namespace {

constexpr const char* kDatabase = "/usr/share/zoneinfo/";
constexpr int64_t kDay = 86'400;

// The name may be untrusted, so it must not leave the database's folder.
bool in_database(const std::string& name) {
  const std::string path = kDatabase + name;
  struct stat status;
  if (name.empty() || name[0] == '/' || name.find("..") != std::string::npos) return false;
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "TZif";
}

int32_t offset_by_libc(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm local{};
  localtime_r(&time, &local);
  return static_cast<int32_t>(local.tm_gmtoff);
}

// Copies libc's zone into a value, day by day, before other threads start. Threads then need no libc call.
Zone zone_of_libc() {
  tzset();
  // The range of years of timestamps without a zone; times after 2100 use the same rules.
  const int64_t first = 0, last = days_from_civil(2100, 1, 1) * kDay;
  std::vector<Zone::Change> changes;
  int32_t before = offset_by_libc(first);
  const int32_t at_first = before;
  for (int64_t day = first; day < last; day += kDay) {
    const int32_t after = offset_by_libc(day + kDay);
    if (after == before) continue;
    int64_t low = day, high = day + kDay;  // the change lies in (low, high]
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      (offset_by_libc(middle) == before ? low : high) = middle;
    }
    changes.push_back({high * kNsPerSecond, after});
    before = after;
  }
  return Zone(at_first, std::move(changes));
}

}  // namespace

Result<Zone> zone_named(const std::string& name) {
  if (const auto offset = parse_utc_offset(name)) return Zone(*offset);
  if (name != "local") {
    if (!in_database(name))
      return fail(
          ErrorCode::kInvalid,
          fmt::format("--timezone {}: neither an offset such as +02:00 nor a zone such as Europe/Berlin",
                      name));
    setenv("TZ", name.c_str(), 1);
  }
  return zone_of_libc();
}

}  // namespace culprit::cli
