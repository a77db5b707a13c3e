// What systemd tells a service through its environment, and what the service tells systemd. The protocol is
// a datagram of lines, kept stable by systemd's documents: by hand it costs a page, and libsystemd would
// bring its compressors and gcrypt into an agent that has 20 MB. One thread; sending never blocks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// A descriptor that systemd opened for the service, by the name of its socket unit.
struct HandedDescriptor {
  std::string name;  // "kmsg"
  int descriptor = -1;
};

struct ServiceEnvironment {
  std::string notify_socket;                          // empty: nobody listens
  TimeNs watchdog_ns = 0;                             // 0: no watchdog; feed it at least twice in this time
  std::vector<HandedDescriptor> descriptors;          // close-on-exec is set by read_service_environment
  int descriptor_named(std::string_view name) const;  // -1: none
};

// `get` is getenv or a test's. Variables that are meant for another process (LISTEN_PID, WATCHDOG_PID) or
// make no sense count as absent.
using GetVariable = std::function<const char*(const char*)>;
ServiceEnvironment parse_service_environment(const GetVariable& get, int own_pid);
// Of this process: sets close-on-exec, and takes the variables away so that no child believes in them. Once,
// before there are threads.
ServiceEnvironment read_service_environment();

class Notify {
 public:
  explicit Notify(const std::string& notify_socket);  // empty: every call does nothing
  ~Notify();
  Notify(const Notify&) = delete;
  Notify& operator=(const Notify&) = delete;

  Status ready(std::string_view status);
  Status reloading(TimeNs monotonic_now);  // then ready() again
  Status stopping();
  Status status(std::string_view sentence);  // what `systemctl status` shows
  Status feed_watchdog();

 private:
  Status send(const std::string& lines);
  std::string socket_;
  int descriptor_ = -1;
};

}  // namespace culprit::app
