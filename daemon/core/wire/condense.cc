#include "core/wire/condense.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/flat_map.h"
#include "base/limits.h"
#include "core/logs/counter.h"
#include "core/logs/numbers.h"
#include "core/logs/writer_records.h"
#include "core/wire/condense_format.h"

namespace culprit::wire {
namespace {

using namespace condensed;

// Writers per form whose first line is sent as text: as many as JobLog keeps, since all may be on this host.
constexpr size_t kSamples = 8;
// Texts per rule and writer: JobLog stores no more.
constexpr uint32_t kHitTexts = 1000;
// Frames of tracebacks sent as text, since reports name their places. Limit per source, renewed after this
// number of lines.
constexpr uint32_t kFrameTexts = 200, kFrameLines = 10'000;
// Interval at which the last progress lines are sent during progress, and the delay after progress stopped.
// The report of a hang shows these lines.
constexpr TimeNs kPaceEvery = 600 * kNsPerSecond, kPaceQuiet = 30 * kNsPerSecond;
constexpr size_t kPaceLines = 3;  // as many as JobLog keeps
constexpr size_t kTrackWriters = 1 << 16;
constexpr size_t kHitGroups = 1 << 20;  // pairs of rule and writer: 24 MB
// A flush is due at a quarter of a block's limits, so that one more batch still fits.
constexpr size_t kFullLines = limits::kWireLines / 4, kFullText = limits::kWireBytes / 4;

uint64_t pair_key(uint32_t a, uint32_t b) { return (uint64_t{a} << 32) | b; }

struct SentForm {
  FormMemory memory;
  logs::FormShape shape;
  logs::Level level = logs::Level::kNone;
  logs::CounterWatch watch;
  uint64_t block = 0;               // first block with the form
  uint32_t source = logs::kNoForm;  // the last source to which that block sent the form's text
  uint32_t samples[kSamples];       // writers whose first line was sent as text
  uint32_t sampled = 0;
};

struct Line {
  TimeNs time_ns;
  uint32_t form, writer;
  uint8_t flags;
};
struct Text {
  uint32_t line, size;
};
struct Hole {
  uint32_t at, size;  // at: 1 + offset in the line's text; 0: sent separately
};
struct Hit {
  uint32_t line, rule, holes;
  uint8_t bits;
};

// The lines of a source since the last flush.
struct Pending {
  uint32_t source = 0;
  TimeNs now = kNoTime;
  uint64_t range_bytes = 0, cut_lines = 0;
  bool last = false;
  std::vector<Line> lines;
  std::vector<logs::LineNumber> numbers;
  std::vector<Text> texts;
  std::vector<Hit> hits;
  std::vector<Hole> holes;
  std::string text;
};

struct CondensedSource {
  SourceMemory memory;
  TimeNs time = kNoTime;  // time of its last line
  uint64_t lines = 0;
  uint32_t frames = 0;  // frames sent as text, until line frames_until
  uint64_t frames_until = 0;
  bool open = false;  // its id is in Impl::open
  logs::WriterRecords records;
  Pending pending;
};

// A candidate for the last progress lines.
struct Pace {
  bool reported = false;
  uint32_t source = 0, writer = 0;
  uint64_t line = 0;
  TimeNs time_ns = kNoTime;
  std::string text;
};

}  // namespace

struct LineCondenser::Impl {
  CondenseCounts counts;
  std::vector<SentForm> forms;
  FlatMap<uint32_t> form_ids{256};
  std::vector<Count> number_memory;
  std::vector<logs::WriterKey> writers;
  std::vector<WriterMemory> writer_memory;
  FlatMap<uint32_t> writer_ids{16};
  size_t writers_reported = 0;
  std::vector<RuleName> rules;         // by their index in batches
  std::vector<uint32_t> rule_numbers;  // numbers in this session; kNoForm: not sent yet
  std::vector<RuleName> rules_used;
  size_t rules_reported = 0;
  FlatMap<uint32_t> hits_of{64};  // by writer and rule
  std::vector<CondensedSource> sources;
  std::vector<uint32_t> open;  // sources with pending lines
  size_t pending_lines = 0, pending_text = 0;
  uint64_t block = 1;
  FlatMap<int64_t> furthest{16};  // by writer and counter
  logs::Numbers course;
  std::vector<Pace> pace;
  bool moved = false, ended = false;  // since the last flush
  TimeNs pace_reported = kNoTime, moved_ns = kNoTime;
  bool grave = false;
  std::vector<logs::Relabel> relabels;
  std::vector<uint32_t> touched, local_forms, local_writers;
  size_t next_hit = 0, next_number = 0;
  std::array<PackedWriter, kColumns> columns;

  uint32_t form_of(const logs::FormSeen& seen) {
    if (const uint32_t* known = form_ids.find(seen.hash)) return *known;
    const auto next = static_cast<uint32_t>(forms.size());
    if (next == limits::kForms) return next - 1;  // the shared overflow form
    if (next + 1 < limits::kForms) form_ids.try_emplace(seen.hash, next);
    SentForm& form = forms.emplace_back();
    if (next + 1 < limits::kForms) form.shape = seen.shape;
    form.block = block;
    return next;
  }

  uint32_t writer_of(const logs::WriterKey& key) {
    const uint64_t hash = mix64(hash64(key.host), mix64(pair_key(key.rank, key.local), key.task));
    if (const uint32_t* known = writer_ids.find(hash)) return *known;
    const auto next = static_cast<uint32_t>(writers.size());
    if (next == limits::kWriters) return next - 1;
    if (next + 1 < limits::kWriters) writer_ids.try_emplace(hash, next);
    writers.push_back(next + 1 < limits::kWriters ? key : logs::WriterKey{});
    if (writers.back().host.size() > limits::kNameBytes) writers.back().host.resize(limits::kNameBytes);
    writer_memory.emplace_back();
    return next;
  }

  uint32_t rule_of(uint32_t index) {
    if (index >= rules.size()) return logs::kNoForm;
    uint32_t& number = rule_numbers[index];
    if (number == logs::kNoForm) {
      const auto known = std::find_if(rules_used.begin(), rules_used.end(), [&](const RuleName& r) {
        return r.id == rules[index].id && r.hash == rules[index].hash;
      });
      if (known == rules_used.end() && rules_used.size() >= kRulesMax) return logs::kNoForm;
      number = static_cast<uint32_t>(known - rules_used.begin());
      if (known == rules_used.end()) rules_used.push_back(rules[index]);
    }
    return number;
  }

  void add(const logs::LogBatch& batch, TimeNs now) {
    if (batch.source >= limits::kLiveSources || pending_lines + batch.lines.size() > limits::kWireLines) {
      counts.dropped += batch.lines.size();
      return;
    }
    if (batch.source >= sources.size()) sources.resize(batch.source + 1);
    CondensedSource& source = sources[batch.source];
    if (!source.open) open.push_back(batch.source);
    source.open = true;
    source.pending.source = batch.source;
    Pending& p = source.pending;
    p.now = now;
    // Any source may carry the bytes: they count only for the job.
    sources[open.front()].pending.range_bytes += batch.range_bytes;
    p.cut_lines += batch.cut_lines;
    p.last = p.last || batch.last;
    ended = ended || batch.last;
    counts.lines += batch.lines.size();
    counts.bytes += batch.range_bytes;
    local_forms.clear();
    local_writers.clear();
    for (const logs::WriterKey& key : batch.writers) local_writers.push_back(writer_of(key));
    local_forms.assign(batch.forms.size(), logs::kNoForm);
    walk(batch, source);
    pending_lines += batch.lines.size();
  }

  uint32_t open_form(const logs::LogBatch& batch, uint32_t local) {
    if (local_forms[local] == logs::kNoForm) local_forms[local] = form_of(batch.forms[local]);
    SentForm& form = forms[local_forms[local]];
    form.level = std::max(form.level, batch.forms[local].level);
    return local_forms[local];
  }

  void walk(const logs::LogBatch& batch, CondensedSource& source) {
    next_hit = next_number = 0;
    touched.clear();
    const size_t text_before = source.pending.text.size();
    for (uint32_t i = 0; i < batch.lines.size(); ++i) {
      const logs::LineRecord& line = batch.lines[i];
      const bool reported = line.own_time && line.time_ns >= 0 && line.time_ns < kTimeMax;
      if (reported) source.time = line.time_ns;
      Line out{source.time, logs::kNoForm, 0, 0};
      out.flags = static_cast<uint8_t>((line.indented ? kIndented : 0) | (reported ? kOwnTime : 0) |
                                       (line.skipped ? kSkipped : 0));
      ++source.lines;
      if (line.form != logs::kNoForm) add_line(batch, i, source, out);
      source.pending.lines.push_back(out);
    }
    relabels.clear();
    for (const uint32_t record : touched) source.records.leave_batch(record);
    if (batch.last) source.records = {};
    pending_text += source.pending.text.size() - text_before;
  }

  void add_line(const logs::LogBatch& batch, uint32_t i, CondensedSource& source, Line& out) {
    const logs::LineRecord& line = batch.lines[i];
    out.form = open_form(batch, batch.groups[line.group].form);
    out.writer = local_writers[batch.groups[line.group].writer];
    SentForm& form = forms[out.form];
    counts.folded += out.form + 1 == limits::kForms || out.writer + 1 == limits::kWriters;
    bool text = form.block == block && form.source != batch.source;
    form.source = batch.source;
    const bool event = read_record(batch, line, source, out, text);
    if (event) {
      const bool number = take_value(batch, line, source, out);
      text = is_sample(form, out.writer) || number || text;
      take_number(batch, i, source, out);
    }
    while (next_hit < batch.hits.size() && batch.hits[next_hit].line < i) ++next_hit;
    const bool hit = next_hit < batch.hits.size() && batch.hits[next_hit].line == i;
    const bool reported = hit && wants_hits(batch, i, out.writer);
    grave = grave || (text && form.block == block && form.shape.words == 2 && !form.shape.handled);
    if (text || reported) add_text(source.pending, out, batch.message(line));
    if (hit) take_hits(batch, i, source.pending, reported);
  }

  // Returns whether the line is its own event. `text`: whether the line's role depends on its text.
  bool read_record(const logs::LogBatch& batch, const logs::LineRecord& line, CondensedSource& source,
                   const Line& out, bool& text) {
    const logs::FormShape& shape = forms[out.form].shape;
    const uint32_t number = source.records.open(out.writer);
    if (shape.kind == logs::ShapeKind::kPlain && !shape.ignored && source.records.add_plain(number, out.form))
      return true;
    logs::Record& record = source.records[number];
    touched.push_back(number);
    const bool list = record.list();
    const bool frame = shape.kind == logs::ShapeKind::kFrame || line.indented;
    text = text || list || (record.open() && !frame) || shape.kind == logs::ShapeKind::kTraceback ||
           shape.kind == logs::ShapeKind::kRootCause;
    if (source.lines >= source.frames_until)
      source.frames = 0, source.frames_until = source.lines + kFrameLines;
    if (frame && record.open() && !list && source.frames < kFrameTexts &&
        logs::frame_place(batch.message(line)))
      ++source.frames, text = true;
    std::optional<logs::RecordEvent> done;
    const logs::LogPlace place{source.pending.source, out.writer, source.lines, out.time_ns};
    const logs::LineRole role =
        record.add({static_cast<uint32_t>(source.lines), out.form, &shape, batch.message(line),
                    line.indented != 0, line.own_time != 0, place},
                   done, relabels);
    return role == logs::LineRole::kEvent;
  }

  static bool is_sample(SentForm& form, uint32_t writer) {
    if (form.sampled >= kSamples) return false;
    if (std::find(form.samples, form.samples + form.sampled, writer) != form.samples + form.sampled)
      return false;
    form.samples[form.sampled++] = writer;
    return true;
  }

  // Whether the line's numbers require its text.
  bool take_value(const logs::LogBatch& batch, const logs::LineRecord& line, const CondensedSource& source,
                  const Line& out) {
    if (out.form + 1 == limits::kForms) return false;
    logs::NumberLine number;
    number.place = {batch.source, out.writer, source.lines, out.time_ns};
    return course.add(out.form, number, batch.message(line));
  }

  void take_number(const logs::LogBatch& batch, uint32_t i, CondensedSource& source, Line& out) {
    SentForm& form = forms[out.form];
    while (next_number < batch.numbers.size() && batch.numbers[next_number].line < i) ++next_number;
    logs::LineNumber number{static_cast<uint32_t>(source.pending.lines.size()), false, {}};
    if (next_number < batch.numbers.size() && batch.numbers[next_number].line == i) {
      number.progress = batch.numbers[next_number].progress;
      note_pace(batch, i, source, out, number.progress);
    } else {
      if (form.shape.progress || (form.watch.decided() && !form.watch.counts())) return;
      if (out.form + 1 == limits::kForms) return;
      const auto value = form.watch.see(out.writer, batch.message(batch.lines[i]));
      if (!value) return;
      number.counted = true;
      number.progress.iteration = *value;
      out.flags |= kCounted;
    }
    out.flags |= kNumbered;
    source.pending.numbers.push_back(number);
  }

  void note_pace(const logs::LogBatch& batch, uint32_t i, const CondensedSource& source, const Line& out,
                 const logs::Progress& p) {
    const uint64_t key = mix64(out.writer, mix64(p.name, static_cast<uint64_t>(p.total)));
    if (furthest.size() >= kTrackWriters && !furthest.find(key)) return;
    int64_t& before = *furthest.try_emplace(key, -1).first;
    if (p.iteration <= before) return;
    before = p.iteration;
    if (pace.size() < kPaceLines)
      pace.emplace_back();
    else
      std::rotate(pace.begin(), pace.begin() + 1, pace.end());
    Pace& line = pace.back();
    line.source = source.pending.source;
    line.writer = out.writer;
    line.line = source.lines;
    line.time_ns = out.time_ns;
    line.text.assign(batch.message(batch.lines[i]).substr(0, limits::kEvidenceText));
    line.reported = false;
    moved = true;
  }

  // Also counts a storm's lines beyond the limit of texts.
  bool wants_hits(const logs::LogBatch& batch, uint32_t i, uint32_t writer) {
    bool wanted = false;
    for (size_t h = next_hit; h < batch.hits.size() && batch.hits[h].line == i; ++h) {
      const uint64_t key = pair_key(writer, batch.hits[h].rule);
      if (hits_of.size() >= kHitGroups && !hits_of.find(key)) continue;
      wanted = (*hits_of.try_emplace(key, 0).first)++ < kHitTexts || wanted;
    }
    return wanted;
  }

  void add_text(Pending& p, const Line& out, std::string_view message) {
    if (out.form + 1 == limits::kForms) message = kFoldedText;
    message = message.substr(0, kTextBytes);
    p.texts.push_back({static_cast<uint32_t>(p.lines.size()), static_cast<uint32_t>(message.size())});
    p.text += message;
    ++counts.texts;
    counts.text_bytes += message.size();
  }

  void take_hits(const logs::LogBatch& batch, uint32_t i, Pending& p, bool reported) {
    const std::string_view message = batch.message(batch.lines[i]).substr(0, kTextBytes);
    for (; next_hit < batch.hits.size() && batch.hits[next_hit].line == i; ++next_hit) {
      const logs::LineHit& hit = batch.hits[next_hit];
      const uint32_t rule = rule_of(hit.rule);
      if (rule == logs::kNoForm) continue;
      Hit out{static_cast<uint32_t>(p.lines.size()), rule, 0, 0};
      const bool service = hit.service != logs::Service::kNone;  // a block does not name the service
      out.bits =
          static_cast<uint8_t>(static_cast<unsigned>(hit.known) | static_cast<unsigned>(hit.level) << 2 |
                               (hit.general ? 32u : 0u) | (hit.kernel || service ? 64u : 0u) |
                               // Both bits: a service, since no event is a kernel message.
                               (hit.event || service ? 128u : 0u));
      if (reported) out.holes = std::min<uint32_t>(hit.holes, kHolesMax);
      for (uint32_t h = 0; h < out.holes; ++h) add_hole(batch.holes[hit.first_hole + h], message, p);
      p.hits.push_back(out);
      grave = grave || (reported && hit.known > logs::Meaning::kNote);
    }
  }

  static void add_hole(std::string_view hole, std::string_view message, Pending& p) {
    hole = hole.substr(0, kTextBytes);
    const bool within = !hole.empty() && hole.data() >= message.data() &&
                        hole.data() + hole.size() <= message.data() + message.size();
    p.holes.push_back({within ? static_cast<uint32_t>(hole.data() - message.data()) + 1 : 0,
                       static_cast<uint32_t>(hole.size())});
    if (!within) p.text += hole;
  }

  // ---- the pending lines, as columns

  void write_new() {
    PackedWriter& meta = columns[kMeta];
    meta.number(forms.size());
    meta.number(writers.size() - writers_reported);
    for (; writers_reported < writers.size(); ++writers_reported) {
      const logs::WriterKey& w = writers[writers_reported];
      meta.text(w.host);
      meta.number(static_cast<uint32_t>(w.rank + 1));
      meta.number(static_cast<uint32_t>(w.local + 1));
      meta.byte(w.task);
    }
    meta.number(rules_used.size() - rules_reported);
    for (; rules_reported < rules_used.size(); ++rules_reported) {
      meta.text(rules_used[rules_reported].id);
      meta.put_word(rules_used[rules_reported].hash);
    }
    write_levels();
  }

  // Writes the forms that now have a line of a higher level than before.
  void write_levels() {
    PackedWriter& meta = columns[kMeta];
    std::vector<uint32_t> risen;
    for (const uint32_t id : open)
      for (const Line& line : sources[id].pending.lines) {
        if (line.form == logs::kNoForm || forms[line.form].level == forms[line.form].memory.level) continue;
        forms[line.form].memory.level = forms[line.form].level;
        risen.push_back(line.form);
      }
    meta.number(risen.size());
    uint32_t before = 0;
    for (const uint32_t form : risen) {
      meta.signed_number(int64_t{form} - before);
      meta.byte(static_cast<uint8_t>(forms[form].level));
      before = form;
    }
  }

  void write_line(const Line& line, SourceMemory& memory) {
    if (line.form == logs::kNoForm) return columns[kFormCodes].number(kBlank);
    const WriterMemory& last = writer_memory[memory.writer];
    const bool same = line.writer == last.next;
    columns[kWriterCodes].number(same ? 0 : line.writer + 1);
    writer_memory[memory.writer].next = line.writer;
    memory.writer = line.writer;
    WriterMemory& writer = writer_memory[line.writer];
    const bool predicted = writer.form != logs::kNoForm && forms[writer.form].memory.next == line.form;
    columns[kFormCodes].number(predicted ? kPredicted : line.form + kFirst);
    if (writer.form != logs::kNoForm) forms[writer.form].memory.next = line.form;
    writer.form = line.form;
  }

  TimeNs unit_of(const Pending& p, TimeNs time) const {
    size_t unit = std::size(kUnits) - 1;
    for (const Line& line : p.lines) {
      if (!(line.flags & kOwnTime)) continue;
      const TimeNs difference = line.time_ns - start(std::exchange(time, line.time_ns));
      while (difference % kUnits[unit] != 0) --unit;
    }
    return static_cast<TimeNs>(unit);
  }

  uint8_t& flags_of(const Line& line) {
    return line.form == logs::kNoForm ? blank_flags : forms[line.form].memory.flags;
  }
  uint8_t blank_flags = 0;
  uint32_t last_source = 0;  // source of the previous section in the current block
  TimeNs last_now = 0;

  void write_number(const logs::LineNumber& number, Line& line) {
    FormMemory& memory = forms[line.form].memory;
    if (memory.count == logs::kNoForm) {
      memory.count = static_cast<uint32_t>(number_memory.size());
      number_memory.emplace_back();
    }
    Count& count = number_memory[memory.count];
    const logs::Progress& p = number.progress;
    if (count.total != p.total || count.name != p.name || count.bar != p.bar) {
      line.flags |= kRenamed;
      columns[kNumbers].number(static_cast<uint64_t>(p.total));
      columns[kNumbers].number(p.name);
      columns[kNumbers].byte(p.bar);
    }
    columns[kNumbers].signed_number(
        static_cast<int64_t>(static_cast<uint64_t>(p.iteration) - static_cast<uint64_t>(count.value)));
    count = {p.iteration, p.total, p.name, p.bar};
  }

  void write_section(CondensedSource& source) {
    Pending& p = source.pending;
    const TimeNs unit = unit_of(p, source.memory.time);
    uint64_t changes = 0;
    size_t number = 0;
    uint32_t changed = 0;
    for (uint32_t i = 0; i < p.lines.size(); ++i) {
      Line& line = p.lines[i];
      write_line(line, source.memory);
      if (line.flags & kOwnTime)
        columns[kTimes].signed_number(
            (line.time_ns - start(std::exchange(source.memory.time, line.time_ns))) / kUnits[unit]);
      if (line.flags & kNumbered) write_number(p.numbers[number++], line);
      uint8_t& flags = flags_of(line);
      if (flags == line.flags) continue;
      ++changes;
      columns[kFlagCodes].number(i - std::exchange(changed, i));
      columns[kFlagCodes].byte(line.flags);
      flags = line.flags & ~kRenamed;
    }
    write_texts(p);
    const uint64_t rest[] = {p.range_bytes, p.cut_lines, changes, p.texts.size(), p.hits.size()};
    unsigned bits = p.last | static_cast<unsigned>(unit) << 1;
    // Not `(… ? 1u : 0u) <<`: GCC 12 shifts a 1 in either case with -fsanitize=undefined.
    for (size_t i = 0; i < std::size(rest); ++i) bits |= unsigned{rest[i] > 0} << (4 + i);
    PackedWriter& meta = columns[kMeta];
    meta.signed_number(int64_t{p.source} - std::exchange(last_source, p.source));
    meta.signed_number(start(p.now) - std::exchange(last_now, start(p.now)));
    meta.number(bits);
    meta.number(p.lines.size());
    for (const uint64_t n : rest)
      if (n > 0) meta.number(n);
  }

  void write_texts(const Pending& p) {
    uint32_t line = 0;
    for (const Text& text : p.texts) {
      columns[kTextSizes].number(text.line - std::exchange(line, text.line));
      columns[kTextSizes].number(text.size);
    }
    line = 0;
    size_t hole = 0;
    for (const Hit& hit : p.hits) {
      columns[kHits].number(hit.line - std::exchange(line, hit.line));
      columns[kHits].number(hit.rule);
      columns[kHits].byte(hit.bits);
      columns[kHits].number(hit.holes);
      for (uint32_t h = 0; h < hit.holes; ++h, ++hole) {
        columns[kHits].number(p.holes[hole].at);
        columns[kHits].number(p.holes[hole].size);
      }
    }
    columns[kText].raw(p.text);
  }

  bool pace_due(TimeNs now) const {
    if (pace.empty() || pace.back().reported) return false;
    if (ended || now == kNoTime || pace_reported == kNoTime || now - pace_reported >= kPaceEvery) return true;
    return !moved && moved_ns != kNoTime && now - moved_ns >= kPaceQuiet;
  }

  void write_pace(TimeNs now) {
    const bool due = pace_due(now);
    if (moved) moved_ns = now;
    moved = ended = false;
    PackedWriter& meta = columns[kMeta];
    meta.number(!due ? 0 : static_cast<uint64_t>(std::count_if(pace.begin(), pace.end(), [](const Pace& p) {
      return !p.reported;
    })));
    if (!due) return;
    for (Pace& line : pace) {
      if (std::exchange(line.reported, true)) continue;
      meta.number(line.source);
      meta.number(sources[line.source].lines - line.line);
      meta.number(line.writer);
      meta.signed_number(line.time_ns == kNoTime ? -1 : line.time_ns);
      meta.number(line.text.size());
      columns[kText].raw(line.text);
    }
    pace_reported = now;
  }
};

LineCondenser::LineCondenser() : impl_(std::make_unique<Impl>()) {}
LineCondenser::~LineCondenser() = default;

void LineCondenser::set_rules(std::vector<RuleName> rules) {
  impl_->rule_numbers.assign(rules.size(), logs::kNoForm);
  impl_->rules = std::move(rules);
  impl_->hits_of = FlatMap<uint32_t>(64);
}

void LineCondenser::add(const logs::LogBatch& batch, TimeNs now) { impl_->add(batch, now); }
bool LineCondenser::empty(TimeNs now) const { return impl_->open.empty() && !impl_->pace_due(now); }
bool LineCondenser::urgent() const { return impl_->grave; }
bool LineCondenser::full() const {
  return impl_->pending_lines >= kFullLines || impl_->pending_text >= kFullText;
}
const CondenseCounts& LineCondenser::counts() const { return impl_->counts; }

void LineCondenser::flush(TimeNs now, PackedWriter& out) {
  Impl& s = *impl_;
  s.write_new();
  s.last_source = 0;
  s.last_now = 0;
  s.columns[kMeta].number(s.open.size());
  for (const uint32_t id : s.open) {
    s.write_section(s.sources[id]);
    std::exchange(s.sources[id].pending, {});  // plain assignment would keep the string's memory
    s.sources[id].open = false;
  }
  s.open.clear();
  s.write_pace(now);
  s.pending_lines = s.pending_text = 0;
  s.grave = false;
  ++s.block;
  for (PackedWriter& column : s.columns) {
    out.text(column.bytes());
    column.clear();
  }
}

}  // namespace culprit::wire
