#include "app/jobs/trace_batch.h"

#include <fmt/format.h>

#include <iterator>

#include "base/limits.h"
#include "base/text.h"
#include "ingest/stack_json.h"

namespace culprit::app {
namespace {

constexpr const char* kJobEnd = "job_end";
// Limit of reasons per source; a faulty program has few.
constexpr size_t kBrokenKinds = 20;
constexpr size_t kBrokenShown = 80;  // bytes: enough to identify the writer

// Appends the text as one line, so that a client cannot forge additional lines.
void append_line(std::string& out, std::string_view text) {
  for (const char c : text) out += c == '\n' || c == '\r' ? ' ' : c;
}

std::string_view unquoted(std::string_view json) {
  const bool string = json.size() >= 2 && json.front() == '"' && json.back() == '"';
  return string ? json.substr(1, json.size() - 2) : json;
}

TraceLog& log_of(TraceBatch& batch, const ingest::TraceLine& line, bool trusted) {
  const uint32_t rank = line.rank.value_or(logs::kNoRank);
  const auto host = trusted && !line.host.empty() ? std::optional(std::string(line.host)) : std::nullopt;
  for (TraceLog& known : batch.logs)
    if (known.rank == rank && known.host == host) return known;
  batch.logs.push_back({rank, host, {}, {}, 0});
  return batch.logs.back();
}

// A text of several lines, such as a traceback, becomes several lines.
void add_log(TraceLog& log, const ingest::TraceLine& line) {
  std::string_view text = line.text;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  for (const std::string_view one : split(text, '\n')) {
    log.text += one;
    log.text += '\n';
    log.times.push_back(line.time_ns);
  }
}

void add_event(TraceBatch& batch, const ingest::TraceLine& line, std::string_view host) {
  std::vector<EventField> fields;
  const LoopEvent event = ingest::loop_event(line, host, fields);
  batch.loop.add(event);
  if (auto attempts =
          attempts_of(event, kNoTime)) {  // says nothing about a fault, so the log has no line of it
    batch.attempts = std::move(attempts);
    return;
  }
  std::string& text = batch.events.text;
  text += "name=";
  append_line(text, line.name);
  for (const ingest::TraceField& field : line.fields) {
    text += ' ';
    append_line(text, field.name);
    text += '=';
    append_line(text, unquoted(field.json));
    if (line.name == kJobEnd && field.name == "exit_code")
      (field.json == "0" ? batch.succeeded : batch.failed) = true;
  }
  text += '\n';
  batch.events.times.push_back(line.time_ns);
  if (line.name == kJobEnd) batch.ends = true;
}

void add_metric(TraceBatch& batch, const ingest::TraceLine& line, std::string_view host) {
  batch.loop.add(ingest::metric_row(line, host));
  batch.beats.push_back({*line.step, line.rank.value_or(logs::kNoRank)});
}

void add_stack(TraceBatch& batch, std::string_view text, std::string_view host) {
  ingest::StackJson read = ingest::parse_stack_json(text);
  batch.stack_bytes += text.size() + 1;
  ++batch.stack_lines;
  for (StackDump& dump : read.dumps) {
    dump.host = host.empty() ? std::nullopt : std::optional(std::string(host));
    batch.stacks.push_back(std::move(dump));
  }
  std::move(read.refusals.begin(), read.refusals.end(), std::back_inserter(batch.no_stacks));
}

}  // namespace

void BrokenLines::add(const std::string& reason, const Kind& kind) {
  count += kind.count;
  const auto known = kinds.find(reason);
  if (known != kinds.end())
    known->second.count += kind.count;
  else if (kinds.size() < kBrokenKinds)
    kinds.emplace(reason, kind);
}

void BrokenLines::add(const BrokenLines& more) {
  const uint64_t whole = count + more.count;
  for (const auto& [reason, kind] : more.kinds) add(reason, kind);
  count = whole;
}

void BrokenLines::add_line(const std::string& reason, uint64_t offset, std::string_view bytes) {
  add(reason, {1, offset, std::string(bytes.substr(0, kBrokenShown))});
}

std::string BrokenLines::shown(const std::string& reason, const Kind& kind) {
  return fmt::format("{}; the first: {}{}", reason, to_terminal(kind.beginning),
                     kind.beginning.size() == kBrokenShown ? "…" : "");
}

std::vector<Problem> BrokenLines::problems(const std::string& path) const {
  std::vector<Problem> out;
  uint64_t left = count;
  for (const auto& [reason, kind] : kinds) {
    left -= kind.count;
    out.push_back({path, kind.offset,
                   fmt::format("{} not understood: {}", counted(kind.count, "line"), shown(reason, kind))});
  }
  if (left > 0)
    out.push_back({path, std::nullopt,
                   fmt::format("{} more not understood, for other reasons", counted(left, "line"))});
  return out;
}

void read_trace_line(TraceBatch& batch, std::string_view text, const TraceReading& reading) {
  if (trim(text).empty()) return;
  auto line = ingest::parse_trace_line(text);
  if (!line) return batch.broken.add_line(line.error().text, reading.offset, text);
  if (reading.takes && !reading.takes(*line)) return;
  ++batch.understood;
  const std::string_view host = reading.trusted ? line->host : std::string_view();
  const uint32_t rank = line->rank.value_or(logs::kNoRank);
  switch (line->kind) {
    case ingest::TraceKind::kLog: {
      TraceLog& log = log_of(batch, *line, reading.trusted);
      log.bytes += text.size() + 1;
      return add_log(log, *line);
    }
    case ingest::TraceKind::kEvent:
      batch.events.bytes += text.size() + 1;
      return add_event(batch, *line, host);
    case ingest::TraceKind::kMetric:
      batch.loop_bytes += text.size() + 1;
      ++batch.loop_lines;
      return add_metric(batch, *line, host);
    case ingest::TraceKind::kStep:
      if (line->step) batch.beats.push_back({*line->step, rank});
      return;
    case ingest::TraceKind::kPhase:
      batch.phases.push_back({std::string(line->name), line->state == "begin", rank});
      return;
    case ingest::TraceKind::kFinding:
      batch.findings.push_back({ingest::plugin_finding(std::move(*line), host), {}, reading.offset, {}});
      return;
    case ingest::TraceKind::kRas:
      // Only the daemon writes these lines; a user's claim about other ranks is not trusted.
      if (!reading.trusted) return;
      line->ras->host = line->host;
      line->ras->at_ns = line->time_ns;
      batch.ras.push_back({std::string(line->job), {std::move(*line->ras), {}, reading.offset}});
      return;
    case ingest::TraceKind::kStack:
      return add_stack(batch, text, host);
    case ingest::TraceKind::kUnknown:
      return;  // kept as evidence only
  }
}

void TraceLogFeeder::feed(logs::LineFeed& feed, SourceInfo info, TraceLog& lines) const {
  if (lines.text.empty()) return;
  if (lines.rank != logs::kNoRank) info.rank = lines.rank;
  if (lines.host) info.host = std::move(lines.host);
  const auto parse = [&](const TextChunk& chunk) {
    parser.parse(chunk, info, batch);
    for (size_t i = 0; i < batch.lines.size() && i < lines.times.size(); ++i) {
      logs::LineRecord& line = batch.lines[i];
      if (line.own_time || lines.times[i] == kNoTime) continue;
      line.time_ns = lines.times[i];
      line.own_time = 1;
    }
    batch.range_bytes = lines.bytes;
    step(core::LogInput{&batch});
  };
  feed.feed(lines.text, parse);
}

}  // namespace culprit::app
