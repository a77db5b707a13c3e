#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <thread>
#include <utility>

#include "app/offline/stack_reading.h"
#include "base/limits.h"
#include "base/text.h"
#include "cli/near.h"
#include "cli/reading.h"
#include "cli/remote.h"
#include "cli/stack_view.h"
#include "cli/verbs.h"
#include "core/detect/stacks/stacks.h"
#include "model/json_text.h"
#include "model/report_json_read.h"

namespace culprit::cli {
namespace {

constexpr const char* kStacksExamples = R"(
Examples:
  culprit stacks runs/failed/stacks                 # dumps of py-spy, faulthandler, gdb or eu-stack
  culprit stacks llama-70b-0412                     # of a job that hangs under culpritd
  culprit stacks llama-70b-0412 --capture --rounds 5   # of a slow job: who keeps the others waiting)";

constexpr size_t kNumberedShown = 64;  // limit of listed processes without a rank

struct StacksOptions {
  std::vector<std::string> what;
  std::string format = "text";
  bool quiet = false;
  bool capture = false;
  uint32_t rounds = 1;
  std::optional<uint32_t> run;
  RemoteOptions remote;
};

// Stacks from either kind of target.
struct ShownStacks {
  std::vector<StackCluster> clusters;
  std::vector<Suspect> suspects;
  std::vector<std::string> sentences, missing;
  size_t processes = 0;
};

int print_picture(const ShownStacks& picture, bool json) {
  if (json) {
    JsonWriter w;
    w.object([&] {
      w.field("processes", static_cast<uint64_t>(picture.processes));
      write_stack_tree(w, picture.clusters);
      w.list("suspects", picture.suspects, [&](const Suspect& s) {
        w.object([&] {
          w.text_or_null("host", s.host.value_or(""));
          w.field("score", s.score);
          w.values("ranks", s.ranks);
          w.values("why", s.why);
        });
      });
      w.values("why", picture.sentences);
      w.values("missing", picture.missing);
    });
    return print(w.finish() + "\n") ? kDone : kUnable;
  }
  std::string out = fmt::format("{} process{}, {}\n", picture.processes, picture.processes == 1 ? "" : "es",
                                counted(picture.clusters.size(), "different stack"));
  for (const std::string& why : picture.sentences) out += to_terminal(why) + "\n";
  for (const std::string& what : picture.missing) out += "missing: " + to_terminal(what) + "\n";
  out += "\n" + stack_tree_text(picture.clusters);
  return print(out) ? kDone : kUnable;
}

// If no dump has a rank, numbers the processes, so that the tree can show them. Returns a sentence for each.
std::vector<std::string> number_unranked(std::vector<StackDump>& dumps) {
  std::vector<std::string> out;
  for (const StackDump& dump : dumps)
    if (dump.rank) return out;
  std::map<std::pair<std::string, uint32_t>, uint32_t> known;
  for (StackDump& dump : dumps) {
    const auto [at, fresh] =
        known.try_emplace({dump.host.value_or(dump.pid == 0 ? dump.file : ""), dump.pid}, known.size());
    dump.rank = at->second;
    if (fresh && out.size() < kNumberedShown)
      out.push_back(
          fmt::format("no dump tells a rank: [{}] is {}", *dump.rank,
                      dump.pid == 0 ? dump.file : fmt::format("process {} of {}", dump.pid, dump.file)));
  }
  return out;
}

int stacks_of_files(const StacksOptions& o) {
  app::DiagnoseOptions options;
  options.paths = o.what;
  const auto threads = app::thread_count(getenv("CULPRIT_THREADS"));
  if (!threads) return report_error(threads.error().text), kUnable;
  app::ReadProgress progress;
  auto watch = std::make_unique<Watch>(progress, !o.quiet);
  auto files = app::collect_files(options.paths, options, progress);
  if (!files) return report_error(files.error().text), kUnable;
  for (const Error& error : files->errors) report_error(error.text);
  progress.bytes_total = files->bytes;
  std::vector<StackDump> dumps;
  stacks::Samples samples;
  const auto take = [&](core::Input input) {
    if (auto* stack = std::get_if<core::StackInput>(&input)) dumps.push_back(std::move(stack->dump));
    if (auto* refusal = std::get_if<StackRefusal>(&input)) samples.add_silent(refusal->rank, refusal->reason);
  };
  const auto problems = app::read_stack_files(files->stacks, files->job, *threads, take, progress);
  watch.reset();
  for (const Problem& p : problems) report_error(p.file + ": " + p.what);
  ShownStacks picture;
  picture.missing = number_unranked(dumps);
  for (const StackDump& dump : dumps) samples.add(dump);
  for (const std::string& what : samples.drop_sentences()) report_error(what);
  if (samples.empty()) return report_error(o.what[0] + ": there are no stacks in it"), kUnable;
  const JobFile& job = files->job;
  const stacks::GroupLayout layout(job);
  const auto place = [&](uint32_t rank) {
    return RankPlace{host_of_rank(job, rank), device_of_rank(job, rank)};
  };
  stacks::StackAnswer answer = stacks::analyse_stacks({samples, layout, place, true});
  picture.processes = samples.processes().size();
  picture.clusters = std::move(answer.clusters);
  picture.suspects = std::move(answer.suspects);
  for (const Finding& f : answer.findings) {
    if (f.kind != FindingKind::kFault) continue;
    picture.sentences.push_back(f.title);
    picture.sentences.insert(picture.sentences.end(), f.why.begin(), f.why.end());
  }
  std::move(answer.missing.begin(), answer.missing.end(), std::back_inserter(picture.missing));
  const stacks::SlowAnswer slow = stacks::analyse_rounds({samples, layout, place, false});
  if (slow.finding && !answer.hangs)
    picture.sentences.insert(picture.sentences.end(), slow.picture.why.begin(), slow.picture.why.end());
  const int shown = print_picture(picture, o.format == "json");
  return files->errors.empty() ? shown : kUnable;
}

// Requests stacks from the daemon and waits until the last round's stacks have arrived.
class Capturing {
 public:
  Capturing(app::Client& client, const StacksOptions& o) : client_(client), o_(o) {}

  Status run() {
    const std::string path =
        fmt::format("/v1/jobs/{}/capture?rounds={}", app::url_escaped(o_.what[0]), o_.rounds);
    const auto reported = client_.post(path, by_whom());
    if (!reported) return tl::unexpected(reported.error());
    const Json order = parse_ordered_json(*reported);
    if (!order.is_object() || !order.contains("sample") || !order["sample"].is_number_unsigned())
      return fail(ErrorCode::kInvalid, client_.server() + ": the answer does not say what was asked for");
    first_ = order["sample"].get<uint32_t>();
    const Json every = order.value("every_ns", Json(0));
    const TimeNs every_ns =
        every.is_number_integer() ? std::clamp<TimeNs>(every.get<TimeNs>(), 0, kMostApart) : 0;
    until_ = Clock::now() + std::chrono::nanoseconds(every_ns * (o_.rounds - 1) + kAnswerWithin);
    const Status done = wait();
    if (draws_ && drawn_) std::fputs("\r\x1b[K", stderr);
    return done;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr TimeNs kAnswerWithin = 45 * kNsPerSecond, kMostApart = 3600 * kNsPerSecond;
  static constexpr std::chrono::milliseconds kPollEvery{500}, kQuiet{4000};

  Status wait() {
    const uint32_t last = first_ + o_.rounds - 1;
    uint64_t processes = 0;
    auto grew = Clock::now();
    for (; Clock::now() < until_; std::this_thread::sleep_for(kPollEvery)) {
      const auto text = client_.get(report_path(o_.what[0], std::nullopt));
      if (!text) return tl::unexpected(text.error());
      const auto read = report_from_json(*text);
      const StackPicture* stacks = read && read->stacks ? &*read->stacks : nullptr;
      const bool began = stacks && stacks->sample >= first_;
      draw(began ? stacks->sample - first_ + 1 : 0, began ? stacks->processes : 0);
      if (!began || stacks->sample < last) continue;
      if (stacks->processes > processes) grew = Clock::now();
      processes = std::max(processes, stacks->processes);
      if (processes >= std::max<uint64_t>(1, read->job.ranks) || Clock::now() - grew >= kQuiet) return {};
    }
    if (processes > 0) return {};
    return fail(ErrorCode::kLimit, o_.what[0] +
                                       ": no stacks came: see the log of culpritd on the hosts of the job, "
                                       "and `culprit doctor` there");
  }

  void draw(uint32_t round, uint64_t processes) {
    if (!draws_) return;
    drawn_ = true;
    std::fputs(fmt::format("\r\x1b[Kround {} of {}: {}", std::min(round, o_.rounds), o_.rounds,
                           counted(processes, "process"))
                   .c_str(),
               stderr);
  }

  app::Client& client_;
  const StacksOptions& o_;
  const bool draws_ = !o_.quiet && isatty(2);
  uint32_t first_ = 0;
  bool drawn_ = false;
  Clock::time_point until_;
};

int stacks_of_job(StacksOptions& o) {
  if (Status status = resolve(o.remote); !status) return report_error(status.error().text), kUnable;
  auto client = client_of_job(o.remote, o.what[0]);
  if (!client) return report_error(client.error().text), kUnable;
  if (o.capture)
    if (const Status taken = Capturing(*client, o).run(); !taken)
      return report_error(with_meant_job(*client, taken.error(), o.what[0])), kUnable;
  const auto text = client->get(report_path(o.what[0], o.run));
  if (!text) return report_error(with_meant_job(*client, text.error(), o.what[0])), kUnable;
  const auto read = report_from_json(*text);
  if (!read) return report_error(client->server() + ": " + read.error().text), kUnable;
  if (!read->hang || read->hang->clusters.empty()) {
    if (!read->stacks || read->stacks->clusters.empty())
      return report_error(o.what[0] +
                          ": the daemon has no stacks of it: they are taken when a job stands still, and "
                          "with --capture"),
             kUnable;
    ShownStacks picture;
    picture.clusters = read->stacks->clusters;
    picture.processes = read->stacks->processes;
    picture.sentences = read->stacks->why;
    return print_picture(picture, o.format == "json");
  }
  ShownStacks picture;
  picture.clusters = read->hang->clusters;
  picture.suspects = read->hang->suspects;
  for (const StackCluster& c : picture.clusters) picture.processes += c.ranks.size();
  for (const Suspect& s : picture.suspects)
    picture.sentences.insert(picture.sentences.end(), s.why.begin(), s.why.end());
  return print_picture(picture, o.format == "json");
}

int show_stacks(StacksOptions& o) {
  if (o.capture && o.run) return report_error("--capture: only a running job, so without --run"), kUnable;
  if (o.rounds > 1 && !o.capture) return report_error("--rounds needs --capture"), kUnable;
  // An existing path is read as a path; other words are jobs of the daemon.
  const bool path = o.what.size() > 1 || o.what[0] == "-" || o.what[0].find('/') != std::string::npos ||
                    access(o.what[0].c_str(), F_OK) == 0;
  if (path && o.capture) return report_error(o.what[0] + ": --capture takes a job of the daemon"), kUnable;
  return path ? stacks_of_files(o) : stacks_of_job(o);
}

}  // namespace

void add_stacks(Command& app, Run& run) {
  auto o = std::make_shared<StacksOptions>();
  Command* verb = app.add_subcommand(
      "stacks", "Print the stacks of all ranks as one tree: who stands where, the odd ones first");
  verb->footer(kStacksExamples);
  verb->add_option("PATH|JOB", o->what, "Files or folders of dumps, or a job as `culprit jobs` lists it")
      ->required();
  verb->add_option("--format,-f", o->format, "text, or json")->one_of({"text", "json"})->show_default();
  verb->add_flag("--quiet,-q", o->quiet, "Draw no progress bar");
  verb->add_flag("--capture", o->capture, "Take the stacks of all ranks of the job now, and wait for them");
  verb->add_option("--rounds", o->rounds, "With --capture: how often, to find who keeps a slow job waiting")
      ->between(1u, static_cast<unsigned>(limits::kStackSamples));
  add_run(*verb, o->run);
  add_server_options(*verb, o->remote);
  add_members(*verb, o->remote);
  verb->callback([o, &run] { run = [o] { return show_stacks(*o); }; });
}

}  // namespace culprit::cli
