#include "core/wire/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>
#include <variant>

#include "base/limits.h"
#include "base/text.h"
#include "core/wire/flight.h"
#include "core/wire/packed_time.h"
#include "core/wire/ras.h"
#include "core/wire/stacks.h"

namespace culprit::wire {
namespace {

constexpr uint8_t kVersion = 1;
constexpr uint64_t kMostRead = uint64_t{1} << 48;  // bytes between two flushes; avoids overflow of sums
// Limit on the notes of a block before or after its lines. Heartbeats and similar notes use at most half of
// it; the rest suffices for all sources.
constexpr uint64_t kNotes = 2 * limits::kLiveSources;

enum Kind : uint8_t {
  kSource = 1,
  kProblem,
  kProgress,
  kPhase,
  kEnds,
  kAlive,
  kComm,
  kFlight,
  kMetrics,
  kEvent,
  kNonLog,
  kExited,
  kReceived,
  kFinding,
  kRas,
  kStackNote,
  kNoStackNote
};

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;  // clang 16 deduces no aggregates

// An optional number.
void put(PackedWriter& out, const std::optional<uint32_t>& value) {
  out.number(value ? uint64_t{*value} + 1 : 0);
}
void put(PackedWriter& out, const std::optional<Principal>& who) { out.number(who ? who->value + 1 : 0); }
std::optional<Principal> get_principal(PackedReader& in) {
  const uint64_t value = in.number(Principal::kEnd);
  return value == 0 ? std::nullopt : std::optional(Principal::from(value - 1));
}
std::optional<uint32_t> get_optional(PackedReader& in) {
  const uint64_t value = in.number(uint64_t{1} << 32);
  return value == 0 ? std::nullopt : std::optional(static_cast<uint32_t>(value - 1));
}

std::string pack(const SourceInfo& s) {
  PackedWriter out;
  out.text(std::string_view(s.file).substr(0, limits::kPathBytes));
  out.byte(static_cast<uint8_t>(s.kind));
  out.byte(static_cast<uint8_t>((s.host ? 1 : 0) | (s.host_wins ? 2 : 0) | (s.rank_wins ? 4 : 0)));
  if (s.host) out.text(std::string_view(*s.host).substr(0, limits::kNameBytes));
  put(out, s.rank);
  put(out, s.local);
  put_time(out, s.modified_ns);
  out.number(s.lines_before);
  put(out, s.user);  // not sent by versions before 0.2
  return out.finish();
}

SourceInfo unpack_source(PackedReader& in) {
  SourceInfo s;
  s.file = in.text(limits::kPathBytes);
  const uint8_t kind = in.byte(), bits = in.byte();
  if (kind > static_cast<uint8_t>(SourceKind::kEvent)) in.fail();
  s.kind = static_cast<SourceKind>(kind);
  if (bits & 1) s.host = std::string(in.text(limits::kNameBytes));
  s.host_wins = (bits & 2) != 0;
  s.rank_wins = (bits & 4) != 0;
  s.rank = get_optional(in);
  s.local = get_optional(in);
  s.modified_ns = get_time(in);
  s.lines_before = in.number(uint64_t{1} << 60);
  if (in.left() > 0) s.user = get_principal(in);
  return s;
}

std::string pack(const core::FindingInput& i) {
  PackedWriter out;
  for (const auto text : kPluginFindingTexts)
    out.text(std::string_view(i.finding.*text).substr(0, limits::kEvidenceText));
  put(out, i.finding.rank);
  put(out, i.finding.device);
  put_time(out, i.finding.time_ns);
  out.put_word(std::bit_cast<uint64_t>(i.finding.confidence));
  out.byte(static_cast<uint8_t>(i.finding.severity));
  out.byte(static_cast<uint8_t>(i.finding.state));
  const size_t values = std::min(i.finding.values.size(), limits::kPluginValues);
  out.number(values);
  for (size_t v = 0; v < values; ++v) {
    out.text(std::string_view(i.finding.values[v].first).substr(0, limits::kNameBytes));
    out.put_word(std::bit_cast<uint64_t>(i.finding.values[v].second));
  }
  out.text(std::string_view(i.file).substr(0, limits::kPathBytes));
  out.number(i.offset);
  put(out, i.user);
  return out.finish();
}

core::FindingInput unpack_finding(PackedReader& in) {
  core::FindingInput i;
  for (const auto text : kPluginFindingTexts) i.finding.*text = std::string(in.text(limits::kEvidenceText));
  i.finding.rank = get_optional(in);
  i.finding.device = get_optional(in);
  i.finding.time_ns = get_time(in);
  i.finding.confidence = std::bit_cast<double>(in.get_word());
  const uint8_t severity = in.byte(), state = in.byte();
  const bool sound = severity <= static_cast<uint8_t>(PluginSeverity::kFatal) &&
                     state <= static_cast<uint8_t>(PluginState::kCleared) && i.finding.confidence >= 0 &&
                     i.finding.confidence <= 1;
  if (!sound) return in.fail(), i;
  i.finding.severity = static_cast<PluginSeverity>(severity);
  i.finding.state = static_cast<PluginState>(state);
  const uint64_t values = in.number(limits::kPluginValues);
  for (uint64_t v = 0; v < values && in.ok(); ++v) {
    std::string name(in.text(limits::kNameBytes));
    i.finding.values.emplace_back(std::move(name), std::bit_cast<double>(in.get_word()));
  }
  i.file = in.text(limits::kPathBytes);
  i.offset = in.number(uint64_t{1} << 60);
  i.user = get_principal(in);
  return i;
}

std::string pack(const detect::RankExited& exited) {
  PackedWriter out;
  out.number(exited.rank);
  put(out, exited.pid);
  out.text(std::string_view(exited.host).substr(0, limits::kNameBytes));
  return out.finish();
}

std::string pack(const StackRefusal& refusal) {
  PackedWriter out;
  out.number(refusal.rank);
  out.text(std::string_view(refusal.reason).substr(0, limits::kNameBytes));
  return out.finish();
}

std::string pack(const Problem& p) {
  PackedWriter out;
  out.text(std::string_view(p.file).substr(0, limits::kPathBytes));
  out.byte(p.offset.has_value());
  out.number(p.offset.value_or(0));
  out.text(shorten(p.what, limits::kPathBytes - 4));
  return out.finish();
}

Problem unpack_problem(PackedReader& in) {
  Problem p;
  p.file = in.text(limits::kPathBytes);
  const bool has_offset = in.byte() != 0;
  const uint64_t offset = in.number();
  if (has_offset) p.offset = offset;
  p.what = in.text(limits::kPathBytes);
  return p;
}

}  // namespace

InputWriter::InputWriter(uint64_t session) : session_(session) {}

namespace {
const JobFile kNoJobFile;
}
InputWriter::Comm::Comm() : trace(&kNoJobFile, true) { trace.condense_into(&condenser); }

void InputWriter::set_rules(const rules::Ruleset* rules) {
  std::vector<RuleName> names;
  if (rules)
    for (const rules::Rule& rule : rules->rules()) names.push_back({rule.id, rule.text_hash});
  condenser_.set_rules(std::move(names));
}

bool InputWriter::has_room_for_note() const {
  return notes_before_ + notes_after_ < kNotes / 2 && before_.size() < limits::kWireBytes / 2;
}

void InputWriter::note(uint8_t kind, TimeNs now, std::string_view body) {
  if (kind != kSource && !has_room_for_note()) {
    ++dropped_notes_;
    return;
  }
  PackedWriter& out = kind == kEnds ? after_ : before_;
  ++(kind == kEnds ? notes_after_ : notes_before_);
  out.byte(kind);
  put_time(out, now);
  out.text(body);
}

void InputWriter::add(const core::Input& input, TimeNs now) {
  const Overloaded take = {
      [&](const core::SourceOpened& i) { note(kSource, now, pack(i.info)); },
      [&](const core::LogInput& i) { condenser_.add(*i.batch, now); },
      [&](const core::ProblemSeen& i) { note(kProblem, now, pack(i.problem)); },
      [&](const core::RuleOverran&) {},
      [&](const core::FlightInput& i) {
        const auto packed = pack_flight(i.dump);
        if (!packed)
          return note(kProblem, now, pack(Problem{i.dump.file, std::nullopt, "is too large to be sent"}));
        note(kFlight, now, *packed);
        hurries_ = true;
      },
      [&](const detect::ProgressSeen& i) {
        PackedWriter out;
        out.signed_number(i.step);
        out.number(i.rank);
        note(kProgress, now, out.bytes());
      },
      [&](const detect::PhaseSeen& i) {
        PackedWriter out;
        out.text(std::string_view(i.name).substr(0, limits::kNameBytes));
        out.byte(i.begins);
        out.number(i.rank);
        note(kPhase, now, out.bytes());
      },
      [&](const detect::RankExited& i) {
        note(kExited, now, pack(i));
        hurries_ = true;
      },
      [&](const core::FindingInput& i) {
        note(kFinding, now, pack(i));
        hurries_ = hurries_ || i.finding.severity >= PluginSeverity::kError;
      },
      [&](const ras::RasInput& i) {
        note(kRas, now, pack_ras(i));
        hurries_ = hurries_ || !i.state.comms.empty() || !i.state.exited.empty();
      },
      [&](const core::StackInput& i) {
        note(kStackNote, now, pack_stacks(i.dump));
        hurries_ = true;
      },
      [&](const StackRefusal& i) {
        note(kNoStackNote, now, pack(i));
        hurries_ = true;
      },
      [&](const core::CommInput& i) { add_comm(i, now); },
      [&](const core::MetricInput& i) { add_rows(i.rows, now); },
      [&](const core::EventInput& i) {
        if (!loop_.has_room(i.event)) return void(++dropped_notes_);
        note(kEvent, now, loop_.pack(i.event));
      },
      [&](const core::NonLogRead& i) {
        non_log_.bytes += i.bytes;
        non_log_.lines += i.lines;
      },
      [&](const core::ReceivedTraceCount& i) {
        PackedWriter out;
        out.byte(static_cast<uint8_t>(i.of));
        put(out, i.user);
        note(kReceived, now, out.bytes());
      },
      [&](const core::CommCondensed&) {},  // from another host, whose agent sends them itself
  };
  std::visit(take, input);
}

void InputWriter::add_comm(const core::CommInput& input, TimeNs now) {
  if (!comm_) comm_ = std::make_unique<Comm>();
  Comm& c = *comm_;
  c.host = input.host;
  c.came_ns = now;
  c.trace.add_records(input.host, input.records);
  // Records arrive again, so the ranks reported as inside an operation have left it.
  for (CommRecord& record : std::exchange(c.open_records, {})) {
    record.end_ns = record.start_ns + 1;
    c.condenser.pass(record);
  }
}

void InputWriter::tick(TimeNs now) {
  // Longer than any operation of a running job, but shorter than the delay before a hang is reported.
  constexpr TimeNs kStill = 3 * kNsPerSecond;
  if (!comm_ || now - comm_->came_ns < kStill || !comm_->open_records.empty() || !comm_->trace.waits())
    return;
  for (const CommRecord& record : comm_->trace.open_records()) {
    comm_->condenser.pass(record);
    if (record.end_ns == 0) comm_->open_records.push_back(record);
  }
  stalled_ = !comm_->open_records.empty();
}

// Sums of steps are sent with the block of the minute, like lines.
void InputWriter::note_comm(TimeNs now) {
  stalled_ = false;
  if (!comm_ || comm_->condenser.empty()) return;
  PackedWriter body;
  body.text(std::string_view(comm_->host).substr(0, limits::kNameBytes));
  comm::pack(comm_->condenser.drain(), body);
  ++notes_before_;
  before_.byte(kComm);
  put_time(before_, now);
  before_.text(body.bytes());
}

void InputWriter::answer(const std::vector<int64_t>& steps) {
  if (comm_) comm_->condenser.answer(steps);
}

// Packed rows must be sent: the packer assumes that the reader knows their names and last values.
void InputWriter::add_rows(std::span<const MetricRow> rows, TimeNs now) {
  while (!rows.empty()) {
    if (!has_room_for_note()) return loop_.drop(rows.size());
    note(kMetrics, now, loop_.pack(rows, now));
  }
}

void InputWriter::note_loop(TimeNs now) {
  loop_.begin_block();
  if (std::string drops = loop_.drop_sentences(); !drops.empty())
    note(kProblem, now, pack(Problem{"", std::nullopt, std::move(drops)}));
  const core::NonLogRead read = std::exchange(non_log_, {});
  if (read.bytes == 0 && read.lines == 0) return;
  PackedWriter body;
  body.number(read.bytes);
  body.number(read.lines);
  note(kNonLog, now, body.bytes());
}

void InputWriter::ends(bool failed, TimeNs now) {
  note(kEnds, now, failed ? "\1" : std::string_view("\0", 1));
}
void InputWriter::alive(bool alive, TimeNs now) {
  note(kAlive, now, alive ? "\1" : std::string_view("\0", 1));
}

bool InputWriter::empty(TimeNs now) const {
  return condenser_.empty(now) && notes_before_ + notes_after_ == 0 && (!comm_ || comm_->condenser.empty());
}

bool InputWriter::full() const {
  constexpr size_t kVectors = limits::kWireBytes / 4 / 64;  // a vector takes some 30 bytes
  return (comm_ && comm_->condenser.size() >= kVectors) || condenser_.full() || loop_.full() ||
         notes_before_ + notes_after_ >= kNotes / 4 ||
         before_.size() + after_.size() >= limits::kWireBytes / 4;
}

// Input between two checks of full() comes on top of a quarter of lines, in a frame of 6 MiB.
bool InputWriter::has_room_for_source() const { return before_.size() < 3 * limits::kWireBytes / 8; }

std::string InputWriter::flush(TimeNs now) {
  note_comm(now);
  note_loop(now);
  PackedWriter out;
  out.byte(kVersion);
  out.put_word(session_);
  out.number(block_++);
  out.number(std::exchange(notes_before_, 0));
  out.raw(before_.bytes());
  hurries_ = false;
  const bool lines = !condenser_.empty(now);
  out.byte(lines);
  if (lines) condenser_.flush(now, out);
  out.number(std::exchange(notes_after_, 0));
  out.raw(after_.bytes());
  before_.clear();
  after_.clear();
  return out.finish();
}

LineExpander::FindRule rule_finder(const rules::Ruleset* rules) {
  if (!rules) return nullptr;
  return [rules](const RuleName& name) -> std::optional<uint32_t> {
    const auto index = rules->find(name.id);
    return index && rules->rules()[*index].text_hash == name.hash ? index : std::nullopt;
  };
}

struct InputReader::Note {
  struct Comm {
    std::string host;
    comm::HostVectors reported;
  };
  TimeNs now = kNoTime;
  std::variant<core::SourceOpened, core::ProblemSeen, detect::ProgressSeen, detect::PhaseSeen,
               std::pair<Kind, bool>, Comm, core::FlightInput, LoopBatch, core::NonLogRead,
               detect::RankExited, core::ReceivedTraceCount, core::FindingInput, ras::RasInput,
               core::StackInput, StackRefusal>
      what;
};

bool InputReader::read_comm(PackedReader& body, TimeNs now, std::vector<Note>& out) {
  Note::Comm read{std::string(body.text(limits::kNameBytes)), {}};
  if (!comm::unpack(body, streams_reported_, read.reported)) return false;
  streams_reported_ += read.reported.streams.size();
  ranks_reported_ += read.reported.ranks();
  if (streams_reported_ > comm::kStreamsOfHost || ranks_reported_ > comm::kRanksReported) return false;
  out.push_back({now, std::move(read)});
  return true;
}

bool InputReader::read_loop(uint8_t kind, PackedReader& body, TimeNs now, std::vector<Note>& out) {
  LoopBatch read;
  if (!(kind == kMetrics ? loop_.rows(body, read) : loop_.event(body, read))) return false;
  out.push_back({now, std::move(read)});
  return true;
}

bool InputReader::read_notes(PackedReader& in, std::vector<Note>& out) {
  const uint64_t count = in.number(kNotes - std::min<size_t>(kNotes, notes_reported_));
  notes_reported_ += count;
  out.reserve(std::min<size_t>(count, in.left()));
  for (uint64_t i = 0; i < count && in.ok(); ++i) {
    const uint8_t kind = in.byte();
    const TimeNs now = get_time(in);
    PackedReader body(in.text(limits::kWireBytes));
    if (kind == kSource)
      out.push_back({now, core::SourceOpened{unpack_source(body)}});
    else if (kind == kProblem)
      out.push_back({now, core::ProblemSeen{unpack_problem(body)}});
    else if (kind == kProgress) {
      const int64_t step = body.signed_number();
      if (step < 0 || step > limits::kStepMax) return false;
      out.push_back({now, detect::ProgressSeen{step, static_cast<uint32_t>(body.number(UINT32_MAX))}});
    } else if (kind == kPhase)
      out.push_back({now, detect::PhaseSeen{std::string(body.text(limits::kNameBytes)), body.byte() != 0,
                                            static_cast<uint32_t>(body.number(UINT32_MAX))}});
    else if (kind == kFlight)
      out.push_back({now, core::FlightInput{unpack_flight(body, flight_ranks_)}});
    else if (kind == kEnds || kind == kAlive)
      out.push_back({now, std::pair(static_cast<Kind>(kind), body.byte() != 0)});
    else if (kind == kNonLog) {
      const uint64_t bytes = body.number(kMostRead);
      out.push_back({now, core::NonLogRead{bytes, body.number(kMostRead)}});
    } else if (kind == kComm || kind == kMetrics || kind == kEvent) {
      if (!(kind == kComm ? read_comm(body, now, out) : read_loop(kind, body, now, out))) return false;
    } else if (kind == kExited) {
      detect::RankExited exited{static_cast<uint32_t>(body.number(UINT32_MAX)), {}, {}};
      exited.pid = get_optional(body);
      exited.host = std::string(body.text(limits::kNameBytes));
      out.push_back({now, std::move(exited)});
    } else if (kind == kStackNote) {
      out.push_back({now, core::StackInput{unpack_stacks(body)}});
    } else if (kind == kNoStackNote) {
      StackRefusal refusal{static_cast<uint32_t>(body.number(limits::kCommRanks - 1)), {}};
      refusal.reason = std::string(body.text(limits::kNameBytes));
      out.push_back({now, std::move(refusal)});
    } else if (kind == kFinding) {
      out.push_back({now, unpack_finding(body)});
    } else if (kind == kRas) {
      out.push_back({now, unpack_ras(body)});
    } else if (kind == kReceived) {
      const uint8_t of = body.byte();
      if (of > static_cast<uint8_t>(core::ReceivedTraceCount::Of::kStacks))
        ++unknown_notes_;
      else
        out.push_back({now, core::ReceivedTraceCount{static_cast<core::ReceivedTraceCount::Of>(of),
                                                     get_principal(body)}});
    } else
      ++unknown_notes_;
    if (!body.ok()) return false;  // a note with more than the known fields is allowed
  }
  return in.ok();
}

void InputReader::apply(Note& note, InputSink& sink) {
  const Overloaded give = {
      [&](core::SourceOpened& i) { sources_.push_back(sink.open(std::move(i.info), note.now)); },
      [&](std::pair<Kind, bool>& i) {
        i.first == kEnds ? sink.ends(i.second, note.now) : sink.alive(i.second, note.now);
      },
      [&](Note::Comm& i) {
        std::move(i.reported.streams.begin(), i.reported.streams.end(), std::back_inserter(streams_));
        sink.on_input(core::CommCondensed{std::move(i.host), &i.reported, &streams_}, note.now);
      },
      [&](LoopBatch& i) {
        i.each(
            [&](std::span<const MetricRow> rows) {
              sink.on_input(core::MetricInput{rows, true}, note.now);
            },
            [&](const LoopEvent& event) {
              sink.on_input(core::EventInput{event, true}, note.now);
            });
      },
      [&](auto& i) { sink.on_input(std::move(i), note.now); },
  };
  std::visit(give, note.what);
}

Result<InputReader::BlockId> InputReader::id_of(std::string_view block) {
  PackedReader in(block);
  const uint8_t version = in.byte();
  const BlockId id{in.get_word(), in.number()};
  if (block.size() > limits::kWireBytes)
    return fail(ErrorCode::kLimit, fmt::format("condensed block: {} bytes are too many", block.size()));
  if (!in.ok()) return fail(ErrorCode::kInvalid, "condensed block: it ends within its head");
  if (version != kVersion)
    return fail(ErrorCode::kInvalid, fmt::format("condensed block: version {} is not known here", version));
  return id;
}

Status InputReader::read(std::string_view block, InputSink& sink) {
  if (broken_) return fail(ErrorCode::kInvalid, "condensed block: one before it could not be read");
  const auto id = id_of(block);
  if (!id) return tl::unexpected(id.error());
  if (next_ == 0) session_ = id->session;
  if (id->session != session_ || id->number != next_)
    return fail(ErrorCode::kInvalid,
                fmt::format("condensed block: number {} of session {:x} came where {} of {:x} "
                            "was expected",
                            id->number, id->session, next_, session_));
  broken_ = true;  // the session stays broken until the whole block proves valid
  streams_reported_ = streams_.size();
  ranks_reported_ = notes_reported_ = 0;
  flight_ranks_ = kFlightRanksOfBlock;
  loop_.begin_block();
  PackedReader in(block);
  in.byte(), in.get_word(), in.number();
  std::vector<Note> before, after;
  if (!read_notes(in, before))
    return fail(ErrorCode::kInvalid, "condensed block: its notes break their format");
  std::vector<Expanded> lines;
  if (in.byte() != 0) {
    auto read = expander_.expand(in);
    if (!read) return tl::unexpected(read.error());
    lines = std::move(*read);
  }
  if (!read_notes(in, after) || !in.done())
    return fail(ErrorCode::kInvalid, "condensed block: it breaks its format at its end");
  size_t opened = sources_.size();
  for (const Note& note : before) opened += std::holds_alternative<core::SourceOpened>(note.what);
  for (const Expanded& e : lines)
    if (e.batch.source >= opened || opened > limits::kLiveSources)
      return fail(ErrorCode::kInvalid, "condensed block: a source was not announced before its lines");
  for (Note& note : before) apply(note, sink);
  for (Expanded& e : lines) {
    e.batch.source = sources_[e.batch.source];
    sink.on_input(core::LogInput{&e.batch}, e.now);
  }
  for (Note& note : after) apply(note, sink);
  ++next_;
  broken_ = false;
  return {};
}

std::vector<std::string> InputReader::troubles() const {
  std::vector<std::string> out;
  if (expander_.unknown_hits() > 0)
    out.push_back(fmt::format("the agent knows rules that are not known here: {} are left out ({})",
                              counted(expander_.unknown_hits(), "hit"),
                              fmt::join(expander_.unknown_rules(), ", ")));
  if (unknown_notes_ > 0)
    out.push_back(
        fmt::format("{} of a kind that a newer version knows are left out", counted(unknown_notes_, "note")));
  return out;
}

}  // namespace culprit::wire
