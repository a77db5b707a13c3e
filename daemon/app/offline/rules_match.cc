#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "app/config/rule_files.h"
#include "app/offline/diagnose.h"
#include "ingest/text_reader.h"

namespace culprit::app {

RuleMatches match_rules(const JobFiles& files, const PipelineOptions& options,
                        std::shared_ptr<rules::Ruleset> set, ReadProgress& progress) {
  RuleMatches out;
  core::Engine engine({files.job, {}, {}, std::move(set)});
  out.problems = read_logs(files.logs, options, engine, progress);
  out.fired = engine.firings();
  out.lines = engine.log().lines();
  for (std::string& what : engine.drop_sentences())
    out.problems.push_back({"", std::nullopt, std::move(what)});
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
