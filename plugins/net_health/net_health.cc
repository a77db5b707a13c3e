// The detector net_health: reads sysfs in a child process (common/queries.h), and judges it (watch.h).
#include <algorithm>

#include "common/files.h"
#include "common/queries.h"
#include "common/report.h"
#include "net_health/readings.h"
#include "net_health/watch.h"

namespace net {
namespace {

using health::Queries;

constexpr int64_t kCountersNs = 10 * health::kSecond;  // counters are judged per minute and hour
constexpr int64_t kPciNs = health::kMinute;
constexpr int64_t kRetryNs = 5 * health::kMinute;

// In the child: "link DEVICE", "counters DEVICE", "net INTERFACE" and "pci".
std::string answer(const std::string& root, const std::string& subject) {
  const auto words = health::words(subject);
  const std::string name(words.size() > 1 ? words[1] : "");
  if (words[0] == "pci") return read_pci(root);
  if (words[0] == "net") return read_interface(root, name);
  return read_rdma(root, name, words[0] == "counters");
}

class NetHealth : public culprit::Detector {
 public:
  explicit NetHealth(const culprit::Host& host)
      : Detector(host),
        root_(host.option("root")),
        chosen_(host.option("interfaces")),
        links_ns_(host.integer("interval_s") * health::kSecond),
        report_(host),
        watch_(report_, int(host.integer("nccl_ib_timeout")), int(host.integer("nccl_ib_retry_cnt"))),
        queries_({host.integer("timeout_s") * health::kSecond, kRetryNs},
                 [this](const std::string& subject) { return answer(root_, subject); }) {}

  void tick(int64_t wall_ns) override {
    const int64_t now_ns = clock_.advance(wall_ns);
    for (const Queries::Result& result : queries_.poll(now_ns)) take(result, now_ns);
    if (due(list_at_ns_, kPciNs, now_ns)) {
      // What was there is still asked for: that is how it is found missing.
      keep(devices_, rdma_devices(root_));
      keep(interfaces_, interfaces(root_, chosen_));
      queries_.ask("pci", now_ns);
    }
    const bool counters = due(counters_at_ns_, kCountersNs, now_ns);
    if (!due(links_at_ns_, links_ns_, now_ns) && !counters) return;
    watch_.compare();
    for (const std::string& device : devices_) {
      queries_.ask((counters ? "counters " : "link ") + device, now_ns);
    }
    for (const std::string& name : interfaces_) queries_.ask("net " + name, now_ns);
  }

  std::string save_state() override { return report_.save(); }
  void load_state(const std::string& state) override { report_.load(state); }

 private:
  static bool due(int64_t& at_ns, int64_t interval_ns, int64_t now_ns) {
    if (now_ns < at_ns) return false;
    at_ns = now_ns + interval_ns;
    return true;
  }

  static void keep(std::vector<std::string>& names, const std::vector<std::string>& found) {
    for (const std::string& name : found) {
      if (std::find(names.begin(), names.end(), name) == names.end() && names.size() < 128)
        names.push_back(name);
    }
  }

  void take(const Queries::Result& result, int64_t now_ns) {
    const auto words = health::words(result.subject);
    const std::string name(words.size() > 1 ? words[1] : "pci");
    const bool answered = result.outcome == Queries::Outcome::kAnswered;
    watch_.hangs(name, !answered, double(result.waited_ns) * 1e-9);
    if (!answered) return;
    const Reading reading = parse(result.bytes);
    if (words[0] == "pci") return watch_.pci(reading, now_ns);
    if (words[0] == "net") return watch_.interface(name, reading, now_ns);
    watch_.rdma(name, reading, words[0] == "counters", now_ns);
  }

  const std::string root_, chosen_;
  const int64_t links_ns_;
  health::TickClock clock_;
  health::Report report_;
  Watch watch_;
  Queries queries_;
  int64_t list_at_ns_ = 0, links_at_ns_ = 0, counters_at_ns_ = 0;
  std::vector<std::string> devices_, interfaces_;
};

constexpr culprit_option kOptionTable[] = {
    {sizeof(culprit_option), "interval_s", "2", "Seconds between two looks at the state of each link.", 1, 60,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "timeout_s", "20", "Seconds after which a read of sysfs hangs.", 2, 600,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "nccl_ib_timeout", "20", "NCCL_IB_TIMEOUT of the jobs.", 0, 255,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "nccl_ib_retry_cnt", "7", "NCCL_IB_RETRY_CNT of the jobs.", 0, 255,
     CULPRIT_OPTION_INTEGER, 0},
    {sizeof(culprit_option), "interfaces", "", "Ethernet interfaces, with blanks; empty: all of hardware.", 0,
     0, CULPRIT_OPTION_TEXT, 0},
    {sizeof(culprit_option), "root", "", "Folder before /sys, for tests and containers.", 0, 0,
     CULPRIT_OPTION_TEXT, 0},
};
constexpr const culprit_option* kOptions[] = {&kOptionTable[0], &kOptionTable[1], &kOptionTable[2],
                                              &kOptionTable[3], &kOptionTable[4], &kOptionTable[5]};
constexpr culprit_description kDescription = {
    sizeof kDescription,
    CULPRIT_ABI_MAJOR,
    CULPRIT_ABI_MINOR,
    "net_health",
    "1.0",
    "Culprit",
    "Finds faults of network ports and PCIe links by the kernel's counters.",
    0,
    1000,
    kOptions,
    std::size(kOptions)};

}  // namespace
}  // namespace net

CULPRIT_PLUGIN(net::NetHealth, net::kDescription)
