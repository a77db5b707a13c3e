#include "app/check/align_run.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/check/host_check.h"
#include "base/text.h"
#include "io/installed.h"
#include "io/program.h"

namespace culprit::app {
namespace {

constexpr const char* kAlignProgram = "culprit-node-check";
constexpr size_t kAlignOutput = 1 << 20, kAlignLine = 4096;

// A text that is too long, or not there, is empty.
std::string align_text(simdjson::dom::object object, const char* key) {
  std::string_view out;
  if (object.at_key(key).get(out) != simdjson::SUCCESS || out.size() > peer::kAlignBytes) return {};
  return to_terminal(out);
}

std::optional<peer::AlignRow> align_row(simdjson::dom::parser& parser, std::string_view line) {
  simdjson::dom::object object;
  if (!line.starts_with('{') || line.size() > kAlignLine ||
      parser.parse(simdjson::padded_string(line)).get(object) != simdjson::SUCCESS ||
      align_text(object, "name") != "align")
    return std::nullopt;
  peer::AlignRow out;
  out.at = align_text(object, "at");
  out.kind = align_text(object, "class");
  out.digest = align_text(object, "digest");
  bool stable = true;
  if (object.at_key("stable").get(stable) == simdjson::SUCCESS) out.stable = stable;
  return out.at.empty() || out.kind.empty() ? std::nullopt : std::optional(std::move(out));
}

}  // namespace

std::vector<peer::AlignRow> align_rows(std::string_view output) {
  simdjson::dom::parser parser;
  std::vector<peer::AlignRow> out;
  while (!output.empty()) {
    const size_t size = std::min(output.find('\n'), output.size());
    auto row = align_row(parser, output.substr(0, size));
    output.remove_prefix(std::min(size + 1, output.size()));
    if (!row) continue;
    const auto known = std::ranges::find(out, row->at, &peer::AlignRow::at);
    if (known != out.end())
      *known = std::move(*row);
    else if (out.size() < peer::kAlignRows)
      out.push_back(std::move(*row));
  }
  return out;
}

AlignRunOptions align_run_options(const Config& config) {
  AlignRunOptions out;
  out.command = config.check.align;
  out.memory = config.check.align_memory;
  out.within_ns = config.check.within_ns;
  return out;
}

AlignRun run_align(const AlignRunOptions& options) {
  io::ProgramRun run;
  run.path = options.program.empty() ? io::helper_path(kAlignProgram) : options.program;
  run.words = {kAlignProgram, "run", fmt::format("{}", options.within_ns / kNsPerMs),
               fmt::format("{}", options.memory)};
  for (std::string& word : words_of(options.command)) run.words.push_back(std::move(word));
  run.environment = check_environment();
  run.within_ns = options.within_ns;
  run.output_max = kAlignOutput;
  run.stop = options.stop;
  run.ends_early = options.ends_early;
  run.last_error = true;
  const io::ProgramEnd end = io::run_program(run);
  AlignRun out;
  if (!end.is_success()) return out.why = "check.align " + end.reason, out;
  out.rows = align_rows(end.output);
  if (out.rows.empty()) out.why = "check.align printed no row";
  return out;
}

}  // namespace culprit::app
