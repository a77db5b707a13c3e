#include "core/detect/hang/log_observations.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/detect/hang/line_reader.h"
#include "core/detect/hang/meeting_lines.h"
#include "core/detect/hang/meetings.h"
#include "core/detect/hang/watchdog_lines.h"

namespace culprit::hang {
namespace {

struct Read {
  WatchdogLine line;
  const logs::RuleLine* from = nullptr;
  std::optional<uint32_t> rank;
};

Observation observation_of(const logs::JobLog& log, const Read& read) {
  const logs::WriterStats& writer = log.writers()[read.from->place.writer];
  Observation observation;
  observation.source = ObservationSource::kWatchdog;
  observation.rank = read.rank;
  observation.group_rank = read.line.group_rank;
  observation.host = writer.host;
  observation.device = writer.device;
  observation.group = read.line.group;
  observation.enqueued = read.line.enqueued;
  observation.completed = read.line.completed;
  if (read.from->own_time) observation.at_ns = read.from->place.time_ns;
  observation.waited_ns = read.line.waited_ns;
  observation.evidence = detect::evidence_of(log, *read.from);
  return observation;
}

HangClaim claim_of(const logs::JobLog& log, const Read& read, HangAnswer answer) {
  return {answer,          read.line.group, read.line.call,
          read.line.ranks, read.line.calls, detect::evidence_of(log, *read.from)};
}

class Reader {
 public:
  Reader(const logs::JobLog& log, HangInput& out) : log_(log), out_(out), meetings_(log) {}

  // The rules of one line come one after another: their values are joined.
  void add(const logs::RuleLine& line, const rules::Rule& rule) {
    const std::pair place(line.place.source, line.text_line);
    if (!line_ || place != std::pair(line_->place.source, line_->text_line)) {
      close_line();
      line_ = &line;
    }
    (is_of_meeting(rule.observes) ? of_meeting_ : of_operation_).add(reader_.read(rule, line));
  }

  void finish() {
    close_line();
    for (auto& [writer, lines] : by_writer_) {
      join_groups(lines);
      for (const Read& read : lines) emit(read);
    }
    drop_referrals();
    meetings_.finish(out_);
  }

 private:
  void close_line() {
    const logs::RuleLine* line = std::exchange(line_, nullptr);
    const LineValues of_meeting = std::exchange(of_meeting_, {}),
                     of_operation = std::exchange(of_operation_, {});
    if (!line || !(of_meeting.any() || of_operation.any())) return;
    if (auto meeting = read_meeting_line(of_meeting)) {
      if (is_first(*line)) meetings_.add(*line, std::move(*meeting));
      return;
    }
    auto known = read_watchdog_line(of_operation);
    if (!known || !is_first(*line)) return;
    Read read{std::move(*known), line, {}};
    read.rank = read.line.rank ? read.line.rank : log_.writers()[line->place.writer].rank;
    std::vector<Read>& own = by_writer_[{line->place.source, line->place.writer}];
    if (read.line.kind == WatchdogKind::kFrame) return add_frame(read, own);
    own.push_back(std::move(read));
  }

  bool is_first(const logs::RuleLine& line) {
    return seen_.emplace(line.place.source, line.text_line).second;
  }

  // "Check rank 0": the statement of rank 0 about the others counts.
  void drop_referrals() {
    std::set<uint32_t> own;
    for (const auto& [writer, lines] : by_writer_)
      for (const Read& read : lines)
        if (read.line.kind == WatchdogKind::kBehind && read.rank && !read.line.refers) own.insert(*read.rank);
    for (const auto& [writer, lines] : by_writer_)
      for (const Read& read : lines)
        if (read.line.refers && !own.contains(read.line.ranks[0]))
          out_.claims.push_back(claim_of(log_, read, HangAnswer::kMissing));
  }

  // The innermost frame outside of libraries.
  static void add_frame(const Read& frame, std::vector<Read>& own) {
    if (own.empty()) return;
    WatchdogLine& line = own.back().line;
    if (!line.call.site.empty() && !line.in_library) return;
    line.call.site = frame.line.call.site;
    line.in_library = frame.line.in_library;
  }

  // The first line of a timed-out operation has no group; a later line with the same number has one.
  static void join_groups(std::vector<Read>& lines) {
    std::map<std::pair<std::optional<uint32_t>, int64_t>, const WatchdogLine*> known;
    for (const Read& read : lines)
      if (read.line.call.seq >= 0 && (!read.line.group.key.empty() || !read.line.group.local.empty()))
        known.try_emplace({read.rank, read.line.call.seq}, &read.line);
    for (Read& read : lines) {
      const auto at = known.find({read.rank, read.line.call.seq});
      if (at == known.end() || !read.line.group.key.empty() || !read.line.group.local.empty()) continue;
      read.line.group = at->second->group;
      // `rank` is the group rank; the earlier value may be the rank in another group of the process.
      read.line.group_rank = at->second->group_rank;
    }
  }

  void emit(const Read& read) {
    Observation observation = observation_of(log_, read);
    const WatchdogLine& line = read.line;
    switch (line.kind) {
      case WatchdogKind::kTimeout:
        observation.timed_out = true;
        observation.call = line.call;
        break;
      case WatchdogKind::kStatus:
        if (line.call.seq >= 0) observation.call = line.call;
        break;
      case WatchdogKind::kWait:
        observation.call = line.call;
        break;
      case WatchdogKind::kJoined:
        for (const uint32_t rank : line.ranks) {
          observation.rank = rank;
          observation.call = line.call;
          out_.observations.push_back(observation);
        }
        return;
      case WatchdogKind::kBehind:
        if (line.refers) return add_wait(read, std::move(observation));
        out_.claims.push_back(claim_of(log_, read, HangAnswer::kMissing));
        return;
      case WatchdogKind::kMismatch:
        out_.claims.push_back(claim_of(log_, read, HangAnswer::kMismatch));
        return;
      case WatchdogKind::kClosed:
        return add_exit(read, std::move(observation));
      case WatchdogKind::kHeartbeat:
      case WatchdogKind::kFrame:
        return;
    }
    out_.observations.push_back(std::move(observation));
  }

  // This rank arrived, and waits for the rank that it refers to.
  void add_wait(const Read& read, Observation observation) {
    if (!observation.rank) return;
    observation.call = read.line.call;
    out_.observations.push_back(std::move(observation));
  }

  // If a library closes its connections at any exit, the line proves only an exit, unless a silent rank
  // exists.
  void add_exit(const Read& read, Observation observation) {
    if (read.line.at_exit && !silent_rank(out_.logged)) return;
    RankExit exited;
    exited.kind = ExitKind::kExited;
    if (!read.line.peer.empty()) exited.host = read.line.peer;
    exited.by_peers = true;
    exited.reason = "its peers saw it close the connection";
    exited.at_ns = observation.at_ns;
    exited.evidence = std::move(observation.evidence);
    out_.exits.push_back(std::move(exited));
  }

  const logs::JobLog& log_;
  HangInput& out_;
  Meetings meetings_;
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Read>> by_writer_;
  LineReader reader_;
  const logs::RuleLine* line_ = nullptr;  // the current line, and its values by all rules so far
  LineValues of_operation_, of_meeting_;
  std::set<std::pair<uint32_t, uint64_t>> seen_;
};

// The last progress line of each source: the job survived everything before it.
std::map<uint32_t, uint64_t> last_progress_of(const logs::JobLog& log) {
  std::map<uint32_t, uint64_t> out;
  for (const logs::ProgressPoint& point : log.iterations().track()) {
    uint64_t& line = out[point.source];
    line = std::max<uint64_t>(line, point.line);
  }
  return out;
}

}  // namespace

HangInput observations_of(const logs::JobLog& log, const RuleToRead& rule_of, TimeNs after) {
  HangInput out;
  for (const logs::WriterStats& writer : log.writers())
    if (writer.rank && writer.lines > 0) out.logged.insert(*writer.rank);
  Reader reader(log, out);
  const std::map<uint32_t, uint64_t> progress = last_progress_of(log);
  // A line without its own time has the time of an earlier line; only its position in the file gives the
  // order.
  const auto is_since = [&](const logs::RuleLine& line) {
    if (after == kNoTime || line.place.time_ns == kNoTime || line.place.time_ns >= after) return true;
    if (line.own_time) return false;
    const auto last = progress.find(line.place.source);
    return last == progress.end() || line.place.line > last->second;
  };
  for (const logs::RuleLine& line : log.rule_lines())
    if (const rules::Rule* rule = rule_of(line.rule); rule && !line.mentioned && is_since(line))
      reader.add(line, *rule);
  reader.finish();
  std::pair<TimeNs, uint64_t> last{kNoTime, 0};
  for (const logs::ClusterId id : log.clusters()) {
    const logs::TemplateStats& t = log.templates()[id];
    if (t.samples.empty() || !names_preparation(t.samples[0].text)) continue;
    if (t.shape.kind == logs::ShapeKind::kException || t.known == logs::Meaning::kFault) continue;
    const std::pair<TimeNs, uint64_t> at{t.last_ns, t.samples[0].place.line};
    if (out.preparing && at < last) continue;
    last = at;
    out.preparing = read_preparing(t.samples[0].text, log.writers()[t.samples[0].place.writer].rank);
  }
  return out;
}

}  // namespace culprit::hang
