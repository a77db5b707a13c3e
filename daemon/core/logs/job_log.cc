#include "core/logs/job_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "core/logs/counter.h"
#include "core/logs/host_alias.h"
#include "core/logs/infer_ranks.h"
#include "core/logs/mask.h"
#include "core/logs/quoted_texts.h"
#include "core/logs/rule_lines.h"

namespace culprit::logs {
namespace {

constexpr uint32_t kNamedTracks = 0x80000000;  // keys of named tracks, above those of forms
constexpr size_t kListLines = 1000;            // lines of a launcher's list that match rules
constexpr size_t kQuoted = 65'536;             // samples of data that the job prints
constexpr size_t kSamples = 8;                 // writers whose first line of a template is kept as text
// Writers with full activity; beyond, four ranks of a host share the bins of one.
constexpr size_t kFineWriters = 16'384;
constexpr size_t kCoarseBins = 64;
constexpr uint32_t kNone = 0xffffffff;
constexpr size_t kAhead = 8;          // concurrent look-ups: as many as a core supports
constexpr size_t kProgressLines = 3;  // last lines kept as text, which show the pace
// No message has this form: masking joins adjacent holes.
constexpr std::string_view kFoldedForm = "<*> <*> (folded)";

uint64_t pair_key(uint32_t writer, uint32_t cluster) { return (uint64_t{writer} << 32) | cluster; }

void widen(TimeNs& first, TimeNs& last, TimeNs time) {
  if (time == kNoTime) return;
  if (first == kNoTime || time < first) first = time;
  if (last == kNoTime || time > last) last = time;
}

}  // namespace

struct JobLog::Impl {
  // The last source line in a traceback. It explains an exception without a message ("AssertionError").
  struct CodeLine {
    std::string text;
    std::vector<RuleLine> found;
  };

  struct SourceState {
    SourceInfo info;
    uint64_t lines = 0, cut_lines = 0, events = 0;
    TimeNs first = kNoTime, last = kNoTime;  // of its lines in the selected times
    TimeNs time = kNoTime;
    std::unordered_map<uint32_t, uint32_t> record_of;          // by writer
    std::vector<Record> records;                               // until its last batch
    std::unordered_map<uint32_t, std::vector<RuleLine>> held;  // by record: lines of incomplete lists
    std::unordered_map<uint32_t, CodeLine> code;               // by record: of open tracebacks
    QuotedTexts quotes;                                        // by record
  };

  // A writer in the current batch.
  struct OpenWriter {
    uint32_t id = kNone;
    uint32_t record = 0;  // index into the source's records
  };

  // Lines of one form and writer in the current batch.
  struct Group {
    uint32_t writer = kNone, form = kNone;
    uint32_t record = 0;  // record of the writer
    uint32_t room = 0;    // places that the template still accepts
    uint64_t count = 0;
    TimeNs first_ns = kNoTime, last_ns = kNoTime;
    bool untimed = false;  // its first line has no time
  };

  JobFile job;
  std::vector<SourceInfo> infos;
  std::vector<SourceState> sources;
  std::vector<WriterStats> writers;
  FlatMap<uint32_t> writer_ids{256};
  Miner miner;
  std::vector<FormStats> forms;
  FlatMap<uint32_t> form_ids{4096};
  std::vector<CounterWatch> counters;  // by form
  std::vector<TemplateStats> templates;
  FlatMap<uint32_t> group_ids{4096};  // (writer, cluster) -> index into the template's groups
  std::vector<ClusterId> clusters;
  RuleLines rule_lines;
  std::vector<QuotedLines> quoted;
  std::vector<ActivityBins> activity;
  Iterations iterations;
  Numbers course;
  std::vector<LogSample> last_progress;
  std::vector<uint32_t> last_forms;
  std::vector<OpenWriter> last_writers;
  std::vector<uint32_t> local_forms;  // index of a form in last_forms, if present
  std::vector<Group> batch_groups;
  std::vector<Relabel> relabels;
  size_t next_hit = 0;  // in the current batch
  size_t next_number = 0;
  std::vector<uint32_t> touched;  // records that may have lines of the current batch
  size_t places = 0, form_bytes = 0, sample_bytes = 0;
  uint32_t folded_form = kNone, folded_writer = kNone;
  uint64_t lines = 0, bytes = 0, events = 0;
  Drops drops;
  TimeNs first = kNoTime, last = kNoTime;
  HostAliases aliases;
  std::map<std::string, std::string> names;           // of hosts with several names: the preferred name
  std::map<std::string, std::string> host_of_common;  // by common_host_name; empty: several hosts

  uint32_t writer_id(const WriterKey& key) {
    const uint64_t hash = mix64(hash64(key.host), mix64((uint64_t{key.rank} << 32) | key.local, key.task));
    if (const uint32_t* known = writer_ids.find(hash)) return *known;
    if (writers.size() >= limits::kWriters) {
      if (folded_writer == kNone) folded_writer = new_writer({});
      return folded_writer;
    }
    const uint32_t id = new_writer(key);
    writer_ids.try_emplace(hash, id);
    return id;
  }

  uint32_t new_writer(const WriterKey& key) {
    writers.emplace_back();
    writers.back().key = key;
    activity.emplace_back();
    if (writers.size() > kFineWriters) activity.back().bins = kCoarseBins;
    return static_cast<uint32_t>(writers.size() - 1);
  }

  uint32_t form_id(uint64_t hash, std::string_view message) {
    if (const uint32_t* known = form_ids.find(hash)) return *known;
    std::string text = form_text(message);
    if (forms.size() >= limits::kForms || form_bytes + text.size() > limits::kFormBytes) {
      if (folded_form == kNone) folded_form = new_form(0, std::string(kFoldedForm));
      return folded_form;
    }
    return new_form(hash, std::move(text));
  }

  uint32_t new_form(uint64_t hash, std::string text) {
    const auto id = static_cast<uint32_t>(forms.size());
    if (hash != 0) form_ids.try_emplace(hash, id);
    const ClusterId cluster = miner.add(text, 1);
    form_bytes += text.size();
    forms.push_back({std::move(text), cluster, cluster, 0, 1, hash});
    counters.emplace_back();
    local_forms.push_back(0);
    if (cluster >= templates.size()) templates.resize(cluster + 1);
    return id;
  }

  uint64_t group_key(const Group& seen) const {
    return seen.count > 0 ? pair_key(seen.writer, forms[seen.form].cluster) : 0;
  }

  // Null if no more groups are kept.
  GroupStats* group(uint32_t writer, ClusterId cluster) {
    auto& list = templates[cluster].groups;
    const uint64_t key = pair_key(writer, cluster);
    if (const uint32_t* known = group_ids.find(key)) return &list[*known];
    if (group_ids.size() >= limits::kGroups) return nullptr;
    group_ids.try_emplace(key, static_cast<uint32_t>(list.size()));
    list.push_back({writer, 0, kNoTime, kNoTime});
    return &list.back();
  }

  void count(const Group& seen) {
    FormStats& form = forms[seen.form];
    TemplateStats& stats = templates[form.cluster];
    stats.count += seen.count;
    form.count += seen.count;
    events += seen.count;
    if (seen.form == folded_form) drops.add(Drop::kForms, seen.count);
    widen(stats.first_ns, stats.last_ns, seen.first_ns);
    widen(stats.first_ns, stats.last_ns, seen.last_ns);
    GroupStats* out = group(seen.writer, form.cluster);
    if (!out) {
      stats.partial = true;
      return drops.add(Drop::kGroups, seen.count);
    }
    out->count += seen.count;
    widen(out->first_ns, out->last_ns, seen.first_ns);
    widen(out->first_ns, out->last_ns, seen.last_ns);
  }

  // Groups exceed the core's cache. Prefetches the data of the next groups: first the slot with the location
  // of their counts, then the counts.
  void fetch_group(size_t i) const {
    if (i + 2 * kAhead < batch_groups.size()) group_ids.prefetch(group_key(batch_groups[i + 2 * kAhead]));
    if (i + kAhead >= batch_groups.size()) return;
    const Group& next = batch_groups[i + kAhead];
    if (next.count == 0) return;
    if (const uint32_t* known = group_ids.find(group_key(next)))
      __builtin_prefetch(&templates[forms[next.form].cluster].groups[*known]);
  }

  void count_groups() {
    for (size_t i = 0; i < batch_groups.size(); ++i) {
      fetch_group(i);
      const Group& seen = batch_groups[i];
      if (seen.count == 0) continue;
      TemplateStats& stats = templates[forms[seen.form].cluster];
      stats.untimed = stats.untimed || (seen.untimed && stats.first_ns == kNoTime);
      count(seen);
    }
  }

  // `text_line`: line of the text; the place of a traceback is its first line.
  void add_place(uint32_t form, const LogPlace& place, std::string_view text, uint64_t text_line) {
    TemplateStats& stats = templates[forms[form].cluster];
    if (stats.placed < limits::kPlaces) {
      ++stats.placed;
      if (places < limits::kPlacesTotal)
        stats.places.push_back(place), ++places;
      else
        drops.add(Drop::kPlaces);
    }
    if (stats.samples.size() >= kSamples || text.empty()) return;
    for (const LogSample& s : stats.samples)
      if (s.place.writer == place.writer) return;
    const size_t size = std::min(text.size(), limits::kEvidenceText);
    if (sample_bytes + size > limits::kSampleBytes) return drops.add(Drop::kSamples);
    sample_bytes += size;
    stats.samples.push_back({place, shorten(text, limits::kEvidenceText)});
    stats.samples.back().place.line = text_line;
  }

  std::optional<Progress> counted(const LogBatch& batch, uint32_t i, const Group& group, CounterKind& kind) {
    const LineRecord& line = batch.lines[i];
    const auto& numbered = batch.numbers;
    while (next_number < numbered.size() && numbered[next_number].line < i) ++next_number;
    if (next_number < numbered.size() && numbered[next_number].line == i) {
      const LineNumber& number = numbered[next_number];
      kind = number.counted        ? CounterKind::kCounts
             : number.progress.bar ? CounterKind::kBar
                                   : CounterKind::kNamed;
      return number.counted && group.form == folded_form ? std::nullopt : std::optional(number.progress);
    }
    if (batch.condensed || batch.forms[line.form].shape.progress) return std::nullopt;
    CounterWatch& watch = counters[group.form];
    if (group.form == folded_form || (watch.decided() && !watch.counts())) return std::nullopt;
    kind = CounterKind::kCounts;
    if (const auto value = watch.see(group.writer, batch.message(line))) return Progress{*value, 0};
    return std::nullopt;
  }

  // Adds the rules found in one event. General rules give way to specific ones.
  void add_rules(std::vector<RuleLine>& found, uint32_t form, const LogPlace& place) {
    const bool particular = std::any_of(found.begin(), found.end(), [](const RuleLine& r) {
      return !r.general && (r.handled || r.known > Meaning::kNote);
    });
    for (size_t i = 0; i < found.size(); ++i) {
      RuleLine& line = found[i];
      const bool again = std::any_of(found.begin(), found.begin() + static_cast<ptrdiff_t>(i),
                                     [&](const RuleLine& r) { return r.rule == line.rule; });
      if ((particular && line.general) || again) continue;
      line.place = place;
      line.cluster = forms[form].key;
      line.writer_event = writers[place.writer].events;
      line.source_event = sources[place.source].events;
      line.own_step = iterations.own_step(place.writer, place.source);
      TemplateStats& stats = templates[forms[form].cluster];
      stats.known = std::max(stats.known, line.known);
      if (!rule_lines.add(std::move(line))) drops.add(Drop::kRules);
    }
    found.clear();
  }

  // Moves the rule matches in line i of the batch to `out`.
  void take_hits(const LogBatch& batch, uint32_t i, std::vector<RuleLine>& out) {
    while (next_hit < batch.hits.size() && batch.hits[next_hit].line < i) ++next_hit;
    for (; next_hit < batch.hits.size() && batch.hits[next_hit].line == i; ++next_hit) {
      const LineHit& hit = batch.hits[next_hit];
      const LineRecord& line = batch.lines[i];
      RuleLine& r = out.emplace_back();
      r.rule = hit.rule;
      // A line of level info or debug is not a failure of its program.
      const bool reported = hit.level == Level::kInfo || hit.level == Level::kDebug;
      // The kernel writes "still trying" about hangs, and its rules know their lines.
      r.handled = !hit.kernel && (batch.forms[line.form].shape.handled || reported);
      r.known = r.handled ? Meaning::kNote : hit.known;
      r.general = hit.general;
      r.kernel = hit.kernel;
      r.event = hit.event;
      const ShapeKind kind = batch.forms[line.form].shape.kind;
      r.exception = kind == ShapeKind::kException || kind == ShapeKind::kTraceback;
      r.own_time = line.own_time;
      r.text_line = sources[batch.source].lines + i + 1;
      r.text = shorten(batch.message(line), limits::kEvidenceText);
      for (uint32_t h = 0; h < hit.holes; ++h)
        r.holes.push_back(shorten(batch.holes[hit.first_hole + h], limits::kEvidenceText));
    }
  }

  // Adds an event that was pending until complete.
  void add_held(const RecordEvent& event) {
    const LogPlace& place = event.place;
    WriterStats& writer = writers[place.writer];
    Group one{place.writer, event.form, 0, 0, 1, place.time_ns, place.time_ns, false};
    ++writer.events;
    ++sources[place.source].events;
    count(one);
    if (place.time_ns == kNoTime) templates[forms[event.form].cluster].untimed = true;
    if (event.again) return;
    add_place(event.form, place, event.text, event.text_line);
    iterations.event(place.writer, forms[event.form].key);
    if (event.shape.stage) writer.stage = event.shape.stage;
  }

  // Adds a line that is its own event.
  void add_event(const LogBatch& batch, uint32_t i, Group& group, const LogPlace& place) {
    const LineRecord& line = batch.lines[i];
    if (group.count++ == 0) group.untimed = place.time_ns == kNoTime;
    widen(group.first_ns, group.last_ns, place.time_ns);
    WriterStats& writer = writers[group.writer];
    ++writer.events;
    ++sources[place.source].events;
    const FormSeen& seen = batch.forms[line.form];
    const std::string_view message = batch.message(line);
    if (group.room > 0) --group.room, add_place(group.form, place, message, place.line);
    const FormStats& form = forms[group.form];
    CounterKind kind;
    NumberLine number;
    number.place = place;
    if (const auto progress = counted(batch, i, group, kind)) {
      if (kind == CounterKind::kNamed) number.iteration = progress->iteration;
      const uint32_t key = kind == CounterKind::kCounts
                               ? form.key
                               : kNamedTracks | static_cast<uint32_t>(mix64(
                                                    progress->name, static_cast<uint64_t>(progress->total)));
      const uint64_t moves = iterations.moves();
      const bool rose = iterations.progress(
          group.writer, key, kind, {place.time_ns, progress->iteration, place.source, form.key, place.line});
      // Another message follows the progress bar in the line: the bar counts, not that message.
      const bool counts = seen.shape.progress || kind == CounterKind::kCounts;
      templates[form.cluster].rises += counts && rose;
      if (iterations.moves() > moves && !batch.condensed) keep_progress(place, message);
    } else {
      iterations.event(group.writer, form.key);
    }
    if (group.form != folded_form) course.add(group.form, number, message);
    if (seen.shape.stage) writer.stage = seen.shape.stage;
  }

  void keep_progress(const LogPlace& place, std::string_view message) {
    if (last_progress.size() < kProgressLines)
      last_progress.emplace_back();
    else
      std::rotate(last_progress.begin(), last_progress.begin() + 1, last_progress.end());
    last_progress.back().place = place;
    last_progress.back().text.assign(message.substr(0, limits::kEvidenceText));
  }

  void renumber_rules(const std::vector<uint32_t>& to) {
    rule_lines.renumber(to);
    for (SourceState& source : sources)
      for (auto& [record, held] : source.held) renumber(held, to);
  }

  void drop_quoted(const LogPlace& end, uint64_t begin) {
    rule_lines.drop_quoted(end, begin);
    if (quoted.size() >= kQuoted) return drops.add(Drop::kQuotedTexts);
    quoted.push_back({end.source, end.writer, begin, end.line});
  }

  void walk_lines(LogBatch& batch, SourceState& source) {
    std::vector<RuleLine> found;
    next_hit = next_number = 0;
    for (uint32_t i = 0; i < batch.lines.size(); ++i) {
      LineRecord& line = batch.lines[i];
      if (!line.skipped) widen(source.first, source.last, line.time_ns);
      if (line.form == kNoForm) continue;
      CULPRIT_DCHECK(line.group < batch_groups.size() && line.form < batch.forms.size());
      Group& group = batch_groups[line.group];
      const LogPlace place{batch.source, group.writer, source.lines + i + 1, line.time_ns};
      note_time(place);
      Record& record = source.records[group.record];
      const FormShape& shape = batch.forms[line.form].shape;
      if (next_hit < batch.hits.size() && batch.hits[next_hit].line <= i) take_hits(batch, i, found);
      if (const auto begin = source.quotes.add_line(group.record, shape, line.own_time, place.line))
        drop_quoted(place, *begin);
      if (shape.kind == ShapeKind::kPlain && !shape.ignored && !record.open()) {
        record.plain(group.form);
      } else if (!walk_record(batch, source, i, found)) {
        found.clear();
        continue;
      }
      add_event(batch, i, group, place);
      if (!found.empty()) add_rules(found, group.form, place);
    }
    widen(first, last, source.first);
    widen(first, last, source.last);
    if (batch.last) end(source);
    relabel(batch);
    for (const uint32_t record : touched)
      if (!batch.last) source.records[record].leave_batch();
    touched.clear();
  }

  // Adds a line to its writer's record; returns whether the line is its own event. For a traceback, only
  // rules in the line of its exception count: earlier lines show program text.
  bool walk_record(LogBatch& batch, SourceState& source, uint32_t i, std::vector<RuleLine>& found) {
    CULPRIT_DCHECK(i < batch.lines.size());
    LineRecord& line = batch.lines[i];
    const Group& group = batch_groups[line.group];
    Record& record = source.records[group.record];
    const LogPlace place{batch.source, group.writer, source.lines + i + 1, line.time_ns};
    std::optional<RecordEvent> done;
    const bool list = record.list();
    const LineRole role = record.add({i, group.form, &batch.forms[line.form].shape, batch.message(line),
                                      line.indented != 0, line.own_time != 0, place},
                                     done, relabels);
    touched.push_back(group.record);
    line.continued = role == LineRole::kContinues;
    if (done) {
      std::vector<RuleLine>& held = source.held[group.record];
      if (role == LineRole::kContinues) held = std::exchange(found, {});
      if (const auto code = source.code.extract(group.record)) add_code(code.mapped(), *done, held);
      close_held(*done, held);
    } else if (role == LineRole::kContinues && record.open() && !record.list() &&
               batch.forms[line.form].shape.kind != ShapeKind::kFrame) {
      source.code[group.record] = {shorten(batch.message(line), limits::kEvidenceText), std::move(found)};
      found.clear();
    }
    if (role != LineRole::kEvent && record.list() && !found.empty()) {
      std::vector<RuleLine>& held = source.held[group.record];
      if (!list) held.clear();
      if (held.size() < kListLines) held.insert(held.end(), found.begin(), found.end());
    }
    return role == LineRole::kEvent;
  }

  static void add_code(CodeLine& code, const RecordEvent& event, std::vector<RuleLine>& found) {
    if (event.text.find(':') != std::string::npos || event.shape.kind != ShapeKind::kException) return;
    found.insert(found.end(), code.found.begin(), code.found.end());
    for (RuleLine& r : found) r.text = fmt::format("{}: {}", event.text, code.text);
  }

  // `at_end`: no more lines follow in its source.
  void close_held(const RecordEvent& event, std::vector<RuleLine>& found, bool at_end = false) {
    add_held(event);
    const bool handled = was_handled(event);
    for (RuleLine& r : found) {
      r.handled = r.handled || handled;
      if (handled) r.known = Meaning::kNote;
      r.own_time = event.own_time;
      r.death = event.uncaught || event.shape.kind == ShapeKind::kRootCause;
      r.exception = r.exception || event.uncaught;
      if (r.text.ends_with(event.text)) r.text = event.text;  // without the frame around it
      if (event.shape.kind != ShapeKind::kRootCause) continue;
      r.about = listed_host(event.text);
      r.about_rank = listed_rank(event.text, r.text);
    }
    const bool read = event.shape.kind != ShapeKind::kTraceback;
    if (event.cause && read && (event.uncaught || !found.empty()))
      rule_lines.drop(event.place);
    else if (event.again)
      std::erase_if(found, [](const RuleLine& r) { return r.general; });
    const bool known =
        !found.empty() || (event.again && event.uncaught && rule_lines.mark_death(event.place));
    if (event.uncaught && !known && (read || at_end) && !event.shape.handled)
      found.push_back(uncaught(event));
    add_rules(found, event.form, event.place);
  }

  // Whether the program handled the exception: the traceback follows a line of its writer ("upload failed,
  // will retry in 30 s") and does not begin at the entry point of a process.
  bool was_handled(const RecordEvent& event) const {
    if (event.uncaught || event.before == kNoForm || event.shape.kind == ShapeKind::kRootCause) return false;
    return templates[forms[event.before].cluster].shape.handled;
  }

  // A rule line for an exception that ended its process and matches no rule.
  static RuleLine uncaught(const RecordEvent& event) {
    RuleLine line;
    line.rule = JobLog::kNoRule;
    line.exception = line.death = true;
    line.own_time = event.own_time;
    line.text = event.text;
    line.text_line = event.text_line;
    return line;
  }

  void end(SourceState& source) {
    std::optional<RecordEvent> done;
    for (uint32_t i = 0; i < source.records.size(); ++i) {
      source.records[i].finish(done, relabels);
      if (done) close_held(*std::exchange(done, std::nullopt), source.held[i], true);
    }
    source.records = {};
    source.held = {};
    source.code = {};
    source.quotes = {};
    source.record_of = {};
  }

  // Resolves the batch's own numbers of forms and writers. `trimmed`: some of them have no lines left.
  void open_groups(const LogBatch& batch, SourceState& source, bool trimmed) {
    std::vector<bool> used(batch.groups.size(), !trimmed);
    for (size_t i = 0; trimmed && i < batch.lines.size(); ++i)
      if (batch.lines[i].form != kNoForm) used[batch.lines[i].group] = true;
    last_writers.assign(batch.writers.size(), {});
    last_forms.assign(batch.forms.size(), kNone);
    batch_groups.assign(batch.groups.size(), {});
    for (size_t i = 0; i < batch.groups.size(); ++i) {
      if (!used[i]) continue;
      const GroupSeen& seen = batch.groups[i];
      OpenWriter& writer = last_writers[seen.writer];
      if (writer.id == kNone) writer = open_writer(batch.writers[seen.writer], source);
      uint32_t& form = last_forms[seen.form];
      if (form == kNone) form = open_form(batch, seen.form);
      Group& group = batch_groups[i];
      group.writer = writer.id;
      group.form = form;
      group.record = writer.record;
      group.room = static_cast<uint32_t>(limits::kPlaces - templates[forms[form].cluster].placed);
    }
  }

  OpenWriter open_writer(const WriterKey& key, SourceState& source) {
    const uint32_t id = writer_id(key);
    const auto next = static_cast<uint32_t>(source.records.size());
    const auto [record, fresh] = source.record_of.try_emplace(id, next);
    if (fresh) source.records.emplace_back();
    return {id, record->second};
  }

  uint32_t open_form(const LogBatch& batch, uint32_t local) {
    const FormSeen& seen = batch.forms[local];
    const uint32_t id = form_id(seen.hash, batch.message(batch.lines[seen.line]));
    local_forms[id] = local;
    if (id == folded_form) return id;
    TemplateStats& stats = templates[forms[id].cluster];
    stats.level = std::max(stats.level, seen.level);
    if (!stats.shaped || tells_more(seen.shape, stats.shape)) stats.shape = seen.shape;
    stats.shaped = true;
    return id;
  }

  static bool tells_more(const FormShape& a, const FormShape& b) {
    const auto rank = [](const FormShape& s) { return std::pair(s.kind != ShapeKind::kPlain, s.words); };
    return rank(a) > rank(b);
  }

  void relabel(LogBatch& batch) {
    for (const Relabel& r : relabels) {
      uint32_t& local = local_forms[r.form];
      if (local >= last_forms.size() || last_forms[local] != r.form) {
        local = static_cast<uint32_t>(last_forms.size());
        last_forms.push_back(r.form);
        batch.forms.push_back({forms[r.form].hash, r.line, {}, Level::kNone});
      }
      batch.lines[r.line].form = local;
    }
    relabels.clear();
  }

  // Moves the counts of absorbed clusters to their current cluster.
  void merge_templates() {
    bool merged = false;
    for (FormStats& form : forms) {
      if (form.count > form.reported) miner.add(form.text, form.count - form.reported);
      form.reported = std::max(form.reported, form.count);
    }
    miner.settle();
    templates.resize(miner.size());
    for (ClusterId id = 0; id < templates.size(); ++id) {
      const ClusterId root = miner.resolve(id);
      if (root == id || (templates[id].count == 0 && templates[id].groups.empty())) continue;
      merge_into(templates[root], std::move(templates[id]));
      templates[id] = {};
      merged = true;
    }
    for (FormStats& form : forms) form.cluster = miner.resolve(form.cluster);
    if (merged) regroup();
  }

  static void merge_into(TemplateStats& to, TemplateStats from) {
    to.count += from.count;
    widen(to.first_ns, to.last_ns, from.first_ns);
    widen(to.first_ns, to.last_ns, from.last_ns);
    to.level = std::max(to.level, from.level);
    if (from.shaped && (!to.shaped || tells_more(from.shape, to.shape))) to.shape = from.shape;
    to.shaped = to.shaped || from.shaped;
    to.partial = to.partial || from.partial;
    to.known = std::max(to.known, from.known);
    to.rises += from.rises;
    to.untimed = to.untimed || from.untimed;
    to.places.insert(to.places.end(), from.places.begin(), from.places.end());
    to.samples.insert(to.samples.end(), from.samples.begin(), from.samples.end());
    to.groups.insert(to.groups.end(), from.groups.begin(), from.groups.end());
    const auto earlier = [](const LogPlace& a, const LogPlace& b) {
      return std::tie(a.source, a.line) < std::tie(b.source, b.line);
    };
    to.placed = std::min<size_t>(to.placed + from.placed, limits::kPlaces);
    std::sort(to.places.begin(), to.places.end(), earlier);
    if (to.places.size() > limits::kPlaces) to.places.resize(limits::kPlaces);
    if (to.samples.size() > kSamples) to.samples.resize(kSamples);
  }

  void regroup() {
    group_ids = FlatMap<uint32_t>(group_ids.size());
    for (ClusterId id = 0; id < templates.size(); ++id) {
      auto& groups = templates[id].groups;
      std::stable_sort(groups.begin(), groups.end(),
                       [](const GroupStats& a, const GroupStats& b) { return a.writer < b.writer; });
      size_t kept = 0;
      for (size_t i = 0; i < groups.size(); ++i) {
        if (kept > 0 && groups[kept - 1].writer == groups[i].writer) {
          groups[kept - 1].count += groups[i].count;
          widen(groups[kept - 1].first_ns, groups[kept - 1].last_ns, groups[i].first_ns);
          widen(groups[kept - 1].first_ns, groups[kept - 1].last_ns, groups[i].last_ns);
        } else {
          groups[kept++] = groups[i];
        }
      }
      groups.resize(kept);
      for (uint32_t i = 0; i < kept; ++i) group_ids.try_emplace(pair_key(groups[i].writer, id), i);
    }
  }

  // Bare task numbers (srun -l) are ranks if there are as many tasks as ranks; else they number the hosts.
  bool tasks_are_hosts() const {
    if (job.hosts.size() < 2 || job.ranks_per_host.value_or(1) == 1) return false;
    std::set<uint32_t> tasks;
    for (const WriterStats& w : writers)
      if (w.key.task) tasks.insert(w.key.rank);
    return !tasks.empty() && tasks.size() <= job.hosts.size() && *tasks.rbegin() < job.hosts.size();
  }

  void count_hosts(const SourceState& source) {
    if (!source.info.host) return;
    std::map<uint32_t, uint64_t> counts;  // number of lines by writer
    for (const Group& group : batch_groups)
      if (group.count > 0) counts[group.writer] += group.count;
    for (const auto& [writer, n] : counts) aliases.count(*source.info.host, writers[writer].key.host, n);
  }

  std::map<std::string, std::string> other_names() const {
    std::vector<std::string> all = job.hosts;
    for (const WriterStats& w : writers)
      if (!w.key.host.empty()) all.push_back(w.key.host);
    return aliases.resolve(all, job.hosts);
  }

  void resolve_writers() {
    const bool hosts_by_task = tasks_are_hosts();
    names = other_names();
    for (WriterStats& w : writers) {
      const auto other = names.find(w.key.host);
      w.host = other != names.end() ? std::optional(other->second)
               : w.key.host.empty() ? std::nullopt
                                    : std::optional(w.key.host);
      w.rank = w.key.rank == kNoRank ? std::nullopt : std::optional(w.key.rank);
      w.device = w.key.local == kNoRank ? std::nullopt : std::optional(w.key.local);
      if (w.key.task && hosts_by_task) {
        if (!w.host) w.host = job.hosts[w.key.rank];
        w.rank = std::nullopt;
      }
      if (!w.host && w.rank) w.host = host_of_rank(job, *w.rank);
      if (!w.rank && w.host && w.device) w.rank = rank_of_local(job, *w.host, *w.device);
      if (!w.device && w.rank) w.device = device_of_rank(job, *w.rank);
    }
    infer_ranks(writers);
    host_of_common.clear();
    for (const WriterStats& w : writers) {
      if (!w.host) continue;
      const auto [at, fresh] = host_of_common.try_emplace(common_host_name(*w.host), *w.host);
      if (!fresh && at->second != *w.host) at->second.clear();
    }
  }

  void note_time(const LogPlace& place) {
    WriterStats& w = writers[place.writer];
    ++w.lines;
    if (place.writer == folded_writer) drops.add(Drop::kWriters);
    if (place.time_ns == kNoTime) return;
    if (w.last_ns != kNoTime && place.time_ns > w.last_ns) w.rhythm.add(place.time_ns - w.last_ns);
    widen(w.first_ns, w.last_ns, place.time_ns);
    activity[place.writer].add(place.time_ns, 1);
  }

  // Gives the first lines of a batch the source's last time. Returns whether this excluded lines by their
  // time.
  static bool fill_times(LogBatch& batch, const SourceState& source) {
    const uint64_t skipped = batch.skipped_lines;
    for (LineRecord& line : batch.lines) {
      if (line.time_ns != kNoTime) break;
      line.time_ns = source.time;
      if (batch.wanted(line.time_ns)) continue;
      line.form = kNoForm;
      line.skipped = 1;
      ++batch.skipped_lines;
    }
    return batch.skipped_lines != skipped;
  }
};

JobLog::JobLog(const JobFile& job) : impl_(std::make_unique<Impl>()) { impl_->job = job; }
JobLog::~JobLog() = default;

SourceId JobLog::open_source(const SourceInfo& info) {
  impl_->sources.emplace_back();
  impl_->sources.back().info = info;
  impl_->sources.back().lines = info.lines_before;
  impl_->infos.push_back(info);
  return static_cast<SourceId>(impl_->sources.size() - 1);
}

void JobLog::add_pool_form(uint64_t hash, std::string_view form) {
  if (!impl_->form_ids.find(hash)) impl_->new_form(hash, std::string(form));
}

void JobLog::add(LogBatch& batch) {
  Impl& s = *impl_;
  CULPRIT_CHECK(batch.source < s.sources.size());
  Impl::SourceState& source = s.sources[batch.source];
  s.open_groups(batch, source, Impl::fill_times(batch, source));
  s.walk_lines(batch, source);
  s.count_groups();
  s.count_hosts(source);
  if (!batch.lines.empty() && batch.lines.back().time_ns != kNoTime) source.time = batch.lines.back().time_ns;
  source.lines += batch.lines.size();
  source.cut_lines += batch.cut_lines;
  for (const PaceLine& p : batch.pace)
    s.keep_progress({batch.source, s.writer_id(batch.writers[p.writer]),
                     source.lines - std::min(p.back, source.lines), p.time_ns},
                    p.text);
  s.lines += batch.lines.size() - batch.skipped_lines;
  s.bytes += batch.range_bytes;
}

void JobLog::renumber_rules(const std::vector<uint32_t>& to) { impl_->renumber_rules(to); }

void JobLog::settle() {
  Impl& s = *impl_;
  s.merge_templates();
  discount_quoted(s.quoted, s.templates);
  s.resolve_writers();
  s.iterations.choose();
  s.clusters.clear();
  for (ClusterId id = 0; id < s.templates.size(); ++id)
    if (s.templates[id].count > 0) s.clusters.push_back(id);
}

const std::vector<SourceInfo>& JobLog::sources() const { return impl_->infos; }
uint64_t JobLog::lines_of(SourceId source) const { return impl_->sources[source].lines; }
uint64_t JobLog::events_of(SourceId source) const { return impl_->sources[source].events; }
const std::vector<WriterStats>& JobLog::writers() const { return impl_->writers; }
const std::vector<TemplateStats>& JobLog::templates() const { return impl_->templates; }
const std::vector<ClusterId>& JobLog::clusters() const { return impl_->clusters; }
const Miner& JobLog::miner() const { return impl_->miner; }
const std::vector<JobLog::FormStats>& JobLog::forms() const { return impl_->forms; }
const std::vector<uint32_t>& JobLog::last_forms() const { return impl_->last_forms; }
const Iterations& JobLog::iterations() const { return impl_->iterations; }
const Numbers& JobLog::numbers() const { return impl_->course; }
const std::vector<LogSample>& JobLog::last_progress() const { return impl_->last_progress; }
const std::vector<RuleLine>& JobLog::rule_lines() const { return impl_->rule_lines.lines(); }
const std::vector<RuleLine>& JobLog::uncaught() const { return impl_->rule_lines.uncaught(); }
const std::vector<ActivityBins>& JobLog::activity() const { return impl_->activity; }
uint64_t JobLog::lines() const { return impl_->lines; }
uint64_t JobLog::bytes() const { return impl_->bytes; }
uint64_t JobLog::events() const { return impl_->events; }
std::pair<TimeNs, TimeNs> JobLog::span_of(SourceId source) const {
  return {impl_->sources[source].first, impl_->sources[source].last};
}
uint64_t JobLog::cut_lines_of(SourceId source) const { return impl_->sources[source].cut_lines; }
TimeNs JobLog::first_ns() const { return impl_->first; }
TimeNs JobLog::last_ns() const { return impl_->last; }
const JobFile& JobLog::job() const { return impl_->job; }

std::string JobLog::host_called(std::string_view name) const {
  const auto other = impl_->names.find(std::string(name));
  if (other != impl_->names.end()) return other->second;
  const auto host = impl_->host_of_common.find(common_host_name(name));
  return host == impl_->host_of_common.end() ? "" : host->second;
}

Drops JobLog::drops() const {
  Drops all = impl_->drops;
  all.add(Drop::kTemplates, impl_->miner.folded());
  all += impl_->iterations.drops();
  return all;
}

uint64_t JobLog::unplaced_lines() const {
  uint64_t lines = 0;
  for (const WriterStats& w : impl_->writers) lines += w.host ? 0 : w.lines;
  return lines;
}

}  // namespace culprit::logs
