// Timestamps as logs write them: found at a given place or anywhere in a line, resolved to nanoseconds since
// the epoch. A reader belongs to one thread and one source; it remembers the last date, so that the usual
// line pays only for its time of day. Nothing is allocated; no clock and no zone database are asked.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace culprit::logs {

// Bytes at a line's beginning in which a time is looked for: a header is never longer, and a time that far
// into a message is about something else.
constexpr size_t kTimeWindow = 300;

struct Stamp {
  TimeNs time_ns = kNoTime;
  uint32_t end = 0;          // offset behind the timestamp; 0: there is none
  uint32_t clock = 0;        // offset of its "HH:MM:SS"
  bool zoned = false;        // it names its zone ("2026-11-21T02:12:09+0000"): journald's shape, among others
  bool named_month = false;  // "Jun 14 15:16:01": syslog's shape, which a host follows
};

// Whether a number that stands alone may be a time: seconds since 2001, before 2040.
constexpr bool is_epoch_seconds(uint64_t value) { return value >= 1'000'000'000 && value < 2'208'988'800; }

class TimestampReader {
 public:
  // `modified_ns` places times without a year: the latest year that does not put them after it. A line may be
  // ahead of the file's own time by up to 14 hours, since its zone may be another one than it was taken for.
  // Where the file's time is unknown the year is 2024: recent, and a leap year, so that each date exists.
  TimestampReader(Zone zone, TimeNs modified_ns);

  // The timestamp with a date that begins exactly at `pos`.
  Stamp at(std::string_view line, size_t pos);
  // Seconds (with or without a fraction), milli-, micro- or nanoseconds since the epoch that begin at `pos`.
  Stamp epoch_at(std::string_view line, size_t pos) const;
  // The first timestamp in [from, kTimeWindow), in running text or behind a JSON key such as "time" or "ts".
  Stamp find(std::string_view line, size_t from);

 private:
  struct Date {
    int64_t year = -1;  // -1: not told
    unsigned month = 0, day = 0;
    uint32_t end = 0;  // offset behind it; 0: none
  };
  struct Clock {
    int64_t ns = 0;
    uint32_t end = 0;
    int32_t offset_s = 0;
    bool zone = false;
  };

  static Date date_at(std::string_view line, size_t pos);
  static Date compact_date_at(std::string_view line, size_t pos);
  static Date short_date_at(std::string_view line, size_t pos);
  static Clock clock_at(std::string_view line, size_t pos);
  static void read_zone(std::string_view line, Clock& clock);
  TimeNs time_of(int64_t days, const Clock& clock) const;
  Stamp finish(const Date& date, const Clock& clock, size_t clock_at) const;
  Stamp compact_at(std::string_view line, size_t pos) const;
  Stamp named_at(std::string_view line, size_t pos) const;
  Stamp ending_at_clock(std::string_view line, size_t clock);
  Stamp keyed(std::string_view line, size_t from);
  int64_t days_without_year(const Date& date, int64_t ns) const;

  Zone zone_;                   // of times that name none
  TimeNs latest_ns_ = kNoTime;  // that a time without a year may be
  int64_t latest_year_ = 0;
  char last_date_[10] = {};  // "2026-11-21" and
  int64_t last_days_ = -1;   // its day number; -1: none
};

// The month of "Jan" .. "Dec" at `pos`, 0 where there is none.
unsigned month_at(std::string_view line, size_t pos);

}  // namespace culprit::logs
