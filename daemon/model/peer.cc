#include "model/peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/bytes.h"
#include "base/text.h"
#include "model/message_body.h"

namespace culprit::peer {
namespace {

constexpr ProtocolMark kMark = {{'C', 'P'}, "what came is none of our messages"};
constexpr size_t kProgramBytes = 64, kBootIdBytes = 64, kHostBytes = 253, kJobBytes = 256,
                 kAddressBytes = kHostBytes + 8;
// Limit of log kinds in a message: a newer version may have more kinds.
constexpr size_t kLogsMax = 8;
// Limit of sequence numbers, so that each has a successor. One frame per nanosecond would take a century to
// reach it.
constexpr uint64_t kSequenceMax = uint64_t{1} << 62;

using Writer = BodyWriter;
using Reader = BodyReader;

template <class Io, class V>
void version(Io& io, V& v) {
  io.number(v.major);
  io.number(v.minor);
}
bool is_known(Log log) { return static_cast<uint8_t>(log) < kLogs.size(); }
template <class Io, class L>
void log_kind(Io& io, L& log) {
  io.number(log);
  io.require(is_known(log), "there is no such log");
}
// Logs of unknown kinds (of newer versions) are skipped.
template <class Io, class Logs, class Each>
void log_list(Io& io, Logs& logs, Each each) {
  io.list(logs, kLogsMax, [&](auto& log) {
    io.number(log.log);
    each(log);
  });
  if constexpr (!std::is_const_v<Logs>)
    std::erase_if(logs, [](const auto& log) { return !is_known(log.log); });
}
template <class Io, class T>
void wall_clock(Io& io, T& time_ns) {
  io.number(time_ns);
  io.require(time_ns >= 0, "its clock is before 1970");
}
template <class Io, class T>
void maybe_time(Io& io, T& time_ns) {
  io.number(time_ns);
  io.require(time_ns >= 0 || time_ns == kNoTime, "a time is before 1970");
}
template <class Io, class S>
void sentence(Io& io, S& text) {
  io.text(text, kSentenceBytes, "a sentence is too long");
}

template <class Io, class A>
void archived_fields(Io& io, A& archived) {
  io.number(archived.epoch);
  io.number(archived.sequence);
  io.require(archived.sequence <= kSequenceMax, "no log is so long");
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Hello>
void fields(Io& io, M& m) {
  version(io, m.oldest);
  version(io, m.newest);
  io.text(m.program, kProgramBytes, "the program's version is too long");
  io.text(m.host, kHostBytes, "the host's name is too long");
  io.text(m.boot_id, kBootIdBytes, "the boot's name is too long");
  wall_clock(io, m.time_ns);
  log_list(io, m.logs, [&](auto& log) {
    io.number(log.epoch);
    io.number(log.first);
    io.number(log.next);
    io.require(log.first >= 1 && log.first <= log.next && log.next <= kSequenceMax,
               "a log ends before it begins");
  });
  io.require(m.oldest <= m.newest, "its newest version is older than its oldest");
  io.require(is_host_name(m.host), "the host has no usable name");
  for (size_t i = 0; i < m.logs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      io.require(m.logs[i].log != m.logs[j].log && m.logs[i].epoch != m.logs[j].epoch, "a log appears twice");
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Welcome>
void fields(Io& io, M& m) {
  version(io, m.version);
  io.text(m.program, kProgramBytes, "the program's version is too long");
  wall_clock(io, m.time_ns);
  log_list(io, m.logs, [&](auto& mark) {
    io.number(mark.epoch);
    io.flag(mark.known);
    io.number(mark.committed);
  });
  io.number(m.credit);
  if (!io.more()) return;
  std::vector<Archived> archived;
  if constexpr (std::is_const_v<M>) {
    for (const LogMark& mark : m.logs)
      if (mark.archived) archived.push_back({mark.log, mark.epoch, *mark.archived});
  }
  log_list(io, archived, [&](auto& one) { archived_fields(io, one); });
  if constexpr (!std::is_const_v<M>) {
    for (LogMark& mark : m.logs)
      for (const Archived& one : archived)
        if (one.log == mark.log && one.epoch == mark.epoch) mark.archived = one.sequence;
  }
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Frame>
void fields(Io& io, M& m) {
  log_kind(io, m.log);
  io.number(m.kind);
  io.require(m.kind <= FrameKind::kCheckpointEnd, "there is no such kind of frame");
  io.number(m.sequence);
  io.require(m.kind != FrameKind::kData || m.sequence >= 1, "frames count from 1");
  io.require(m.sequence <= kSequenceMax, "no log is so long");
  io.bytes(m.bytes);
  io.require(!m.bytes.empty(), "the frame is empty");
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Skipped>
void fields(Io& io, M& m) {
  log_kind(io, m.log);
  io.number(m.from);
  io.number(m.to);
  io.require(m.from >= 1 && m.from <= m.to && m.to <= kSequenceMax, "it skips nothing");
  sentence(io, m.reason);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Ack>
void fields(Io& io, M& m) {
  log_kind(io, m.log);
  io.number(m.epoch);
  io.number(m.sequence);
  io.number(m.credit);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Status>
void fields(Io& io, M& m) {
  wall_clock(io, m.time_ns);
  maybe_time(io, m.started_ns);
  io.number(m.read_bytes);
  io.number(m.sources);
  io.number(m.dropped_bytes);
  io.number(m.dropped_records);
  io.flag(m.healthy);
  sentence(io, m.trouble);
  io.list(m.jobs, kStatusJobs, [&](auto& job) { io.text(job, kJobBytes, "a job's name is too long"); });
  log_list(io, m.logs, [&](auto& log) {
    io.number(log.bytes);
    io.number(log.unacked_frames);
    maybe_time(io, log.oldest_ns);
  });
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Wanted>
void fields(Io& io, M& m) {
  io.number(m.from_ns);
  io.number(m.to_ns);
  io.require(m.from_ns <= m.to_ns, "it ends before it begins");
  sentence(io, m.reason);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Ping> || std::is_same_v<std::remove_const_t<M>, Pong>
void fields(Io& io, M& m) { io.number(m.stamp); }

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Refused>
void fields(Io& io, M& m) {
  io.number(m.code);
  sentence(io, m.sentence);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Bye>
void fields(Io& io, M& m) { sentence(io, m.sentence); }

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, StepsWanted>
void fields(Io& io, M& m) {
  io.text(m.job, kJobBytes, "the job's name is too long");
  io.list(m.steps, kStepsWanted, [&](auto& step) { io.number(step); });
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, StacksWanted>
void fields(Io& io, M& m) {
  constexpr uint32_t kMoves = 1u << 31, kRasOnly = 1u << 30;
  io.text(m.job, kJobBytes, "the job's name is too long");
  uint32_t word = (m.sample & (kRasOnly - 1)) | (m.moves ? kMoves : 0) | (m.ras_only ? kRasOnly : 0);
  io.number(word);
  if constexpr (!std::is_const_v<M>) {
    m.sample = word & (kRasOnly - 1);
    m.moves = (word & kMoves) != 0;
    m.ras_only = (word & kRasOnly) != 0;
  }
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, EndTasks>
void fields(Io& io, M& m) {
  io.text(m.job, kJobBytes, "the job's name is too long");
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.number(m.grace_ms);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, CheckHost>
void fields(Io& io, M& m) {
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.number(m.within_ms);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, CheckResult>
void fields(Io& io, M& m) {
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.number(m.answer);
  io.require(m.answer <= CheckAnswer::kNoAnswer, "there is no such answer");
  sentence(io, m.why);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Advise>
void fields(Io& io, M& m) {
  io.text(m.job, kJobBytes, "the job's name is too long");
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.number(m.uid);
  io.number(m.advice.id);
  io.number(m.advice.kind);
  io.number(m.advice.argument);
  io.number(m.advice.effective_step);
  io.number(m.advice.lasts_ms);
  io.number(m.advice.reason);
  io.require(static_cast<uint32_t>(m.advice.reason) < kAdviceReasons, "there is no such reason");
  io.require(check_advice(m.advice).has_value(), "the advice is none");
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, AlignHost>
void fields(Io& io, M& m) {
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.number(m.within_ms);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, AlignResult>
void fields(Io& io, M& m) {
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.list(m.rows, kAlignRows, [&](auto& row) {
    io.text(row.at, kAlignBytes, "a device's name is too long");
    io.text(row.kind, kAlignBytes, "a device's class is too long");
    io.text(row.digest, kAlignBytes, "a digest is too long");
    io.flag(row.stable);
  });
  io.flag(m.later);
  sentence(io, m.why);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, AlignJudged>
void fields(Io& io, M& m) {
  io.text(m.decision, kJobBytes, "the decision's name is too long");
  io.number(m.answer);
  io.require(m.answer <= CheckAnswer::kNoAnswer, "there is no such answer");
  sentence(io, m.why);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, JobOwners>
void fields(Io& io, M& m) {
  io.list(m.others, kStatusJobs, [&](auto& one) {
    io.text(one.job, kJobBytes, "the job's name is too long");
    io.text(one.address, kAddressBytes, "the address is too long");
    io.number(one.epoch);
  });
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Archived>
void fields(Io& io, M& m) {
  log_kind(io, m.log);
  archived_fields(io, m);
}

template <class Io, class M>
requires std::is_same_v<std::remove_const_t<M>, Unknown>
void fields(Io&, M&) {}

// The type on the wire is the index in Message: existing entries stay, new ones are appended.
constexpr const char* kNames[] = {
    "unknown message", "hello",         "welcome",      "frame",      "skipped",      "ack",
    "status",          "wanted",        "ping",         "pong",       "refused",      "bye",
    "steps wanted",    "stacks wanted", "end tasks",    "check host", "check result", "advise",
    "align host",      "align result",  "align judged", "job owners", "archived"};
static_assert(std::size(kNames) == std::variant_size_v<Message>);

template <size_t I = 1>
Result<Message> decode_as(uint16_t type, std::string_view body) {
  if constexpr (I == std::variant_size_v<Message>) {
    return Unknown{type};
  } else {
    if (type != I) return decode_as<I + 1>(type, body);
    std::variant_alternative_t<I, Message> message;
    Reader reader(body);
    fields(reader, message);
    if (const char* wrong = reader.wrong())
      return fail(ErrorCode::kInvalid, fmt::format("a {} cannot be read: {}", kNames[I], wrong));
    return message;
  }
}

}  // namespace

const char* name_of(Log log) { return log == Log::kCondensed ? "condensed" : "evidence"; }

const char* name_of(const Message& message) { return kNames[message.index()]; }

const char* name_of(Refusal code) {
  constexpr const char* kCodes[] = {"other",    "protocol", "version", "identity",  "host_taken",
                                    "replaced", "too_many", "timeout", "bad_frame", "unavailable"};
  static_assert(std::size(kCodes) == kRefusals);
  const auto number = static_cast<size_t>(code);
  return kCodes[number < kRefusals ? number : 0];
}

Result<Version> choose_version(Version oldest, Version newest) {
  const Version common = std::min(newest, kNewest);
  if (common.major >= oldest.major && common.major >= kOldest.major) return common;
  return fail(ErrorCode::kInvalid,
              fmt::format("it speaks protocol {} to {}, this program {} to {}: {}", oldest.major,
                          newest.major, kOldest.major, kNewest.major,
                          newest.major < kOldest.major ? "it is too old" : "it is too new"));
}

bool is_host_name(std::string_view name) {
  const auto fits = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= kHostBytes && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), fits);
}

std::string encode(const Message& message) {
  const auto* frame = std::get_if<Frame>(&message);
  std::string out =
      begin_message(kMark, static_cast<uint16_t>(message.index()), frame ? frame->bytes.size() : 0);
  Writer writer(out);
  std::visit([&](const auto& value) { fields(writer, value); }, message);
  end_message(out);
  return out;
}

Result<Message> decode(uint16_t type, std::string_view body) { return decode_as(type, body); }

Splitter::Splitter() : MessageBuffer(kMark, kFirstMessageBytes) {}

Result<std::optional<Message>> Splitter::next() {
  const auto framed = next_frame();
  if (!framed) return tl::unexpected(framed.error());
  if (!*framed) return std::optional<Message>();
  auto message = decode((*framed)->type, (*framed)->body);
  if (!message) return tl::unexpected(message.error());
  return std::optional<Message>(std::move(*message));
}

}  // namespace culprit::peer
