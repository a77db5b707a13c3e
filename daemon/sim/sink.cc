#include "sim/sink.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

namespace culprit::sim {

namespace {

// Limits of one file's buffer and of all buffers together, so that 8,192 rank files fit the memory of an
// ordinary machine.
constexpr size_t kBufferBytes = 1 << 20;
constexpr size_t kBufferedBytes = 128 << 20;

std::string month_day_time(TimeNs time) {
  constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const Civil c = civil_from_ns(time);
  return fmt::format("{} {:2} {:02}:{:02}:{:02}", kMonths[c.month - 1], c.day, c.hour, c.minute, c.second);
}

// Sets the modification time to the end of the job: readers use it for timestamps without a year.
void set_modified(const std::string& path, TimeNs time) {
  if (time == kNoTime) return;
  const auto seconds = static_cast<time_t>(time / kNsPerSecond);
  const std::array<timespec, 2> times = {timespec{seconds, time % kNsPerSecond},
                                         timespec{seconds, time % kNsPerSecond}};
  utimensat(AT_FDCWD, path.c_str(), times.data(), 0);
}

}  // namespace

bool has_error_word(std::string_view line) {
  constexpr std::array<std::string_view, 24> kWords = {
      "error",  "fail",        "fatal",    "exception", "timeout", "timed out", "time out",      "abort",
      "panic",  "traceback",   "critical", "crash",     "killed",  "segfault",  "segmentation",  "corrupt",
      "assert", "core dumped", "broken",   "lost",      "refused", "denied",    "out of memory", "invalid"};
  std::string lower(line);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return lower.find(word) != lower.npos; });
}

Sink::Sink(const Site& site, const Run& run, std::string folder)
    : site_(site), run_(run), folder_(std::move(folder)) {
  slots_.resize(static_cast<size_t>(site.hosts) * (site.ranks_per_host + 2) + 1);
  lay_out();
}

int32_t Sink::file(const std::string& path) {
  // Slots are in order, so slots with equal paths are adjacent, except for the few streams.
  const size_t window = site_.ranks_per_host * 4ull + 4;
  for (size_t i = files_.size(); i > 0 && i + window > files_.size(); --i)
    if (files_[i - 1].path == path) return static_cast<int32_t>(i - 1);
  if (!files_.empty() && files_[0].path == path) return 0;
  files_.push_back({path, {}, 0, false});
  return static_cast<int32_t>(files_.size() - 1);
}

Sink::Slot& Sink::slot(uint32_t host, uint32_t slot) {
  const size_t base = static_cast<size_t>(host) * (site_.ranks_per_host + 2);
  if (slot == kLauncherSlot) return slots_.back();
  if (slot == kAgentSlot) return slots_[base + site_.ranks_per_host];
  if (slot == kKernelSlot) return slots_[base + site_.ranks_per_host + 1];
  return slots_[base + slot];
}

void Sink::lay_out() {
  for (uint32_t host = 0; host < site_.hosts; ++host) lay_out_host(host);
  // The launcher runs on the first host; in a stream its lines have no prefix.
  Slot& launcher = slots_.back();
  launcher = slot(0, kAgentSlot);
  if (site_.layout == "slurm") launcher.file = launcher.errors = slot(0, 0).file;
}

void Sink::lay_out_host(uint32_t host) {
  const std::string& name = run_.hosts[host].name;
  const std::string& layout = site_.layout;
  for (uint32_t local = 0; local <= site_.ranks_per_host; ++local) {
    const bool agent = local == site_.ranks_per_host;
    Slot& to = slot(host, agent ? kAgentSlot : local);
    const uint32_t rank = host * site_.ranks_per_host + local;
    if (layout == "files" || layout == "workers") {
      to.file = file(name + ".log");
    } else if (layout == "default-files") {
      to.file = file(name + ".log");
      if (!agent) to.prefix = fmt::format("[default{}]:", local);
    } else if (layout == "host-dirs") {
      to.file = file(name + "/train.log");
    } else if (layout == "ranks") {
      to.file = file(fmt::format("rank_{}.log", agent ? rank - local : rank));
    } else if (layout == "torchrun") {
      const std::string folder = agent ? name + "/agent.log"
                                       : fmt::format("{}/{}_{:x}/attempt_0/{}/", name, run_.job_number,
                                                     run_.start_ns & 0xffffff, local);
      to.file = file(agent ? folder : folder + "stdout.log");
      if (!agent) to.errors = file(folder + "stderr.log");
    } else if (layout == "slurm") {
      to.file = file(fmt::format("{}_{}_{}.out", run_.job_number, name, agent ? rank - local : rank));
    } else if (layout == "ascend-plog") {
      to.file = file(agent ? name + "/launch.log" : fmt::format("{}/train_{}.log", name, local));
      const uint32_t pid = pid_of(run_, host, agent ? 0 : local);
      const std::string date(date_and_time(run_.start_ns));
      const std::string stamp = date.substr(0, 4) + date.substr(5, 2) + date.substr(8, 2) + "0" +
                                fmt::format("{:08}", run_.start_ns / kNsPerMs % 100'000'000);
      if (!agent) {
        to.plog = file(fmt::format("{}/process_log/run/plog/plog-{}_{}.log", name, pid, stamp));
        to.plog_errors = file(fmt::format("{}/process_log/debug/plog/plog-{}_{}.log", name, pid, stamp));
      }
    } else {
      lay_out_streams(host, local, to);
    }
    if (to.errors < 0) to.errors = to.file;
    if (to.error_prefix.empty()) to.error_prefix = to.prefix;
  }
  if (site_.kernel_logs) lay_out_kernel(host, slot(host, kKernelSlot));
}

void Sink::lay_out_streams(uint32_t host, uint32_t local, Slot& slot) {
  const std::string& layout = site_.layout;
  const std::string& name = run_.hosts[host].name;
  const uint32_t rank = host * site_.ranks_per_host + local;
  const bool agent = local == site_.ranks_per_host;
  const std::string ident = agent ? fmt::format("trainer-agent[{}]: ", run_.hosts[host].pid - 7)
                                  : fmt::format("python3[{}]: ", pid_of(run_, host, local));
  if (layout == "srun-l") {
    slot.file = file(fmt::format("slurm-{}.out", run_.job_number));
    const size_t width = site_.padded_labels ? fmt::format_int(site_.ranks - 1).size() : 1;
    if (!agent) slot.prefix = fmt::format("{:>{}}: ", rank, width);
  } else if (layout == "rank-stream") {
    slot.file = file("train.log");
    if (!agent) slot.prefix = fmt::format("[rank{}]: ", rank);
  } else if (layout == "pdsh") {
    slot.file = file("pdsh.out");
    slot.prefix = name + ": ";
  } else if (layout == "mpirun") {
    slot.file = file("mpirun.out");
    if (!agent) slot.prefix = fmt::format("[1,{}]<stdout>: ", rank);
    if (!agent) slot.error_prefix = fmt::format("[1,{}]<stderr>: ", rank);
  } else if (layout == "k8s") {
    slot.file = file("pods.log");
    slot.prefix = fmt::format("[pod/{}] ", name);
  } else if (layout == "compose") {
    slot.file = file("compose.log");
    const std::string widest = fmt::format("worker-{}", site_.hosts - 1);
    slot.prefix = fmt::format("{:<{}} | ", name, widest.size());
  } else if (layout == "syslog") {
    slot.file = file("messages");
    slot.stamp = Stamp::kSyslog;
    slot.prefix = ident;
  } else {
    slot.file = file("journal.txt");
    slot.stamp = Stamp::kJournal;
    slot.prefix = ident;
  }
}

void Sink::lay_out_kernel(uint32_t host, Slot& slot) {
  slot.prefix = "kernel: ";
  if (site_.layout == "syslog" || site_.layout == "journald") {
    slot.file = 0;
    slot.stamp = site_.layout == "syslog" ? Stamp::kSyslog : Stamp::kJournal;
  } else {
    slot.file = file(run_.hosts[host].name + (site_.layout == "host-dirs" ? "/dmesg.log" : "/messages"));
    slot.stamp = site_.layout == "host-dirs" ? Stamp::kNone : Stamp::kSyslog;
    if (site_.layout == "host-dirs") slot.prefix.clear();
  }
  slot.errors = slot.file;
  slot.error_prefix = slot.prefix;
}

void Sink::put_prefix(const Slot& slot, const Record& record, std::string& out) const {
  const RunHost& host = run_.hosts[record.host];
  const TimeNs time = record.time_ns + host.skew_ns;
  if (slot.stamp == Stamp::kSyslog) {
    thread_local int64_t last = -1;
    thread_local std::string text;
    if (time / kNsPerSecond != last) text = month_day_time(time);
    last = time / kNsPerSecond;
    out += text, out += ' ', out += host.name, out += ' ';
  } else if (slot.stamp == Stamp::kJournal) {
    out += date_and_time(time, 'T'), out += "+0000 ", out += host.name, out += ' ';
  }
  out += record.tone >= Tone::kWarning ? slot.error_prefix : slot.prefix;
}

void Sink::put(const Record& record, std::string_view text) {
  const Slot& to = slot(record.host, record.slot);
  const bool serious = record.tone >= Tone::kWarning;
  int32_t index = serious ? to.errors : to.file;
  if (record.shape == Shape::kMind && to.plog >= 0) index = serious ? to.plog_errors : to.plog;
  if (index < 0) return;
  File& file = files_[static_cast<size_t>(index)];
  const size_t before = file.buffer.size();
  file.last_ns = std::max(file.last_ns, record.time_ns);
  bool first = true;
  while (true) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    put_prefix(to, record, file.buffer);
    file.buffer += line;
    file.buffer += '\n';
    ++file.lines;
    if (record.role != Role::kNone)
      marks_.push_back({static_cast<uint32_t>(index), record.role, !first && record.shape != Shape::kDmesg,
                        has_error_word(line), file.lines});
    if (end == text.npos) break;
    text.remove_prefix(end + 1);
    first = false;
  }
  buffered_ += file.buffer.size() - before;
  bytes_ += file.buffer.size() - before;
}

Status Sink::write(Batch& batch) {
  order_.clear();
  order_.reserve(batch.records.size());
  for (uint32_t i = 0; i < batch.records.size(); ++i) order_.emplace_back(batch.records[i].time_ns, i);
  std::sort(order_.begin(), order_.end());
  for (const auto& [time, i] : order_) {
    const Record& record = batch.records[i];
    put(record, std::string_view(batch.text).substr(record.begin, record.size));
  }
  batch.clear();
  if (buffered_ < kBufferBytes) return {};
  const bool all = buffered_ > kBufferedBytes;
  for (File& file : files_) {
    if (file.buffer.size() < kBufferBytes && !all) continue;
    buffered_ -= file.buffer.size();
    if (Status status = flush(file); !status) return status;
  }
  return {};
}

Status Sink::flush(File& file) {
  if (file.buffer.empty()) return {};
  const std::filesystem::path path = std::filesystem::path(folder_) / file.path;
  if (!file.opened) {
    std::error_code error;
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) return fail(ErrorCode::kIo, path.parent_path().string() + ": " + error.message());
  }
  std::ofstream out(path,
                    file.opened ? std::ios::binary | std::ios::app : std::ios::binary | std::ios::trunc);
  out.write(file.buffer.data(), static_cast<std::streamsize>(file.buffer.size()));
  out.close();
  if (!out) return fail(ErrorCode::kIo, path.string() + ": " + std::strerror(errno));
  file.opened = true;
  file.buffer.clear();
  return {};
}

Status Sink::finish() {
  for (File& file : files_)
    if (Status status = flush(file); !status) return status;
  for (const File& file : files_) set_modified(folder_ + "/" + file.path, file.last_ns);
  buffered_ = 0;
  if (!site_.job_file) return {};
  File job{"job.toml", {}, 0, false};
  job.buffer = fmt::format("[job]\nid = \"{}-{}\"\nhosts = [", site_.model, run_.job_number);
  for (size_t i = 0; i < run_.hosts.size(); ++i)
    job.buffer += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", run_.hosts[i].name);
  job.buffer += fmt::format("]\nranks_per_host = {}\n\n[parallel]\ntp = {}\npp = {}\ndp = {}\n",
                            site_.ranks_per_host, site_.tp, site_.pp, site_.dp);
  return flush(job);
}

}  // namespace culprit::sim
