#include "app/daemon/self/notify.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>

using namespace culprit;
using namespace culprit::app;

namespace {

ServiceEnvironment parsed(const std::map<std::string, std::string>& variables) {
  return parse_service_environment(
      [&](const char* name) -> const char* {
        const auto it = variables.find(name);
        return it == variables.end() ? nullptr : it->second.c_str();
      },
      77);
}

// The service manager's end of the socket.
class Manager {
 public:
  explicit Manager(const std::string& name) : name_(name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name[0] == '@') address.sun_path[0] = '\0';
    descriptor_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    BOOST_REQUIRE(::bind(descriptor_, reinterpret_cast<sockaddr*>(&address), size) == 0);
  }
  ~Manager() {
    ::close(descriptor_);
    if (name_[0] == '/') ::unlink(name_.c_str());
  }
  std::string received() {
    char text[4096];
    const ssize_t got = ::recv(descriptor_, text, sizeof text, 0);
    return got < 0 ? "nothing" : std::string(text, static_cast<size_t>(got));
  }

 private:
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace

BOOST_AUTO_TEST_CASE(descriptors_are_taken_by_name_and_only_those_that_are_meant_for_this_process) {
  const auto ours = parsed({{"LISTEN_PID", "77"}, {"LISTEN_FDS", "2"}, {"LISTEN_FDNAMES", "api:kmsg"}});
  BOOST_TEST(ours.descriptor_named("kmsg") == 4);
  BOOST_TEST(ours.descriptor_named("api") == 3);
  BOOST_TEST(ours.descriptor_named("other") == -1);
  BOOST_TEST(parsed({{"LISTEN_PID", "77"}, {"LISTEN_FDS", "2"}}).descriptors.size() == 2u);
  const std::map<std::string, std::string> others[] = {{{"LISTEN_PID", "78"}, {"LISTEN_FDS", "1"}},
                                                       {{"LISTEN_FDS", "1"}},
                                                       {{"LISTEN_PID", "77"}},
                                                       {{"LISTEN_PID", "77"}, {"LISTEN_FDS", "-1"}},
                                                       {{"LISTEN_PID", "77"}, {"LISTEN_FDS", "1x"}},
                                                       {{"LISTEN_PID", "77"}, {"LISTEN_FDS", ""}},
                                                       {{"LISTEN_PID", "77"}, {"LISTEN_FDS", "100000"}}};
  for (const auto& variables : others) BOOST_TEST(parsed(variables).descriptors.empty());
}

BOOST_AUTO_TEST_CASE(the_watchdogs_time_is_that_of_this_process) {
  BOOST_TEST(parsed({{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", "77"}}).watchdog_ns ==
             30 * kNsPerSecond);
  BOOST_TEST(parsed({{"WATCHDOG_USEC", "30000000"}}).watchdog_ns == 30 * kNsPerSecond);
  BOOST_TEST(parsed({{"WATCHDOG_USEC", "30000000"}, {"WATCHDOG_PID", "1"}}).watchdog_ns == 0);
  BOOST_TEST(parsed({{"WATCHDOG_USEC", "9223372036854775807"}}).watchdog_ns == 0);
  BOOST_TEST(parsed({}).watchdog_ns == 0);
}

BOOST_AUTO_TEST_CASE(the_manager_hears_each_state_over_a_path_and_over_an_abstract_name) {
  const std::string pid = std::to_string(getpid());
  const std::string names[] = {(std::filesystem::temp_directory_path() / ("notify." + pid)).string(),
                               "@culprit.notify." + pid};
  for (const std::string& name : names) {
    Manager manager(name);
    Notify notify(parsed({{"NOTIFY_SOCKET", name}}).notify_socket);
    BOOST_TEST(notify.ready("follows 3 files\nREADY=0").has_value());
    BOOST_TEST(manager.received() == "READY=1\nSTATUS=follows 3 files READY=0");
    BOOST_TEST(notify.reloading(5'000'123'456).has_value());
    BOOST_TEST(manager.received() == "RELOADING=1\nMONOTONIC_USEC=5000123");
    BOOST_TEST(notify.status("well").has_value());
    BOOST_TEST(manager.received() == "STATUS=well");
    BOOST_TEST(notify.feed_watchdog().has_value());
    BOOST_TEST(manager.received() == "WATCHDOG=1");
    BOOST_TEST(notify.stopping().has_value());
    BOOST_TEST(manager.received() == "STOPPING=1");
  }
}

BOOST_AUTO_TEST_CASE(without_a_manager_nothing_is_said_and_one_that_went_away_is_an_error) {
  BOOST_TEST(parsed({{"NOTIFY_SOCKET", "vsock:2:1234"}}).notify_socket == "");
  Notify none("");
  BOOST_TEST(none.ready("well").has_value());
  Notify removed("/does/not/exist");
  const Status status = removed.ready("well");
  BOOST_REQUIRE(!status.has_value());
  BOOST_TEST(status.error().text.starts_with("/does/not/exist: cannot notify the service manager: "));
  BOOST_TEST(!Notify("/" + std::string(200, 'x')).stopping().has_value());
}

BOOST_AUTO_TEST_CASE(no_child_inherits_the_descriptors_or_the_variables) {
  int ends[2];
  BOOST_REQUIRE(::pipe(ends) == 0);
  const int before = ::dup(3);  // the descriptor that is open there is restored
  const int flags = before < 0 ? 0 : ::fcntl(3, F_GETFD);
  BOOST_REQUIRE(::dup2(ends[0], 3) == 3);
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", "1", 1);
  setenv("LISTEN_FDNAMES", "kmsg", 1);
  const ServiceEnvironment read = read_service_environment();
  BOOST_TEST(read.descriptor_named("kmsg") == 3);
  BOOST_TEST((::fcntl(3, F_GETFD) & FD_CLOEXEC) != 0);
  BOOST_TEST(!std::getenv("LISTEN_FDS"));
  BOOST_TEST(read_service_environment().descriptors.empty());
  if (before >= 0) {
    ::dup2(before, 3);
    ::fcntl(3, F_SETFD, flags);
    ::close(before);
  } else {
    ::close(3);
  }
  if (ends[0] != 3) ::close(ends[0]);
  ::close(ends[1]);
}
