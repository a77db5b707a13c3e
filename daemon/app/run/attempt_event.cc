#include "app/run/attempt_event.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstring>

#include "base/text.h"
#include "io/descriptors.h"
#include "model/json_writer.h"

namespace culprit::app {
namespace {

constexpr timeval kPatience = {1, 0};
constexpr uint32_t kAttemptsMost = 100'000;
constexpr const char* kPackageSocket = "/run/culprit-trace/trace.sock";
constexpr const char* kPlainSocket = "/run/culprit/trace.sock";

}  // namespace

std::string to_line(const AttemptEvent& event) {
  JsonWriter w;
  w.object([&] {
    w.field("kind", "event");
    w.field("name", "attempt");
    w.field("job", event.job);
    w.field("attempt", event.attempt);
    w.field("of", event.of);
    w.field("state", event.state);
    w.field("why", event.why);
    w.values("excluded", event.excluded);
    for (const auto& [name, id] :
         {std::pair("first", &event.first), {"member", &event.member}, {"successor", &event.successor}})
      if (!id->empty()) w.field(name, *id);
  });
  return w.finish() + "\n";
}

std::optional<AttemptEvent> begun_attempt(const std::string& job, const Lookup& variable) {
  const auto number = [&](const char* name) -> std::optional<uint32_t> {
    const std::string text = variable(name).value_or("");
    uint32_t n = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
    return error == std::errc() && end == text.data() + text.size() && n < kAttemptsMost ? std::optional(n)
                                                                                         : std::nullopt;
  };
  const auto attempt = number("CULPRIT_ATTEMPT"), left = number("CULPRIT_ATTEMPTS_LEFT");
  if (!attempt || !left) return std::nullopt;
  AttemptEvent out{job, *attempt, *attempt + *left, "begin", "", {}};
  const std::string names = variable(kExcludedVariable).value_or("");
  for (const std::string_view name : split(names, ','))
    if (!name.empty()) out.excluded.emplace_back(name);
  return out;
}

bool send_to_trace(const std::string& socket, const std::string& line) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.empty() || socket.size() >= sizeof address.sun_path) return false;
  std::memcpy(address.sun_path, socket.c_str(), socket.size() + 1);
  const io::Descriptor to(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!to.is_open()) return false;
  (void)::setsockopt(to.get(), SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  if (::connect(to.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  return ::send(to.get(), line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
}

std::optional<HostDaemon> host_daemon(const Lookup& variable) {
  HostDaemon out;
  for (const char* name : {"CULPRIT_JOB", "SLURM_JOB_ID"})
    if (out.job.empty()) out.job = variable(name).value_or("");
  if (out.job.empty()) return std::nullopt;
  out.socket = variable("CULPRIT_TRACE_SOCKET").value_or("");
  if (out.socket.empty()) out.socket = ::access(kPackageSocket, W_OK) == 0 ? kPackageSocket : kPlainSocket;
  return out;
}

}  // namespace culprit::app
