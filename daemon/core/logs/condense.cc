#include "core/logs/condense.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/flat_map.h"
#include "base/limits.h"
#include "core/logs/condense_format.h"
#include "core/logs/counter.h"
#include "core/logs/numbers.h"
#include "core/logs/records.h"

namespace culprit::logs {
namespace {

using namespace condensed;

// Writers whose first line of a form is told as text: as many as JobLog keeps, which may all be of this host.
constexpr size_t kSamples = 8;
// Of a rule by a writer; JobLog keeps no more.
constexpr uint32_t kHitTexts = 1000;
// How often the last lines of progress are told while there is progress, and how long after it stopped: a
// person reads them in the report of a hang.
constexpr TimeNs kPaceEvery = 600 * kNsPerSecond, kPaceQuiet = 30 * kNsPerSecond;
constexpr size_t kPaceLines = 3;  // as JobLog keeps
constexpr size_t kTrackWriters = 1 << 16;
constexpr size_t kHitGroups = 1 << 20;  // rules by writer: 24 MB
// More should be flushed: a quarter of what a block may have, so that one more batch fits.
constexpr size_t kFullLines = limits::kWireLines / 4, kFullText = limits::kWireBytes / 4;

uint64_t pair_key(uint32_t a, uint32_t b) { return (uint64_t{a} << 32) | b; }

struct Form {
  FormMemory memory;
  FormShape shape;
  Level level = Level::kNone;
  CounterWatch watch;
  uint64_t block = 0;          // that told it first
  uint32_t source = kNoForm;   // the last one to which that block told its text
  uint32_t samples[kSamples];  // writers
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
  uint32_t at, size;  // at: 1 + its place in the line's text; 0: told by itself
};
struct Hit {
  uint32_t line, rule, holes;
  uint8_t bits;
};

// What came of a source since the last flush.
struct Pending {
  uint32_t source = 0;
  TimeNs now = kNoTime;
  uint64_t range_bytes = 0, cut_lines = 0;
  bool last = false;
  std::vector<Line> lines;
  std::vector<LineNumber> numbers;
  std::vector<Text> texts;
  std::vector<Hit> hits;
  std::vector<Hole> holes;
  std::string text;
};

struct Source {
  SourceMemory memory;
  TimeNs time = kNoTime;  // of its last line
  uint64_t lines = 0;
  bool open = false;               // it is among the pending ones
  FlatMap<uint32_t> record_of{4};  // by writer
  std::vector<Record> records;
  Pending pending;
};

// A line that told of progress and may be among the last ones.
struct Pace {
  bool told = false;
  uint32_t source = 0, writer = 0;
  uint64_t line = 0;
  TimeNs time_ns = kNoTime;
  std::string text;
};

}  // namespace

struct Condenser::Impl {
  CondenseCounts counts;
  std::vector<Form> forms;
  FlatMap<uint32_t> form_ids{256};
  size_t forms_told = 0;
  std::vector<Count> number_memory;
  std::vector<WriterKey> writers;
  std::vector<WriterMemory> writer_memory;
  FlatMap<uint32_t> writer_ids{16};
  size_t writers_told = 0;
  std::vector<RuleName> rules;         // as batches number them
  std::vector<uint32_t> rule_numbers;  // in this session; kNoForm: not told yet
  std::vector<RuleName> rules_used;
  size_t rules_told = 0;
  FlatMap<uint32_t> hits_of{64};  // by writer and rule
  std::vector<Source> sources;
  std::vector<uint32_t> open;  // sources with something pending
  size_t pending_lines = 0, pending_text = 0;
  uint64_t block = 1;
  FlatMap<int64_t> furthest{16};  // by writer and what it counts
  Numbers course;
  std::vector<Pace> pace;
  bool moved = false, ended = false;  // since the last flush
  TimeNs pace_told = kNoTime, moved_ns = kNoTime;
  bool grave = false;
  std::vector<Relabel> relabels;
  std::vector<uint32_t> touched, local_forms, local_writers;
  size_t next_hit = 0, next_number = 0;
  std::array<PackedWriter, kColumns> columns;

  uint32_t form_of(const FormSeen& seen) {
    if (const uint32_t* known = form_ids.find(seen.hash)) return *known;
    const auto next = static_cast<uint32_t>(forms.size());
    if (next == limits::kForms) return next - 1;  // the one that all others share
    if (next + 1 < limits::kForms) form_ids.try_emplace(seen.hash, next);
    Form& form = forms.emplace_back();
    if (next + 1 < limits::kForms) form.shape = seen.shape;
    form.block = block;
    return next;
  }

  uint32_t writer_of(const WriterKey& key) {
    const uint64_t hash = mix64(hash64(key.host), mix64(pair_key(key.rank, key.local), key.task));
    if (const uint32_t* known = writer_ids.find(hash)) return *known;
    const auto next = static_cast<uint32_t>(writers.size());
    if (next == limits::kWriters) return next - 1;
    if (next + 1 < limits::kWriters) writer_ids.try_emplace(hash, next);
    writers.push_back(next + 1 < limits::kWriters ? key : WriterKey{});
    if (writers.back().host.size() > limits::kNameBytes) writers.back().host.resize(limits::kNameBytes);
    writer_memory.emplace_back();
    return next;
  }

  uint32_t rule_of(uint32_t index) {
    if (index >= rules.size()) return kNoForm;
    uint32_t& number = rule_numbers[index];
    if (number == kNoForm) {
      const auto known = std::find_if(rules_used.begin(), rules_used.end(), [&](const RuleName& r) {
        return r.id == rules[index].id && r.hash == rules[index].hash;
      });
      if (known == rules_used.end() && rules_used.size() >= kRulesMax) return kNoForm;
      number = static_cast<uint32_t>(known - rules_used.begin());
      if (known == rules_used.end()) rules_used.push_back(rules[index]);
    }
    return number;
  }

  Record& record_of(Source& source, uint32_t writer) {
    const auto next = static_cast<uint32_t>(source.records.size());
    const auto [index, fresh] = source.record_of.try_emplace(writer, next);
    if (fresh) source.records.emplace_back();
    touched.push_back(*index);
    return source.records[*index];
  }

  void add(const LogBatch& batch, TimeNs now) {
    if (batch.source >= limits::kLiveSources || pending_lines + batch.lines.size() > limits::kWireLines) {
      counts.dropped += batch.lines.size();
      return;
    }
    if (batch.source >= sources.size()) sources.resize(batch.source + 1);
    Source& source = sources[batch.source];
    if (!source.open) open.push_back(batch.source);
    source.open = true;
    source.pending.source = batch.source;
    Pending& p = source.pending;
    p.now = now;
    sources[open.front()].pending.range_bytes += batch.range_bytes;  // they count for the job alone
    p.cut_lines += batch.cut_lines;
    p.last = p.last || batch.last;
    ended = ended || batch.last;
    counts.lines += batch.lines.size();
    counts.bytes += batch.range_bytes;
    local_forms.clear();
    local_writers.clear();
    for (const WriterKey& key : batch.writers) local_writers.push_back(writer_of(key));
    local_forms.assign(batch.forms.size(), kNoForm);
    walk(batch, source);
    pending_lines += batch.lines.size();
  }

  uint32_t open_form(const LogBatch& batch, uint32_t local) {
    if (local_forms[local] == kNoForm) local_forms[local] = form_of(batch.forms[local]);
    Form& form = forms[local_forms[local]];
    form.level = std::max(form.level, batch.forms[local].level);
    return local_forms[local];
  }

  void walk(const LogBatch& batch, Source& source) {
    next_hit = next_number = 0;
    touched.clear();
    const size_t text_before = source.pending.text.size();
    for (uint32_t i = 0; i < batch.lines.size(); ++i) {
      const LineRecord& line = batch.lines[i];
      const bool told = line.own_time && line.time_ns >= 0 && line.time_ns < kTimeMax;
      if (told) source.time = line.time_ns;
      Line out{source.time, kNoForm, 0, 0};
      out.flags = static_cast<uint8_t>((line.indented ? kIndented : 0) | (told ? kOwnTime : 0) |
                                       (line.skipped ? kSkipped : 0));
      ++source.lines;
      if (line.form != kNoForm) take(batch, i, source, out);
      source.pending.lines.push_back(out);
    }
    relabels.clear();
    for (const uint32_t record : touched) source.records[record].leave_batch();
    if (batch.last) source.records = {}, source.record_of = FlatMap<uint32_t>(4);
    pending_text += source.pending.text.size() - text_before;
  }

  void take(const LogBatch& batch, uint32_t i, Source& source, Line& out) {
    const LineRecord& line = batch.lines[i];
    out.form = open_form(batch, batch.groups[line.group].form);
    out.writer = local_writers[batch.groups[line.group].writer];
    Form& form = forms[out.form];
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
    const bool told = hit && wants_hits(batch, i, out.writer);
    grave = grave || (text && form.block == block && form.shape.words == 2 && !form.shape.handled);
    if (text || told) add_text(source.pending, out, batch.message(line));
    if (hit) take_hits(batch, i, source.pending, told);
  }

  // Whether the line is an event of its own; `text`: whether its text says what it is.
  bool read_record(const LogBatch& batch, const LineRecord& line, Source& source, const Line& out,
                   bool& text) {
    const FormShape& shape = forms[out.form].shape;
    Record& record = record_of(source, out.writer);
    if (shape.kind == ShapeKind::kPlain && !shape.ignored && !record.open()) {
      record.plain(out.form);
      return true;
    }
    const bool list = record.list();
    const bool frame = shape.kind == ShapeKind::kFrame || line.indented;
    text = text || list || (record.open() && !frame) || shape.kind == ShapeKind::kTraceback ||
           shape.kind == ShapeKind::kRootCause;
    std::optional<RecordEvent> done;
    const LogPlace place{source.pending.source, out.writer, source.lines, out.time_ns};
    const LineRole role = record.take({static_cast<uint32_t>(source.lines), out.form, &shape,
                                       batch.message(line), line.indented != 0, line.own_time != 0, place},
                                      done, relabels);
    return role == LineRole::kEvent;
  }

  static bool is_sample(Form& form, uint32_t writer) {
    if (form.sampled >= kSamples) return false;
    if (std::find(form.samples, form.samples + form.sampled, writer) != form.samples + form.sampled)
      return false;
    form.samples[form.sampled++] = writer;
    return true;
  }

  // Whether the text must be passed on for the line's own numbers.
  bool take_value(const LogBatch& batch, const LineRecord& line, const Source& source, const Line& out) {
    if (out.form + 1 == limits::kForms) return false;
    NumberLine number;
    number.place = {batch.source, out.writer, source.lines, out.time_ns};
    return course.take(out.form, number, batch.message(line));
  }

  void take_number(const LogBatch& batch, uint32_t i, Source& source, Line& out) {
    Form& form = forms[out.form];
    while (next_number < batch.numbers.size() && batch.numbers[next_number].line < i) ++next_number;
    LineNumber number{static_cast<uint32_t>(source.pending.lines.size()), false, {}};
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

  void note_pace(const LogBatch& batch, uint32_t i, const Source& source, const Line& out,
                 const Progress& p) {
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
    line.told = false;
    moved = true;
  }

  // A storm's lines are counted all the same.
  bool wants_hits(const LogBatch& batch, uint32_t i, uint32_t writer) {
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

  void take_hits(const LogBatch& batch, uint32_t i, Pending& p, bool told) {
    const std::string_view message = batch.message(batch.lines[i]).substr(0, kTextBytes);
    for (; next_hit < batch.hits.size() && batch.hits[next_hit].line == i; ++next_hit) {
      const LineHit& hit = batch.hits[next_hit];
      const uint32_t rule = rule_of(hit.rule);
      if (rule == kNoForm) continue;
      Hit out{static_cast<uint32_t>(p.lines.size()), rule, 0, 0};
      out.bits =
          static_cast<uint8_t>(static_cast<unsigned>(hit.known) | static_cast<unsigned>(hit.level) << 2 |
                               (hit.general ? 32u : 0u) | (hit.kernel ? 64u : 0u) | (hit.event ? 128u : 0u));
      if (told) out.holes = std::min<uint32_t>(hit.holes, kHolesMax);
      for (uint32_t h = 0; h < out.holes; ++h) add_hole(batch.holes[hit.first_hole + h], message, p);
      p.hits.push_back(out);
      grave = grave || (told && hit.known > Known::kNote);
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

  // ---- what was added, as columns

  void write_new() {
    PackedWriter& meta = columns[kMeta];
    meta.number(forms.size());
    meta.number(writers.size() - writers_told);
    for (; writers_told < writers.size(); ++writers_told) {
      const WriterKey& w = writers[writers_told];
      meta.text(w.host);
      meta.number(static_cast<uint32_t>(w.rank + 1));
      meta.number(static_cast<uint32_t>(w.local + 1));
      meta.byte(w.task);
    }
    meta.number(rules_used.size() - rules_told);
    for (; rules_told < rules_used.size(); ++rules_told) {
      meta.text(rules_used[rules_told].id);
      meta.word(rules_used[rules_told].hash);
    }
    write_levels();
  }

  // Of forms of which a line was more serious than any before.
  void write_levels() {
    PackedWriter& meta = columns[kMeta];
    std::vector<uint32_t> risen;
    for (const uint32_t id : open)
      for (const Line& line : sources[id].pending.lines) {
        if (line.form == kNoForm || forms[line.form].level == forms[line.form].memory.level) continue;
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
    if (line.form == kNoForm) return columns[kFormCodes].number(kBlank);
    const WriterMemory& last = writer_memory[memory.writer];
    const bool same = line.writer == last.next;
    columns[kWriterCodes].number(same ? 0 : line.writer + 1);
    writer_memory[memory.writer].next = line.writer;
    memory.writer = line.writer;
    WriterMemory& writer = writer_memory[line.writer];
    const bool foretold = writer.form != kNoForm && forms[writer.form].memory.next == line.form;
    columns[kFormCodes].number(foretold ? kForetold : line.form + kFirst);
    if (writer.form != kNoForm) forms[writer.form].memory.next = line.form;
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
    return line.form == kNoForm ? blank_flags : forms[line.form].memory.flags;
  }
  uint8_t blank_flags = 0;
  uint32_t last_source = 0;  // of the block under way
  TimeNs last_now = 0;

  void write_number(const LineNumber& number, Line& line) {
    FormMemory& memory = forms[line.form].memory;
    if (memory.count == kNoForm) {
      memory.count = static_cast<uint32_t>(number_memory.size());
      number_memory.emplace_back();
    }
    Count& count = number_memory[memory.count];
    const Progress& p = number.progress;
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

  void write_section(Source& source) {
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
    for (size_t i = 0; i < std::size(rest); ++i) bits |= (rest[i] > 0 ? 1u : 0u) << (4 + i);
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
    if (pace.empty() || pace.back().told) return false;
    if (ended || now == kNoTime || pace_told == kNoTime || now - pace_told >= kPaceEvery) return true;
    return !moved && moved_ns != kNoTime && now - moved_ns >= kPaceQuiet;
  }

  void write_pace(TimeNs now) {
    const bool due = pace_due(now);
    if (moved) moved_ns = now;
    moved = ended = false;
    PackedWriter& meta = columns[kMeta];
    meta.number(!due ? 0 : static_cast<uint64_t>(std::count_if(pace.begin(), pace.end(), [](const Pace& p) {
      return !p.told;
    })));
    if (!due) return;
    for (Pace& line : pace) {
      if (std::exchange(line.told, true)) continue;
      meta.number(line.source);
      meta.number(sources[line.source].lines - line.line);
      meta.number(line.writer);
      meta.signed_number(line.time_ns == kNoTime ? -1 : line.time_ns);
      meta.number(line.text.size());
      columns[kText].raw(line.text);
    }
    pace_told = now;
  }
};

Condenser::Condenser() : impl_(std::make_unique<Impl>()) {}
Condenser::~Condenser() = default;

void Condenser::set_rules(std::vector<RuleName> rules) {
  impl_->rule_numbers.assign(rules.size(), kNoForm);
  impl_->rules = std::move(rules);
  impl_->hits_of = FlatMap<uint32_t>(64);
}

void Condenser::add(const LogBatch& batch, TimeNs now) { impl_->add(batch, now); }
bool Condenser::empty(TimeNs now) const { return impl_->open.empty() && !impl_->pace_due(now); }
bool Condenser::urgent() const { return impl_->grave; }
bool Condenser::full() const {
  return impl_->pending_lines >= kFullLines || impl_->pending_text >= kFullText;
}
const CondenseCounts& Condenser::counts() const { return impl_->counts; }

void Condenser::flush(TimeNs now, PackedWriter& out) {
  Impl& s = *impl_;
  s.write_new();
  s.last_source = 0;
  s.last_now = 0;
  s.columns[kMeta].number(s.open.size());
  for (const uint32_t id : s.open) {
    s.write_section(s.sources[id]);
    s.sources[id].pending = {};
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

}  // namespace culprit::logs
