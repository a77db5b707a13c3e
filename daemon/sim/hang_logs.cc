// Logs of ranks and hosts: progress, watchdog lines in the wording of the torch release, launcher, kernel.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "sim/files.h"
#include "sim/hang_state.h"

namespace culprit::sim {
namespace {

constexpr uint64_t kLogSecond = 1'000'000'000;
constexpr const char* kLikelyCause =
    "This is most likely caused by incorrect usages of collectives, e.g., wrong sizes used across ranks, the "
    "order of collectives is not same for all ranks or the scheduled collective, for some reason, didn't "
    "run. "
    "Additionally, this can be caused by GIL deadlock or other reasons such as network errors or bugs in the "
    "communications library (e.g. NCCL), etc. ";

struct HangLine {
  uint64_t at_ns = 0;
  std::string text;
};

std::tm utc(uint64_t at_ns) { return fmt::gmtime(static_cast<std::time_t>(at_ns / kLogSecond)); }

// Line numbers in ProcessGroupNCCL.cpp, by torch release.
struct SourceLines {
  int caught, status, trace, first, dump, observed, failed, avoid, ended;
};
SourceLines source_lines(uint32_t torch) {
  switch (torch) {
    case 201:
      return {475, 0, 0, 0, 0, 0, 489, 495, 916};
    case 203:
      return {563, 1537, 0, 0, 1316, 0, 577, 583, 1414};
    case 205:
      return {616, 1785, 681, 2130, 1375, 1363, 630, 636, 1595};
    default:
      return {632, 2268, 670, 2573, 1682, 1746, 684, 681, 1895};
  }
}

class RankLog {
 public:
  RankLog(const HangState& hang_state, uint32_t rank) : c_(hang_state), s_(hang_state.site), r_(rank) {}

  std::vector<HangLine> lines() {
    start();
    progress();
    phase();
    exit_found();
    if (c_.captured[r_] && c_.answers(r_) && c_.first_timeout_ns != 0) watchdog();
    for (HangLine& line : out_) line.at_ns += static_cast<uint64_t>(c_.clock_offset_ns(s_.host_of(r_)));
    std::stable_sort(out_.begin(), out_.end(),
                     [](const HangLine& a, const HangLine& b) { return a.at_ns < b.at_ns; });
    return std::move(out_);
  }

 private:
  void add(uint64_t at_ns, std::string text) { out_.push_back({at_ns, std::move(text)}); }
  // A line of the training script. In a host's log it does not name the rank, as in real logs.
  void say(uint64_t at_ns, std::string_view text) {
    add(at_ns, fmt::format("[{:%Y-%m-%d %H:%M:%S}] {}", utc(at_ns), text));
  }
  void log(uint64_t at_ns, int line, std::string_view text) {
    if (s_.torch == 201)
      add(at_ns, fmt::format("[E ProcessGroupNCCL.cpp:{}] {}", line, text));
    else if (s_.torch == 203)
      add(at_ns, fmt::format("[rank{}]:[E ProcessGroupNCCL.cpp:{}] {}", r_, line, text));
    else
      add(at_ns, fmt::format("[rank{}]:[E{}{:%d %H:%M:%S}.{:09} ProcessGroupNCCL.cpp:{}] {}", r_,
                             utc(at_ns).tm_mon + 1, utc(at_ns), at_ns % kLogSecond, line, text));
  }
  std::string group_prefix(HangGroup kind) const {
    const uint32_t index = s_.index_in(kind, r_);
    if (s_.torch == 201) return fmt::format("[Rank {}] ", index);
    if (s_.torch == 203) return fmt::format("[PG {} Rank {}] ", s_.group_id(kind), index);
    return fmt::format("[PG ID {} PG GUID {}({}) Rank {}] ", s_.group_id(kind),
                       s_.group_name(kind, s_.group_of(kind, r_)), s_.description[static_cast<size_t>(kind)],
                       index);
  }

  void start() {
    const uint64_t at = s_.start_ns - 11 * s_.step_ns - 20 * kLogSecond;
    if (r_ % s_.ranks_per_host == 0 || !s_.host_logs)
      say(at, fmt::format("> initialized rank {} of {} on {}", r_, s_.world, s_.host_name(r_)));
    if (r_ == 0)
      say(at,
          fmt::format("> initialized tensor model parallel with size {}, pipeline model parallel with size "
                      "{}, data parallel with size {}",
                      s_.tp, s_.pp, s_.dp));
  }
  // As Megatron: only the last rank prints.
  void progress() {
    if (r_ + 1 != s_.world) return;
    const HangRank& one = c_.rank(r_);
    const bool finished = one.at < one.program->size() ? (*one.program)[one.at].part == 1 : true;
    const uint64_t last = s_.steps_done + (finished ? 1 : 0);
    for (uint64_t step = last > 10 ? last - 10 : 1; step <= last; ++step) {
      const uint64_t at = s_.start_ns + s_.step_ns - (s_.steps_done + 1 - step) * s_.step_ns;
      const uint64_t word = mix64(s_.seed, step);
      say(at,
          fmt::format("iteration {:8}/{:8} | consumed samples: {:12} | elapsed time per iteration (ms): "
                      "{}.{} | learning rate: 1.500E-04 | global batch size: {:5} | lm loss: 2.{:06}E+00 | "
                      "grad norm: 0.{:03} | number of skipped iterations:   0 |",
                      step, 100'000, step * s_.dp * 4, s_.step_ns / 1'000'000, word % 10, s_.dp * 4,
                      word % 1'000'000, word % 997));
    }
  }
  void phase() {
    const HangProgram& program = *c_.rank(r_).program;
    const HangPlace last = program.back().place;
    const uint64_t at = s_.start_ns + s_.step_ns + kLogSecond;
    if (last == HangPlace::kEnd && r_ % s_.ranks_per_host == 0)
      say(at, fmt::format("[after training is done] datetime: {:%Y-%m-%d %H:%M:%S}", utc(at)));
    if (last != HangPlace::kBarrier) return;
    if (c_.fault.kind == "tokenize" && c_.fault.is_at_fault(r_)) tokenizer(at);
    if (c_.fault.kind != "tokenize" && r_ == 0)
      say(at, fmt::format("saving checkpoint at iteration {:7} to {}/{}", s_.steps_done + 1, s_.data_path,
                          s_.job));
    if (c_.fault.kind == "tokenize" && r_ == 0) say(at, "preparing the validation dataset");
  }
  void tokenizer(uint64_t at) {
    const uint64_t end = c_.captured[r_] ? std::max(c_.first_timeout_ns, at) : at + 20 * kLogSecond;
    for (uint64_t i = 1; i <= 12; ++i) {
      const uint64_t when = at + (end - at) * i / 13, took = (when - at) / kLogSecond;
      add(when,
          fmt::format("Running tokenizer on dataset (num_proc=8):  {:2}%|{:<10}| {}/{} [{:02}:{:02}<53:25, "
                      "16.59 examples/s]",
                      i * 3, "##", i * 2'811, 93'700, took / 60, took % 60));
    }
  }
  void exit_found() {
    if (c_.fault.end != HangEnd::kException || !c_.fault.is_at_fault(r_) || !c_.captured[r_]) return;
    const std::string prefix = s_.torch == 201 ? "" : fmt::format("[rank{}]: ", r_);
    const uint64_t at = c_.exit_ns();
    std::string text = prefix + "Traceback (most recent call last):\n";
    std::vector<HangFrame> frames = hang_frames(s_, HangPlace::kForward, false);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      text += fmt::format("{}  File \"{}\", line {}, in {}\n{}    self.step()\n", prefix, frame->file,
                          frame->line, frame->function, prefix);
    add(at, text + prefix + c_.traceback_error);
  }

  struct TimedOut {
    const HangCall* call = nullptr;
    HangGroup group = HangGroup::kWorld;
  };
  std::vector<TimedOut> timed_out() const {
    std::vector<TimedOut> out;
    for (HangGroup kind : kAllHangGroups) {
      const HangCall* call = c_.open_call(r_, kind);
      // A minute after the first time-out, the abort of the other ranks ends this rank.
      if (call && call->created_ns + s_.timeout_ns < c_.first_timeout_ns + 55 * kLogSecond)
        out.push_back({call, kind});
    }
    std::stable_sort(out.begin(), out.end(), [](const TimedOut& a, const TimedOut& b) {
      return a.call->created_ns < b.call->created_ns;
    });
    return out;
  }
  std::string work(const TimedOut& one) const {
    const HangAct& act = c_.rank(r_).act_of(*one.call);
    return fmt::format("WorkNCCL(SeqNum={}, OpType={}, NumelIn={}, NumelOut={}, Timeout(ms)={})",
                       one.call->seq, watchdog_name(act.op), act.in, act.out, s_.timeout_ns / 1'000'000);
  }
  uint64_t late_ns(const TimedOut& one) const {
    const uint64_t poll = s_.torch == 201 ? 1'000 : 100;
    return (3 + mix64(s_.seed ^ r_, static_cast<uint64_t>(one.group)) % poll) * 1'000'000;
  }
  std::string caught(const TimedOut& one, HangGroup first) const {
    return fmt::format(
        "[Rank {}] Watchdog caught collective operation timeout: {} ran for {} milliseconds before "
        "timing out.",
        s_.index_in(first, r_), work(one), (s_.timeout_ns + late_ns(one)) / 1'000'000);
  }

  void watchdog() {
    const std::vector<TimedOut> all = timed_out();
    if (all.empty()) return signalled();
    if (remote_error(all.front())) return;
    uint64_t at = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i > 0 && mix64(s_.seed, r_ * 8 + i) % 100 >= 60) continue;
      const uint64_t when = all[i].call->created_ns + s_.timeout_ns + late_ns(all[i]);
      if (i == 0) at = when;
      const SourceLines n = source_lines(s_.torch);
      log(when, n.caught, caught(all[i], all.front().group));
      status(when + 400'000, all[i], i == 0);
    }
    end(at + 2'000'000, all.front());
  }
  void status(uint64_t at, const TimedOut& one, bool first) {
    const SourceLines n = source_lines(s_.torch);
    const HangRank& rank = c_.rank(r_);
    const auto k = static_cast<size_t>(one.group);
    const std::string prefix = group_prefix(one.group);
    const int64_t done = rank.completed[k] == 0 ? -1 : int64_t{rank.completed[k]};
    if (s_.torch == 201) return;
    if (s_.torch == 206)
      log(at, n.status,
          fmt::format("{} failure detected by watchdog at work sequence id: {} PG status: last "
                      "enqueued work: {}, last completed work: {}",
                      prefix, one.call->seq, rank.enqueued[k], done));
    else
      log(at, n.status,
          fmt::format("{}{} {}, last enqueued NCCL work: {}, last completed NCCL work: {}.", prefix,
                      s_.torch == 203
                          ? "Timeout at NCCL work:"
                          : "Exception (either an error or timeout) detected by watchdog at work:",
                      one.call->seq, rank.enqueued[k], done));
    if (s_.torch < 205) return;
    trace(at + 100'000, one);
    if (!first) return;
    log(at + 200'000, n.first, prefix + "First PG on this rank to signal dumping. ");
    dump_signal(at + 250'000'000, "this local rank");
  }
  void trace(uint64_t at, const TimedOut& one) {
    const int line = source_lines(s_.torch).trace;
    if (mix64(s_.seed, 0x7472616365) % 100 < 60)
      return log(at, line,
                 "Stack trace of the failed collective not found, potentially because FlightRecorder is "
                 "disabled. You can enable it by setting TORCH_NCCL_TRACE_BUFFER_SIZE to a non-zero "
                 "value.");
    std::string text = "Stack trace of the failed collective: ";
    int number = 0;
    for (const HangFrame& frame : hang_call_site(s_, c_.rank(r_).act_of(*one.call)))
      text += fmt::format("\n#{} {} from {}:{}", number++, frame.function, frame.file, frame.line);
    log(at, line, text);
  }
  // Line of the default group's monitor: it has this group's numbers, even if another group hangs.
  void dump_signal(uint64_t at, std::string_view from) {
    const HangRank& rank = c_.rank(r_);
    log(at, source_lines(s_.torch).dump,
        fmt::format(
            "{}Received a dump signal due to a collective timeout from {} and we will try our best to dump "
            "the debug info. Last enqueued NCCL work: {}, last completed NCCL work: {}.{}",
            group_prefix(HangGroup::kWorld), from, rank.enqueued[0], rank.completed[0], kLikelyCause));
  }
  // A rank without a time-out of its own.
  void signalled() {
    const uint64_t at = c_.first_timeout_ns + 300'000'000 + mix64(s_.seed, r_) % 700'000'000;
    const SourceLines n = source_lines(s_.torch);
    const HangRank& rank = c_.rank(r_);
    if (s_.torch == 203)
      log(at, n.dump,
          fmt::format("{}Received a global timeout from another rank and will start to dump the debug "
                      "info. Last enqueued NCCL work: {}, last completed NCCL work: {}.",
                      group_prefix(HangGroup::kWorld), rank.enqueued[0], rank.completed[0]));
    if (s_.torch < 205) return;
    log(at, n.observed,
        group_prefix(HangGroup::kWorld) +
            "Observed flight recorder dump signal from another rank via TCPStore.");
    dump_signal(at + 200'000, fmt::format(" rank {}", first_waiting()));
  }
  uint32_t first_waiting() const {
    for (uint32_t r = 0; r < s_.world; ++r)
      if (c_.rank(r).waits() && c_.answers(r)) return r;
    return 0;
  }
  // Logs the transport error of a rank whose ring neighbour has died.
  bool remote_error(const TimedOut& one) {
    if (!s_.remote_error || c_.fault.exited.empty() || s_.torch < 203) return false;
    const uint32_t size = s_.group_size(one.group), group = s_.group_of(one.group, r_);
    const uint32_t next = s_.member(one.group, group, (s_.index_in(one.group, r_) + 1) % size);
    if (!c_.fault.is_removed(next)) return false;
    const uint64_t at = std::max(c_.exit_ns(), one.call->created_ns) + 2 * kLogSecond;
    log(at, source_lines(s_.torch).caught + 1,
        fmt::format(
            "[Rank {}] Collective {} raised the following async exception: NCCL error: remote process "
            "exited or there was a network error, NCCL version 2.21.5\nncclRemoteError: A call failed "
            "possibly due to a network error or a remote process exiting prematurely.\nLast error:\n"
            "socketProgress: Connection closed by remote peer {}<{}>",
            s_.index_in(one.group, r_), work(one), s_.host_name(next),
            32'768 + mix64(s_.seed, next) % 28'000));
    return true;
  }
  void end(uint64_t at, const TimedOut& one) {
    const SourceLines n = source_lines(s_.torch);
    const std::string prefix = s_.torch == 201 ? "" : fmt::format("[Rank {}] ", s_.index_in(one.group, r_));
    log(at, n.failed,
        prefix +
            "Some NCCL operations have failed or timed out. Due to the asynchronous nature of "
            "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data.");
    log(at + 20'000, n.avoid, prefix + "To avoid data inconsistency, we are taking the entire process down.");
    const uint64_t later = at + (s_.torch == 201 ? 100'000 : 60 * kLogSecond);
    log(later, n.ended,
        fmt::format("{}{} watchdog thread terminated with exception: {}", group_prefix(one.group),
                    s_.torch == 201 ? "NCCL" : "Process group", caught(one, one.group)));
  }

  const HangState& c_;
  const HangSite& s_;
  const uint32_t r_;
  std::vector<HangLine> out_;
};

// Lines of the launcher's agent on a host, and of the host's kernel.
std::vector<HangLine> agent_lines(const HangState& c, uint32_t host) {
  const HangSite& s = c.site;
  std::vector<HangLine> out;
  if (s.launcher != HangLauncher::kTorchrun || c.fault.exited.empty() || c.fault.hosts.front() != host)
    return out;
  const uint32_t rank = c.fault.ranks.front(), local = rank % s.ranks_per_host;
  const uint64_t at = c.exit_ns() + 2 * kLogSecond;
  const std::string stamp = fmt::format(
      "E{:%m%d %H:%M:%S}.{:06} 3991 torch/distributed/elastic/multiprocessing/"
      "api.py:869]",
      utc(at), at % kLogSecond / 1'000);
  for (uint32_t r = host * s.ranks_per_host; r < (host + 1) * s.ranks_per_host; ++r)
    if (r != rank)
      out.push_back({at, fmt::format("W{:%m%d %H:%M:%S}.{:06} 3991 torch/distributed/elastic/multiprocessing/"
                                     "api.py:897] Sending process {} closing signal SIGTERM",
                                     utc(at), at % kLogSecond / 1'000, s.pid_of(r))});
  const bool killed = c.fault.end == HangEnd::kKilled;
  out.push_back(
      {at + 1, fmt::format("{} failed (exitcode: {}) local_rank: {} (pid: {}) of binary: /usr/bin/python3",
                           stamp, killed ? -9 : 1, local, s.pid_of(rank))});
  out.push_back(
      {at + 2, fmt::format("Root Cause (first observed failure):\n[0]:\n  time      : {:%Y-%m-%d_%H:%M:%S}"
                           "\n  host      : {}\n  rank      : {} (local_rank: {})\n  exitcode  : {} (pid: "
                           "{})\n  error_file: <N/A>\n  traceback : {}",
                           utc(at), s.host_name(rank), rank, local, killed ? -9 : 1, s.pid_of(rank),
                           killed ? fmt::format("Signal 9 (SIGKILL) received by PID {}", s.pid_of(rank))
                                  : "To enable traceback see: https://pytorch.org/docs/stable/elastic/"
                                    "errors.html")});
  return out;
}

std::string syslog_line(const HangSite& s, uint32_t host, uint64_t at, std::string_view text) {
  return fmt::format("{:%b %d %H:%M:%S} {} kernel: {}", utc(at), s.host_names[host], text);
}

std::vector<HangLine> kernel_lines(const HangState& c, uint32_t host) {
  const HangSite& s = c.site;
  std::vector<HangLine> out;
  const auto add = [&](uint64_t at, std::string_view text) {
    out.push_back({at, syslog_line(s, host, at, text)});
  };
  for (const HangKernelLine& one : c.kernel)
    if (one.host == host) add(one.at_ns, one.text);
  if (c.kernel_line && c.fault.hosts.front() == host) {
    const uint32_t pid = s.pid_of(c.fault.ranks.front());
    add(c.exit_ns(), fmt::format("Out of memory: Killed process {} (python3) total-vm:284310416kB, "
                                 "anon-rss:120412332kB, file-rss:0kB, shmem-rss:8192kB, UID:1000",
                                 pid));
  }
  if (c.fault.kind == "storage" && s.storage_lines && mix64(s.seed, host) % 100 < 70) {
    const uint64_t at = s.start_ns + s.step_ns + (180 + mix64(s.seed, host) % 30) * kLogSecond;
    add(at, "nfs: server storage-1 not responding, still trying");
    add(at + 1, fmt::format("INFO: task python3:{} blocked for more than 120 seconds.",
                            s.pid_of(host * s.ranks_per_host)));
  }
  return out;
}

Status write_log(const std::string& path, std::vector<HangLine> lines) {
  if (lines.empty()) return {};
  std::stable_sort(lines.begin(), lines.end(),
                   [](const HangLine& a, const HangLine& b) { return a.at_ns < b.at_ns; });
  std::string text;
  for (const HangLine& line : lines) text += line.text + "\n";
  return write_text(path, text);
}

Status write_host(const HangState& c, const std::string& folder, uint32_t host) {
  const HangSite& s = c.site;
  const std::string own = folder + "/" + s.host_names[host];
  std::vector<HangLine> all = agent_lines(c, host);
  if (!s.host_logs) {
    std::filesystem::create_directories(own);
    if (Status status = write_log(own + "/agent.log", std::move(all)); !status) return status;
    all.clear();
  }
  for (uint32_t r = host * s.ranks_per_host; r < (host + 1) * s.ranks_per_host; ++r) {
    std::vector<HangLine> lines = RankLog(c, r).lines();
    if (s.host_logs) {
      std::move(lines.begin(), lines.end(), std::back_inserter(all));
      continue;
    }
    if (Status status = write_log(fmt::format("{}/rank_{}.log", own, r), std::move(lines)); !status)
      return status;
  }
  std::vector<HangLine> kernel = kernel_lines(c, host);
  if (s.host_logs) {
    if (!kernel.empty()) std::filesystem::create_directories(own);
    if (Status status = write_log(own + ".log", std::move(all)); !status) return status;
  }
  return write_log(own + "/kern.log", std::move(kernel));
}

}  // namespace

Status write_hang_kernel_logs(const HangState& c, const std::string& folder) {
  for (uint32_t host = 0; host < c.site.hosts; ++host) {
    std::vector<HangLine> lines = kernel_lines(c, host);
    const std::string own = folder + "/logs/" + c.site.host_names[host];
    if (!lines.empty()) std::filesystem::create_directories(own);
    if (Status status = write_log(own + "/kern.log", std::move(lines)); !status) return status;
  }
  return {};
}

Status write_hang_logs(const HangState& c, const std::string& folder) {
  std::filesystem::create_directories(folder + "/logs");
  for (uint32_t host = 0; host < c.site.hosts; ++host)
    if (Status status = write_host(c, folder + "/logs", host); !status) return status;
  if (c.site.launcher != HangLauncher::kSlurm || c.fault.exited.empty()) return {};
  const uint32_t rank = c.fault.ranks.front();
  return write_text(folder + "/logs/srun.log",
                    fmt::format("srun: error: {}: task {}: {}\n", c.site.host_name(rank), rank,
                                c.fault.end == HangEnd::kKilled ? "Killed" : "Exited with exit code 1"));
}

}  // namespace culprit::sim
