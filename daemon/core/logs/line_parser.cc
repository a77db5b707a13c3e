#include "core/logs/line_parser.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "base/flat_map.h"
#include "base/hash.h"
#include "base/limits.h"
#include "core/logs/json_line.h"
#include "core/logs/mask.h"
#include "core/logs/mask_skeleton.h"
#include "core/logs/runtime_line.h"
#include "core/logs/unwrap.h"

namespace culprit::logs {
namespace {

// Cached shapes of forms; a job has a few thousand forms.
constexpr size_t kShapeCache = 1 << 16;
// Cached keys of messages with known forms. The cache is useful only if it fits the core's own cache.
constexpr size_t kKnownForms = 1 << 13;
// Messages are scanned in blocks of this size, which fits the core's own cache.
constexpr size_t kScannedBytes = 1 << 16;
// Nested objects: docker's around the program's logger, and a collector's around both.
constexpr int kWrappers = 3;
constexpr std::string_view kLeftOut = " … ";

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r") == std::string_view::npos; }

// The text that a terminal shows of a line with carriage returns: its last non-empty part.
std::string_view last_overwrite(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const size_t at = line.rfind('\r');
  return at == std::string_view::npos ? line : line.substr(at + 1);
}

uint64_t writer_hash(std::string_view host, uint32_t rank, uint32_t local, bool task) {
  return mix64(host.empty() ? 0 : hash64(host), mix64((uint64_t{rank} << 32) | local, task));
}

}  // namespace

struct LineParser::Impl {
  // The form of an earlier message with this key.
  struct KnownForm {
    uint64_t key = 0;
    uint64_t hash = 0;
    uint64_t batch = 0;  // batch in which `form` is valid
    uint32_t form = 0;
  };

  // A text in `messages`, where it ends at `end`.
  struct Unscanned {
    size_t end;
    uint32_t line;
    std::string_view message;  // in the batch
    Level level;
    bool kernel;
    Service service;
    bool whole;  // see ScannedText
  };

  ParseOptions options;
  std::unique_ptr<LineScanner> scanner;
  std::string messages;  // texts to scan for rules: a line's header may be half of it
  std::vector<Unscanned> unscanned;
  std::vector<KnownForm> known_forms{kKnownForms};
  uint64_t batches = 0;
  FlatMap<FormShape> shapes{256};
  FlatMap<uint32_t> form_ids{1024};
  FlatMap<uint32_t> group_ids{1024};
  FlatMap<uint32_t> writer_ids{64};
  LogBatch* batch = nullptr;
  const SourceInfo* source = nullptr;
  std::string_view text;
  // Whether the text has carriage returns or NULs. Most texts have none, which saves a search in each line.
  bool returns = false, nuls = false;
  bool parts = false;  // whether lines may be parts of a container runtime's
  // Ends of the joined lines, by stream: their parts after the first one are empty lines.
  std::array<const char*, 2> joined_until{};
  TimeNs time = kNoTime;

  void begin(const TextChunk& chunk, const SourceInfo& info, LogBatch& out) {
    ++batches;
    form_ids.clear();
    group_ids.clear();
    writer_ids.clear();
    out.source = chunk.source;
    out.index = chunk.index;
    out.offset = chunk.offset;
    out.last = chunk.last;
    out.text = chunk.bytes;
    out.made.clear();
    out.range_bytes = chunk.range_bytes;
    out.since_ns = options.since_ns;
    out.until_ns = options.until_ns;
    out.skipped_lines = out.cut_lines = 0;
    out.lines.clear();
    out.forms.clear();
    out.writers.clear();
    out.groups.clear();
    out.hits.clear();
    out.holes.clear();
    out.numbers.clear();
    out.condensed = false;
    out.pace.clear();
    batch = &out;
    source = &info;
    text = chunk.bytes;
    returns = text.find('\r') != std::string_view::npos;
    nuls = text.find('\0') != std::string_view::npos;
    parts = info.kind == SourceKind::kLog && may_have_parts(text);
    joined_until = {text.data(), text.data()};
    time = kNoTime;
  }

  uint32_t writer_of(const Header& header) {
    const bool path_host = source->host && (source->host_wins || header.host.empty());
    const bool path_rank = source->rank && (source->rank_wins || header.rank == kNoRank);
    const std::string_view host = path_host ? std::string_view(*source->host) : header.host;
    const uint32_t rank = path_rank ? *source->rank : header.rank;
    const uint32_t local = header.local != kNoRank ? header.local : source->local.value_or(kNoRank);
    const bool task = header.task && !path_rank;
    const auto next = static_cast<uint32_t>(batch->writers.size());
    const auto [id, fresh] = writer_ids.try_emplace(writer_hash(host, rank, local, task), next);
    if (fresh) batch->writers.push_back({std::string(host), rank, local, task});
    return *id;
  }

  uint32_t form_of(std::string_view message, Level level, uint32_t line) {
    const uint64_t key = form_key(message);
    KnownForm& known = known_forms[key % kKnownForms];
    if (key == 0) return form_of_hash(form_hash(message), message, level, line);
    if (known.key != key) known = {key, form_hash(message), 0, 0};
    if (known.batch != batches) {
      known.form = form_of_hash(known.hash, message, level, line);
      known.batch = batches;
    } else if (FormSeen& seen = batch->forms[known.form]; level > seen.level) {
      seen.level = level;
    }
    return known.form;
  }

  uint32_t form_of_hash(uint64_t hash, std::string_view message, Level level, uint32_t line) {
    const auto next = static_cast<uint32_t>(batch->forms.size());
    const auto [id, fresh] = form_ids.try_emplace(hash, next);
    if (fresh) {
      const FormShape* known = shapes.find(hash);
      const FormShape shape = known ? *known : shape_of(form_text(message));
      if (!known && shapes.size() < kShapeCache) shapes.try_emplace(hash, shape);
      batch->forms.push_back({hash, line, shape, level});
    } else if (level > batch->forms[*id].level) {
      batch->forms[*id].level = level;
    }
    return *id;
  }

  static uint64_t group_key(const LineRecord& line) { return (uint64_t{line.group} << 32) | line.form; }

  // Before this call a line's group is its writer. The groups of a large batch exceed the core's cache, so
  // the look-ups are prefetched and overlap.
  void group_lines() {
    std::vector<LineRecord>& lines = batch->lines;
    for (size_t i = 0; i < lines.size(); ++i) {
      if (i + kPrefetchAhead < lines.size()) group_ids.prefetch(group_key(lines[i + kPrefetchAhead]));
      LineRecord& line = lines[i];
      if (line.form == kNoForm) continue;
      const auto next = static_cast<uint32_t>(batch->groups.size());
      const auto [id, fresh] = group_ids.try_emplace(group_key(line), next);
      if (fresh) batch->groups.push_back({line.group, line.form});
      line.group = *id;
    }
  }

  // A message after a progress bar takes a missing writer or time from the bar.
  static Header parse_behind(std::string_view bar, std::string_view line, HeaderParser& headers) {
    const Header before = headers.parse(bar);
    Header header = headers.parse(line);
    if (header.host.empty() && header.rank == kNoRank && header.local == kNoRank) {
      header.host = before.host;
      header.rank = before.rank;
      header.local = before.local;
      header.task = before.task;
    }
    if (header.time_ns == kNoTime && !before.kernel_time) header.time_ns = before.time_ns;
    return header;
  }

  static std::optional<Progress> progress_of_bar(std::string_view bar) {
    return bar.empty() ? std::nullopt : progress_of(bar);
  }

  // Whether the message may be an object or a line of one.
  static bool may_wrap(std::string_view message) {
    return !message.empty() && (message[0] == '{' || message[0] == '"');
  }

  // Returns the message of the program's own line within an object; repeats for nested objects. Completes the
  // header with the object's fields about the writer. `whole`: the inner line with its own header, if it has
  // one.
  std::string_view unwrapped(std::string_view message, Header& header, HeaderParser& headers,
                             std::string_view& whole) {
    for (int around = 0; around < kWrappers && may_wrap(message); ++around) {
      reserve_made();
      const auto inner = unwrap(message, batch->made);
      if (!inner) break;
      message = inner->text;
      const Header own = headers.parse(message);
      message.remove_prefix(own.message);
      whole = inner->text;
      // Prefers the service's time: the program's own may be in another zone, and only some of its lines have
      // one. If no header precedes the object, header.time_ns may be any time in the line.
      if (header.time_ns == kNoTime || (header.message == 0 && around == 0))
        if (const TimeNs inner_value = headers.time_of(inner->time); inner_value != kNoTime)
          header.time_ns = inner_value;
      if (header.time_ns == kNoTime && own.time_ns != kNoTime && !own.kernel_time)
        header.time_ns = own.time_ns;
      header.level = own.level != Level::kNone ? own.level : std::max(header.level, inner->level);
      header.kernel = header.kernel || own.kernel || inner->kernel;
      for (const Service inner_value : {own.service, inner->service})
        if (header.service == Service::kNone) header.service = inner_value;
      // If the source's host is known, such a field may name the peer of a connection, so it is ignored.
      if (header.host.empty() && !source->host) header.host = own.host.empty() ? inner->host : own.host;
      if (header.rank == kNoRank) header.rank = own.rank != kNoRank ? own.rank : inner->rank;
      if (header.local == kNoRank) header.local = own.local != kNoRank ? own.local : inner->local;
    }
    return message;
  }

  // Texts in `made` must not move. A line is copied at most once to join its parts, once for its holes or
  // length, then once per object.
  void reserve_made() {
    constexpr size_t kMostLines = 256;  // with kLeftOut, per mebibyte
    if (batch->made.empty())
      batch->made.reserve((kWrappers + 2 + size_t{parts}) * text.size() + kMostLines * (text.size() >> 20) +
                          kMostLines);
  }

  std::string_view made_since(size_t begin) const { return std::string_view(batch->made).substr(begin); }

  // Joins the texts between a line's holes (runs of NULs) by blanks.
  std::string_view without_holes(std::string_view line) {
    const size_t first = std::min(line.find_first_not_of('\0'), line.size());
    line = line.substr(first, line.find_last_not_of('\0') + 1 - first);
    static constexpr char kNuls[limits::kHoleNuls] = {};
    constexpr std::string_view kHole(kNuls, sizeof kNuls);
    if (line.find(kHole) == std::string_view::npos) return line;
    reserve_made();
    const size_t begin = batch->made.size();
    while (!line.empty()) {
      const size_t end = std::min(line.find(kHole), line.size());
      batch->made.append(line, 0, end);
      line.remove_prefix(std::min(line.find_first_not_of('\0', end), line.size()));
      if (!line.empty()) batch->made += ' ';
    }
    return made_since(begin);
  }

  // The beginning and end of an overlong line.
  std::string_view shortened(std::string_view line) {
    ++batch->cut_lines;
    reserve_made();
    const size_t begin = batch->made.size();
    batch->made.append(line, 0, limits::kLineBytes - limits::kLineEndBytes);
    batch->made += kLeftOut;
    batch->made.append(line, line.size() - limits::kLineEndBytes);
    return made_since(begin);
  }

  // The first part stands for the program's whole line, so that all lines keep their numbers.
  void parse_part(std::string_view line, HeaderParser& headers) {
    const auto part = runtime_line(line);
    if (!part) return parse_line(line, headers);
    const char*& until = joined_until[part->stream];
    if (line.data() < until) return parse_line(line.substr(0, 0), headers);
    if (!part->partial) return parse_line(line, headers);
    const JoinedLine joined = join_parts(text.substr(static_cast<size_t>(line.data() - text.data())));
    until = line.data() + joined.end;
    reserve_made();
    const size_t begin = batch->made.size();
    batch->made += joined.text;
    parse_line(made_since(begin), headers);
  }

  void parse_line(std::string_view line, HeaderParser& headers) {
    const auto index = static_cast<uint32_t>(batch->lines.size());
    if (nuls && std::memchr(line.data(), '\0', line.size())) line = without_holes(line);
    if (returns && std::memchr(line.data(), '\r', line.size())) line = last_overwrite(line);
    if (line.size() > limits::kLineBytes) line = shortened(line);
    const std::string_view bar = line.substr(0, text_behind_bar(line));
    line.remove_prefix(bar.size());
    Header header = bar.empty() ? headers.parse(line) : parse_behind(bar, line, headers);
    std::string_view message = line.substr(header.message), whole = line;
    if (source->kind == SourceKind::kLog) {
      // A field of an object that was printed over several lines is indented.
      const std::string_view body =
          message.substr(std::min(message.find_first_not_of(" \t"), message.size()));
      if (message.starts_with('{') || body.starts_with('"')) {
        const std::string_view inner = unwrapped(body, header, headers, whole);
        if (inner.data() != body.data()) message = inner;
      } else if (header.message > 0 && line[header.message - 1] == '"') {  // a quoted text in logfmt
        if (const std::string_view exception = joined_exception(message); !exception.empty())
          message = exception;
      }
    }
    const bool own_time = header.time_ns != kNoTime && !header.kernel_time;
    if (own_time) time = header.time_ns;
    const bool indented = !message.empty() && (message[0] == ' ' || message[0] == '\t');
    while (!message.empty() && (message[0] == ' ' || message[0] == '\t')) message.remove_prefix(1);
    LineRecord record{};
    record.time_ns = time;
    record.made = !batch->made.empty() && std::less_equal<>()(batch->made.data(), message.data()) &&
                  std::less_equal<>()(message.data(), batch->made.data() + batch->made.size());
    const char* const from = record.made ? batch->made.data() : text.data();
    record.offset = static_cast<uint32_t>(message.data() - from);
    record.size = static_cast<uint32_t>(message.size()) & 0x7ffffff;
    record.indented = indented;
    record.own_time = own_time;
    record.form = kNoForm;
    if (!batch->wanted(time)) {
      ++batch->skipped_lines;
      record.skipped = 1;
    } else if (!is_blank(message)) {
      record.form = form_of(message, header.level, index);
      record.group = writer_of(header);
      const bool counts = batch->forms[record.form].shape.progress;
      if (const auto number = counts ? progress_of(message) : progress_of_bar(bar))
        batch->numbers.push_back({index, false, *number});
    }
    batch->lines.push_back(record);
    if (!scanner || record.form == kNoForm) return;
    const bool kernel =
        source->kind == SourceKind::kKernel ||
        (source->kind == SourceKind::kLog && (header.kernel || message.starts_with("kernel: ")));
    const Service service = source->kind == SourceKind::kLog && !kernel ? header.service : Service::kNone;
    add_unscanned({0, index, message, header.level, kernel, service, false});
    // The header of a fatal line identifies the program, so the whole line is scanned too.
    if (header.level == Level::kFatal && whole.size() > message.size() && !kernel &&
        source->kind == SourceKind::kLog)
      add_unscanned({0, index, whole, header.level, false, service, true});
    if (messages.size() >= kScannedBytes) scan();
  }

  void add_unscanned(Unscanned one) {
    messages.append(one.message);
    one.end = messages.size();
    unscanned.push_back(one);
    messages += '\n';
  }

  void scan() {
    if (unscanned.empty()) return;
    scanner->begin(messages);
    size_t begin = 0;
    for (const Unscanned& one : unscanned) {
      if (scanner->wants(one.end))
        scanner->on_line({one.line, begin, one.end, one.message, one.level, one.kernel,
                          source->kind == SourceKind::kEvent, one.service, one.whole},
                         *batch);
      begin = one.end + 1;
    }
    messages.clear();
    unscanned.clear();
  }
};

LineParser::LineParser(const ParseOptions& options, std::unique_ptr<LineScanner> scanner)
    : impl_(std::make_unique<Impl>()) {
  impl_->options = options;
  impl_->scanner = std::move(scanner);
}
LineParser::~LineParser() = default;
LineParser::LineParser(LineParser&&) noexcept = default;

void LineParser::parse(const TextChunk& chunk, const SourceInfo& source, LogBatch& batch) {
  impl_->begin(chunk, source, batch);
  HeaderParser headers({impl_->options.zone, source.modified_ns});
  const char* at = chunk.bytes.data();
  const char* const end = at + chunk.bytes.size();
  while (at < end) {
    const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    const char* const stop = newline ? newline : end;
    const std::string_view line(at, static_cast<size_t>(stop - at));
    impl_->parts ? impl_->parse_part(line, headers) : impl_->parse_line(line, headers);
    at = stop + 1;
  }
  impl_->scan();
  impl_->group_lines();
}

}  // namespace culprit::logs
