#include "plughost/process_link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/limits.h"
#include "io/system_error.h"

namespace culprit::plughost {
namespace {

// Reads per exchange: a plugin that floods its channel must not delay the others.
constexpr int kReadsAtOnce = 16;
constexpr int kSocketBytes = 1 << 20;
constexpr TimeNs kKilledEnds = 200 * kNsPerMs;

std::vector<std::string> environment_of(const ProcessOptions& options) {
  std::vector<std::string> out{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const char* name : {"LANG", "LC_ALL", "TZ"})  // not those of secrets
    if (const char* value = std::getenv(name)) out.push_back(fmt::format("{}={}", name, value));
  out.insert(out.end(), options.environment.begin(), options.environment.end());
  return out;
}

Result<io::Child> start_host(const ProcessOptions& options, int channel, int output) {
  static_assert(kChannelDescriptor == 3 && kLibraryDescriptor == 4);
  return io::Child::start(
      {.path = options.host_program,
       .arguments = {options.host_program, options.name, std::to_string(options.memory_bytes),
                     std::to_string(::getpid())},
       .environment = environment_of(options),
       .descriptors = {io::ChildProgram::kNull, output, output, channel, options.library}});
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", number);
}

// The numbers of a /proc file, from number `skip` on; empty if the file does not exist.
std::vector<uint64_t> proc_numbers(const std::string& path, size_t skip) {
  std::array<char, 1024> text{};
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t size = !file.is_open() ? -1 : ::read(file.get(), text.data(), text.size() - 1);
  if (size <= 0) return {};
  // The process name in stat may contain blanks and brackets.
  const char* at = std::strrchr(text.data(), ')');
  at = at ? at + 1 : text.data();
  std::vector<uint64_t> out;
  for (size_t field = 0; *at != '\0'; ++field) {
    while (*at == ' ') ++at;
    if (field >= skip) out.push_back(std::strtoull(at, nullptr, 10));
    while (*at != ' ' && *at != '\0') ++at;
  }
  return out;
}

}  // namespace

Result<std::unique_ptr<HostLink>> ProcessLink::start(const ProcessOptions& options) {
  int pair[2], pipe[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return io::system_failure("its channel", errno);
  io::Descriptor ours(pair[0]);
  const io::Descriptor theirs(pair[1]);
  if (::pipe2(pipe, O_CLOEXEC) != 0) return io::system_failure("the pipe of its output", errno);
  io::Descriptor output(pipe[0]);
  const io::Descriptor written(pipe[1]);
  ::fcntl(output.get(), F_SETFL, O_NONBLOCK);
  for (const int end : {ours.get(), theirs.get()})
    ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &kSocketBytes, sizeof kSocketBytes);
  auto child = start_host(options, theirs.get(), written.get());
  if (!child) return tl::unexpected(child.error());
  return std::unique_ptr<HostLink>(new ProcessLink(std::move(*child), std::move(ours), std::move(output)));
}

// A process in an uninterruptible call stays alive; init becomes its parent.
ProcessLink::~ProcessLink() { (void)child_.end(kKilledEnds); }

void ProcessLink::send(MessageKind kind, std::string_view payload) {
  Queued& message = queue_.emplace_back();
  message.kind = kind;
  append_message(message.bytes, kind, payload);
  queued_bytes_ += message.bytes.size();
}

void ProcessLink::send_first(MessageKind kind, std::string_view payload) {
  Queued message;
  message.kind = kind;
  append_message(message.bytes, kind, payload);
  queued_bytes_ += message.bytes.size();
  queue_.insert(queue_.begin() + (sent_ > 0 ? 1 : 0), std::move(message));
}

bool ProcessLink::send_events(std::string_view records, size_t count) {
  if (records.size() > limits::kPluginMessageBytes ||
      queued_bytes_ + records.size() > limits::kPluginQueueBytes)
    return false;
  queued_events_ += count;
  const bool joins = queue_.size() > (sent_ > 0 ? 1 : 0) && queue_.back().kind == MessageKind::kEvents &&
                     queue_.back().bytes.size() + records.size() <= limits::kPluginBatchBytes;
  if (joins) {
    Queued& last = queue_.back();
    last.bytes.append(records);
    last.events += count;
    set_message_size(last.bytes, 0);
    queued_bytes_ += records.size();
  } else {
    send(MessageKind::kEvents, records);
    queue_.back().events = count;
  }
  return true;
}

// False: the peer is gone.
bool ProcessLink::flush() {
  while (!queue_.empty()) {
    Queued& first = queue_.front();
    const ssize_t n = ::send(channel_.get(), first.bytes.data() + sent_, first.bytes.size() - sent_,
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (sent_ == 0) ++begun_;
    sent_ += static_cast<size_t>(n);
    queued_bytes_ -= static_cast<size_t>(n);
    if (sent_ < first.bytes.size()) return true;
    queued_events_ -= first.events;
    queue_.pop_front();
    sent_ = 0;
  }
  return true;
}

HostLink::State ProcessLink::receive(const Handlers& handlers) {
  if (malformed_) return State::kMalformed;  // what follows has no beginning
  for (int i = 0; i < kReadsAtOnce; ++i) {
    size_t size = 0;
    char* room = reader_.room(size);
    const ssize_t n = ::recv(channel_.get(), room, size, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return State::kOpen;
    if (n <= 0) return State::kClosed;
    reader_.added(static_cast<size_t>(n));
    MessageReader::Message message;
    MessageReader::Next next;
    while ((next = reader_.next(message)) == MessageReader::Next::kMessage)
      handlers.message(message.kind, message.payload);
    if (next == MessageReader::Next::kMalformed) {
      malformed_ = true;
      return State::kMalformed;
    }
  }
  return State::kOpen;
}

void ProcessLink::read_output(const Handlers& handlers) {
  if (!output_.is_open()) return;
  char bytes[4096];
  for (int i = 0; i < kReadsAtOnce; ++i) {
    const ssize_t n = ::read(output_.get(), bytes, sizeof bytes);
    if (n < 0) return;
    if (n == 0) {
      output_ = io::Descriptor();
      if (!line_.empty()) handlers.output(line_);
      line_.clear();
      return;
    }
    for (const char c : std::string_view(bytes, static_cast<size_t>(n))) {
      if (c != '\n' && line_.size() < limits::kEvidenceText) {
        line_.push_back(c);
      } else if (c == '\n') {
        handlers.output(line_);
        line_.clear();
      }
    }
  }
}

HostLink::State ProcessLink::exchange(const Handlers& handlers) {
  read_output(handlers);
  if (!channel_.is_open()) return State::kClosed;
  // Messages from before the process's end are read even if writing fails.
  const bool writable = flush();
  State state = receive(handlers);
  if (state == State::kOpen && !writable) state = State::kClosed;
  if (state == State::kClosed) channel_ = io::Descriptor();
  return state;
}

void ProcessLink::add_descriptors(std::vector<pollfd>& out) const {
  if (channel_.is_open()) {
    const auto events = static_cast<short>(queue_.empty() ? POLLIN : POLLIN | POLLOUT);
    out.push_back({channel_.get(), events, 0});
  }
  if (output_.is_open()) out.push_back({output_.get(), POLLIN, 0});
}

// Also after the process has ended: its children are in its process group.
void ProcessLink::kill() { child_.kill(); }

bool ProcessLink::ended(std::string& how) {
  if (!child_.is_waited_for()) {
    if (!child_.has_ended()) return false;
    child_.kill();  // its group, while the number is still ours
    if (const auto end = child_.wait(0)) {
      use_.cpu_ns = std::max(use_.cpu_ns, end->cpu_ns);
      if (end->signal != 0) how_ = signal_name(end->signal) + " ended it";
      if (end->code > 0) how_ = fmt::format("it exited with status {}", end->code);
    }
  }
  how = how_;
  return true;
}

HostLink::Use ProcessLink::use() {
  if (child_.is_waited_for()) return use_;
  static const uint64_t kTicks = static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  static const uint64_t kPage = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  // Fields after the name: 0 is the state; 11 to 14 are utime, stime, cutime and cstime.
  const std::vector<uint64_t> stat = proc_numbers(fmt::format("/proc/{}/stat", child_.pid()), 11);
  const std::vector<uint64_t> statm = proc_numbers(fmt::format("/proc/{}/statm", child_.pid()), 1);
  if (stat.size() < 4 || statm.empty()) return use_;
  const uint64_t ticks = stat[0] + stat[1] + stat[2] + stat[3];
  use_.cpu_ns = ticks * (static_cast<uint64_t>(kNsPerSecond) / kTicks);
  use_.memory_bytes = statm[0] * kPage;
  return use_;
}

}  // namespace culprit::plughost
