#include "core/logs/job_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/logs/time_span.h"

namespace culprit::logs {
namespace {

// Limit on rule lines in a launcher's list. The first and last lines are retained, since they name the root
// cause.
constexpr size_t kListEnds = 500;
constexpr size_t kQuoted = 65'536;  // samples of data that the job prints
// A difference of 48 hours exceeds any time zone's. The year may be wrong if the line has none.
constexpr TimeNs kOlder = 48 * 3600 * kNsPerSecond, kAnyYear = (365 * 24 + 6) * 3600 * kNsPerSecond;

// Gives lines before the batch's first time the source's last time. Returns whether some of these lines are
// outside the selected times.
bool fill_times(LogBatch& batch, TimeNs last) {
  const uint64_t skipped = batch.skipped_lines;
  for (LineRecord& line : batch.lines) {
    if (line.time_ns != kNoTime) break;
    line.time_ns = last;
    if (batch.wanted(line.time_ns)) continue;
    line.form = kNoForm;
    line.skipped = 1;
    ++batch.skipped_lines;
  }
  return batch.skipped_lines != skipped;
}

// Whether a line is much older than the beginning of its source: the job prints an older log.
bool is_of_older_log(const LineRecord& line, TimeNs begin_ns) {
  if (!line.own_time || line.time_ns == kNoTime || line.time_ns >= begin_ns) return false;
  const TimeNs before = (begin_ns - line.time_ns) % kAnyYear;
  return before > kOlder && before < kAnyYear - kOlder;
}

// A rule line for an exception that ended its process and matches no rule.
RuleLine uncaught(const RecordEvent& event) {
  RuleLine line;
  line.rule = JobLog::kNoRule;
  line.exception = line.death = true;
  line.own_time = event.own_time;
  line.text = event.text;
  line.text_line = event.text_line;
  line.code = event.code;
  return line;
}

}  // namespace

void JobEvents::open_source(const SourceInfo& info) {
  Source& source = sources_.emplace_back();
  source.host = info.host;
  source.counts.lines = info.lines_before;
}

void JobEvents::add(LogBatch& batch) {
  CULPRIT_CHECK(batch.source < sources_.size());
  Source& source = sources_[batch.source];
  const bool trimmed = fill_times(batch, source.time);
  groups_.open(batch, source.open.records, trimmed);
  progress_.begin_batch();
  walk_lines(batch, source);
  groups_.count();
  if (source.host) groups_.count_owned(*source.host);
  if (!batch.lines.empty() && batch.lines.back().time_ns != kNoTime) source.time = batch.lines.back().time_ns;
  source.counts.lines += batch.lines.size();
  source.counts.cut_lines += batch.cut_lines;
  for (const PaceLine& p : batch.pace)
    progress_.keep_line({batch.source, writers_.open(batch.writers[p.writer]),
                         source.counts.lines - std::min(p.back, source.counts.lines), p.time_ns},
                        p.text);
}

// A job prints some lines of an older log. Many in a row are the source itself: its first time was wrong, or
// its newest line is the first.
void JobEvents::follow_beginning(const LineRecord& line, Source& source) {
  constexpr size_t kQuotedLines = 100;  // chosen above what a preflight prints of the kernel's log
  if (source.begin_ns == kNoTime) source.begin_ns = line.time_ns;
  if (!line.own_time) return;
  source.older = is_of_older_log(line, source.begin_ns) ? source.older + 1 : 0;
  if (source.older < kQuotedLines) return;
  source.begin_ns = line.time_ns;
  source.older = 0;
}

void JobEvents::walk_lines(LogBatch& batch, Source& source) {
  std::vector<RuleLine> found;
  next_hit_ = 0;
  for (uint32_t i = 0; i < batch.lines.size(); ++i) {
    LineRecord& line = batch.lines[i];
    follow_beginning(line, source);
    if (!line.skipped) widen(source.counts.first_ns, source.counts.last_ns, line.time_ns);
    if (line.form == kNoForm) continue;
    CULPRIT_DCHECK(line.group < groups_.size() && line.form < batch.forms.size());
    const BatchGroups::Group& group = groups_[line.group];
    const LogPlace place{batch.source, group.lines.writer, source.counts.lines + i + 1, line.time_ns};
    writers_.count_line(place);
    const FormShape& shape = batch.forms[line.form].shape;
    if (next_hit_ < batch.hits.size() && batch.hits[next_hit_].line <= i) take_hits(batch, i, found);
    if (const auto begin = source.open.quotes.add_line(group.record, shape, line.own_time, place.line))
      drop_quoted(place, *begin);
    const bool plain = shape.kind == ShapeKind::kPlain && !shape.ignored &&
                       source.open.records.add_plain(group.record, group.lines.form);
    if (source.fatal) read_fatal(batch, line, place, source);
    if (!plain && !walk_record(batch, source, i, found)) {
      found.clear();
      continue;
    }
    add_event(batch, i, place);
    if (found.empty()) continue;
    if (batch.message(line).starts_with("Fatal Python error"))
      source.fatal = place, source.fatal_other = false;
    add_rules(found, group.lines.form, place);
  }
  widen(first_ns_, last_ns_, source.counts.first_ns);
  widen(first_ns_, last_ns_, source.counts.last_ns);
  if (batch.last) end(source);
  groups_.relabel(batch, relabels_);
  for (const uint32_t record : touched_)
    if (!batch.last) source.open.records.leave_batch(record);
  touched_.clear();
}

// Adds a line to its writer's record; returns whether the line is its own event. In a traceback, only rules
// that match the exception's line count: earlier lines show program text.
bool JobEvents::walk_record(LogBatch& batch, Source& source, uint32_t i, std::vector<RuleLine>& found) {
  CULPRIT_DCHECK(i < batch.lines.size());
  OpenEvents& open = source.open;
  LineRecord& line = batch.lines[i];
  const BatchGroups::Group& group = groups_[line.group];
  Record& record = open.records[group.record];
  const LogPlace place{batch.source, group.lines.writer, source.counts.lines + i + 1, line.time_ns};
  std::optional<RecordEvent> done;
  const bool list = record.list();
  const LineRole role = record.add({i, group.lines.form, &batch.forms[line.form].shape, batch.message(line),
                                    line.indented != 0, line.own_time != 0, place},
                                   done, relabels_);
  touched_.push_back(group.record);
  line.continued = role == LineRole::kContinues;
  if (done) {
    std::vector<RuleLine>& held = open.held[group.record];
    if (role == LineRole::kContinues) held = std::exchange(found, {});
    if (const auto code = open.code.extract(group.record)) add_code(code.mapped(), *done, held);
    close_held(*done, held);
  } else if (role == LineRole::kContinues && record.open() && !record.list() &&
             batch.forms[line.form].shape.kind != ShapeKind::kFrame) {
    open.code[group.record] = {shorten(batch.message(line), limits::kEvidenceText), std::move(found)};
    found.clear();
  }
  if (role != LineRole::kEvent && record.list() && !found.empty()) {
    std::vector<RuleLine>& held = open.held[group.record];
    if (!list) held.clear();
    held.insert(held.end(), found.begin(), found.end());
    if (held.size() > 4 * kListEnds) keep_ends(held);
  }
  return role == LineRole::kEvent;
}

void JobEvents::add_code(const CodeLine& code, const RecordEvent& event, std::vector<RuleLine>& found) {
  if (event.text.find(':') != std::string::npos || event.shape.kind != ShapeKind::kException) return;
  found.insert(found.end(), code.found.begin(), code.found.end());
  for (RuleLine& r : found) r.text = fmt::format("{}: {}", event.text, code.text);
}

// Moves the rule matches in line i of the batch to `out`.
void JobEvents::take_hits(const LogBatch& batch, uint32_t i, std::vector<RuleLine>& out) {
  while (next_hit_ < batch.hits.size() && batch.hits[next_hit_].line < i) ++next_hit_;
  for (; next_hit_ < batch.hits.size() && batch.hits[next_hit_].line == i; ++next_hit_) {
    const LineHit& hit = batch.hits[next_hit_];
    const LineRecord& line = batch.lines[i];
    RuleLine& r = out.emplace_back();
    r.rule = hit.rule;
    r.order = static_cast<uint8_t>(std::min<size_t>(out.size() - 1, 255));
    // Log services stamp all output of a job with level info, so the level does not contradict a specific
    // wording. It does contradict a general one.
    const bool reported = hit.general && (hit.level == Level::kInfo || hit.level == Level::kDebug);
    // The kernel writes "still trying" about hangs, and kernel rules match exact lines, so words of recovery
    // do not count.
    r.mentioned = hit.known == Meaning::kNothing || is_of_older_log(line, sources_[batch.source].begin_ns);
    r.handled = r.mentioned || (!hit.kernel && (batch.forms[line.form].shape.handled || reported));
    r.known = hit.known;
    r.general = hit.general;
    r.kernel = hit.kernel;
    r.event = hit.event;
    r.service = hit.service;
    const ShapeKind kind = batch.forms[line.form].shape.kind;
    r.exception = kind == ShapeKind::kException || kind == ShapeKind::kTraceback;
    r.own_time = line.own_time;
    r.text_line = sources_[batch.source].counts.lines + i + 1;
    r.text = shorten_middle(batch.message(line), limits::kEvidenceText);
    for (uint32_t h = 0; h < hit.holes; ++h)
      r.holes.push_back(shorten(batch.holes[hit.first_hole + h], limits::kEvidenceText));
  }
}

// Below a fatal error the interpreter prints the stack of each thread, innermost frame first. "Current
// thread", at any position, is the one that failed; a single thread has no heading.
void JobEvents::read_fatal(const LogBatch& batch, const LineRecord& line, const LogPlace& place,
                           Source& source) {
  constexpr uint64_t kBelow = 100;  // lines
  if (place.writer != source.fatal->writer) return;
  const std::string_view text = batch.message(line);
  if (text.starts_with("Thread 0x")) source.fatal_other = true;
  if (text.starts_with("Current thread")) source.fatal_other = false;
  if (place.line - source.fatal->line > kBelow) return source.fatal.reset();
  if (source.fatal_other || batch.forms[line.form].shape.kind != ShapeKind::kFrame) return;
  const auto code = frame_place(text);
  if (!code || !is_own_code(*code)) return;
  rule_lines_.name_code(*source.fatal, *code);
  source.fatal.reset();
}

void JobEvents::drop_quoted(const LogPlace& end, uint64_t begin) {
  rule_lines_.drop_quoted(end, begin);
  if (quoted_.size() >= kQuoted) return drops_.add(Drop::kQuotedTexts);
  quoted_.push_back({end.source, end.writer, begin, end.line});
}

// Adds a line that is its own event.
void JobEvents::add_event(const LogBatch& batch, uint32_t i, const LogPlace& place) {
  const LineRecord& line = batch.lines[i];
  BatchGroups::Group& group = groups_[line.group];
  const uint32_t form = group.lines.form;
  if (group.lines.count++ == 0) group.lines.untimed = place.time_ns == kNoTime;
  widen(group.lines.first_ns, group.lines.last_ns, place.time_ns);
  WriterStats& writer = writers_[place.writer];
  ++writer.events;
  ++sources_[place.source].counts.events;
  const FormSeen& seen = batch.forms[line.form];
  const bool trouble = (seen.shape.words > 0 || seen.level >= Level::kError) && !seen.shape.advice;
  // Stores the form, not the text: a collector sends few texts.
  if (trouble && !seen.shape.handled)
    sources_[place.source].trouble = {place, sources_[place.source].counts.events,
                                      shorten(templates_.form(form).text, limits::kEvidenceText)};
  if (group.room > 0) {
    --group.room;
    templates_.add_place(form, place);
    if (!group.sampled) group.sampled = templates_.add_sample(form, place, batch.message(line), place.line);
  }
  const bool counts_up =
      progress_.add_line(batch, {i, form, templates_.form(form).key, templates_.is_folded(form), place});
  if (counts_up) ++templates_.of_form(form).rises;
  if (counts_up)
    reported_.clear();
  else if (reported_.size() < kReported && seen.shape.words < 2 && seen.level < Level::kError &&
           std::ranges::find(reported_, form) == reported_.end()) {
    reported_.push_back(form);
    if (reported_times_.size() < kReportedForms) ++*reported_times_.try_emplace(form, 0).first;
  }
  if (const auto stage = batch.forms[line.form].shape.stage) writer.stage = stage;
}

// Adds the rules found in one event. General rules give way to specific ones.
void JobEvents::add_rules(std::vector<RuleLine>& found, uint32_t form, const LogPlace& place) {
  const bool particular = std::any_of(found.begin(), found.end(), [](const RuleLine& r) {
    return !r.general && (r.handled || r.known > Meaning::kNote);
  });
  for (size_t i = 0; i < found.size(); ++i) {
    RuleLine& line = found[i];
    const bool again = std::any_of(found.begin(), found.begin() + static_cast<ptrdiff_t>(i),
                                   [&](const RuleLine& r) { return r.rule == line.rule; });
    if ((particular && line.general) || again) continue;
    if (line.handled) line.known = Meaning::kNote;
    line.place = place;
    line.cluster = templates_.form(form).key;
    line.writer_event = writers_[place.writer].events;
    line.source_event = sources_[place.source].counts.events;
    line.own_step = progress_.iterations().own_step(place.writer, place.source);
    TemplateStats& stats = templates_.of_form(form);
    stats.known = std::max(stats.known, line.known);
    rule_lines_.add(std::move(line), templates_.form(form).hash);
  }
  found.clear();
}

// `at_end`: no more lines follow in its source.
void JobEvents::close_held(const RecordEvent& event, std::vector<RuleLine>& found, bool at_end) {
  add_held(event);
  // An uncaught exception is a failure itself, whatever its text mentions.
  if (event.uncaught) std::erase_if(found, [](const RuleLine& r) { return r.mentioned; });
  keep_ends(found);
  const bool handled = was_handled(event);
  for (RuleLine& r : found) {
    // An uncaught exception ends its process, whatever the level of its lines.
    r.handled = handled || r.mentioned || (event.uncaught ? event.shape.handled : r.handled);
    r.own_time = event.own_time;
    r.death = event.uncaught || event.shape.kind == ShapeKind::kRootCause;
    r.exception = r.exception || event.uncaught;
    r.code = event.code;
    if (r.text.ends_with(event.text)) r.text = event.text;  // without the frame of an exception group or box
    if (event.shape.kind != ShapeKind::kRootCause) continue;
    r.about = listed_host(event.text);
    r.about_rank = listed_rank(event.text, r.text);
  }
  const bool read = event.shape.kind != ShapeKind::kTraceback;
  if (event.cause && read && (event.uncaught || !found.empty()))
    rule_lines_.drop(event.place);
  else if (event.again)
    std::erase_if(found, [](const RuleLine& r) { return r.general; });
  const bool known = !found.empty() || (event.again && event.uncaught && rule_lines_.mark_death(event.place));
  if (event.uncaught && !known && (read || at_end) && !event.shape.handled) found.push_back(uncaught(event));
  add_rules(found, event.form, event.place);
}

// Adds an event that was pending until complete.
void JobEvents::add_held(const RecordEvent& event) {
  const LogPlace& place = event.place;
  WriterStats& writer = writers_[place.writer];
  ++writer.events;
  ++sources_[place.source].counts.events;
  templates_.count({place.writer, event.form, 1, place.time_ns, place.time_ns, false});
  if (place.time_ns == kNoTime) templates_.of_form(event.form).untimed = true;
  if (event.again) return;
  templates_.add_place(event.form, place);
  templates_.add_sample(event.form, place, event.text, event.text_line);
  progress_.add_event(place.writer, templates_.form(event.form).key);
  if (event.shape.stage) writer.stage = event.shape.stage;
}

// Whether the program handled the exception: the traceback follows a line of its writer such as "upload
// failed, will retry in 30 s", and does not begin at a process's entry point.
bool JobEvents::was_handled(const RecordEvent& event) const {
  if (event.uncaught || event.before == kNoForm || event.shape.kind == ShapeKind::kRootCause) return false;
  return templates_.of_form(event.before).shape.handled;
}

// The source's last batch: completes the pending events.
void JobEvents::end(Source& source) {
  OpenEvents& open = source.open;
  std::optional<RecordEvent> done;
  open.records.each([&](uint32_t i, Record& record) {
    record.finish(done, relabels_);
    if (done) close_held(*std::exchange(done, std::nullopt), open.held[i], true);
  });
  open = {};
}

std::vector<std::string> JobEvents::reported_since_progress() const {
  std::vector<std::string> out;
  // Forms that occur in most steps do not explain the current one.
  constexpr uint64_t kFewTimes = 3;
  const uint64_t moves = progress_.iterations().moves();
  for (const uint32_t form : reported_) {
    const uint64_t* times = reported_times_.find(form);
    if (!times || *times <= kFewTimes || *times * 4 < moves) out.emplace_back(templates_.form(form).text);
  }
  return out;
}

void JobEvents::keep_ends(std::vector<RuleLine>& found) {
  if (found.size() <= 2 * kListEnds) return;
  drops_.add(Drop::kRules, found.size() - 2 * kListEnds);
  found.erase(found.begin() + kListEnds, found.end() - kListEnds);
}

Drops JobEvents::drops() const {
  Drops all = drops_;
  all.add(Drop::kRules, rule_lines_.of_rules().dropped() + rule_lines_.uncaught().dropped());
  return all;
}

void JobEvents::renumber_rules(const std::vector<uint32_t>& to) {
  rule_lines_.renumber(to);
  for (Source& source : sources_)
    for (auto& [record, held] : source.open.held) renumber(held, to);
}

}  // namespace culprit::logs
