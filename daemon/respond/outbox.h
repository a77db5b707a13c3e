// Messages that wait for their receivers, in order, and when each receiver is tried again. A newer message
// about an issue replaces a waiting revision; the first one about an issue always goes out. Beyond a limit by
// receiver messages are dropped and counted: ends of issues first, then revisions, each the oldest first.
//
// Pure: time is an argument. One thread. The caller keeps messages on the disk until they are gone from here.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/alert.h"

namespace culprit::respond {

class Outbox {
 public:
  // A receiver that was down for a day: a storm of 1,000 issues with their ends, and records of findings.
  static constexpr size_t kMost = 10'000;
  static constexpr TimeNs kFirstWait = kNsPerSecond,
                          kLongestWait = 300 * kNsPerSecond;  // also if it asks for more
  // A message that the receiver calls malformed is dropped after so many refusals.
  static constexpr uint32_t kRefusals = 3;

  explicit Outbox(size_t most = kMost) : most_(most) {}

  struct Counts {
    uint64_t sent = 0, failed = 0, dropped = 0;  // failed: attempts
  };
  // What a receiver has before it.
  struct Line {
    std::deque<alert::Message> waiting;  // in order of rows
    Counts counts;
    std::string trouble;                             // of the last attempt; empty: none
    TimeNs failing_ns = kNoTime, next_ns = kNoTime;  // since when; when it is tried again
    TimeNs sent_ns = kNoTime;                        // when the last attempt succeeded
    TimeNs wait_ns = 0;                              // of the last failure
    std::map<int64_t, uint32_t> refusals;            // by row
  };

  // What is kept of a receiver over a restart.
  struct Past {
    std::string receiver;
    uint64_t dropped = 0;
    std::string trouble;
    TimeNs failing_ns = kNoTime, sent_ns = kNoTime;
    bool operator==(const Past&) const = default;
  };
  void load(const Past& past);
  Past past(const std::string& receiver) const;

  // Restores messages of before the start, in order of rows.
  void load(std::vector<alert::Message> messages);
  // Gives the message its row. `removed`: rows of messages that give way.
  int64_t add(alert::Message message, std::vector<int64_t>& removed);
  // The oldest messages that may be sent now, at most `most`; none while the receiver has to wait.
  std::vector<alert::Message> due(const std::string& receiver, size_t most, TimeNs now) const;
  // Whether the receiver failed and is not tried again yet.
  bool waits(const std::string& receiver, TimeNs now) const;

  // A person asks for it: the next attempt is due at once.
  void try_now(const std::string& receiver);

  // Outcomes of an attempt. They return the rows that are done with.
  std::vector<int64_t> sent(const std::string& receiver, const std::vector<int64_t>& rows, TimeNs now);
  void failed(const std::string& receiver, const std::string& why, std::optional<TimeNs> asked, TimeNs now);
  std::vector<int64_t> refused(const std::string& receiver, const std::vector<int64_t>& rows,
                               const std::string& why, TimeNs now);
  // The receiver took a message and left out so many records of it.
  void rejected(const std::string& receiver, uint64_t records) { lines_[receiver].counts.dropped += records; }
  // Issues and receivers of messages that were given up since the last call.
  std::vector<alert::Message> take_dropped() { return std::exchange(given_up_, {}); }
  // The receivers are these now: messages for others are dropped. Returns their rows.
  std::vector<int64_t> keep_only(const std::vector<std::string>& receivers);

  const std::map<std::string, Line>& lines() const { return lines_; }  // by receiver
  size_t pending() const;
  uint64_t dropped_without_receiver() const { return orphans_; }

 private:
  void give_up(alert::Message message);
  void make_room(Line& line, std::vector<int64_t>& removed);

  const size_t most_;
  std::map<std::string, Line> lines_;
  int64_t last_row_ = 0;
  uint64_t orphans_ = 0;
  std::vector<alert::Message> given_up_;  // without bodies
};

}  // namespace culprit::respond
