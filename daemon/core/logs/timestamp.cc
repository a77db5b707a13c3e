#include "core/logs/timestamp.h"

#include <algorithm>
#include <cstring>

#include "base/ascii.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace culprit::logs {
namespace {

constexpr int64_t kSecondsPerDay = 86400;
// The widest zone on earth is UTC+14.
constexpr TimeNs kZoneSlack = 14 * 3600 * kNsPerSecond;
constexpr int64_t kYearWhenUnknown = 2024;
// Valid years: no log is older than the epoch, and nanoseconds overflow in 2262.
constexpr int64_t kFirstYear = 1970, kLastYear = 2199;

constexpr unsigned value(char c) { return static_cast<unsigned>(c - '0'); }

// The character at `pos`, or NUL after the end.
char peek(std::string_view line, size_t pos) { return pos < line.size() ? line[pos] : '\0'; }

// The two digits at `pos` as a number; 100: no digits.
unsigned two(std::string_view line, size_t pos) {
  if (pos + 2 > line.size()) return 100;
  const unsigned a = value(line[pos]), b = value(line[pos + 1]);
  return a < 10 && b < 10 ? a * 10 + b : 100;
}

size_t count_digits(std::string_view line, size_t pos, size_t most) {
  const size_t stop = std::min(line.size(), pos + most);
  size_t at = pos;
  while (at < stop && digit(line[at])) ++at;
  return at - pos;
}

unsigned days_in(int64_t year, unsigned month) {
  constexpr unsigned kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && leap ? 29 : kDays[month - 1];
}

bool is_day(int64_t year, unsigned month, unsigned day) {
  return month >= 1 && month <= 12 && day >= 1 && day <= days_in(year < 0 ? kYearWhenUnknown : year, month);
}

// Nanoseconds from up to nine digits of a fraction; more digits are ignored.
int64_t fraction_ns(std::string_view line, size_t pos, size_t digits) {
  constexpr int64_t kScale[] = {1000000000, 100000000, 10000000, 1000000, 100000, 10000, 1000, 100, 10, 1};
  const size_t used = std::min<size_t>(digits, 9);
  return static_cast<int64_t>(digits_value(line, pos, used)) * kScale[used];
}

bool is_weekday(std::string_view line, size_t pos) {
  if (pos + 4 > line.size() || line[pos + 3] != ' ') return false;
  constexpr std::string_view kNames = "MonTueWedThuFriSatSun";
  for (size_t i = 0; i < kNames.size(); i += 3)
    if (std::memcmp(line.data() + pos, kNames.data() + i, 3) == 0) return true;
  return false;
}

// Whether a timestamp in running text may begin at `pos`: not inside a word, a number, a path or a file name.
bool free_before(std::string_view line, size_t pos) {
  if (pos == 0) return true;
  const char c = line[pos - 1];
  return !digit(c) && !alpha(c) && c != '_' && c != '-' && c != '.' && c != '/' && c != ':' && c != '%';
}

}  // namespace

unsigned month_at(std::string_view line, size_t pos) {
  if (pos + 3 > line.size()) return 0;
  constexpr std::string_view kNames = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const char* const at = line.data() + pos;
  for (size_t i = 0; i < kNames.size(); i += 3)
    if (at[0] == kNames[i] && at[1] == kNames[i + 1] && at[2] == kNames[i + 2])
      return static_cast<unsigned>(i / 3) + 1;
  return 0;
}

TimestampReader::TimestampReader(Zone zone, TimeNs modified_ns) : zone_(std::move(zone)) {
  if (modified_ns == kNoTime) return;
  // A file's time may be before the epoch or far in the future; clamping avoids overflow.
  latest_ns_ = std::clamp<TimeNs>(modified_ns, 0, 7'000'000'000'000'000'000) + kZoneSlack;
  latest_year_ = civil_from_ns(latest_ns_).year;
}

int64_t TimestampReader::days_without_year(const Date& date, int64_t ns) const {
  if (latest_ns_ == kNoTime) return days_from_civil(kYearWhenUnknown, date.month, date.day);
  for (int64_t y = latest_year_; y > latest_year_ - 9; --y) {  // 29 February may be eight years apart
    if (date.day > days_in(y, date.month)) continue;
    const int64_t days = days_from_civil(y, date.month, date.day);
    if (zone_.from_clock(days * kSecondsPerDay * kNsPerSecond + ns) <= latest_ns_) return days;
  }
  return days_from_civil(latest_year_, date.month, 28);
}

TimeNs TimestampReader::time_of(int64_t days, const Clock& clock) const {
  const int64_t shown = days * kSecondsPerDay * kNsPerSecond + clock.ns;
  return clock.zone ? shown - clock.offset_s * kNsPerSecond : zone_.from_clock(shown);
}

Stamp TimestampReader::finish(const Date& date, const Clock& clock, size_t clock_at) const {
  int64_t days = 0;
  if (date.year < 0) {
    days = days_without_year(date, clock.ns);
  } else {
    if (date.year < kFirstYear || date.year > kLastYear) return {};
    days = days_from_civil(date.year, date.month, date.day);
  }
  return {time_of(days, clock), clock.end, static_cast<uint32_t>(clock_at), clock.zone, false};
}

// "02:12:09", with a fraction after '.' or ',' (":606" only if it cannot be a zone) and a zone.
TimestampReader::Clock TimestampReader::clock_at(std::string_view line, size_t pos) {
  if (pos + 8 > line.size()) return {};
  const char* const p = line.data() + pos;
  const char separator = p[2];
  if ((separator != ':' && separator != '.') || p[5] != separator) return {};
  const unsigned h = two(line, pos), m = two(line, pos + 3), s = two(line, pos + 6);
  if (h > 23 || m > 59 || s > 60) return {};
  Clock clock{(h * 3600 + m * 60 + s) * kNsPerSecond, static_cast<uint32_t>(pos + 8), 0, false};
  if (digit(peek(line, pos + 8))) return {};
  const char mark = peek(line, pos + 8);
  if (mark == '.' || mark == ',' || mark == ':') {
    const size_t digits = count_digits(line, pos + 9, 12);
    if (digits > 0 && (mark != ':' || digits == 3)) {
      clock.ns += fraction_ns(line, pos + 9, digits);
      clock.end = static_cast<uint32_t>(pos + 9 + digits);
      // ".166.988": milliseconds and microseconds
      if (digits == 3 && mark == '.' && peek(line, pos + 12) == '.' && count_digits(line, pos + 13, 4) == 3) {
        clock.ns += static_cast<int64_t>(digits_value(line, pos + 13, 3)) * kNsPerUs;
        clock.end += 4;
      }
    }
  }
  read_zone(line, clock);
  return clock;
}

// "Z", "+08:00", "-0530", " +0000", " UTC", " GMT".
void TimestampReader::read_zone(std::string_view line, Clock& clock) {
  size_t at = clock.end;
  char c = peek(line, at);
  if (c == 'Z') {
    clock.zone = true;
    ++clock.end;
    return;
  }
  const bool apart = c == ' ';
  if (apart) c = peek(line, ++at);
  if (apart && (c == 'U' || c == 'G')) {
    const std::string_view name = line.substr(at, 3);
    if ((name != "UTC" && name != "GMT") || alpha(peek(line, at + 3)) || digit(peek(line, at + 3))) return;
    clock.zone = true;
    clock.end = static_cast<uint32_t>(at + 3);
    return;
  }
  if (c != '+' && c != '-') return;
  const unsigned hours = two(line, at + 1);
  const bool colon = peek(line, at + 3) == ':';
  const size_t minutes_at = at + 3 + colon;
  const unsigned minutes = two(line, minutes_at);
  if (hours > 14 || minutes > 59 || digit(peek(line, minutes_at + 2))) return;
  clock.zone = true;
  clock.offset_s = static_cast<int32_t>(hours * 3600 + minutes * 60) * (c == '-' ? -1 : 1);
  clock.end = static_cast<uint32_t>(minutes_at + 2);
}

// "2026-11-21", "2026/11/21", "2026.11.21", "2022-Aug-31".
TimestampReader::Date TimestampReader::date_at(std::string_view line, size_t pos) {
  if (pos + 10 > line.size() || count_digits(line, pos, 5) != 4) return {};
  const char separator = line[pos + 4];
  if (separator != '-' && separator != '/' && separator != '.') return {};
  const auto year = static_cast<int64_t>(digits_value(line, pos, 4));
  unsigned month = two(line, pos + 5);
  size_t day_at = pos + 8;
  if (month == 100) {
    month = month_at(line, pos + 5);
    day_at = pos + 9;
  }
  const unsigned day = two(line, day_at);
  if (peek(line, day_at - 1) != separator || !is_day(year, month, day)) return {};
  return {year, month, day, static_cast<uint32_t>(day_at + 2)};
}

// "17/06/09", "05/25/2021", "25/12/2021", "14/Jun/2021", "03-17", "05/10", "10.30".
TimestampReader::Date TimestampReader::short_date_at(std::string_view line, size_t pos) {
  const unsigned a = two(line, pos);
  const char separator = peek(line, pos + 2);
  if (a == 100 || (separator != '/' && separator != '-' && separator != '.')) return {};
  const unsigned b = two(line, pos + 3);
  if (b == 100) {
    const unsigned month = month_at(line, pos + 3);
    if (month == 0 || peek(line, pos + 6) != separator || count_digits(line, pos + 7, 5) != 4) return {};
    const auto year = static_cast<int64_t>(digits_value(line, pos + 7, 4));
    return is_day(year, month, a) ? Date{year, month, a, static_cast<uint32_t>(pos + 11)} : Date{};
  }
  if (peek(line, pos + 5) != separator || separator == '.')
    return is_day(-1, a, b) ? Date{-1, a, b, static_cast<uint32_t>(pos + 5)} : Date{};
  const size_t digits = count_digits(line, pos + 6, 5);
  if (digits == 4) {
    const auto year = static_cast<int64_t>(digits_value(line, pos + 6, 4));
    const auto end = static_cast<uint32_t>(pos + 10);
    if (is_day(year, a, b)) return {year, a, b, end};
    return is_day(year, b, a) ? Date{year, b, a, end} : Date{};
  }
  if (digits != 2) return {};
  const unsigned c = two(line, pos + 6);
  const auto end = static_cast<uint32_t>(pos + 8);
  if (is_day(2000 + a, b, c)) return {2000 + a, b, c, end};
  return is_day(2000 + c, a, b) ? Date{2000 + c, a, b, end} : Date{};
}

// "20171223" and "241110".
TimestampReader::Date TimestampReader::compact_date_at(std::string_view line, size_t pos) {
  const size_t digits = count_digits(line, pos, 9);
  if (digits != 8 && digits != 6) return {};
  const size_t rest = pos + digits - 4;
  const auto year = static_cast<int64_t>(digits == 8 ? digits_value(line, pos, 4) : 2000 + two(line, pos));
  const unsigned month = two(line, rest), day = two(line, rest + 2);
  return is_day(year, month, day) ? Date{year, month, day, static_cast<uint32_t>(pos + digits)} : Date{};
}

// "20171223-22:15:29:606" (whose parts may be short: "20171224-0:7:3:46"), "081109 203615", "241110
// 11:16:14".
Stamp TimestampReader::compact_at(std::string_view line, size_t pos) const {
  const Date date = compact_date_at(line, pos);
  const char mark = peek(line, date.end);
  if (date.end == 0 || (mark != ' ' && mark != '-' && mark != 'T' && mark != '_')) return {};
  const size_t at = date.end + 1;
  const Clock usual = clock_at(line, at);
  if (usual.end != 0 && peek(line, usual.end) != ':') return finish(date, usual, at);
  if (count_digits(line, at, 7) == 6) {
    const unsigned h = two(line, at), m = two(line, at + 2), s = two(line, at + 4);
    const char after = peek(line, at + 6);
    if (h > 23 || m > 59 || s > 60 || (after != ' ' && after != '\0' && after != ']')) return {};
    return finish(date, {(h * 3600 + m * 60 + s) * kNsPerSecond, static_cast<uint32_t>(at + 6), 0, false},
                  at);
  }
  uint64_t parts[4] = {};
  size_t next = at;
  for (size_t i = 0; i < 4; ++i) {
    const size_t digits = count_digits(line, next, 4);
    if (digits == 0 || digits > (i == 3 ? 3u : 2u)) return {};
    parts[i] = digits_value(line, next, digits);
    next += digits;
    if (i < 3 && peek(line, next++) != ':') return {};
  }
  if (mark != '-' || parts[0] > 23 || parts[1] > 59 || parts[2] > 60) return {};
  const auto ns =
      static_cast<int64_t>((parts[0] * 3600 + parts[1] * 60 + parts[2]) * 1000 + parts[3]) * kNsPerMs;
  return finish(date, {ns, static_cast<uint32_t>(next), 0, false}, at);
}

// "Jun 14 15:16:01", "Jun  4 2025 15:16:01", "Sun Dec 04 04:47:44 2005", "Sun Dec 04 04:47:44 UTC 2005".
Stamp TimestampReader::named_at(std::string_view line, size_t pos) const {
  const bool weekday = is_weekday(line, pos);
  size_t at = weekday ? pos + 4 : pos;
  Date date;
  date.month = month_at(line, at);
  if (date.month == 0 || peek(line, at + 3) != ' ') return {};
  at += 4;
  if (peek(line, at) == ' ') ++at;
  const size_t day_digits = count_digits(line, at, 3);
  if (day_digits == 0 || day_digits > 2) return {};
  date.day = static_cast<unsigned>(digits_value(line, at, day_digits));
  at += day_digits;
  if (peek(line, at) == ',') ++at;
  if (peek(line, at) != ' ' || !is_day(-1, date.month, date.day)) return {};
  ++at;
  if (count_digits(line, at, 5) == 4 && peek(line, at + 4) == ' ') {
    date.year = static_cast<int64_t>(digits_value(line, at, 4));
    at += 5;
  }
  Clock clock = clock_at(line, at);
  if (clock.end == 0) return {};
  if (weekday && date.year < 0 && peek(line, clock.end) == ' ' && count_digits(line, clock.end + 1, 5) == 4) {
    date.year = static_cast<int64_t>(digits_value(line, clock.end + 1, 4));
    clock.end += 5;
  }
  if (date.year >= 0 && !is_day(date.year, date.month, date.day)) return {};
  Stamp stamp = finish(date, clock, at);
  stamp.named_month = true;
  return stamp;
}

Stamp TimestampReader::at(std::string_view line, size_t pos) {
  if (pos + 11 > line.size()) return {};
  const char* const p = line.data() + pos;
  const bool cached = last_days_ >= 0 && std::memcmp(p, last_date_, sizeof last_date_) == 0;
  if (!cached) {
    if (!digit(*p)) return p[3] == ' ' && alpha(*p) ? named_at(line, pos) : Stamp{};
    if (!digit(p[1])) return {};
    Date date = date_at(line, pos);
    if (date.end == 0) date = short_date_at(line, pos);
    if (date.end == 0) return digit(p[5]) ? compact_at(line, pos) : Stamp{};
    if (date.end != pos + 10 || date.year < kFirstYear || date.year > kLastYear) {
      const char mark = peek(line, date.end);
      if (mark != ' ' && mark != '-' && mark != 'T' && mark != ':' && mark != '_') return {};
      const Clock clock = clock_at(line, date.end + 1);
      return clock.end != 0 ? finish(date, clock, date.end + 1) : Stamp{};
    }
    std::memcpy(last_date_, p, sizeof last_date_);
    last_days_ = days_from_civil(date.year, date.month, date.day);
  }
  const char mark = p[10];
  if (mark != ' ' && mark != 'T' && mark != '-' && mark != '_' && mark != ':' && mark != 't') return {};
  const Clock clock = clock_at(line, pos + 11);
  if (clock.end == 0) return {};
  return {time_of(last_days_, clock), clock.end, static_cast<uint32_t>(pos + 11), false};
}

Stamp TimestampReader::epoch_at(std::string_view line, size_t pos) const {
  const size_t digits = count_digits(line, pos, 20);
  if (digits != 10 && digits != 13 && digits != 16 && digits != 19) return {};
  uint64_t n = digits_value(line, pos, digits);
  uint64_t unit = 1;
  for (size_t d = digits; d > 10; d -= 3) unit *= 1000;
  if (!is_epoch_seconds(n / unit)) return {};
  Stamp stamp{static_cast<TimeNs>(n * (1'000'000'000 / unit)), static_cast<uint32_t>(pos + digits),
              static_cast<uint32_t>(pos), false};
  const size_t fraction = peek(line, stamp.end) == '.' ? count_digits(line, stamp.end + 1, 12) : 0;
  if (fraction > 0 && digits == 10) stamp.time_ns += fraction_ns(line, stamp.end + 1, fraction);
  if (fraction > 0) stamp.end += static_cast<uint32_t>(fraction) + 1;
  return stamp;
}

// The timestamp whose time of day is at `clock`.
Stamp TimestampReader::ending_at_clock(std::string_view line, size_t clock) {
  // Distances from the beginning of each date format to the clock.
  constexpr size_t kDistances[] = {11, 9, 7, 6, 12, 16};
  for (size_t distance : kDistances) {
    if (clock < distance || !free_before(line, clock - distance)) continue;
    const Stamp stamp = at(line, clock - distance);
    if (stamp.end != 0 && stamp.clock == clock) return stamp;
  }
  return {};
}

// A JSON value after a key for a time: "time_ms": 1715043538972, "ts": 1683900000.25, "time": "...".
Stamp TimestampReader::keyed(std::string_view line, size_t from) {
  const size_t stop = std::min(line.size(), kTimeWindow);
  constexpr std::string_view kKeys[] = {"time",    "ts",      "timestamp",  "time_ms", "asctime",
                                        "time_ns", "time_us", "@timestamp", "epoch",   "created"};
  for (size_t at = from; at < stop;) {
    const auto* quote = static_cast<const char*>(std::memchr(line.data() + at, '"', stop - at));
    if (!quote) return {};
    const auto begin = static_cast<size_t>(quote - line.data()) + 1;
    const auto* close = static_cast<const char*>(std::memchr(quote + 1, '"', line.size() - begin));
    if (!close) return {};
    const auto end = static_cast<size_t>(close - line.data());
    at = end + 1;
    size_t next = end + 1;
    while (peek(line, next) == ' ') ++next;
    if (peek(line, next) != ':') continue;
    at = ++next;
    const std::string_view key = line.substr(begin, end - begin);
    if (std::find(std::begin(kKeys), std::end(kKeys), key) == std::end(kKeys)) continue;
    while (peek(line, next) == ' ') ++next;
    if (peek(line, next) == '"') ++next;
    Stamp stamp = epoch_at(line, next);
    if (stamp.end == 0) stamp = this->at(line, next);
    if (stamp.end != 0) return stamp;
  }
  return {};
}

Stamp TimestampReader::find(std::string_view line, size_t from) {
  const size_t stop = std::min(line.size(), kTimeWindow);
  const char* const p = line.data();
  bool json = false;
  size_t at = from;
  // Every format has "HH:MM:SS": two colons at distance three, which are rare in ordinary text.
  const auto hit = [&](size_t colon) {
    if (colon < from + 2 || colon + 6 > line.size() || !digit(p[colon - 1]) || !digit(p[colon - 2]))
      return Stamp{};
    const Stamp stamp = ending_at_clock(line, colon - 2);
    if (stamp.end == 0 || !std::memchr(p + from, '{', colon - from)) return stamp;
    const Stamp key = keyed(line, from);  // an earlier key may have the record's own time
    return key.end != 0 && key.clock < stamp.clock ? key : stamp;
  };
#if defined(__SSE2__)
  const __m128i colon = _mm_set1_epi8(':'), brace = _mm_set1_epi8('{');
  __m128i braces = _mm_setzero_si128();
  for (; at + 19 <= line.size() && at < stop; at += 16) {
    const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at));
    const __m128i ahead = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + at + 3));
    braces = _mm_or_si128(braces, _mm_cmpeq_epi8(here, brace));
    auto mask = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(here, colon), _mm_cmpeq_epi8(ahead, colon))));
    for (; mask != 0; mask &= mask - 1)
      if (const Stamp stamp = hit(at + static_cast<size_t>(__builtin_ctz(mask))); stamp.end != 0)
        return stamp;
  }
  json = _mm_movemask_epi8(braces) != 0;
#endif
  for (; at < stop; ++at) {
    json |= p[at] == '{';
    if (p[at] == ':' && at + 3 < line.size() && p[at + 3] == ':')
      if (const Stamp stamp = hit(at); stamp.end != 0) return stamp;
  }
  return json ? keyed(line, from) : Stamp{};
}

}  // namespace culprit::logs
