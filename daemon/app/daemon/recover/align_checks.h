// Alignments of a stopped job's hosts: all agents are asked for an equal step, their rows are compared once
// all have answered or the order's limit is reached, and each host ends with one answer. Only a host whose
// device differs from a majority fails (core/detect/numerics/align); no answer, too few answers and no
// majority are unknown.
//
// Time is an argument; nothing blocks. One thread. Memory: the rows of the orders that are open.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "core/recover/controller.h"
#include "model/peer.h"

namespace culprit::app {

class AlignChecks {
 public:
  struct Ways {
    // AlignHost, AlignJudged. False: the host's agent is not connected.
    std::function<bool(const std::string& host, const peer::Message&)> send;
    std::function<std::string(const std::string& host)> boot_of;  // empty: not connected
    std::function<std::string(const std::string& host)> job_on;   // that the scheduler shows; empty: none
  };
  explicit AlignChecks(Ways ways) : ways_(std::move(ways)) {}

  void order(const recover::CheckOrder& order, TimeNs now);
  // An agent's answer. One without an order has no effect.
  void answered(const std::string& host, const peer::AlignResult& result, TimeNs now);
  // Asks, and ends orders at their limit.
  void beat(TimeNs now);
  // Answers since the last call.
  std::vector<recover::HostChecked> drain() { return std::exchange(answers_, {}); }

 private:
  struct Host {
    TimeNs next_ns = 0;  // when to ask
    bool asked = false;  // and no answer came yet
    bool ended = false;
    std::string why;  // why there is no answer
    std::vector<peer::AlignRow> rows;
  };
  struct Order {
    TimeNs until_ns = 0;
    std::map<std::string, Host> hosts;
  };
  void ask(const std::string& decision, const Order& order, const std::string& name, Host& host, TimeNs now);
  void end(const std::string& decision, const Order& order, TimeNs now);

  const Ways ways_;
  std::map<std::string, Order> orders_;  // by decision
  std::vector<recover::HostChecked> answers_;
};

}  // namespace culprit::app
