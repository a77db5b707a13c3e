#include <algorithm>
#include <array>
#include <utility>

#include "base/flat_map.h"
#include "base/limits.h"
#include "core/logs/mask.h"
#include "core/wire/condense.h"
#include "core/wire/condense_format.h"

namespace culprit::wire {
namespace {

using namespace condensed;

constexpr size_t kUnknownReported = 8;  // reported ids of unknown rules

struct ReceivedForm {
  FormMemory memory;
  logs::FormShape shape;
  bool reported = false;
  uint64_t hash = 0;
};

// A sparse column: only a few lines have an entry. Holds the line of the next entry.
struct Sparse {
  PackedReader& column;
  uint64_t left = 0;
  uint64_t next = 0;

  Sparse(PackedReader& c, uint64_t count) : column(c), left(count) { step(0); }
  bool at(uint64_t line) const { return left > 0 && next == line; }
  void step(uint64_t from) { next = left > 0 ? from + column.number(limits::kWireLines) : 0; }
  void took() {
    --left;
    step(next);
  }
};

struct Section {
  uint32_t source = 0;
  TimeNs now = kNoTime;
  bool last = false;
  TimeNs unit = 1;
  uint64_t range_bytes = 0, cut_lines = 0;
  uint64_t lines = 0, changes = 0, texts = 0, hits = 0;
};

}  // namespace

struct LineExpander::Impl {
  FindRule find;
  FormShapes own_shapes;
  FormShapes* shapes = &own_shapes;
  bool broken = false;
  std::vector<ReceivedForm> forms;
  std::vector<Count> number_memory;
  std::vector<logs::WriterKey> writers;
  std::vector<WriterMemory> writer_memory;
  std::vector<RuleName> rules;
  std::vector<std::optional<uint32_t>> rule_here;
  std::vector<SourceMemory> sources;
  uint64_t unknown_hits = 0;
  std::vector<std::string> unknown_rules;
  uint8_t blank_flags = 0;
  // State of the current block.
  std::array<PackedReader, kColumns> columns;
  std::string_view text;  // the whole text column
  uint64_t lines = 0;
  uint64_t holes_read = 0;
  int64_t last_source = 0;
  TimeNs last_now = 0;
  // State of the current batch: its numbers for forms and writers.
  std::vector<uint32_t> local_form, local_writer;
  FlatMap<uint32_t> groups{256};

  bool read(PackedReader& in, std::vector<Expanded>& out) {
    for (PackedReader& column : columns) column = PackedReader(in.text(limits::kWireBytes));
    if (!in.ok()) return false;
    text = columns[kText].raw(columns[kText].left());
    columns[kText] = PackedReader(text);
    lines = holes_read = 0;
    last_source = 0;
    last_now = 0;
    if (!read_new()) return false;
    PackedReader& meta = columns[kMeta];
    const uint64_t sections = meta.number(limits::kLiveSources);
    for (uint64_t i = 0; i < sections && meta.ok(); ++i) {
      // Texts are in the order of lines, and the fields of a section precede its lines.
      const Section section = read_section();
      if (!meta.ok()) return false;
      out.emplace_back();
      if (!read_lines(section, out.back())) return false;
    }
    return read_pace(out) && std::all_of(columns.begin(), columns.end(),
                                         [](const PackedReader& c) { return c.ok() && c.done(); });
  }

  bool read_new() {
    PackedReader& meta = columns[kMeta];
    const uint64_t known = meta.number(limits::kForms);
    // Each new form has its first line in this block, which bounds their number.
    if (known < forms.size() || known - forms.size() > columns[kFormCodes].left()) return false;
    forms.resize(known);
    local_form.resize(known, logs::kNoForm);
    const uint64_t fresh = meta.number(limits::kWriters - writers.size());
    for (uint64_t i = 0; i < fresh && meta.ok(); ++i) {
      logs::WriterKey key;
      key.host = meta.text(limits::kNameBytes);
      key.rank = static_cast<uint32_t>(meta.number(0xffffffff)) - 1;
      key.local = static_cast<uint32_t>(meta.number(0xffffffff)) - 1;
      key.task = meta.byte() != 0;
      writers.push_back(std::move(key));
    }
    writer_memory.resize(writers.size());
    local_writer.resize(writers.size(), logs::kNoForm);
    const uint64_t names = meta.number(kRulesMax - rules.size());
    for (uint64_t i = 0; i < names && meta.ok(); ++i) {
      RuleName name{std::string(meta.text(limits::kNameBytes)), meta.get_word()};
      rule_here.push_back(find ? find(name) : std::nullopt);
      rules.push_back(std::move(name));
    }
    return read_levels();
  }

  bool read_levels() {
    PackedReader& meta = columns[kMeta];
    int64_t form = 0;
    const uint64_t risen = meta.number(limits::kWireLines);
    for (uint64_t i = 0; i < risen && meta.ok(); ++i) {
      form += meta.signed_number();
      const uint8_t level = meta.byte();
      if (form < 0 || form >= static_cast<int64_t>(forms.size()) ||
          level > static_cast<uint8_t>(logs::Level::kFatal))
        return false;
      forms[static_cast<size_t>(form)].memory.level = static_cast<logs::Level>(level);
    }
    return meta.ok();
  }

  Section read_section() {
    PackedReader& meta = columns[kMeta];
    Section s;
    const int64_t source = last_source + meta.signed_number();
    last_now = plus(last_now, static_cast<uint64_t>(meta.signed_number()));
    const uint64_t bits = meta.number(0x1ff);
    const uint64_t unit = bits >> 1 & 7;
    if (source < 0 || source >= static_cast<int64_t>(limits::kLiveSources) || unit >= std::size(kUnits) ||
        last_now < 0 || last_now >= kTimeMax)
      meta.fail();
    if (!meta.ok()) return s;
    last_source = source;
    s.source = static_cast<uint32_t>(source);
    s.now = last_now == 0 ? kNoTime : last_now;
    s.last = bits & 1;
    s.unit = kUnits[unit];
    s.lines = meta.number(limits::kWireLines - lines);
    const auto rest = [&](unsigned bit, uint64_t max) { return bits >> bit & 1 ? meta.number(max) : 0; };
    s.range_bytes = rest(4, uint64_t{1} << 60);
    s.cut_lines = rest(5, limits::kWireLines);
    s.changes = rest(6, limits::kWireLines);
    s.texts = rest(7, limits::kWireLines);
    s.hits = rest(8, limits::kWireLines);
    // A line needs at least one byte.
    if (s.lines > columns[kFormCodes].left()) meta.fail();
    lines += s.lines;
    return s;
  }

  // Reads the form and writer of a line; false if they are invalid.
  bool read_line(SourceMemory& memory, uint32_t& form, uint32_t& writer) {
    const uint64_t code = columns[kFormCodes].number();
    form = logs::kNoForm;
    if (code == kBlank) return columns[kFormCodes].ok();
    const uint64_t by = columns[kWriterCodes].number();
    if (!columns[kFormCodes].ok() || !columns[kWriterCodes].ok() || writers.empty()) return false;
    WriterMemory& last = writer_memory[memory.writer];
    const uint64_t wrote = by == 0 ? last.next : by - 1;
    if (wrote >= writers.size()) return false;
    writer = static_cast<uint32_t>(wrote);
    last.next = writer;
    memory.writer = writer;
    WriterMemory& own = writer_memory[writer];
    if (code == kPredicted && own.form == logs::kNoForm) return false;
    const uint64_t is = code == kPredicted ? forms[own.form].memory.next : code - kFirst;
    if (is >= forms.size()) return false;
    form = static_cast<uint32_t>(is);
    if (own.form != logs::kNoForm) forms[own.form].memory.next = form;
    own.form = form;
    return true;
  }

  bool read_lines(const Section& s, Expanded& out) {
    if (s.source >= sources.size()) sources.resize(s.source + 1);
    out.now = s.now;
    logs::LogBatch& batch = out.batch;
    batch.source = s.source;
    batch.last = s.last;
    batch.text = text;
    batch.range_bytes = s.range_bytes;
    batch.cut_lines = s.cut_lines;
    batch.condensed = true;
    batch.lines.reserve(s.lines);
    groups.clear();
    Sparse flags(columns[kFlagCodes], s.changes), texts(columns[kTextSizes], s.texts),
        hits(columns[kHits], s.hits);
    for (uint32_t i = 0; i < s.lines; ++i) {
      uint32_t form = logs::kNoForm, writer = 0;
      if (!read_line(sources[s.source], form, writer)) return false;
      uint8_t& predicted = form == logs::kNoForm ? blank_flags : forms[form].memory.flags;
      uint8_t own = predicted;
      if (flags.at(i)) {
        own = columns[kFlagCodes].byte() & kFlags;
        predicted = own & ~kRenamed;
        flags.took();
      }
      if (!add_line(s, own, batch)) return false;
      if (texts.at(i) && !add_text(texts, batch)) return false;
      if (form == logs::kNoForm) {
        if (own & kNumbered) return false;
        continue;
      }
      if (!add_form(form, writer, batch)) return false;
      if ((own & kNumbered) && !add_number(i, own, forms[form].memory, batch)) return false;
      while (hits.at(i))
        if (!add_hit(i, hits, batch)) return false;
    }
    for (const logs::FormSeen& f : batch.forms) local_form[batch_form(batch, f)] = logs::kNoForm;
    for (const uint32_t id : batch_writers) local_writer[id] = logs::kNoForm;
    batch_forms.clear();
    batch_writers.clear();
    return flags.left == 0 && texts.left == 0 && hits.left == 0;
  }

  std::vector<uint32_t> batch_forms, batch_writers;  // by their number in the current batch
  uint32_t batch_form(const logs::LogBatch& batch, const logs::FormSeen& f) const {
    return batch_forms[static_cast<size_t>(&f - batch.forms.data())];
  }

  bool add_line(const Section& s, uint8_t flags, logs::LogBatch& batch) {
    SourceMemory& memory = sources[s.source];
    if (flags & kOwnTime) {
      const auto steps = static_cast<uint64_t>(columns[kTimes].signed_number());
      memory.time = plus(start(memory.time), steps * static_cast<uint64_t>(s.unit));
      if (!columns[kTimes].ok() || memory.time < 0 || memory.time >= kTimeMax) return false;
    }
    logs::LineRecord line{};
    line.time_ns = memory.time;
    line.indented = (flags & kIndented) != 0;
    line.skipped = (flags & kSkipped) != 0;
    line.own_time = (flags & kOwnTime) != 0;
    line.form = logs::kNoForm;
    batch.skipped_lines += line.skipped;
    batch.lines.push_back(line);
    return true;
  }

  bool add_text(Sparse& texts, logs::LogBatch& batch) {
    const uint64_t size = texts.column.number(kTextBytes);
    const std::string_view own = columns[kText].raw(size);
    if (!texts.column.ok() || !columns[kText].ok()) return false;
    batch.lines.back().offset = static_cast<uint32_t>(own.data() - text.data());
    batch.lines.back().size = static_cast<uint32_t>(size) & 0x7ffffff;
    texts.took();
    return true;
  }

  bool add_form(uint32_t id, uint32_t writer, logs::LogBatch& batch) {
    ReceivedForm& form = forms[id];
    logs::LineRecord& line = batch.lines.back();
    if (!form.reported) {
      if (line.size == 0) return false;
      const std::string_view message = batch.message(line);
      form.hash = logs::form_hash(message);
      form.shape = shapes->of(logs::form_text(message));
      form.reported = true;
    }
    uint32_t& local = local_form[id];
    if (local == logs::kNoForm) {
      local = static_cast<uint32_t>(batch.forms.size());
      batch.forms.push_back(
          {form.hash, static_cast<uint32_t>(batch.lines.size() - 1), form.shape, form.memory.level});
      batch_forms.push_back(id);
    }
    uint32_t& by = local_writer[writer];
    if (by == logs::kNoForm) {
      by = static_cast<uint32_t>(batch.writers.size());
      batch.writers.push_back(writers[writer]);
      batch_writers.push_back(writer);
    }
    line.form = local;
    const auto next = static_cast<uint32_t>(batch.groups.size());
    const auto [group, fresh] = groups.try_emplace(uint64_t{by} << 32 | local, next);
    if (fresh) batch.groups.push_back({by, local});
    line.group = *group;
    return true;
  }

  bool add_number(uint32_t line, uint8_t flags, FormMemory& memory, logs::LogBatch& batch) {
    PackedReader& in = columns[kNumbers];
    if (memory.count == logs::kNoForm) {
      memory.count = static_cast<uint32_t>(number_memory.size());
      number_memory.emplace_back();
    }
    Count& count = number_memory[memory.count];
    if (flags & kRenamed) {
      count.total = static_cast<int64_t>(in.number(INT64_MAX));
      count.name = static_cast<uint32_t>(in.number(0xffffffff));
      count.bar = in.byte() != 0;
    }
    count.value = plus(count.value, static_cast<uint64_t>(in.signed_number()));
    if (!in.ok() || count.value < 0) return false;
    batch.numbers.push_back(
        {line, (flags & kCounted) != 0, {count.value, count.total, count.bar, count.name}});
    return true;
  }

  bool add_hit(uint32_t line, Sparse& hits, logs::LogBatch& batch) {
    PackedReader& in = hits.column;
    const uint64_t rule = in.number();
    const uint8_t bits = in.byte();
    const uint64_t holes = in.number(kHolesMax);
    const std::string_view message = batch.message(batch.lines[line]);
    const size_t first = batch.holes.size();
    for (uint64_t h = 0; h < holes && in.ok(); ++h) {
      const uint64_t at = in.number(kTextBytes), size = in.number(kTextBytes);
      if (at > 0 && at - 1 + size > message.size()) return false;
      batch.holes.push_back(at > 0 ? message.substr(at - 1, size) : columns[kText].raw(size));
    }
    holes_read += holes;
    if (!in.ok() || !columns[kText].ok() || holes_read > limits::kWireLines || rule >= rules.size() ||
        (bits >> 2 & 7) > unsigned(logs::Level::kFatal))
      return false;
    hits.took();
    if (const auto here = rule_here[rule])
      batch.hits.push_back({line, *here, static_cast<uint32_t>(first), static_cast<uint32_t>(holes),
                            static_cast<logs::Meaning>(bits & 3), static_cast<logs::Level>(bits >> 2 & 7),
                            (bits & 32) != 0, (bits & 192) == 64, (bits & 192) == 128,
                            (bits & 192) == 192 ? logs::Service::kNode : logs::Service::kNone});
    else
      miss(rules[rule].id);
    return true;
  }

  void miss(const std::string& rule) {
    ++unknown_hits;
    if (unknown_rules.size() < kUnknownReported &&
        std::find(unknown_rules.begin(), unknown_rules.end(), rule) == unknown_rules.end())
      unknown_rules.push_back(rule);
  }

  bool read_pace(std::vector<Expanded>& out) {
    PackedReader& meta = columns[kMeta];
    const uint64_t count = meta.number(16);
    for (uint64_t i = 0; i < count && meta.ok(); ++i) {
      const uint64_t source = meta.number();
      const uint64_t back = meta.number(), writer = meta.number();
      const TimeNs time = meta.signed_number();
      const std::string_view line = columns[kText].raw(meta.number(kTextBytes));
      if (!meta.ok() || !columns[kText].ok() || source >= sources.size() || writer >= writers.size() ||
          time < -1 || time >= kTimeMax)
        return false;
      logs::LogBatch& batch = out.emplace_back().batch;
      batch.source = static_cast<SourceId>(source);
      batch.condensed = true;
      batch.text = text;
      batch.writers.push_back(writers[writer]);
      batch.pace.push_back({0, back, time < 0 ? kNoTime : time, line});
    }
    return meta.ok();
  }
};

LineExpander::LineExpander(FindRule find, FormShapes* shapes) : impl_(std::make_unique<Impl>()) {
  impl_->find = std::move(find);
  if (shapes) impl_->shapes = shapes;
}
LineExpander::~LineExpander() = default;

void LineExpander::set_rules(FindRule find) {
  impl_->find = std::move(find);
  for (size_t i = 0; i < impl_->rules.size(); ++i)
    impl_->rule_here[i] = impl_->find ? impl_->find(impl_->rules[i]) : std::nullopt;
}

Result<std::vector<Expanded>> LineExpander::expand(PackedReader& in) {
  std::vector<Expanded> out;
  if (!impl_->broken && impl_->read(in, out)) return out;
  impl_->broken = true;
  return fail(ErrorCode::kInvalid, "condensed lines: the block breaks its format");
}

uint64_t LineExpander::unknown_hits() const { return impl_->unknown_hits; }
const std::vector<std::string>& LineExpander::unknown_rules() const { return impl_->unknown_rules; }

}  // namespace culprit::wire
