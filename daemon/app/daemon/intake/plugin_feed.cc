#include "app/daemon/intake/plugin_feed.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "core/logs/mask.h"
#include "culprit/plugin.h"
#include "ingest/live/trace_lines.h"
#include "model/comm.h"

namespace culprit::app {
namespace {

constexpr std::string_view kHole = "<*>", kBlanks = " \t";
constexpr std::string_view kHostMetric = "host/";

// The kinds of events that a source can have.
uint64_t kinds_of(OriginKind kind) {
  switch (kind) {
    case OriginKind::kFile:
      return CULPRIT_BIT(CULPRIT_EVENT_LOG);
    case OriginKind::kKernel:
    case OriginKind::kJournal:  // the kernel's entries alone
      return CULPRIT_BIT(CULPRIT_EVENT_KERNEL);
    case OriginKind::kRing:
      return CULPRIT_BIT(CULPRIT_EVENT_COMM);
    case OriginKind::kSocket:
      return CULPRIT_BIT(CULPRIT_EVENT_LOG) | CULPRIT_BIT(CULPRIT_EVENT_METRIC) |
             CULPRIT_BIT(CULPRIT_EVENT_STEP) | CULPRIT_BIT(CULPRIT_EVENT_STACK) |
             CULPRIT_BIT(CULPRIT_EVENT_COUNTER);
    default:
      return 0;
  }
}

// The end of `words` in `text`, searched from `at`; a space matches any white space. npos: not found.
// `begin`: start of the match.
size_t find_words(std::string_view text, std::string_view words, size_t at, size_t& begin) {
  for (; at <= text.size(); ++at) {
    size_t end = at;
    bool same = true;
    for (size_t i = 0; same && i < words.size(); ++i) {
      if (words[i] == ' ') {
        const size_t next = std::min(text.find_first_not_of(kBlanks, end), text.size());
        same = next > end || end == text.size() || end == 0;
        end = next;
      } else {
        same = end < text.size() && text[end] == words[i];
        ++end;
      }
    }
    if (!same) continue;
    begin = at;
    return end;
  }
  return std::string_view::npos;
}

void write_line(plughost::EventWriter& out, const plughost::EventHead& head, std::string_view text,
                std::string_view message, uint64_t line) {
  const std::string form = logs::form_text(message);
  out.line(head, text, form, parameters_of(form, message), line);
}

}  // namespace

std::vector<std::string_view> parameters_of(std::string_view form, std::string_view message) {
  std::vector<std::string_view> out;
  size_t at = 0;  // position in the message, after the text before the hole
  bool open = false;
  const auto close = [&](std::string_view words) {
    size_t begin = message.size(), end = message.size();
    if (!words.empty()) end = find_words(message, words, at, begin);
    if (end == std::string_view::npos) return false;
    if (open) out.push_back(trim(message.substr(at, begin - at)));
    at = end;
    return true;
  };
  while (!form.empty()) {
    const size_t hole = form.find(kHole);
    if (hole > 0 && !close(form.substr(0, hole))) break;
    open = hole != std::string_view::npos;
    form.remove_prefix(open ? hole + kHole.size() : form.size());
  }
  if (open) close("");
  return out;
}

PluginFeed::PluginFeed(std::string host) : host_(std::move(host)), parser_(logs::ParseOptions{}) {}

void PluginFeed::add(const PieceBatch& batch, uint64_t kinds, plughost::EventWriter& out) {
  for (const StreamInfo& info : batch.opened) {
    if (kinds_of(info.kind) == 0) continue;
    Source source;
    source.live.info = info;
    source.info.file = info.path;
    source.info.host = host_;
    sources_.insert_or_assign(info.id, std::move(source));
  }
  for (const Piece& piece : batch.pieces) {
    const auto known = sources_.find(piece.stream);
    if (known == sources_.end()) continue;
    Source& source = known->second;
    const OriginKind kind = source.live.info.kind;
    if (kinds & kinds_of(kind)) {
      if (kind == OriginKind::kFile) add_lines(source, piece, out);
      if (kind == OriginKind::kKernel || kind == OriginKind::kJournal) add_host_lines(source, piece, out);
      if (kind == OriginKind::kSocket) add_trace(source, piece, kinds, out);
      if (kind == OriginKind::kRing) add_records(source, piece, out);
    }
    if (piece.ends) sources_.erase(known);
  }
}

plughost::EventHead PluginFeed::head_of(const Source& source, uint32_t kind, TimeNs time) const {
  const StreamInfo& info = source.live.info;
  plughost::EventHead head;
  head.kind = kind;
  head.time_ns = time;
  head.job = info.job;
  head.host = host_;
  head.source = info.kind == OriginKind::kSocket    ? "trace"
                : info.kind == OriginKind::kRing    ? "ring"
                : info.kind == OriginKind::kKernel  ? "kernel"
                : info.kind == OriginKind::kJournal ? "kernel"
                                                    : std::string_view(info.path);
  return head;
}

void PluginFeed::add_lines(Source& source, const Piece& piece, plughost::EventWriter& out) {
  const auto take = [&](const TextChunk& chunk) {
    parser_.parse(chunk, source.info, batch_);
    size_t begin = 0;
    for (const logs::LineRecord& line : batch_.lines) {
      const size_t end = std::min(chunk.bytes.find('\n', begin), chunk.bytes.size());
      const std::string_view text = chunk.bytes.substr(begin, end - begin);
      begin = end + 1;
      if (line.form == logs::kNoForm) continue;
      const logs::WriterKey& writer = batch_.writers[batch_.groups[line.group].writer];
      plughost::EventHead head =
          head_of(source, CULPRIT_EVENT_LOG, line.time_ns == kNoTime ? piece.time_ns : line.time_ns);
      if (!writer.host.empty()) head.host = writer.host;
      if (writer.rank != logs::kNoRank && !writer.task) head.rank = writer.rank;
      if (writer.local != logs::kNoRank) head.device = writer.local;
      write_line(out, head, text, batch_.message(line), 0);
    }
  };
  if (piece.gap) source.lines.break_line(take);
  source.lines.feed(piece.bytes, take);
  if (piece.ends) source.lines.end(take);
}

void PluginFeed::add_host_lines(Source& source, const Piece& piece, plughost::EventWriter& out) {
  for (const HostLine& line : read_host_lines(source.live, piece.bytes, piece.offset)) {
    if (line.service) continue;
    const std::string_view text = trim(line.text);
    write_line(out, head_of(source, CULPRIT_EVENT_KERNEL, line.time_ns), text, text, 0);
  }
}

void PluginFeed::add_trace(Source& source, const Piece& piece, uint64_t kinds, plughost::EventWriter& out) {
  std::string& rest = source.live.rest;
  if (piece.gap) rest.clear();
  const auto wants = [kinds](uint32_t kind) { return (kinds & CULPRIT_BIT(kind)) != 0; };
  const auto one = [&](std::string_view text) {
    const auto line = ingest::parse_trace_line(text);
    if (!line) return;
    const auto head = [&](uint32_t kind) {
      plughost::EventHead out_head =
          head_of(source, kind, line->time_ns == kNoTime ? piece.time_ns : line->time_ns);
      if (line->rank) out_head.rank = *line->rank;
      return out_head;
    };
    if (line->kind == ingest::TraceKind::kLog && wants(CULPRIT_EVENT_LOG))
      write_line(out, head(CULPRIT_EVENT_LOG), line->text, line->text, 0);
    if (line->kind == ingest::TraceKind::kStep && wants(CULPRIT_EVENT_STEP))
      out.step(head(CULPRIT_EVENT_STEP), "", line->step.value_or(CULPRIT_NONE), CULPRIT_STEP_AT);
    if (line->kind == ingest::TraceKind::kPhase && wants(CULPRIT_EVENT_STEP))
      out.step(head(CULPRIT_EVENT_STEP), line->name, line->step.value_or(CULPRIT_NONE),
               line->state == "begin" ? CULPRIT_STEP_BEGIN : CULPRIT_STEP_END);
    if (line->kind == ingest::TraceKind::kMetric)
      for (const MetricValue& v : line->values) {
        const bool of_host = v.name.starts_with(kHostMetric);
        if (of_host && wants(CULPRIT_EVENT_COUNTER))
          out.counter(head(CULPRIT_EVENT_COUNTER), v.name.substr(kHostMetric.size()), v.value);
        if (!of_host && wants(CULPRIT_EVENT_METRIC))
          out.metric(head(CULPRIT_EVENT_METRIC), v.name, v.value, line->step.value_or(0));
      }
    if (line->kind == ingest::TraceKind::kStack && wants(CULPRIT_EVENT_STACK)) {
      std::vector<plughost::StackThread> threads;
      for (const ingest::TraceThread& t : line->threads) threads.push_back({t.name, t.frames});
      out.stack(head(CULPRIT_EVENT_STACK), threads);
    }
  };
  std::string_view bytes = piece.bytes;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    const bool fits = rest.size() + part.size() <= limits::kLineBytes;
    if (fits) rest += part;
    if (end == std::string_view::npos) {
      if (!fits) rest.assign(limits::kLineBytes + 1, ' ');  // like the socket, which refuses such a line
      return;
    }
    if (fits) one(rest);
    rest.clear();
    bytes.remove_prefix(end + 1);
  }
}

void PluginFeed::add_records(const Source& source, const Piece& piece, plughost::EventWriter& out) {
  for (size_t at = 0; at + kCommRecordBytes <= piece.bytes.size(); at += kCommRecordBytes) {
    CommRecord record;
    std::memcpy(&record, piece.bytes.data() + at, kCommRecordBytes);
    if (!comm_record_fault(record).empty()) continue;
    const auto time = static_cast<TimeNs>(std::min<uint64_t>(record.start_ns, limits::kCommTimeMax));
    out.comm(head_of(source, CULPRIT_EVENT_COMM, time), record);
  }
}

}  // namespace culprit::app
