// The protocol between systemd and a service: environment variables in, datagrams of lines out. Systemd
// documents the protocol as stable. This code needs one page; libsystemd would add its compressors and gcrypt
// to an agent with a budget of 20 MB. One thread; sending never blocks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// A descriptor that systemd opened for the service, with the name of its socket unit.
struct HandedDescriptor {
  std::string name;  // "kmsg"
  int descriptor = -1;
};

struct ServiceEnvironment {
  std::string notify_socket;                          // empty: no listener
  TimeNs watchdog_ns = 0;                             // 0: no watchdog; else call at least twice per interval
  std::vector<HandedDescriptor> descriptors;          // read_service_environment() sets close-on-exec
  int descriptor_named(std::string_view name) const;  // -1: none
};

// `get` is getenv or a test's function. Invalid variables, and variables for another process (LISTEN_PID,
// WATCHDOG_PID), count as unset.
using GetVariable = std::function<const char*(const char*)>;
ServiceEnvironment parse_service_environment(const GetVariable& get, int own_pid);
// Reads this process's environment. Sets close-on-exec and removes the variables, so no child uses them. Call
// once, before other threads start.
ServiceEnvironment read_service_environment();

class Notify {
 public:
  explicit Notify(const std::string& notify_socket);  // empty: every call does nothing
  ~Notify();
  Notify(const Notify&) = delete;
  Notify& operator=(const Notify&) = delete;

  Status ready(std::string_view status);
  Status reloading(TimeNs monotonic_now);  // followed by ready()
  Status stopping();
  Status status(std::string_view sentence);  // shown by `systemctl status`
  Status feed_watchdog();

 private:
  Status send(const std::string& lines);
  std::string socket_;
  int descriptor_ = -1;
};

}  // namespace culprit::app
