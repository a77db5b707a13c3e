#include <fmt/format.h>

#include <algorithm>

#include "base/hash.h"
#include "base/text.h"
#include "cli/reading.h"
#include "cli/verbs.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kTemplatesExamples = R"(
Examples:
  culprit templates runs/failed | head
  culprit templates --format json runs/failed | jq -r 'select(.count == 1) | .template')";

struct TemplatesOptions {
  ReadingOptions reading;
  std::string format = "text";
  bool lines = false;
};

// Records the form of each line while the engine ingests batches.
struct Mined {
  core::Engine engine;
  std::vector<uint32_t> form_of_line;  // logs::kNoForm for a blank line
};

void read(const app::JobFiles& files, const TemplatesOptions& o, app::ReadProgress& progress, Mined& mined) {
  std::vector<core::Input> opened;
  for (const app::LogFile& f : files.logs) opened.emplace_back(core::SourceOpened{f.info});
  mined.engine.step(opened, kNoTime);
  const app::TakeBatch take = [&](logs::LogBatch& batch) {
    core::Input input = core::LogInput{&batch};
    mined.engine.step({&input, 1}, kNoTime);
    if (!o.lines) return;
    const std::vector<uint32_t>& forms = mined.engine.log().last_forms();
    for (const logs::LineRecord& line : batch.lines)
      mined.form_of_line.push_back(line.form == logs::kNoForm ? logs::kNoForm : forms[line.form]);
  };
  const std::vector<Problem> problems =
      app::parse_logs(files.logs, {o.reading.diagnose.parse, o.reading.diagnose.threads}, take, progress);
  for (const Problem& p : problems)
    report_error(p.what.starts_with(p.file) ? p.what : p.file + ": " + p.what);
}

bool print_lines(const Mined& mined, const logs::JobLog& log) {
  std::string out;
  for (uint32_t form : mined.form_of_line) {
    out += form == logs::kNoForm ? "-" : hex64(log.miner().name(log.forms()[form].cluster));
    out += '\n';
    if (out.size() > 1 << 20) {
      if (!print(out)) return false;
      out.clear();
    }
  }
  return print(out);
}

bool print_templates(const logs::JobLog& log, bool json) {
  std::vector<logs::ClusterId> ids = log.clusters();
  std::stable_sort(ids.begin(), ids.end(), [&](logs::ClusterId a, logs::ClusterId b) {
    return log.templates()[a].count > log.templates()[b].count;
  });
  std::string out;
  for (logs::ClusterId id : ids) {
    const std::string name = hex64(log.miner().name(id));
    const uint64_t count = log.templates()[id].count;
    const std::string& text = log.miner().text(id);
    if (json) {
      JsonWriter w;
      w.object([&] {
        w.field("id", name);
        w.field("template", text);
        w.field("count", count);
      });
      out += w.finish() + "\n";
    } else {
      out += fmt::format("{}  {:>9}  {}\n", name, count, to_terminal(text));
    }
  }
  return print(out);
}

int templates(TemplatesOptions& o) {
  if (Status status = resolve(o.reading); !status) return report_error(status.error().text), kUnable;
  app::ReadProgress progress;
  auto watch = std::make_unique<Watch>(progress, !o.reading.quiet);
  auto files = app::collect_files(o.reading.diagnose.paths, o.reading.diagnose, progress);
  if (!files) return report_error(files.error().text), kUnable;
  for (const Error& error : files->errors) report_error(error.text);
  progress.bytes_total = files->bytes;
  Mined mined{core::Engine({files->job, {}, {}}), {}};
  read(*files, o, progress, mined);
  watch.reset();
  const logs::JobLog& log = mined.engine.settled_log();
  if (!(o.lines ? print_lines(mined, log) : print_templates(log, o.format == "json"))) return kUnable;
  return files->errors.empty() ? kDone : kUnable;
}

}  // namespace

void add_templates(Command& app, Run& run) {
  auto o = std::make_shared<TemplatesOptions>();
  Command* verb = app.add_subcommand("templates", "Print the message templates of logs, most frequent first");
  verb->footer(kTemplatesExamples);
  add_reading_options(*verb, o->reading);
  verb->add_option("--format,-f", o->format, "text, or json: one object a line")
      ->one_of({"text", "json"})
      ->show_default();
  verb->add_flag("--lines", o->lines,
                 "Print the id of each input line's template instead, - for a blank line");
  verb->callback([o, &run] { run = [o] { return templates(*o); }; });
}

}  // namespace culprit::cli
