#include "app/run/private_daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "base/text.h"
#include "io/installed.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

constexpr int kNice = 10;
constexpr const char* kOomScore = "500";  // the kernel kills the daemon before a rank
constexpr size_t kWordsBytes = 4096;
constexpr const char *kConfigName = "culpritd.toml", *kLogName = "culpritd.log";

// A TOML text in double quotes; in globs, [ ] * ? { } become literals.
std::string toml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (byte < ' ' || byte == 0x7f)
      out += fmt::format("\\u{:04X}", byte);
    else
      out += c;
  }
  return out + "\"";
}

std::string literal_glob(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (std::strchr("*?[{}", c))
      out += '[', out += c, out += ']';
    else
      out += c;
  }
  return out;
}

// The variables that a program needs, without those that would make the daemon a rank of the job.
std::vector<std::string> daemon_environment() {
  std::vector<std::string> out;
  for (const char* name : {"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "TZ",
                           "LD_LIBRARY_PATH", "CULPRIT_CRASH_AT"})
    if (const char* value = std::getenv(name)) out.push_back(fmt::format("{}={}", name, value));
  return out;
}

// The child's data, made before the fork: other threads may hold locks at that moment.
struct DaemonStart {
  const char* program;
  char* const* words;
  char* const* environment;
  int log;
  pid_t parent;
};

[[noreturn]] void become_daemon(const DaemonStart& start) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != start.parent) _exit(0);
  ::setsid();
  (void)::setpriority(PRIO_PROCESS, 0, kNice);
  if (const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); score >= 0) {
    (void)!::write(score, kOomScore, std::strlen(kOomScore));
    ::close(score);
  }
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(start.log, STDOUT_FILENO);
  ::dup2(start.log, STDERR_FILENO);
  // The command may need inherited descriptors; the daemon does not.
  ::close_range(3, UINT_MAX, 0);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(start.program, start.words, start.environment);
  _exit(127);
}

}  // namespace

std::string private_config(const RunFolder& folder, const Launch& launch,
                           const PrivateDaemonOptions& options) {
  const std::string job = toml_text(launch.job);
  const std::string files = literal_glob(folder.files_root()) + (folder.exposed() ? "/*" : "");
  std::string out = fmt::format(
      "state_dir = {}\nruntime_dir = {}\nrules = [\"/usr/share/culprit/rules\", \"/etc/culprit/rules.d\"]\n"
      "plugins = []\n[host]\nname = {}\n[jobs]\nonly = {}\n",
      toml_text(folder.private_folder() + "/state"), toml_text(folder.runtime()), toml_text(launch.host),
      job);
  std::vector<std::string> logs = {files + "/*.log", files + "/torchrun/**/*.log"};
  if (folder.exposed()) logs.push_back(literal_glob(folder.logs().path()) + "/*.log");  // the output
  for (const std::string& log : logs)
    out += fmt::format("[[log]]\npath = {}\njob = {}\n", toml_text(log), job);
  out += fmt::format("[[dump]]\npath = {}\njob = {}\n", toml_text(files + "/dumps/*"), job);
  out += fmt::format("[trace]\nsocket = \"trace.sock\"\njob = {}\n", job);
  if (!folder.rings().empty()) out += fmt::format("rings = {}\n", toml_text(folder.rings()));
  out += fmt::format(
      "[kernel]\nenabled = {}\n[spool]\nmax_size = \"128MiB\"\n[engine]\nmemory = \"256MiB\"\n"
      "[http]\nlisten = \"unix:api.sock\"\n",
      options.kernel);
  if (!options.hang_after.empty()) out += fmt::format("[hang]\nafter = {}\n", toml_text(options.hang_after));
  return out;
}

std::string find_daemon(const Lookup& variable) {
  const std::string own = io::own_program();
  std::vector<std::string> folders = {own.substr(0, own.rfind('/'))};
  const std::string searched = variable("PATH").value_or("");
  for (const std::string_view folder : split(searched, ':'))
    if (folder.starts_with('/')) folders.emplace_back(folder);
  for (const std::string& folder : folders) {
    std::string program = folder + "/culpritd";
    if (::access(program.c_str(), X_OK) == 0) return program;
  }
  return {};
}

bool may_read_kernel() {
  const int fd = ::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

Result<PrivateDaemon> start_daemon(const RunFolder& folder, const Launch& launch,
                                   const PrivateDaemonOptions& options) {
  const std::string program = find_daemon([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  });
  if (program.empty())
    return fail(ErrorCode::kNotFound, "culpritd is not in the folder of culprit nor in PATH");
  if (folder.runtime().empty()) return fail(ErrorCode::kIo, folder.no_runtime());
  const std::string config = folder.private_folder() + "/" + kConfigName;
  const auto own = HeldFolder::open(folder.private_folder());
  if (!own) return tl::unexpected(own.error());
  if (Status written = own->write(kConfigName, private_config(folder, launch, options)); !written)
    return tl::unexpected(written.error());
  auto log = own->open_file(kLogName, O_WRONLY | O_CREAT | O_APPEND);
  if (!log) return tl::unexpected(log.error());
  std::vector<std::string> entries = daemon_environment();
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  std::string name = "culpritd", option = "--config", file = config;
  char* const words[] = {name.data(), option.data(), file.data(), nullptr};
  PrivateDaemon out{-1, "unix:" + folder.runtime() + "/api.sock"};
  const pid_t parent = ::getpid();
  out.pid = ::fork();
  if (out.pid == 0) become_daemon({program.c_str(), words, environment.data(), log->get(), parent});
  if (out.pid < 0) return io::system_failure("a process for culpritd", errno);
  return out;
}

std::string last_daemon_words(const RunFolder& folder) {
  std::ifstream in(folder.private_folder() + "/" + kLogName, std::ios::binary);
  in.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(in.tellg());
  in.seekg(std::max<std::streamoff>(0, size - static_cast<std::streamoff>(kWordsBytes)));
  std::string line, last;
  while (std::getline(in, line))
    if (!line.empty()) last = line;
  return last;
}

}  // namespace culprit::app
