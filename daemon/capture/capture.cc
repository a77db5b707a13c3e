#include "capture/capture.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>

#include "capture/announced.h"
#include "capture/apart.h"
#include "capture/clock.h"
#include "capture/debug_server.h"
#include "capture/stop_guard.h"
#include "capture/tool.h"

namespace culprit::capture {
namespace {

// Interval between two looks, in which a thread that only reads a disk makes progress.
constexpr TimeNs kBetweenLooks = 300 * kNsPerMs;
constexpr TimeNs kReadWithin = 3 * kNsPerSecond;  // 8 MiB of text take a tenth
constexpr TimeNs kToolWithin = 10 * kNsPerSecond, kAnswerWithin = 2 * kNsPerSecond;

// Takes the file access rights of the process's owner, who alone may open its environment, descriptors and
// calls in /proc, its pipe and its stack file. The change of user clears the parent-death signal, so it is
// set again.
void act_as(uint32_t uid) {
  ::setfsuid(uid);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void add_reason(std::string& why, std::string_view who, const std::string& reason) {
  if (!why.empty()) why += "; ";
  why += fmt::format("{}: {}", who, reason);
}

StackReader reader_of(Tool tool) {
  switch (tool) {
    case Tool::kPySpy:
      return read_py_spy;
    case Tool::kEuStack:
      return read_eu_stack;
    case Tool::kGdb:
      break;
  }
  return read_gdb;
}

Result<Stacks> stacks_in(StackReader reader, const Result<std::string>& text) {
  return text ? read_apart(reader, *text, kReadWithin) : Result<Stacks>(tl::unexpected(text.error()));
}

class Capture {
 public:
  Capture(const Request& request, const Target& target, TimeNs within_ns)
      : request_(request), until_ns_(mono() + within_ns) {
    answer_.target = target;
  }

  Answer run() {
    answer_.time_ns = wall();
    const auto status = parse_status(read_some(fmt::format("/proc/{}/status", answer_.target.pid)));
    if (status) act_as(status->uid);
    auto first = reader_.look(answer_.target.pid);
    if (!is_target(first)) return exited();
    if (first->any_blocked()) {
      pause_for(kBetweenLooks);
      auto second = reader_.look(answer_.target.pid);
      if (!is_target(second)) return exited();
      ProcessReader::mark_stuck(*first, *second);
      first = std::move(second);
    }
    answer_.look = std::move(first);
    answer_.target.start_ticks = answer_.look->stat.start_ticks;
    answer_.rank = answer_.look->environment.rank;
    const auto file = find_stack_file(request_.rings, answer_.target.pid, answer_.look->status);
    if (file && file->head.rank) answer_.rank = file->head.rank;
    answer_.is_rank = request_.all || file || is_rank() || (request_.programs && is_program());
    if (!answer_.is_rank) return std::move(answer_);
    ask_process(file);
    if (answer_.stacks.threads.empty()) use_tools();
    // Discards the answer if a later process has taken the pid.
    const auto now = reader_.stat(answer_.target.pid);
    if (!now || now->start_ticks != answer_.target.start_ticks) return exited();
    return std::move(answer_);
  }

 private:
  bool is_target(const std::optional<ProcessLook>& look) const {
    return look && (answer_.target.start_ticks == 0 || look->stat.start_ticks == answer_.target.start_ticks);
  }

  Answer exited() {
    Answer out;
    out.target = answer_.target;
    out.time_ns = answer_.time_ns;
    out.rank = answer_.rank;
    out.why = "the process has exited";
    return out;
  }

  // Whether the process is a rank's program. Data-loader workers inherit the rank, as does a shell around
  // the program.
  bool is_rank() const {
    const ProcStat& own = answer_.look->stat;
    if (own.state == 'Z') return true;        // whatever it was
    if (own.name == "culprit") return false;  // `culprit run` around a rank, and its sentinel
    if (answer_.look->is_launcher) return false;
    if (!answer_.rank || (is_wrapper(own.name) && answer_.look->children > 0)) return false;
    const auto parent = reader_.stat(own.parent);
    if (!parent || is_wrapper(parent->name)) return true;
    const RankEnvironment above = reader_.environment(own.parent);
    return above.rank != answer_.rank || gave_rank(above, answer_.look->environment);
  }

  // Whether the process is the program of a job without ranks, and not a worker that this program started.
  bool is_program() const {
    const ProcStat& own = answer_.look->stat;
    if (own.name.starts_with("culprit") || answer_.look->is_launcher || answer_.rank) return false;
    if (is_wrapper(own.name)) return false;
    const auto parent = reader_.stat(own.parent);
    return !parent || parent->name != own.name;
  }

  TimeNs left() const { return until_ns_ - mono(); }

  // Order: py-spy is first, because it stops nothing. A dump by signal briefly interrupts a system call of
  // the process.
  void ask_process(const std::optional<StackFile>& file) {
    const ProcessLook& look = *answer_.look;
    if (look.stat.state == 'Z' || look.stat.state == 'X') {
      answer_.why = "the process has ended, and its parent has not collected it";
      return;
    }
    use_py_spy();
    if (answer_.stacks.threads.empty() && file) use_signal(*file);
    if (answer_.stacks.threads.empty() && has_debug_server(look, answer_.target.pid)) use_debug_server();
    RankEnvironment environment = look.environment;
    environment.rank = answer_.rank;
    if (environment.recorder_pipe.empty()) return;
    const Status asked = ask_recorder(answer_.target.pid, look.status, environment);
    answer_.recorder_asked = asked.has_value();
    if (!asked) add_reason(answer_.why, "Flight Recorder", asked.error().text);
  }

  // A stopped process would handle the signal only later: harmless, but without an answer now.
  void use_signal(const StackFile& file) {
    const ProcessLook& look = *answer_.look;
    const bool runs = look.stat.state != 'T' && look.stat.state != 't' && !look.frozen;
    if (!runs) return add_reason(answer_.why, "faulthandler", "the process is stopped");
    const TimeNs within = std::min(kAnswerWithin, left());
    auto text = ask_for_stacks(file, answer_.target.pid, look.stat, within);
    auto stacks = stacks_in(read_faulthandler, text);
    if (!stacks) return add_reason(answer_.why, "faulthandler", stacks.error().text);
    take("faulthandler", std::move(*stacks));
  }

  void use_debug_server() {
    const TimeNs within = std::min(kAnswerWithin, left());
    const auto text = ask_debug_server(*answer_.look, answer_.target.pid, within);
    auto stacks = stacks_in(read_faulthandler, text);
    if (!stacks) return add_reason(answer_.why, "debug server", stacks.error().text);
    take("faulthandler", std::move(*stacks));
  }

  void use_py_spy() {
    for (const std::string& name : request_.tools)
      if (tool_of(name) == Tool::kPySpy && answer_.stacks.threads.empty()) use_tool(name);
  }

  void use_tools() {
    const char state = answer_.look->stat.state;
    if (state == 'Z' || state == 'X') return;
    const std::string reason = why_not_traced(*answer_.look);
    if (!reason.empty()) return add_reason(answer_.why, "no tracer", reason);
    for (const std::string& name : request_.tools)
      if (tool_of(name) != Tool::kPySpy && answer_.stacks.threads.empty()) use_tool(name);
  }

  void use_tool(const std::string& name) {
    const auto tool = tool_of(name);
    if (!tool) return add_reason(answer_.why, name, "it is not known");
    const auto program = find_tool(name);
    if (!program) return add_reason(answer_.why, to_string(*tool), program.error().text);
    const ProcStatus& status = answer_.look->status;
    const auto rights = rights_for(*tool, status.uid, trace_rules(answer_.target.pid));
    if (!rights) return add_reason(answer_.why, to_string(*tool), rights.error().text);
    ToolRun run;
    run.arguments = arguments_of(*tool, *program, answer_.target.pid);
    run.rights = *rights;
    run.uid = status.uid;
    run.gid = status.gid;
    run.stops = *tool != Tool::kPySpy;
    run.within_ns = std::min(kToolWithin, left() * 2 / 3);  // another tool may follow
    if (run.within_ns <= 0) return add_reason(answer_.why, to_string(*tool), "no time was left");
    // Only a process that runs is traced.
    std::optional<StopGuard> guard;
    if (run.stops) guard.emplace(answer_.target);
    if (guard) run.started = [&guard](pid_t pid) { guard->started(pid); };
    bool clean = false;
    auto output = run_tool(run, &clean);
    const std::string harm = guard ? guard->end(clean) : "";
    if (!harm.empty()) add_reason(answer_.why, to_string(*tool), harm);
    auto stacks = stacks_in(reader_of(*tool), output);
    if (!stacks) return add_reason(answer_.why, to_string(*tool), stacks.error().text);
    take(std::string(to_string(*tool)), std::move(*stacks));
  }

  void take(std::string tool, Stacks stacks) {
    answer_.tool = std::move(tool);
    answer_.stacks = std::move(stacks);
    answer_.why.clear();
  }

  const Request& request_;
  const TimeNs until_ns_;  // monotonic
  const ProcessReader reader_;
  Answer answer_;
};

}  // namespace

std::string why_not_traced(const ProcessLook& look) {
  if (look.status.tracer != 0) return fmt::format("process {} traces it already", look.status.tracer);
  if (look.frozen) return "its control group is frozen: a tracer would hang";
  if (look.has_state('T')) return "it is stopped: a tracer could let it go on";
  if (look.has_state('D')) return "a thread is in an uninterruptible call: a tracer would hang";
  return {};
}

Answer capture_process(const Request& request, const Target& target, TimeNs within_ns) {
  return Capture(request, target, within_ns).run();
}

Answer look_briefly(const Target& target, std::string why) {
  Answer out;
  out.target = target;
  out.time_ns = wall();
  const ProcessReader reader;
  const auto stat = reader.stat(target.pid);
  if (!stat || (target.start_ticks != 0 && stat->start_ticks != target.start_ticks)) {
    out.why = "the process has exited";
    return out;
  }
  out.look.emplace().stat = *stat;
  if (const auto status = parse_status(read_some(fmt::format("/proc/{}/status", target.pid))))
    out.look->status = *status;
  out.why = std::move(why);
  return out;
}

}  // namespace culprit::capture
