// Timestamps in logs: found at a given position or anywhere in a line, resolved to nanoseconds since the
// epoch. A reader belongs to one thread and one source. It remembers the last date, so that the usual line
// costs only its time of day. No allocation; no clock and no zone database.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"

namespace culprit::logs {

// Bytes at a line's beginning that may contain its time. Headers are never longer, and a later time belongs
// to the message.
constexpr size_t kTimeWindow = 300;

struct Stamp {
  TimeNs time_ns = kNoTime;
  uint32_t end = 0;          // offset after the timestamp; 0: there is none
  uint32_t clock = 0;        // offset of its "HH:MM:SS"
  bool zoned = false;        // has a zone ("2026-11-21T02:12:09+0000"): journald's format, among others
  bool named_month = false;  // "Jun 14 15:16:01": syslog's format, followed by a host
};

// Whether a number alone may be a time: seconds from 2001 to before 2040.
constexpr bool is_epoch_seconds(uint64_t value) { return value >= 1'000'000'000 && value < 2'208'988'800; }

class TimestampReader {
 public:
  // `modified_ns` gives the year of times without one: the latest year in which the time is not after
  // `modified_ns`. A line may be up to 14 hours ahead of the file's own time, since its zone may be wrong. If
  // the file's time is unknown, the year is 2024: recent, and a leap year, so that each date exists.
  TimestampReader(Zone zone, TimeNs modified_ns);

  // The timestamp with a date that begins exactly at `pos`.
  Stamp at(std::string_view line, size_t pos);
  // Seconds (with or without a fraction), milli-, micro- or nanoseconds since the epoch at `pos`.
  Stamp epoch_at(std::string_view line, size_t pos) const;
  // The first timestamp in [from, kTimeWindow), in running text or after a JSON key such as "time" or "ts".
  Stamp find(std::string_view line, size_t from);

 private:
  struct Date {
    int64_t year = -1;  // -1: unknown
    unsigned month = 0, day = 0;
    uint32_t end = 0;  // offset after it; 0: none
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

  Zone zone_;                   // for times without a zone
  TimeNs latest_ns_ = kNoTime;  // latest possible time without a year
  int64_t latest_year_ = 0;
  char last_date_[10] = {};  // "2026-11-21"
  int64_t last_days_ = -1;   // the day number of last_date_; -1: none
};

// The month of "Jan" .. "Dec" at `pos`; 0: none.
unsigned month_at(std::string_view line, size_t pos);

}  // namespace culprit::logs
