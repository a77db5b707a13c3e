#include "app/daemon/intake/journal_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/text.h"
#include "io/system_error.h"
#include "io/trusted_path.h"

namespace culprit::app {
namespace {

// A storm of entries is read in rounds.
constexpr TimeNs kJournalPauseNs = 150 * kNsPerMs;
constexpr size_t kJournalRoundBytes = 1 << 20;
// What fits into the pipe between two rounds: the largest that a process without rights may have.
constexpr int kJournalPipeBytes = 1 << 20;
constexpr size_t kJournalReadBytes = 64 << 10;
constexpr size_t kJournalErrorBytes = 4096;
// Entries before the first start that are read: what came while the daemon was installed.
constexpr TimeNs kJournalBefore = 600 * kNsPerSecond;
constexpr TimeNs kRestartNs = kNsPerSecond, kRestartMostNs = 60 * kNsPerSecond;

constexpr const char* kFields =
    "--output-fields=MESSAGE,PRIORITY,SYSLOG_IDENTIFIER,SYSLOG_FACILITY,UNIT,CONTAINER_NAME,CONTAINER_ID,"
    "_SYSTEMD_UNIT,_COMM,_PID,_UID,_HOSTNAME,_TRANSPORT";
constexpr const char* kMendAccess = "let the daemon's user read it: usermod -aG systemd-journal USER";

// journalctl, both its ends: the first is ours.
Result<std::pair<io::Descriptor, io::Descriptor>> journal_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return io::system_failure("the journal", errno);
  io::Descriptor ours(ends[0]), theirs(ends[1]);
  const int flags = ::fcntl(ours.get(), F_GETFL);
  if (flags < 0 || ::fcntl(ours.get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return io::system_failure("the journal", errno);
  return std::pair(std::move(ours), std::move(theirs));
}

// Empty: not known.
std::string machine_id() {
  const io::Descriptor file(::open("/etc/machine-id", O_RDONLY | O_CLOEXEC));
  char id[33] = {};
  const ssize_t got = file.is_open() ? ::read(file.get(), id, 32) : 0;
  return got == 32 ? std::string(id) : std::string();
}

}  // namespace

std::vector<std::string> journalctl_words(const std::string& directory, const std::string& machine,
                                          const std::optional<JournalPlace>& place, TimeNs since) {
  std::vector<std::string> out = {"journalctl", "--quiet",    "--follow",      "--no-tail",
                                  "--all",      "--no-pager", "--output=json", kFields};
  // With --follow alone journalctl shows the present boot only, and a reboot would lose what came before it.
  // --merge shows all boots, and the journals of other machines that are stored here.
  out.emplace_back("--merge");
  if (directory.empty()) {
    out.emplace_back("--system");  // not users' own journals: entries of users are no cause
    if (!machine.empty()) out.push_back("_MACHINE_ID=" + machine);
  } else {
    out.push_back("--directory=" + directory);
  }
  // Not --after-cursor: if the entry was removed, the next one would be skipped.
  out.push_back(place ? "--cursor=" + ingest::cursor_of(*place)
                      : fmt::format("--since=@{}", std::max<TimeNs>(0, since) / kNsPerSecond));
  return out;
}

JournalSource::JournalSource(io::Env& env, JournalSourceOptions options, std::span<const StreamState> known)
    : env_(env),
      options_(std::move(options)),
      log_({options_.allocate, "journal" + (options_.directory.empty() ? "/system" : options_.directory),
            options_.units, options_.kernel},
           known),
      since_(env.now(io::Clock::kWall) - kJournalBefore),
      timer_(env.timer([this] { read(); })),
      restart_(env.timer([this] { begin(); })) {}

void JournalSource::start() { begin(); }

void JournalSource::begin() {
  if (stopped_) return;
  if (const Status launched = launch(); !launched) return failed(launched.error());
  watch();
}

Status JournalSource::launch() {
  const auto program = std::ranges::find_if(
      options_.programs, [](const std::string& path) { return ::access(path.c_str(), X_OK) == 0; });
  if (program == options_.programs.end())
    return fail(ErrorCode::kNotFound,
                "the journal: there is no journalctl here; install systemd, or set enabled = false below "
                "[journal]");
  if (!options_.directory.empty()) {
    // Who writes the files may say that the kernel wrote an entry.
    auto folder = io::open_trusted_folder(options_.directory, ::geteuid(), io::Writers::kGroup);
    if (!folder)
      return fail(folder.error().code, fmt::format("{}: {}", options_.directory, folder.error().text));
    ::close(*folder);
  }
  auto out = journal_pipe(), err = journal_pipe();
  if (!out || !err) return tl::unexpected(out ? err.error() : out.error());
  (void)::fcntl(out->first.get(), F_SETPIPE_SZ, kJournalPipeBytes);
  auto child = io::Child::start(
      {.path = *program,
       .arguments = journalctl_words(options_.directory, machine_id(), log_.position(), since_),
       .environment = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "SYSTEMD_COLORS=0"},
       .descriptors = {io::ChildProgram::kNull, out->second.get(), err->second.get()}});
  if (!child) return tl::unexpected(child.error());
  child_ = std::move(*child);
  out_ = std::move(out->first);
  err_ = std::move(err->first);
  errors_.clear();
  log_.restarted();
  ++starts_;
  return {};
}

// The descriptors are polled only with credit, and after they were read to the end.
void JournalSource::watch() {
  if (held_ || stopped_) return;
  const auto readable = [this] {
    poll_.reset();
    errors_poll_.reset();
    timer_->start(kJournalPauseNs);
  };
  auto out = env_.poll(out_.get(), readable), err = env_.poll(err_.get(), readable);
  if (!out || !err) return timer_->start(kNsPerSecond);
  poll_ = std::move(*out);
  errors_poll_ = std::move(*err);
}

void JournalSource::read() {
  poll_.reset();
  errors_poll_.reset();
  if (held_ || stopped_ || !out_.is_open()) return;
  read_errors();
  char part[kJournalReadBytes];
  size_t left = kJournalRoundBytes;
  while (left > 0 && !held_) {  // the receiver may hold us back
    const ssize_t n = ::read(out_.get(), part, std::min(left, sizeof part));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return watch();
    if (n <= 0) return failed({ErrorCode::kIo, ending()});
    left -= static_cast<size_t>(n);
    const uint64_t before = log_.stats().entries;
    PieceBatch batch = log_.add({part, static_cast<size_t>(n)}, env_.now(io::Clock::kWall));
    if (log_.stats().entries > before) {
      trouble_.clear();
      retry_ns_ = 0;
    }
    if (!batch.pieces.empty()) options_.take(std::move(batch));
  }
  timer_->start(0);
}

// A file that journalctl cannot read does not end it.
void JournalSource::read_errors() {
  char part[4096];
  const bool is_new = errors_.empty();
  for (;;) {
    const ssize_t n = ::read(err_.get(), part, sizeof part);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    errors_.append(part, std::min(static_cast<size_t>(n), kJournalErrorBytes - errors_.size()));
  }
  if (!is_new || errors_.empty() || child_.has_ended() || first_error() == reported_error_) return;
  reported_error_ = first_error();
  options_.report_error("the journal: journalctl reports: " + reported_error_);
}

std::string JournalSource::first_error() const { return to_utf8(errors_.substr(0, errors_.find('\n'))); }

// Why journalctl ended, in a sentence.
std::string JournalSource::ending() {
  read_errors();
  child_.kill();
  const auto end = child_.wait(kNsPerSecond);
  std::string why = first_error();
  if (why.empty() && end)
    why = end->signal != 0 ? fmt::format("signal {}", end->signal) : fmt::format("status {}", end->code);
  std::string out = fmt::format("the journal: journalctl ended: {}; it is started again", why);
  if (why.find("ermission") != why.npos) out += fmt::format("; {}", kMendAccess);
  return out;
}

// Reported once, and tried again.
void JournalSource::failed(const Error& error) {
  out_ = {};
  err_ = {};
  child_ = {};
  if (error.text != trouble_) options_.report_error(error.text);
  trouble_ = error.text;
  retry_ns_ = std::clamp(2 * retry_ns_, kRestartNs, kRestartMostNs);
  restart_->start(retry_ns_);
}

void JournalSource::pause() { held_ = true; }

void JournalSource::resume() {
  if (!std::exchange(held_, false) || stopped_) return;
  if (out_.is_open()) timer_->start(0);
}

void JournalSource::stop() {
  stopped_ = true;
  poll_.reset();
  errors_poll_.reset();
  timer_->stop();
  restart_->stop();
  child_ = {};
}

}  // namespace culprit::app
