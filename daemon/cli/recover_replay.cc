#include "cli/recover_replay.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "core/recover/recording.h"
#include "model/json_writer.h"

namespace culprit::cli {
namespace {

constexpr const char* kReplayExamples = R"(
Examples:
  culprit recover replay /var/lib/culprit/recover.inputs
  culprit recover replay recover.inputs.2 recover.inputs.1 recover.inputs   # the oldest part first
  culprit recover replay recover.inputs --quiet && echo equal

Prints the orders that a fresh controller gives to the recorded inputs. The exit code is 0 if they equal the
recorded ones, 1 if they differ, and 2 if the files are no recording or nothing was recorded yet.)";
constexpr uintmax_t kReplayedBytes = uintmax_t{4} << 30;  // of all files

struct ReplayOptions {
  std::vector<std::string> files;
  std::string format = "text";
  bool quiet = false;
};

// One line, at most kRecordedLine + 1 bytes of it. False: the end of the file. `whole`: it had a newline.
bool read_line(std::istream& in, std::string& line, bool& whole) {
  line.clear();
  whole = false;
  std::streambuf& bytes = *in.rdbuf();
  for (int c = bytes.sbumpc(); c != std::char_traits<char>::eof(); c = bytes.sbumpc()) {
    if (c == '\n') {
      whole = true;
      return true;
    }
    if (line.size() <= recover::kRecordedLine) line.push_back(static_cast<char>(c));
  }
  return !line.empty();
}

Status replay_file(const std::string& path, recover::Replayer& replayer, uintmax_t& left) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return fail(ErrorCode::kInvalid, path + ": is a folder; name its recover.inputs");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(ErrorCode::kNotFound, path + " cannot be read");
  std::string line;
  bool whole = true;
  for (uint64_t number = 1; read_line(file, line, whole); ++number) {
    if (line.size() + 1 > left) return fail(ErrorCode::kLimit, path + ": the files are too large");
    left -= line.size() + 1;
    if (!whole) {
      replayer.torn();
      return {};
    }
    if (line.empty()) continue;
    if (const Status status = replayer.line(line); !status)
      return fail(status.error().code, fmt::format("{}:{}: {}", path, number, status.error().text));
  }
  return {};
}

std::string summary_of(const recover::Replayed& r) {
  std::string out =
      fmt::format("{}, {}, {}, {}\n", counted(r.recordings, "recording"), counted(r.steps, "step"),
                  counted(r.inputs, "input"), counted(r.orders, "order"));
  if (!r.incomplete.empty()) out += "incomplete: " + to_terminal(r.incomplete) + "\n";
  if (r.different == 0) return out + "the orders equal the recorded ones\n";
  return out + fmt::format("{} differ; the first {}\n", counted(r.different, "step"),
                           to_terminal(r.first_difference));
}

// The result in one line.
std::string result_line(const recover::Replayed& r) {
  std::string out = r.different == 0
                        ? fmt::format("equal: {}, {}", counted(r.steps, "step"), counted(r.orders, "order"))
                        : fmt::format("{} of {} differ; the first {}", r.different, counted(r.steps, "step"),
                                      to_terminal(r.first_difference));
  if (!r.incomplete.empty()) out += "; incomplete: " + to_terminal(r.incomplete);
  return out + "\n";
}

std::string json_of(const recover::Replayed& r) {
  JsonWriter w;
  w.object([&] {
    w.field("recordings", r.recordings);
    w.field("steps", r.steps);
    w.field("inputs", r.inputs);
    w.field("orders", r.orders);
    w.field("different", r.different);
    w.text_or_null("first_difference", r.first_difference);
    w.text_or_null("incomplete", r.incomplete);
  });
  return w.finish() + "\n";
}

int replay(const ReplayOptions& o) {
  bool shows = !o.quiet && o.format == "text";
  recover::Replayer replayer([&](TimeNs at, const std::string& order) {
    shows = shows && print(fmt::format("{} {}\n", format_time(at), to_terminal(order)));
  });
  uintmax_t left = kReplayedBytes;
  for (const std::string& path : o.files)
    if (const Status status = replay_file(path, replayer, left); !status)
      return report_error("recover replay: " + status.error().text), kUnable;
  const recover::Replayed& result = replayer.result();
  if (result.recordings == 0) return report_error("recover replay: the files have no recording"), kUnable;
  if (result.steps == 0)
    return report_error(fmt::format("recover replay: nothing was recorded: {} without a step{}",
                                    counted(result.recordings, "recording"),
                                    result.incomplete.empty() ? "" : "; " + result.incomplete)),
           kUnable;
  const std::string text = o.format == "json" ? json_of(result)
                           : o.quiet          ? result_line(result)
                                              : summary_of(result);
  if (!print(text)) return kUnable;
  return result.different == 0 ? kDone : kFound;
}

}  // namespace

void add_recover_replay(Command& recover, Run& run) {
  auto o = std::make_shared<ReplayOptions>();
  Command* verb =
      recover.add_subcommand("replay", "Run the controller's recorded inputs again, and compare its orders");
  verb->footer(kReplayExamples);
  verb->add_option("FILE", o->files, "Parts of a recording, the oldest first")->required();
  verb->add_option("--format,-f", o->format, "text or json")->one_of({"text", "json"})->show_default();
  verb->add_flag("--quiet,-q", o->quiet, "The result alone, in one line");
  verb->callback([o, &run] { run = [o] { return replay(*o); }; });
}

}  // namespace culprit::cli
