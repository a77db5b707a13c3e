// Judges what was read of network adapters and PCI devices. No clock, file or process in here.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/report.h"
#include "net_health/counters.h"
#include "net_health/readings.h"

namespace net {

// How long NCCL repeats a transfer over InfiniBand or RoCE before the connection breaks: its user guide has
// 4.096 us * 2^NCCL_IB_TIMEOUT per try, NCCL_IB_RETRY_CNT tries; 20 and 7 (since 2.23) make 30 s.
double nccl_timeout_s(int timeout, int retries);

class Watch {
 public:
  Watch(health::Report& report, int timeout, int retries)
      : report_(report), timeout_(timeout), retries_(retries) {}

  void rdma(const std::string& device, const Reading& reading, bool counters, int64_t now_ns);
  void interface(const std::string& name, const Reading& reading, int64_t now_ns);
  void pci(const Reading& reading, int64_t now_ns);
  // After a round: compares the ports of one kind of link with each other.
  void compare();
  void hangs(const std::string& device, bool bad, double waited_s);

 private:
  struct Port {
    bool rdma = false, seen_up = false, up = false;
    double speed = 0, speed_best = 0;                 // Gb/s
    int64_t down_ns = 0;                              // when it was first seen down; 0: it is up
    std::deque<std::pair<int64_t, int64_t>> outages;  // begin and end, of the last ten minutes
    health::Count changes{10 * health::kMinute};
    std::vector<health::Count> counts;
  };
  struct Pci {
    health::Count correctable{health::kMinute}, nonfatal{health::kHour}, fatal{health::kHour};
  };

  void link(const std::string& name, Port& port, bool up, int64_t now_ns);
  void flaps(const std::string& name, Port& port, uint64_t changes, int64_t now_ns);
  void speed(const std::string& name, Port& port, double speed);
  void errors(const std::string& name, Port& port, const Threshold& threshold, uint64_t value,
              int64_t now_ns);
  double down_s(const Port& port, int64_t now_ns) const;
  void lanes(const std::string& name, const Reading& reading);
  void aer(const std::string& name, const Reading& reading, int64_t now_ns);

  health::Report& report_;
  int timeout_, retries_;
  std::map<std::string, Port> ports_;
  std::map<std::string, Pci> pci_;
};

}  // namespace net
