// Times are nanoseconds since the Unix epoch. Nothing here reads a clock: time is an argument.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace culprit {

using TimeNs = int64_t;
constexpr TimeNs kNoTime = std::numeric_limits<TimeNs>::min();
constexpr TimeNs kNsPerUs = 1'000;
constexpr TimeNs kNsPerMs = 1'000'000;
constexpr double kMsPerNs = 1e-6;
constexpr TimeNs kNsPerSecond = 1'000'000'000;

// Days from 1970-01-01 of a civil date in the proleptic Gregorian calendar.
constexpr int64_t days_from_civil(int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month + (month > 2 ? -3u : 9u)) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<int64_t>(day_of_era) - 719468;
}

struct Civil {
  int64_t year;
  unsigned month, day, hour, minute, second;
  unsigned nanosecond;
};
Civil civil_from_ns(TimeNs time);

// Offset of a time zone east of UTC over time. A plain value. A single number gives a constant offset; for a
// zone such as Europe/Berlin the caller supplies the changes.
class Zone {
 public:
  struct Change {
    TimeNs at;  // start of the offset
    int32_t offset_s;
  };
  Zone(int32_t offset_s = 0) : first_offset_s_(offset_s) {}
  // `changes` in order of time; no two of them within two days.
  Zone(int32_t first_offset_s, std::vector<Change> changes)
      : first_offset_s_(first_offset_s), changes_(std::move(changes)) {}

  int32_t offset_at(TimeNs time) const;
  // The time at which a clock showed `shown_ns` since 1970-01-01 00:00. A repeated hour means its first
  // occurrence; a skipped hour is read with the offset before the change.
  TimeNs from_clock(int64_t shown_ns) const;

 private:
  int32_t first_offset_s_;
  std::vector<Change> changes_;
};

// "2026-11-21 02:12:09.123" in the local time of the zone; kNoTime gives "-".
std::string format_time(TimeNs time, const Zone& zone = {});
// "1h 02m 03s", "12.3s", "450ms".
std::string format_duration(TimeNs ns);

// "UTC", "Z", "+02:00", "-0530": seconds east of UTC; the caller resolves names of zones.
std::optional<int32_t> parse_utc_offset(std::string_view text);

}  // namespace culprit
