// The checks of hosts that the controller or a person orders: agents are asked, asked again where one cannot
// answer yet, and each order ends with one answer, at its limit with none. A host that was restarted after we
// isolated it is checked by itself, until a check answers.
//
// Time is an argument; nothing blocks. One thread. Memory: one entry per host.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/recover/controller.h"
#include "model/peer.h"

namespace culprit::app {

class HostChecks {
 public:
  struct Ways {
    // False: the host's agent is not connected.
    std::function<bool(const std::string& host, const peer::CheckHost&)> ask;
    std::function<std::string(const std::string& host)> boot_of;  // empty: not connected
    std::function<std::string(const std::string& host)> job_on;   // that the scheduler shows; empty: none
  };
  explicit HostChecks(Ways ways) : ways_(std::move(ways)) {}

  void order(const recover::CheckOrder& order, TimeNs now);
  // An agent's answer. One without an order has no effect.
  void answered(const std::string& host, const peer::CheckResult& result, TimeNs now);
  // Hosts that we isolated, with the op of each. `may_check`: restarted ones are checked.
  void see_isolated(const std::map<std::string, std::string>& isolated, bool may_check, TimeNs now);
  // Asks, and ends orders at their limit.
  void beat(TimeNs now);
  // Answers since the last call.
  std::vector<recover::HostChecked> drain() { return std::exchange(answers_, {}); }

 private:
  struct Wait {
    std::string decision;
    TimeNs until_ns = 0, next_ns = 0;  // `next_ns`: when to ask
    bool asked = false;                // and no answer came yet
    std::string why;                   // why there is no answer
  };
  struct Isolated {
    std::string op, boot;
    TimeNs next_ns = kNoTime;  // of its check; kNoTime: none is due
    TimeNs delay_ns = 0;       // until the check after that
  };
  void end(const std::string& host, recover::CheckAnswer answer, const std::string& why, TimeNs now);
  void ask(const std::string& host, Wait& wait, TimeNs now);

  const Ways ways_;
  std::map<std::string, Wait> waits_;
  std::map<std::string, Isolated> isolated_;
  std::vector<recover::HostChecked> answers_;
};

}  // namespace culprit::app
