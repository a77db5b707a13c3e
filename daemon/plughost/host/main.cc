// culprit-plugin-host: the process of one plugin. The daemon starts it with the channel as descriptor 3, the
// library as 4, and standard output and error as a pipe to its log. It has no rights beyond the daemon's, and
// ends with it.
//
//   culprit-plugin-host NAME MEMORY_BYTES PARENT
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "plughost/host/allocation.h"
#include "plughost/host_link.h"
#include "plughost/host_session.h"

namespace culprit::plughost {
namespace {

// Reserve between the daemon's limit (resident pages, checked periodically) and the kernel's limit
// (reserved pages): thread stacks and malloc arenas.
constexpr uint64_t kReservedBytes = 256 << 20;

void limit(decltype(RLIMIT_CORE) what, uint64_t value) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0) return;
  const rlim_t least = now.rlim_max == RLIM_INFINITY || now.rlim_max > value ? value : now.rlim_max;
  const rlimit wanted{least, least};
  ::setrlimit(what, &wanted);
}

void close_inherited() {
  if (::syscall(SYS_close_range, kLibraryDescriptor + 1, ~0U, 0) == 0) return;
  for (int descriptor = kLibraryDescriptor + 1; descriptor < 1024; ++descriptor) ::close(descriptor);
}

bool confine([[maybe_unused]] uint64_t memory_bytes, pid_t parent) {
  close_inherited();
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // The parent process may have exited before this call.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || ::getppid() != parent) return false;
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, 1024);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes
  if (memory_bytes > 0) limit(RLIMIT_DATA, memory_bytes + kReservedBytes);
#endif
  return true;
}

[[noreturn]] void end_without_channel() { ::_exit(kExitChannel); }

void write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(kChannelDescriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) end_without_channel();
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

int serve(std::string name, CodeOfPlugin code_of_plugin) {
  std::string message;
  const auto send = [&message](MessageKind kind, std::string_view payload) {
    message.clear();
    append_message(message, kind, payload);
    write_all(message);
  };
  HostSession session(std::move(name), send, code_of_plugin);
  session.open(kLibraryDescriptor);
  MessageReader reader;
  for (;;) {
    MessageReader::Message next;
    const auto state = reader.next(next);
    if (state == MessageReader::Next::kMalformed) return kExitMalformed;
    if (state == MessageReader::Next::kMessage) {
      if (session.handle(next.kind, next.payload)) continue;
      return next.kind == MessageKind::kStop ? 0 : kExitMalformed;
    }
    size_t size = 0;
    char* room = reader.room(size);
    const ssize_t n = ::recv(kChannelDescriptor, room, size, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) end_without_channel();
    reader.added(static_cast<size_t>(n));
  }
}

}  // namespace
}  // namespace culprit::plughost

int main(int argc, char** argv) {
  using namespace culprit::plughost;
  if (argc != 4) {
    std::fputs("culprit-plugin-host: culpritd starts it; there is nothing to run by hand\n", stderr);
    return 2;
  }
  if (!confine(std::strtoull(argv[2], nullptr, 10), static_cast<pid_t>(std::atoi(argv[3])))) return 1;
  return serve(argv[1], arm_failing_allocations(std::getenv("CULPRIT_FAIL_ALLOCATION")));
}
