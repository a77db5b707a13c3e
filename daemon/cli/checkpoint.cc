#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "app/checkpoint/look.h"
#include "app/run/folder.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/checkpoint_copies.h"
#include "cli/environment.h"
#include "cli/layout.h"
#include "cli/remote.h"
#include "cli/rules.h"
#include "cli/verbs.h"
#include "cli/zone.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

using checkpoint::Finding;
using checkpoint::Judged;
using checkpoint::State;

constexpr const char* kExamples = R"(
Examples:
  culprit checkpoint list runs/llama/checkpoints
  culprit checkpoint verify runs/llama/checkpoints
  culprit checkpoint verify runs/llama/checkpoints --fall-back)";

constexpr const char* kListExamples = R"(
Headers and sizes decide; `verify` reads every byte.

Examples:
  culprit checkpoint list
  culprit checkpoint list runs/llama/checkpoints --json | jq -r '.series[].newest_whole'

Exit status: 0, or 2 where nothing could be read or there is no checkpoint.)";

constexpr const char* kVerifyExamples = R"(
States: whole; writing (something in it changed within 60 s); torn (a part is missing, short, unfinished or
written over); damaged (bytes contradict a checksum, or changed since they were first read); unread. No pickle
is executed, no link followed, nothing changed without --fall-back. Formats: torch.save, its old form, DCP,
safetensors, Megatron, DeepSpeed, Hugging Face Trainer, Lightning and NeMo, Orbax, torchsnapshot.

Examples:
  culprit checkpoint verify checkpoints --resumed-from 0       # was a newer step whole?
  culprit checkpoint verify checkpoints --fall-back && sbatch train.sbatch
  RESUME=$(culprit checkpoint verify checkpoints --newest) && python train.py --resume "$RESUME"

Exit status: 0; 1 where a checkpoint is torn or damaged, or a finding is an alarm (with --newest: where none is
whole; with --fall-back: where it could not be done); 2 where nothing could be read or there is no checkpoint.)";

struct CheckpointVerb {
  std::string path = ".";
  std::string format = "text";
  std::string timezone = "local";
  bool json = false, bytes = false, fall_back = false, newest = false, ended = false, direct = false;
  bool no_memory = false;
  std::optional<uint64_t> resumed_from;
};

// Next to the folders of runs.
std::string memory_folder() {
  const std::string runs = app::default_run_root(variable);
  const size_t slash = runs.rfind('/');
  return slash == runs.npos ? "" : runs.substr(0, slash) + "/checkpoints";
}

app::CheckpointOptions options_of(const CheckpointVerb& o) {
  app::CheckpointOptions out;
  out.bytes = o.bytes;
  out.settled = o.ended;
  out.direct = o.direct;
  out.now = wall_now();
  if (o.resumed_from) out.resumed_from = static_cast<int64_t>(*o.resumed_from);
  if (!o.no_memory) out.state_folder = memory_folder();
  if (o.bytes && isatty(2))
    out.progress = [](const std::string& path, uint64_t bytes) {
      std::fprintf(stderr, "reading %s, %s\n", path.empty() ? "the folder" : to_terminal(path).c_str(),
                   format_bytes(bytes).c_str());
    };
  return out;
}

// ---- JSON

void write_checkpoint(JsonWriter& w, const Judged& judged) {
  const checkpoint::Checked& checked = judged.checked;
  w.object([&] {
    w.field("path", judged.found.path);
    w.field("format", checkpoint::to_string(judged.found.format));
    w.field("state", checkpoint::to_string(checked.state));
    w.field("step", checked.step);
    w.field("files", checked.files);
    w.field("bytes", checked.bytes);
    w.time("changed_ns", checked.changed_ns);
    w.field("problems_total", checked.problems_total);
    w.list("problems", checked.problems, [&](const checkpoint::Problem& problem) {
      w.object([&] {
        w.field("fault", checkpoint::to_string(problem.fault));
        w.field("file", problem.file);
        w.field("text", problem.text);
      });
    });
  });
}

void write_series(JsonWriter& w, const app::SeriesLook& series) {
  const Judged* newest = checkpoint::newest_whole(series.checkpoints);
  w.object([&] {
    w.field("folder", series.folder);
    w.field("newest_whole", newest ? std::optional<std::string>(newest->found.path) : std::nullopt);
    w.field("newest_whole_step", newest ? newest->checked.step : std::nullopt);
    w.list("checkpoints", series.checkpoints, [&](const Judged& judged) { write_checkpoint(w, judged); });
    w.list("pointers", series.pointers, [&](const checkpoint::Pointer& pointer) {
      w.object([&] {
        w.field("path", pointer.path);
        w.field("names", pointer.name);
      });
    });
    w.list("findings", series.findings, [&](const Finding& finding) {
      w.object([&] {
        w.field("kind", checkpoint::to_string(finding.remark));
        w.field("alarm", finding.alarm);
        w.text_or_null("file", finding.file);
        w.field("text", finding.text);
      });
    });
  });
}

std::string to_json(const app::CheckpointLook& look, const std::vector<std::string>& done,
                    const std::vector<copies::Copied>& copies) {
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.checkpoints/1");
    w.field("folder", look.root);
    w.field("verified", look.bytes);
    w.field("bytes_read", look.bytes_read);
    w.list("series", look.series, [&](const app::SeriesLook& series) { write_series(w, series); });
    w.list("done", done, [&](const std::string& sentence) { w.write(sentence); });
    w.list("copies", copies, [&](const copies::Copied& one) {
      w.object([&] {
        w.field("path", one.path.empty() ? one.root : one.root + "/" + one.path);
        w.field("to", one.to);
        w.field("state", one.state);
        if (one.at_ns > 0)
          w.time("at_ns", one.at_ns);
        else
          w.null("at_ns");
      });
    });
  });
  return w.finish() + "\n";
}

// ---- text

std::string why(const checkpoint::Checked& checked, const std::string& path) {
  if (checked.problems.empty()) return "";
  const checkpoint::Problem& first = checked.problems.front();
  std::string file = first.file;
  if (!path.empty() && file.starts_with(path + "/")) file.erase(0, path.size() + 1);
  if (file == path) file.clear();
  std::string out = file.empty() ? first.text : file + " " + first.text;
  if (checked.problems_total > 1) out += fmt::format(" (and {} more)", checked.problems_total - 1);
  return to_terminal(out);
}

// `copies`: of this host's checkpoints; without any there is no column for them.
std::string to_text(const app::CheckpointLook& look, const app::SeriesLook& series, const Zone& zone,
                    const std::vector<copies::Copied>& copies) {
  const bool color = wants_color();
  const Judged* newest = checkpoint::newest_whole(series.checkpoints);
  std::vector<std::vector<std::string>> rows{
      {"CHECKPOINT", "FORMAT", "STEP", "STATE", "SIZE", "CHANGED", "WHY"}};
  if (!copies.empty()) rows.front().insert(rows.front().end() - 1, "COPY");
  for (const Judged& judged : series.checkpoints) {
    const checkpoint::Checked& checked = judged.checked;
    const std::string name =
        judged.found.path.empty() ? std::string(".") : std::string(checkpoint::name_of(judged.found.path));
    rows.push_back({to_terminal(name), std::string(checkpoint::to_string(judged.found.format)),
                    checked.step ? std::to_string(*checked.step) : "-",
                    std::string(checkpoint::to_string(checked.state)), format_bytes(checked.bytes),
                    format_time(checked.changed_ns, zone).substr(0, 19), why(checked, judged.found.path)});
    if (!copies.empty())
      rows.back().insert(rows.back().end() - 1, copy_text(copies, look.root, judged.found.path));
  }
  const std::string folder = series.folder.empty() ? look.root : look.root + "/" + series.folder;
  std::string out = inked(to_terminal(folder), Ink::kBold, color) + "\n" + table(rows, color);
  for (const Finding& finding : series.findings)
    out += inked(finding.alarm ? "alarm: " : "note: ", finding.alarm ? Ink::kAlarm : Ink::kCaution, color) +
           to_terminal(finding.text) + "\n";
  if (newest)
    out += fmt::format(
        "newest whole: {}{}\n", to_terminal(newest->found.path.empty() ? look.root : newest->found.path),
        look.bytes ? "" : " (by headers and sizes; `culprit checkpoint verify` reads every byte)");
  return out;
}

bool can_fall_back(const app::SeriesLook& series) {
  const auto plan = checkpoint::plan_fall_back(series.checkpoints, series.pointers);
  return plan && (!plan->aside.empty() || !plan->rewrite.empty());
}

bool is_wrong(const app::CheckpointLook& look) {
  for (const app::SeriesLook& series : look.series) {
    for (const Judged& judged : series.checkpoints)
      if (judged.checked.state != State::kWhole && judged.checked.state != State::kWriting) return true;
    for (const Finding& finding : series.findings)
      if (finding.alarm) return true;
  }
  return false;
}

int print_newest(const CheckpointVerb& o) {
  const auto newest = app::newest_whole_checkpoint(o.path, options_of(o));
  if (!newest) {
    report_error(newest.error().text);
    return newest.error().code == ErrorCode::kNotFound ? kFound : kUnable;
  }
  for (const std::string& skipped : newest->skipped) report_error("left out " + skipped);
  if (!o.json && o.format == "text") return print(newest->path + "\n") ? kDone : kUnable;
  JsonWriter w;
  w.object([&] {
    w.field("schema", "culprit.checkpoint/1");
    w.field("path", newest->path);
    w.field("format", checkpoint::to_string(newest->format));
    w.field("step", newest->step);
    w.values("skipped", newest->skipped);
  });
  return print(w.finish() + "\n") ? kDone : kUnable;
}

int checkpoint_verb(const CheckpointVerb& o) {
  // A job may run on this host, so reading gets a lower priority.
  if (o.bytes) (void)!::nice(10);
  if (o.newest) return print_newest(o);
  const auto zone = zone_named(o.timezone);
  if (!zone) return report_error(zone.error().text), kUnable;
  const auto look = app::look_at_checkpoints(o.path, options_of(o));
  if (!look) return report_error(look.error().text), kUnable;
  if (look->series.empty()) return report_error(o.path + ": has no checkpoint"), kUnable;
  const bool json = o.json || o.format == "json";
  std::vector<std::string> done;
  bool failed = false;
  if (o.fall_back)
    for (const app::SeriesLook& series : look->series)
      if (const Status fell = app::fall_back(*look, series, done); !fell) {
        report_error(fell.error().text);
        failed = true;
      }
  std::string out;
  const auto copied = copies_below(look->root);
  if (json) {
    out = to_json(*look, done, copied);
  } else {
    for (const app::SeriesLook& series : look->series) {
      out += (out.empty() ? "" : "\n") + to_text(*look, series, *zone, copied);
      if (o.bytes && !o.fall_back && can_fall_back(series))
        out += fmt::format("mend: culprit checkpoint verify {}{} --fall-back\n", to_terminal(o.path),
                           o.ended ? " --ended" : "");
    }
    for (const std::string& sentence : done) out += "done: " + to_terminal(sentence) + "\n";
  }
  if (!look->note.empty()) report_error("the digests of this look are not kept: " + look->note);
  if (!print(out)) return kUnable;
  if (!o.bytes) return kDone;
  if (o.fall_back) return failed ? kFound : kDone;
  return is_wrong(*look) ? kFound : kDone;
}

void add_common(Command& verb, CheckpointVerb& o) {
  verb.add_option("DIR", o.path, "A folder of checkpoints or of runs, one checkpoint, or one file")
      ->show_default();
  verb.add_option("--format,-f", o.format, "text or json")->one_of({"text", "json"})->show_default();
  verb.add_flag("--json", o.json, "The same as --format json");
  verb.add_option("--timezone", o.timezone, "Zone of the times in text")->show_default();
  verb.add_flag("--ended", o.ended, "The job has ended: nothing is being written");
}

}  // namespace

void add_checkpoint(Command& app, Run& run) {
  Command* verb =
      app.add_subcommand("checkpoint", "Which checkpoints are whole, and which one is the newest");
  verb->require_subcommand();
  verb->footer(kExamples);

  auto of_list = std::make_shared<CheckpointVerb>();
  Command* list =
      verb->add_subcommand("list", "List checkpoints: format, step, size, and whether they look whole");
  list->footer(kListExamples);
  add_common(*list, *of_list);
  list->callback([of_list, &run] { run = [of_list] { return checkpoint_verb(*of_list); }; });

  add_checkpoint_plan(*verb, run);
  add_checkpoint_restore(*verb, run);

  auto of_verify = std::make_shared<CheckpointVerb>();
  of_verify->bytes = true;
  Command* verify =
      verb->add_subcommand("verify", "Read every byte against the checksums, and tell what is not whole");
  verify->footer(kVerifyExamples);
  add_common(*verify, *of_verify);
  verify->add_option("--resumed-from", of_verify->resumed_from, "The step at which the job went on")
      ->type_name("STEP");
  Option* fall_back =
      verify->add_flag("--fall-back", of_verify->fall_back,
                       "Rename newer ones that are not whole to *.torn, and let the pointer name the "
                       "newest whole one");
  verify
      ->add_flag("--newest", of_verify->newest,
                 "Print the path of the newest whole one, and read no older ones")
      ->excludes(fall_back);
  verify->add_flag("--direct", of_verify->direct, "Read from the disk, past the page cache");
  verify->add_flag("--no-memory", of_verify->no_memory, "Neither use nor keep digests of earlier looks");
  verify->callback([of_verify, &run] { run = [of_verify] { return checkpoint_verb(*of_verify); }; });
}

}  // namespace culprit::cli
