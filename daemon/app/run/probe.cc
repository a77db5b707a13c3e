#include "app/run/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "base/clock.h"
#include "base/text.h"
#include "io/process_end.h"
#include "model/headline.h"

namespace culprit::app {
namespace {

constexpr size_t kTargetsMost = 4, kLineBytes = 4096, kHostBytes = 253, kPathBytes = 1024, kLinesMost = 16;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_host(char c) { return is_digit(c) || is_letter(c) || c == '.' || c == '-' || c == '_'; }

uint16_t port_of(std::string_view digits) {
  uint32_t n = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return error == std::errc() && end == digits.data() + digits.size() && n < 65536 ? static_cast<uint16_t>(n)
                                                                                   : uint16_t{0};
}

uint16_t port_of_scheme(std::string_view scheme) {
  constexpr std::pair<std::string_view, uint16_t> kPorts[] = {
      {"http", 80}, {"https", 443}, {"redis", 6379}, {"s3", 443}, {"ldap", 389}, {"tcp", 0}, {"grpc", 443}};
  for (const auto& [name, port] : kPorts)
    if (name == scheme) return port;
  return 0;
}

// "host:port" or "[address]:port" at the begin of the text. A host must look like one: a letter or a dot, so
// that "12:30" and "train.py:7" of other kinds of lines are none.
ProbeTarget address_at(std::string_view text, uint16_t port) {
  ProbeTarget out;
  size_t end = 0;
  if (text.starts_with('[')) {
    end = std::min(text.find(']'), text.size());
    out.host = text.substr(1, end - 1);
    end = std::min(end + 1, text.size());
  } else {
    while (end < text.size() && is_host(text[end])) ++end;
    out.host = text.substr(0, end);
  }
  if (end < text.size() && text[end] == ':') {
    size_t last = end + 1;
    while (last < text.size() && is_digit(text[last])) ++last;
    if (last > end + 1) port = port_of(text.substr(end + 1, last - end - 1));
  }
  out.port = port;
  if (out.host.empty() || out.host.size() > kHostBytes || port == 0) return {};
  return out;
}

// The S3 service of a bucket's URL cannot be known from it.
ProbeTarget url_at(std::string_view line, size_t sign) {
  size_t begin = sign;
  while (begin > 0 && (is_letter(line[begin - 1]) || is_digit(line[begin - 1]))) --begin;
  const std::string_view scheme = line.substr(begin, sign - begin);
  if (scheme.empty() || scheme == "s3" || scheme == "file") return {};
  std::string_view rest = line.substr(sign + 3);
  const std::string_view place = rest.substr(0, rest.find_first_of("/ \t\"'?#"));
  if (const size_t at = place.rfind('@'); at != place.npos) rest.remove_prefix(at + 1);  // user:password@
  return address_at(rest, port_of_scheme(scheme));
}

constexpr std::string_view kSourceSuffixes[] = {".py", ".cc", ".cpp", ".cu",  ".h",
                                                ".c",  ".go", ".rs",  ".lua", ".log"};

bool is_program_line(std::string_view host) {
  return std::ranges::any_of(kSourceSuffixes,
                             [&](std::string_view suffix) { return host.ends_with(suffix); });
}

// HOST:PORT in a word, also as "host='h', port=443" of Python's urllib3.
ProbeTarget address_in(std::string_view word) {
  const size_t begin = word.find_first_not_of("([{<'\"=,;");
  if (begin == word.npos) return {};
  const bool bracketed = begin > 0 && word[begin - 1] == '[' && word.find("]:") != word.npos;
  const ProbeTarget out = address_at(word.substr(begin - bracketed), 0);
  const bool named = std::ranges::any_of(out.host, is_letter) || std::ranges::count(out.host, '.') == 3 ||
                     out.host.find(':') != out.host.npos;
  return named && !is_program_line(out.host) ? out : ProbeTarget{};
}

std::string_view between(std::string_view line, std::string_view before, std::string_view ends) {
  const size_t at = line.find(before);
  if (at == line.npos) return {};
  const std::string_view rest = line.substr(at + before.size());
  return rest.substr(0, rest.find_first_of(ends));
}

void add(std::vector<ProbeTarget>& out, ProbeTarget target) {
  if (target.host.empty() && target.path.empty()) return;
  if (out.size() < kTargetsMost && std::ranges::find(out, target) == out.end())
    out.push_back(std::move(target));
}

void add_paths(std::string_view line, std::vector<ProbeTarget>& out) {
  for (size_t at = line.find('/'); at != line.npos; at = line.find('/', at + 1)) {
    const char before = at == 0 ? ' ' : line[at - 1];
    if (std::string_view(" \t'\"=([").find(before) == std::string_view::npos) continue;
    const std::string_view rest = line.substr(at);
    const bool quoted = before == '\'' || before == '"';
    std::string_view path = rest.substr(0, quoted ? rest.find(before) : rest.find_first_of(" \t'\"),;:]"));
    while (path.ends_with('.')) path.remove_suffix(1);
    const bool known = path.starts_with("/proc/") || path.starts_with("/dev/") || path.starts_with("/sys/");
    if (path.size() > 1 && path.size() <= kPathBytes && path[1] != '/' && !known && !is_program_line(path))
      add(out, {"", 0, std::string(path)});
    at += path.size();
  }
}

// Errors of a file system whose server is away. Any other answer, also that there is no such file, is one.
bool is_away(int error) {
  constexpr int kErrors[] = {ESTALE,   EIO,       ENOTCONN,     ETIMEDOUT,    EHOSTDOWN,  EHOSTUNREACH,
                             ENETDOWN, ESHUTDOWN, ECONNREFUSED, ECONNABORTED, ECONNRESET, EREMOTEIO};
  return std::ranges::find(kErrors, error) != std::end(kErrors);
}

// In a child: exit status 0 where the target answers, or cannot be probed.
int probe(const ProbeTarget& target, TimeNs within_ns) {
  if (!target.path.empty()) {
    struct stat info {};
    return ::stat(target.path.c_str(), &info) != 0 && is_away(errno) ? 1 : 0;
  }
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  const int named = ::getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (named == EAI_NONAME || named == EAI_NODATA) return 0;  // no service of this name
  // A word before a colon, as "step:500", where no name server answers.
  if (named == EAI_AGAIN && target.host.find('.') == target.host.npos) return 0;
  if (named != 0) return 1;
  const TimeNs until = steady_now() + within_ns;
  for (const addrinfo* one = found; one; one = one->ai_next) {
    const int fd = ::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) continue;
    if (::connect(fd, one->ai_addr, one->ai_addrlen) == 0) return 0;
    pollfd ready{fd, POLLOUT, 0};
    int error = errno;
    socklen_t size = sizeof error;
    const auto left_ms = static_cast<int>(std::max<TimeNs>(until - steady_now(), 0) / kNsPerMs);
    if (error == EINPROGRESS && ::poll(&ready, 1, left_ms) == 1 &&
        ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0)
      return 0;
    ::close(fd);
  }
  return 1;
}

// -1: no child.
pid_t start_probe(const ProbeTarget& target, TimeNs within_ns) {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::_exit(probe(target, within_ns));
}

}  // namespace

std::string ProbeTarget::text() const {
  if (host.empty()) return path;
  return host.find(':') == host.npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

std::vector<ProbeTarget> targets_in(std::string_view line) {
  line = line.substr(0, kLineBytes);
  std::vector<ProbeTarget> out;
  for (size_t sign = line.find("://"); sign != line.npos; sign = line.find("://", sign + 3))
    add(out, url_at(line, sign));
  const std::string_view host = between(line, "host='", "'"), port = between(line, "port=", "),' \t");
  if (!host.empty()) add(out, address_at(std::string(host) + ":" + std::string(port), 0));
  for (const std::string_view word : split(line, ' '))
    if (word.find("://") == word.npos) add(out, address_in(word));
  add_paths(line, out);
  return out;
}

std::vector<ProbeTarget> targets_of(const Report& report, const Lookup& variable) {
  std::vector<ProbeTarget> out;
  const Diagnosis* lead = leading(report);
  if (lead == nullptr) return out;
  size_t lines = 0;
  for (const Evidence& evidence : lead->evidence)
    if (++lines <= kLinesMost)
      for (ProbeTarget& target : targets_in(evidence.text)) add(out, std::move(target));
  // Behind a proxy a service answers without being reachable from here.
  constexpr std::string_view kProxies[] = {"http_proxy", "https_proxy", "all_proxy",
                                           "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"};
  if (std::ranges::any_of(kProxies,
                          [&](std::string_view name) { return !variable(name).value_or("").empty(); }))
    std::erase_if(out, [](const ProbeTarget& target) { return target.path.empty(); });
  return out;
}

std::vector<ProbeTarget> unanswered(const std::vector<ProbeTarget>& targets, TimeNs within_ns) {
  std::vector<pid_t> children;
  for (const ProbeTarget& target : targets) children.push_back(start_probe(target, within_ns));
  const TimeNs until = steady_now() + within_ns;
  std::vector<ProbeTarget> out;
  for (size_t i = 0; i < targets.size(); ++i) {
    int status = 1;
    if (children[i] > 0 && io::ends_within(children[i], std::max<TimeNs>(until - steady_now(), 0)))
      ::waitpid(children[i], &status, 0);
    else if (children[i] > 0)
      ::kill(children[i], SIGKILL);  // one that waits in the kernel ends when its server answers
    if (status != 0) out.push_back(targets[i]);
  }
  return out;
}

}  // namespace culprit::app
