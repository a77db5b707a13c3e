#include "respond/outbox.h"

#include <algorithm>

#include "base/check.h"

namespace culprit::respond {
namespace {

// What gives way first.
constexpr alert::Message::Kind kDropOrder[] = {alert::Message::Kind::kLatest, alert::Message::Kind::kResolved,
                                               alert::Message::Kind::kRevised, alert::Message::Kind::kRecord,
                                               alert::Message::Kind::kFiring};

bool replaces(const alert::Message& newer, const alert::Message& older) {
  if (newer.kind == alert::Message::Kind::kLatest) return older.kind == alert::Message::Kind::kLatest;
  const bool change =
      newer.kind == alert::Message::Kind::kRevised || newer.kind == alert::Message::Kind::kResolved;
  return change && older.kind == alert::Message::Kind::kRevised && older.issue == newer.issue;
}

}  // namespace

void Outbox::load(std::vector<alert::Message> messages) {
  for (alert::Message& m : messages) {
    last_row_ = std::max(last_row_, m.row);
    lines_[m.receiver].waiting.push_back(std::move(m));
  }
}

void Outbox::load(const Past& past) {
  Line& line = lines_[past.receiver];
  line.counts.dropped = past.dropped;
  line.trouble = past.trouble;
  line.failing_ns = past.failing_ns;
  line.sent_ns = past.sent_ns;
}

Outbox::Past Outbox::past(const std::string& receiver) const {
  const auto at = lines_.find(receiver);
  if (at == lines_.end()) return {receiver, 0, "", kNoTime, kNoTime};
  const Line& line = at->second;
  return {receiver, line.counts.dropped, line.trouble, line.failing_ns, line.sent_ns};
}

void Outbox::give_up(alert::Message message) {
  message.body.clear();
  if (!message.issue.empty()) given_up_.push_back(std::move(message));
}

int64_t Outbox::add(alert::Message message, std::vector<int64_t>& removed) {
  Line& line = lines_[message.receiver];
  std::erase_if(line.waiting, [&](const alert::Message& older) {
    const bool old = replaces(message, older);
    if (!old) return false;
    removed.push_back(older.row);
    line.refusals.erase(older.row);
    return true;
  });
  make_room(line, removed);
  message.row = ++last_row_;
  CULPRIT_CHECK(line.waiting.empty() || line.waiting.back().row < message.row);
  line.waiting.push_back(std::move(message));
  return last_row_;
}

void Outbox::make_room(Line& line, std::vector<int64_t>& removed) {
  for (const alert::Message::Kind kind : kDropOrder) {
    if (line.waiting.size() < most_) return;
    const auto at = std::ranges::find(line.waiting, kind, &alert::Message::kind);
    if (at == line.waiting.end()) continue;
    removed.push_back(at->row);
    line.refusals.erase(at->row);
    give_up(*at);
    line.waiting.erase(at);
    ++line.counts.dropped;
    return;
  }
}

// The bound limits the wait if the clock was set back.
bool Outbox::waits(const std::string& receiver, TimeNs now) const {
  const auto at = lines_.find(receiver);
  if (at == lines_.end() || at->second.next_ns == kNoTime) return false;
  const Line& line = at->second;
  return now < line.next_ns && line.next_ns - now <= line.wait_ns;
}

std::vector<alert::Message> Outbox::due(const std::string& receiver, size_t most, TimeNs now) const {
  const auto at = lines_.find(receiver);
  if (at == lines_.end() || waits(receiver, now)) return {};
  const std::deque<alert::Message>& waiting = at->second.waiting;
  const size_t n = std::min(most, waiting.size());
  return {waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(n)};
}

void Outbox::try_now(const std::string& receiver) {
  if (const auto at = lines_.find(receiver); at != lines_.end()) at->second.next_ns = kNoTime;
}

std::vector<int64_t> Outbox::sent(const std::string& receiver, const std::vector<int64_t>& rows, TimeNs now) {
  Line& line = lines_[receiver];
  std::erase_if(line.waiting,
                [&](const alert::Message& m) { return std::ranges::find(rows, m.row) != rows.end(); });
  for (const int64_t row : rows) line.refusals.erase(row);
  line.counts.sent += rows.size();
  line.trouble.clear();
  line.failing_ns = line.next_ns = kNoTime;
  line.wait_ns = 0;
  line.sent_ns = now;
  return rows;
}

void Outbox::failed(const std::string& receiver, const std::string& why, std::optional<TimeNs> asked,
                    TimeNs now) {
  Line& line = lines_[receiver];
  ++line.counts.failed;
  line.trouble = why;
  if (line.failing_ns == kNoTime) line.failing_ns = now;
  line.wait_ns = std::clamp(2 * line.wait_ns, kFirstWait, kLongestWait);
  if (asked) line.wait_ns = std::clamp(*asked, line.wait_ns, kLongestWait);
  line.next_ns = now + line.wait_ns;
}

std::vector<int64_t> Outbox::refused(const std::string& receiver, const std::vector<int64_t>& rows,
                                     const std::string& why, TimeNs now) {
  failed(receiver, why, std::nullopt, now);
  Line& line = lines_[receiver];
  std::vector<int64_t> removed;
  for (const alert::Message& m : line.waiting)  // others gave way while they were on their way
    if (std::ranges::find(rows, m.row) != rows.end() && ++line.refusals[m.row] >= kRefusals)
      removed.push_back(m.row);
  std::erase_if(line.waiting, [&](const alert::Message& m) {
    if (std::ranges::find(removed, m.row) == removed.end()) return false;
    give_up(m);
    return true;
  });
  for (const int64_t row : removed) line.refusals.erase(row);
  line.counts.dropped += removed.size();
  if (!removed.empty()) line.wait_ns = 0;  // the next one may be sound
  return removed;
}

std::vector<int64_t> Outbox::keep_only(const std::vector<std::string>& receivers) {
  std::vector<int64_t> removed;
  std::erase_if(lines_, [&](const auto& one) {
    if (std::ranges::find(receivers, one.first) != receivers.end()) return false;
    for (const alert::Message& m : one.second.waiting) removed.push_back(m.row);
    return true;
  });
  orphans_ += removed.size();
  for (const std::string& receiver : receivers) lines_.try_emplace(receiver);  // its counts begin at 0
  return removed;
}

size_t Outbox::pending() const {
  size_t out = 0;
  for (const auto& [receiver, line] : lines_) out += line.waiting.size();
  return out;
}

}  // namespace culprit::respond
