#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/rules.h"
#include "base/limits.h"
#include "core/logs/header.h"
#include "core/rules/matcher.h"
#include "ingest/text_reader.h"

namespace culprit::app {
namespace {

// Hits wait until all files are read, for their order in time. Beyond this they are counted and left out.
constexpr size_t kHitBytes = 256 << 20;
constexpr size_t kHitOwnBytes = sizeof(RuleFired) + 100;

class HitReader {
 public:
  HitReader(const std::vector<LogFile>& files, int32_t utc_offset_s, const rules::Ruleset& set,
            RuleMatches& out)
      : files_(files), utc_offset_s_(utc_offset_s), scanner_(set.matcher()), out_(out), at_(files.size()) {}

  void take(const logs::LogBatch& batch) {
    At& at = at_[batch.source];
    logs::HeaderParser headers({utc_offset_s_, files_[batch.source].info.modified_ns});
    scanner_.begin(batch.text);
    for (const logs::LineRecord& line : batch.lines) {
      ++at.line;
      if (line.time_ns != kNoTime) at.time = line.time_ns;
      const size_t end = line.offset + line.size;
      if (line.size == 0 || !scanner_.wants(end)) continue;
      look(batch, line, headers);
    }
    out_.lines += batch.lines.size();
  }

 private:
  struct At {
    uint64_t line = 0;
    TimeNs time = kNoTime;
  };

  void look(const logs::LogBatch& batch, const logs::LineRecord& line, logs::HeaderParser& headers) {
    // The line from its beginning: only its header tells a kernel's message.
    const size_t before = line.offset ? batch.text.rfind('\n', line.offset - 1) : batch.text.npos;
    const size_t begin = before == batch.text.npos ? 0 : before + 1;
    const size_t end = line.offset + line.size;
    const logs::Header header = headers.parse(batch.text.substr(begin, end - begin));
    const bool kernel = header.kernel_time || files_[batch.source].info.kind == SourceKind::kKernel;
    const auto source = kernel ? rules::Source::kKernel : rules::Source::kLog;
    for (const rules::RuleMatch& m : scanner_.match(begin, end, batch.message(line), source))
      keep(m, batch, line, header, source);
  }

  void keep(const rules::RuleMatch& match, const logs::LogBatch& batch, const logs::LineRecord& line,
            const logs::Header& header, rules::Source source) {
    RuleFired out;
    out.rule = out.hit.rule = match.rule;
    out.file = batch.source;
    out.line = at_[batch.source].line;
    out.hit.time_ns = at_[batch.source].time != kNoTime ? at_[batch.source].time : header.time_ns;
    out.hit.source = source;
    out.hit.text = batch.message(line).substr(0, limits::kEvidenceText);
    for (std::string_view hole : match.holes) out.hit.holes.emplace_back(hole);
    const logs::WriterKey& writer = batch.writers[line.writer];
    out.hit.host = writer.host;
    if (writer.rank != logs::kNoRank) out.hit.rank = writer.rank;
    if (writer.local != logs::kNoRank) out.hit.device = writer.local;
    bytes_ += kHitOwnBytes + out.hit.text.size();
    if (bytes_ > kHitBytes)
      ++out_.dropped;
    else
      out_.fired.push_back(std::move(out));
  }

  const std::vector<LogFile>& files_;
  int32_t utc_offset_s_;
  rules::Scanner scanner_;
  RuleMatches& out_;
  std::vector<At> at_;  // by file
  size_t bytes_ = 0;
};

// Puts hits in order of time. One without any stands behind the hit before it.
void order_by_time(std::vector<RuleFired>& hits) {
  std::vector<std::pair<TimeNs, size_t>> order;
  TimeNs time = kNoTime;
  uint32_t file = 0;
  for (size_t i = 0; i < hits.size(); ++i) {
    if (hits[i].file != file) time = kNoTime;
    file = hits[i].file;
    if (hits[i].hit.time_ns != kNoTime) time = hits[i].hit.time_ns;
    order.emplace_back(time, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<RuleFired> sorted;
  sorted.reserve(hits.size());
  for (const auto& [when, i] : order) sorted.push_back(std::move(hits[i]));
  hits = std::move(sorted);
}

}  // namespace

RuleMatches match_rules(const std::vector<LogFile>& files, const PipelineOptions& options,
                        std::shared_ptr<rules::Ruleset> set, ReadProgress& progress) {
  RuleMatches out;
  HitReader reader(files, options.parse.utc_offset_s, *set, out);
  parse_logs(
      files, options, [&](logs::LogBatch& batch) { reader.take(batch); }, out.problems, progress);
  order_by_time(out.fired);
  rules::RuleRun run(std::move(set));
  std::erase_if(out.fired, [&](RuleFired& f) {
    const auto firing = run.add(f.hit);
    if (firing) f.firing = *firing;
    return !firing;
  });
  out.troubles = run.troubles();
  out.dropped += run.dropped();
  std::stable_sort(out.fired.begin(), out.fired.end(), [](const RuleFired& a, const RuleFired& b) {
    return std::tie(a.file, a.line, a.rule) < std::tie(b.file, b.line, b.rule);
  });
  return out;
}

Result<LineOfFile> read_line(const std::string& place) {
  LineOfFile out;
  const size_t colon = place.rfind(':');
  if (colon != place.npos && colon > 0) {
    const char* end = place.data() + place.size();
    const auto [stop, error] = std::from_chars(place.data() + colon + 1, end, out.line);
    if (error != std::errc() || stop != end) out.line = 0;
  }
  if (out.line == 0)
    return fail(ErrorCode::kInvalid, fmt::format("{}: not of the form FILE:LINE, with lines from 1", place));
  out.file = place.substr(0, colon);
  const ingest::SourceList list = ingest::list_sources({out.file});
  if (!list.failed_arguments.empty()) return tl::unexpected(list.failed_arguments[0]);
  if (list.files.size() != 1 || list.files[0].argument != list.files[0].path)
    return fail(ErrorCode::kInvalid, fmt::format("{}: no file", out.file));
  auto reader = ingest::StreamReader::open(list.files[0]);
  if (!reader) return tl::unexpected(reader.error());
  uint64_t line = 1;
  ingest::ChunkBuffer buffer;
  while (auto chunk = reader->next(std::move(buffer))) {
    std::string_view text = chunk->bytes;
    for (; !text.empty() && line < out.line; ++line)
      text.remove_prefix(
          std::min(text.size(), text.find('\n') == text.npos ? text.npos : text.find('\n') + 1));
    if (!text.empty()) {
      out.text = text.substr(0, text.find('\n'));
      return out;
    }
    buffer = std::move(*chunk);
  }
  if (reader->problem())
    return fail(ErrorCode::kIo, fmt::format("{}: {}", out.file, reader->problem()->what));
  return fail(ErrorCode::kNotFound,
              fmt::format("{}: there is no line {}: the last one is {}", out.file, out.line, line - 1));
}

}  // namespace culprit::app
