// Queue of messages to receivers, in order, with the time of each receiver's next attempt. A newer message
// about an issue replaces a queued revision; the first message about an issue is always sent. Above a limit
// per receiver, messages are dropped and counted: ends of issues first, then revisions, the oldest of each
// first.
//
// Pure: time is an argument. One thread. The caller keeps messages on disk until the outbox removes them.
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
  // Limit per receiver, sufficient for a day without the receiver: a storm of 1,000 issues with their ends,
  // and records of findings.
  static constexpr size_t kMost = 10'000;
  static constexpr TimeNs kFirstWait = kNsPerSecond,
                          kLongestWait = 300 * kNsPerSecond;  // also if it asks for more
  // Number of refusals after which a message is dropped that the receiver calls malformed.
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

  // At a start: restores the stored messages, in order of rows.
  void load(std::vector<alert::Message> messages);
  // Queues the message and assigns its row. `removed`: rows of the messages dropped for it.
  int64_t add(alert::Message message, std::vector<int64_t>& removed);
  // The oldest messages that may be sent now, at most `most`; none while the receiver's retry is not due.
  std::vector<alert::Message> due(const std::string& receiver, size_t most, TimeNs now) const;
  // Whether the receiver failed and its retry is not due yet.
  bool waits(const std::string& receiver, TimeNs now) const;

  // Makes the next attempt due at once, on a person's request.
  void try_now(const std::string& receiver);

  // Outcomes of an attempt. They return the rows of finished messages.
  std::vector<int64_t> sent(const std::string& receiver, const std::vector<int64_t>& rows, TimeNs now);
  void failed(const std::string& receiver, const std::string& why, std::optional<TimeNs> asked, TimeNs now);
  std::vector<int64_t> refused(const std::string& receiver, const std::vector<int64_t>& rows,
                               const std::string& why, TimeNs now);
  // The receiver accepted a message but rejected this many of its records.
  void rejected(const std::string& receiver, uint64_t records) { lines_[receiver].counts.dropped += records; }
  // Issues and receivers of the messages dropped since the last call.
  std::vector<alert::Message> take_dropped() { return std::exchange(given_up_, {}); }
  // Sets the receivers; messages for others are dropped. Returns their rows.
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
