#include "ingest/live/journal.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/limits.h"
#include "model/json_writer.h"

namespace culprit::ingest {
namespace {

// People's accounts begin here (UID_MIN of login.defs), as do container's and systemd's dynamic users.
constexpr uint64_t kPeople = 1000;
constexpr uint64_t kKernelFacility = 0;
// Entries left out after which the position is stored without any.
constexpr uint64_t kUnstored = 1000;

bool read_hex(std::string_view text, uint64_t* out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, 16);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<uint64_t> journal_number(std::string_view text) {
  uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

// A service of the system, and not a session or service of a user.
bool is_system_unit(std::string_view unit) {
  return unit == "init.scope" || (unit.ends_with(".service") && !unit.starts_with("user@"));
}

JournalWriter writer_of(const JournalEntry& e) {
  // Programs may write to /dev/kmsg, but not with the kernel's facility.
  if (e.transport == "kernel")
    return journal_number(e.facility) == kKernelFacility ? JournalWriter::kKernel : JournalWriter::kOther;
  // Audit records quote what users typed.
  if (e.transport.empty() || e.transport == "audit") return JournalWriter::kOther;
  const auto uid = journal_number(e.uid);
  const bool of_system = uid && *uid < kPeople && e.container.empty() && is_system_unit(e.unit);
  return of_system ? JournalWriter::kService : JournalWriter::kOther;
}

// Calls `of` with each line of a message.
template <class Of>
void each_line(std::string_view text, Of of) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    of(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

void put_field(JsonWriter& out, std::string_view name, std::string_view value) {
  if (!value.empty()) out.field(name, value);
}

}  // namespace

std::optional<JournalPlace> parse_cursor(std::string_view cursor) {
  JournalPlace out;
  uint32_t parts = 0;
  while (!cursor.empty()) {
    const std::string_view part = cursor.substr(0, cursor.find(';'));
    cursor.remove_prefix(std::min(cursor.size(), part.size() + 1));
    if (part.size() < 3 || part[1] != '=') return std::nullopt;
    const std::string_view value = part.substr(2);
    bool good = true;
    if (part[0] == 's')
      good = value.size() == 32 && read_hex(value.substr(0, 16), &out.id_high) &&
             read_hex(value.substr(16), &out.id_low);
    else if (part[0] == 'i')
      good = read_hex(value, &out.sequence);
    else if (part[0] == 't')
      good = read_hex(value, &out.realtime_us);
    else if (part[0] == 'x')
      good = read_hex(value, &out.hash);
    else
      continue;
    if (!good) return std::nullopt;
    parts |= 1u << (part[0] - 'a');
  }
  const uint32_t all = 1u << ('s' - 'a') | 1u << ('i' - 'a') | 1u << ('t' - 'a') | 1u << ('x' - 'a');
  return parts == all ? std::optional(out) : std::nullopt;
}

std::string cursor_of(const JournalPlace& place) {
  return fmt::format("s={:016x}{:016x};i={:x};t={:x};x={:x}", place.id_high, place.id_low, place.sequence,
                     place.realtime_us, place.hash);
}

struct JournalParser::Impl {
  simdjson::dom::parser json{limits::kJournalLineBytes};

  // A field is a text, or numbers if it is no text; several of one name are a list of these.
  static void take(simdjson::dom::element value, size_t most, std::string& out, bool* cut) {
    std::string_view text;
    simdjson::dom::array list;
    if (value.get_string().get(text) == simdjson::SUCCESS) {
      out = text.substr(0, most);
      *cut = text.size() > most;
    } else if (value.get_array().get(list) == simdjson::SUCCESS) {
      take_list(list, most, out, cut);
    }
  }
  static void take_list(simdjson::dom::array list, size_t most, std::string& out, bool* cut) {
    out.clear();
    for (const simdjson::dom::element one : list) {
      uint64_t byte = 0;
      if (one.get_uint64().get(byte) != simdjson::SUCCESS || byte > 0xff) {
        simdjson::dom::array bytes;
        std::string_view text;
        if (!out.empty()) return;
        if (one.get_string().get(text) == simdjson::SUCCESS)
          take(one, most, out, cut);
        else if (one.get_array().get(bytes) == simdjson::SUCCESS && bytes.size() > 0 &&
                 bytes.at(0).is_uint64())
          take_list(bytes, most, out, cut);
        return;
      }
      if (out.size() == most) {
        *cut = true;
        return;
      }
      out += static_cast<char>(byte);
    }
  }
};

JournalParser::JournalParser() : impl_(std::make_unique<Impl>()) {}
JournalParser::~JournalParser() = default;

std::optional<JournalEntry> JournalParser::parse(std::string_view line) {
  simdjson::dom::object object;
  if (impl_->json.parse(line.data(), line.size()).get_object().get(object) != simdjson::SUCCESS)
    return std::nullopt;
  JournalEntry out;
  std::string about, realtime, second_container;
  const std::array<std::pair<std::string_view, std::string*>, 15> fields = {{
      {"__CURSOR", &out.cursor},
      {"__REALTIME_TIMESTAMP", &realtime},
      {"_TRANSPORT", &out.transport},
      {"_HOSTNAME", &out.host},
      {"_SYSTEMD_UNIT", &out.unit},
      {"_COMM", &out.command},
      {"_PID", &out.pid},
      {"_UID", &out.uid},
      {"SYSLOG_IDENTIFIER", &out.tag},
      {"SYSLOG_FACILITY", &out.facility},
      {"PRIORITY", &out.priority},
      {"UNIT", &about},
      {"CONTAINER_NAME", &out.container},
      {"CONTAINER_ID", &second_container},
      {"MESSAGE", &out.message},
  }};
  for (const auto [key, value] : object) {
    const auto field = std::ranges::find(fields, key, [](const auto& one) { return one.first; });
    if (field == fields.end()) continue;
    const bool is_message = field->second == &out.message;
    bool cut = false;
    Impl::take(value, is_message ? limits::kJournalMessageBytes : limits::kJournalFieldBytes, *field->second,
               &cut);
    out.cut = out.cut || (is_message && cut);
  }
  const auto place = parse_cursor(out.cursor);
  if (!place) return std::nullopt;
  out.place = *place;
  out.realtime_us = journal_number(realtime).value_or(place->realtime_us);
  if (out.container.empty()) out.container = std::move(second_container);
  out.writer = writer_of(out);
  // The manager speaks of other units.
  if (out.pid == "1" && out.uid == "0" && !about.empty()) out.about = std::move(about);
  return out;
}

std::string evidence_line(const JournalEntry& entry) {
  JsonWriter out;
  out.object([&] {
    out.field("__CURSOR", entry.cursor);
    out.field("__REALTIME_TIMESTAMP", std::to_string(entry.realtime_us));
    put_field(out, "_TRANSPORT", entry.transport);
    put_field(out, "_HOSTNAME", entry.host);
    put_field(out, "_SYSTEMD_UNIT", entry.unit);
    put_field(out, "_COMM", entry.command);
    put_field(out, "_PID", entry.pid);
    put_field(out, "_UID", entry.uid);
    put_field(out, "SYSLOG_IDENTIFIER", entry.tag);
    put_field(out, "SYSLOG_FACILITY", entry.facility);
    put_field(out, "PRIORITY", entry.priority);
    put_field(out, "UNIT", entry.about);
    put_field(out, "CONTAINER_NAME", entry.container);
    out.field("MESSAGE", entry.message);
  });
  return out.finish() + '\n';
}

std::string journal_text(const JournalEntry& entry) {
  std::string out;
  if (entry.writer == JournalWriter::kOther) return out;
  constexpr uint64_t kMostUs = uint64_t{1} << 52;  // the year 2112
  const uint64_t us = std::min(entry.realtime_us, kMostUs);
  if (entry.writer == JournalWriter::kKernel) {
    const Civil at = civil_from_ns(static_cast<TimeNs>(us) * kNsPerUs);
    const std::string head =
        fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}+00:00 kernel: ", at.year, at.month, at.day,
                    at.hour, at.minute, at.second, at.nanosecond / 1000);
    each_line(entry.message, [&](std::string_view line) { out.append(head).append(line).push_back('\n'); });
    return out;
  }
  each_line(entry.message, [&](std::string_view line) {
    JsonWriter json;
    json.object([&] {
      json.field("__REALTIME_TIMESTAMP", std::to_string(us));
      json.field("_TRANSPORT", entry.transport);
      json.field("SYSLOG_IDENTIFIER", journal_tag(entry));
      put_field(json, "PRIORITY", entry.priority);
      json.field("MESSAGE", line);
    });
    out += json.finish() + '\n';
  });
  return out;
}

std::string_view journal_tag(const JournalEntry& entry) {
  return !entry.tag.empty() ? entry.tag : !entry.command.empty() ? entry.command : entry.unit;
}

struct JournalLog::Batch {
  PieceBatch out;
  Piece piece;
  TimeNs now = kNoTime;
};

JournalLog::JournalLog(JournalOptions options, std::span<const StreamState> known)
    : options_(std::move(options)) {
  for (const StreamState& state : known) {
    if (state.info.kind != OriginKind::kJournal || state.info.path != options_.path || state.ended) continue;
    stream_ = state.info.id;
    offset_ = state.size;
    if (state.place) position_ = JournalPlace::from(*state.place);
  }
}

void JournalLog::restarted() {
  line_.clear();
  skipping_ = false;
  resuming_ = position_.has_value();
}

PieceBatch JournalLog::add(std::string_view bytes, TimeNs now) {
  Batch batch;
  batch.now = now;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const bool whole = end != std::string_view::npos;
    if (!skipping_ && line_.size() + part.size() > limits::kJournalLineBytes) {
      skipping_ = true;
      ++stats_.malformed;
      note_gap(1, "an entry of the journal is too long to be read", &batch);
    }
    if (skipping_)
      line_.clear();
    else if (whole && line_.empty())
      on_line(part, &batch);
    else if (line_.append(part); whole)
      on_line(line_, &batch);
    if (!whole) break;
    line_.clear();
    skipping_ = false;
    bytes.remove_prefix(end + 1);
  }
  if (!batch.piece.bytes.empty() || unstored_ >= kUnstored) flush(&batch);
  return std::move(batch.out);
}

void JournalLog::on_line(std::string_view line, Batch* batch) {
  if (line.empty()) return;
  const std::optional<JournalEntry> entry = parser_.parse(line);
  if (!entry) {
    ++stats_.malformed;
    return;
  }
  const bool stored = std::exchange(resuming_, false) && is_stored(entry->place, batch);
  position_ = entry->place;
  if (stored) return;
  if (!is_wanted(*entry)) {
    ++stats_.left_out;
    ++unstored_;
    return;
  }
  ++stats_.entries;
  stats_.cut += entry->cut;
  const std::string text = evidence_line(*entry);
  stats_.bytes += text.size();
  if (batch->piece.bytes.size() + text.size() > limits::kPieceBytes) flush(batch);
  batch->piece.bytes += text;
  batch->piece.place = entry->place.stored();
}

// Whether the first entry of a journalctl that began at position() is the one that was read last. If not,
// entries may be missing before it. Entries of all writers share one sequence.
bool JournalLog::is_stored(const JournalPlace& place, Batch* batch) {
  if (place == *position_) return true;
  const bool same_id = place.id_high == position_->id_high && place.id_low == position_->id_low;
  if (same_id && place.sequence == position_->sequence + 1) return false;
  const bool counted = same_id && place.sequence > position_->sequence;
  const uint64_t missing = counted ? place.sequence - position_->sequence - 1 : 0;
  stats_.lost += missing;
  note_gap(missing, "the journal removed entries before they were read", batch);
  return false;
}

void JournalLog::note_gap(uint64_t records, const char* reason, Batch* batch) {
  if (!batch->piece.bytes.empty()) flush(batch);
  if (!gap_) gap_ = Gap{0, 0, reason};
  gap_->records += records;
}

bool JournalLog::is_wanted(const JournalEntry& entry) const {
  // The daemon's own words about a fault are no sign of it.
  constexpr std::string_view kOwn = "culprit";
  if (entry.unit.starts_with(kOwn) || entry.command.starts_with(kOwn)) return false;
  if (entry.transport == "kernel") return options_.kernel;
  const std::string& unit = entry.about.empty() ? entry.unit : entry.about;
  return options_.units.empty() || std::ranges::any_of(options_.units, [&](const std::string& pattern) {
           return ::fnmatch(pattern.c_str(), unit.c_str(), 0) == 0;
         });
}

void JournalLog::flush(Batch* batch) {
  Piece full = std::exchange(batch->piece, {});
  if (stream_ == kNoStream) {
    StreamInfo info;
    info.id = stream_ = options_.allocate();
    info.kind = OriginKind::kJournal;
    info.path = options_.path;
    info.opened_ns = batch->now;
    batch->out.opened.push_back(std::move(info));
  }
  full.stream = stream_;
  full.offset = offset_;
  full.time_ns = batch->now;
  full.gap = std::exchange(gap_, std::nullopt);
  if (full.bytes.empty() && position_) full.place = position_->stored();
  unstored_ = 0;
  offset_ += full.bytes.size();
  batch->out.pieces.push_back(std::move(full));
}

}  // namespace culprit::ingest
