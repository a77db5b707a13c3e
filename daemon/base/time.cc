#include "base/time.h"

#include <fmt/format.h>

#include <algorithm>

namespace culprit {

Civil civil_from_ns(TimeNs time) {
  int64_t seconds = time / kNsPerSecond;
  int64_t nanos = time % kNsPerSecond;
  if (nanos < 0) nanos += kNsPerSecond, --seconds;
  int64_t days = seconds / 86400;
  int64_t rest = seconds % 86400;
  if (rest < 0) rest += 86400, --days;
  const int64_t z = days + 719468;
  const int64_t era = (z >= 0 ? z : z - 146096) / 146097;
  const auto day_of_era = static_cast<unsigned>(z - era * 146097);
  const unsigned year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const unsigned mp = (5 * day_of_year + 2) / 153;
  const unsigned month = mp < 10 ? mp + 3 : mp - 9;
  return Civil{static_cast<int64_t>(year_of_era) + era * 400 + (month <= 2),
               month,
               day_of_year - (153 * mp + 2) / 5 + 1,
               static_cast<unsigned>(rest / 3600),
               static_cast<unsigned>(rest / 60 % 60),
               static_cast<unsigned>(rest % 60),
               static_cast<unsigned>(nanos)};
}

int32_t Zone::offset_at(TimeNs time) const {
  const auto after = std::upper_bound(changes_.begin(), changes_.end(), time,
                                      [](TimeNs t, const Change& change) { return t < change.at; });
  return after == changes_.begin() ? first_offset_s_ : std::prev(after)->offset_s;
}

TimeNs Zone::from_clock(int64_t shown_ns) const {
  constexpr TimeNs kDay = 86'400 * kNsPerSecond;  // larger than the offset of any zone
  const auto with = [shown_ns](int32_t offset_s) { return shown_ns - offset_s * kNsPerSecond; };
  if (changes_.empty()) return with(first_offset_s_);
  const int32_t before = offset_at(shown_ns - kDay), after = offset_at(shown_ns + kDay);
  const bool moved = offset_at(with(before)) != before && offset_at(with(after)) == after;
  return with(moved ? after : before);
}

std::string format_time(TimeNs time, const Zone& zone) {
  if (time == kNoTime) return "-";
  const Civil c = civil_from_ns(time + zone.offset_at(time) * kNsPerSecond);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}", c.year, c.month, c.day, c.hour, c.minute,
                     c.second, c.nanosecond / 1'000'000);
}

std::string format_duration(TimeNs ns) {
  if (ns < 0) return "-" + format_duration(-ns);
  if (ns < kNsPerSecond) return fmt::format("{}ms", ns / kNsPerMs);
  const int64_t s = ns / kNsPerSecond;
  if (s < 60) return fmt::format("{}.{}s", s, ns % kNsPerSecond / 100'000'000);
  if (s < 3600) return fmt::format("{}m {:02}s", s / 60, s % 60);
  return fmt::format("{}h {:02}m {:02}s", s / 3600, s / 60 % 60, s % 60);
}

std::optional<int32_t> parse_utc_offset(std::string_view text) {
  if (text == "UTC" || text == "utc" || text == "Z" || text == "z" || text == "GMT") return 0;
  if (text.starts_with("UTC")) text.remove_prefix(3);
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-')) return std::nullopt;
  int digits[4] = {0, 0, 0, 0};
  int count = 0;
  for (char c : text.substr(1)) {
    if (c == ':' && count == 2) continue;
    if (c < '0' || c > '9' || count == 4) return std::nullopt;
    digits[count++] = c - '0';
  }
  if (count != 2 && count != 4) return std::nullopt;
  const int hours = digits[0] * 10 + digits[1];
  const int minutes = digits[2] * 10 + digits[3];
  if (hours > 14 || minutes > 59) return std::nullopt;
  const int32_t seconds = hours * 3600 + minutes * 60;
  return text[0] == '-' ? -seconds : seconds;
}

}  // namespace culprit
