// Symptoms that machines report for a fault: findings of plugins, kernel lines, lines of the sites'
// monitors. Each has several wordings, because drivers and sites differ.
#include <algorithm>

#include <fmt/args.h>
#include <fmt/format.h>

#include "sim/mixed_plan.h"
#include "sim/site.h"

namespace culprit::sim {
namespace {

constexpr TimeNs kSecond = kNsPerSecond;

using Wordings = std::vector<std::string_view>;

// Names of parts that all lines of one host share.
struct Parts {
  std::string bus, card, port, netdev, pid, server, disk;
};

class Signs {
 public:
  Signs(MixedPlan& plan, Random random) : p_(plan), random_(random) {
    own_plugins_ = !random_.chance(30);
    const Wordings servers = {"storage-1", "nfs04.cluster.local", "10.4.0.17", "filer-b"};
    server_ = servers[random_.below(servers.size())];
  }

  void add() {
    switch (p_.fault) {
      case MixedFault::kThermal:
        thermal(host(), device(), p_.onset_ns() + seconds(-15, 50));
        break;
      case MixedFault::kHealthyThermal:
        thermal(any_host(), any_device(), middle());
        break;
      case MixedFault::kCable:
        flaps(end_of_link(), p_.onset_ns(), static_cast<int>(random_.range(1, 4)));
        break;
      case MixedFault::kCableDown:
        down(end_of_link(), p_.onset_ns());
        break;
      case MixedFault::kHealthyFlap:
        flaps(any_host(), p_.epoch_ns - seconds(1800, 7200), 2);
        break;
      case MixedFault::kMemory:
        memory(host(), device(), p_.onset_ns());
        break;
      case MixedFault::kHealthyEcc:
        corrected(any_host(), any_device(), middle());
        break;
      case MixedFault::kStorage:
        storage(p_.onset_ns());
        break;
      case MixedFault::kDisk:
        disk(host(), p_.onset_ns());
        break;
      case MixedFault::kOom:
        oom(host(), p_.onset_ns());
        break;
      case MixedFault::kPlanned:
      case MixedFault::kHealthyPlan:
        break;
    }
    if (random_.chance(50)) decoy();
    const auto earlier = [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; };
    std::ranges::stable_sort(p_.counters, earlier);
    std::ranges::stable_sort(p_.kernel, earlier);
    std::ranges::stable_sort(p_.chat, earlier);
  }

 private:
  uint32_t host() const { return p_.fault_hosts.at(0); }
  uint32_t device() const { return p_.rank.value_or(0) % p_.ranks_per_host; }
  uint32_t any_host() { return static_cast<uint32_t>(random_.below(p_.hosts.size())); }
  uint32_t any_device() { return static_cast<uint32_t>(random_.below(p_.ranks_per_host)); }
  uint32_t end_of_link() { return p_.peer && random_.chance(50) ? *p_.peer : host(); }
  TimeNs middle() const { return p_.step_ends_ns.at(p_.step_ends_ns.size() / 2); }
  TimeNs seconds(int64_t lo, int64_t hi) { return random_.range(lo * 1000, hi * 1000) * kNsPerMs; }

  Parts parts(uint32_t host, uint32_t device) {
    const auto n = static_cast<uint32_t>(random_.below(8));
    const Wordings netdevs = {"ens{}np0", "enp{}s0f0np0", "rdma{}", "ib{}", "eth{}"};
    return {bus_of(device),
            fmt::format("mlx5_{}", n),
            fmt::format("0000:{:02x}:00.0", 0x2a + 16 * n),
            fmt::format(fmt::runtime(netdevs[host % netdevs.size()]), n + 2),
            fmt::format("{}", 4000 + 7 * device + 31 * (host % 977)),
            server_,
            fmt::format("nvme{}", random_.below(4))};
  }

  std::string filled(const Wordings& wordings, const Parts& parts) {
    const std::string_view text = wordings[random_.below(wordings.size())];
    return fmt::format(fmt::runtime(text), fmt::arg("bus", parts.bus), fmt::arg("card", parts.card),
                       fmt::arg("port", parts.port), fmt::arg("if", parts.netdev), fmt::arg("pid", parts.pid),
                       fmt::arg("server", parts.server), fmt::arg("disk", parts.disk),
                       fmt::arg("n", random_.range(2, 400)), fmt::arg("t", random_.range(87, 96)),
                       fmt::arg("mhz", random_.range(60, 115) * 15));
  }

  void say(uint32_t host, TimeNs at, const Wordings& wordings, const Parts& parts) {
    p_.kernel.push_back({at, host, filled(wordings, parts)});
  }
  void show(std::string_view input) { p_.shows.insert(input); }

  // The site's own plugin uses other names than the product's plugin.
  MixedCounter& count(uint32_t host, TimeNs at, std::string_view own, std::string_view theirs,
                      std::string_view title) {
    MixedCounter& c = p_.counters.emplace_back();
    c.host = host;
    c.at_ns = at;
    const std::string_view name = own_plugins_ ? own : theirs;
    const size_t cut = name.find(' ');
    c.plugin = name.substr(0, cut);
    c.id = name.substr(cut + 1);
    c.title = title;
    return c;
  }

  void thermal(uint32_t host, uint32_t device, TimeNs at) {
    const Parts names = parts(host, device);
    MixedCounter& c = count(host, at, "gpu_health gpu.thermal_throttle", "dcgm_bridge dcgm.clocks_thermal",
                            own_plugins_ ? "GPU runs slower because it is too hot"
                                         : "Clocks of a GPU are lowered: thermal violation");
    c.device = device;
    c.text = filled({"GPU is at {t} C and its clock at {mhz} MHz", "HW thermal slowdown, {mhz} MHz at {t} C",
                     "thermal violation counter grows, {t} C"},
                    names);
    c.category = "hardware", c.component = "gpu", c.symptom = "slowdown";
    c.state = "raised", c.confidence = 0.95;
    show("counters");
    if (!random_.chance(60)) return;
    p_.chat.push_back(
        {at + seconds(-5, 20), host,
         fmt::format(
             "gpu-monitor: GPU {}: {}", device,
             filled({"clocks_event_reasons.hw_thermal_slowdown: Active, {t} C, {mhz} MHz",
                     "temperature {t} C, throttled to {mhz} MHz", "HW Thermal Slowdown active ({t} C)"},
                    names))});
  }

  void flaps(uint32_t host, TimeNs at, int times) {
    const Parts names = parts(host, any_device());
    for (int i = 0; i < times; ++i) {
      const TimeNs then = at + i * seconds(3, 12);
      MixedCounter& c =
          count(host, then + seconds(1, 20), "net_health net.link_flap", "ib_watch ib.port_bounced",
                own_plugins_ ? "Network link goes down and comes back" : "A port bounced");
      c.part = names.card + "/1";
      c.text = filled({"{card} lost its link for {n} ms", "link of {if} was down {n} ms",
                       "port state changed, {n} ms without carrier"},
                      names);
      c.category = "hardware", c.component = "network", c.symptom = "slowdown", c.confidence = 0.85;
      link_lines(host, then, names, true);
    }
    if (random_.chance(40)) {
      MixedCounter& c =
          count(host, at + seconds(5, 40), "net_health net.symbol_errors", "ib_watch ib.symbol_ber",
                own_plugins_ ? "Port receives damaged symbols" : "Symbol error rate too high");
      c.part = names.card + "/1";
      c.text = filled({"{card}: {n} symbol errors more", "effective BER above 1e-12, {n} errors"}, names);
      c.category = "hardware", c.component = "network", c.symptom = "slowdown";
      c.state = at < p_.epoch_ns ? "happened" : "raised", c.confidence = 0.7;
    }
    show("counters");
    show("kernel");
  }

  void link_lines(uint32_t host, TimeNs at, const Parts& names, bool up) {
    const uint64_t style = random_.below(5);
    const Wordings downs[] = {{"mlx5_core {port} {if}: Link down"},
                              {"bnxt_en {port} {if}: NIC Link is Down"},
                              {"mlx5_core {port}: Port module event[error]: module 0, Cable error, Bus stuck "
                               "(I2C or data shorted)"},
                              {"bond0: (slave {if}): link status definitely down, disabling slave"},
                              {"ice {port} {if}: NIC Link is Down"}};
    const Wordings ups[] = {
        {"mlx5_core {port} {if}: Link up"},
        {"bnxt_en {port} {if}: NIC Link is Up, 200000 Mbps full duplex, Flow control: ON"},
        {"mlx5_core {port} {if}: Link up"},
        {"bond0: (slave {if}): link status definitely up, 200000 Mbps full duplex"},
        {"ice {port} {if}: NIC Link is up 100 Gbps Full Duplex"}};
    say(host, at, downs[style], names);
    if (up) say(host, at + seconds(1, 3), ups[style], names);
  }

  void down(uint32_t host, TimeNs at) {
    const Parts names = parts(host, any_device());
    MixedCounter& c = count(host, at + seconds(1, 30), "net_health net.link_down", "ib_watch ib.port_down",
                            own_plugins_ ? "Network port went down" : "A port has no link");
    c.part = names.card + "/1";
    c.text =
        filled({"{card} port 1 is DOWN", "{if}: no carrier", "physical state Polling, was LinkUp"}, names);
    c.category = "hardware", c.component = "network", c.symptom = "hang";
    c.state = "raised", c.severity = "error";
    link_lines(host, at, names, false);
    show("counters");
    show("kernel");
  }

  void memory(uint32_t host, uint32_t device, TimeNs at) {
    const Parts names = parts(host, device);
    say(host, at - seconds(0, 2),
        {"NVRM: Xid (PCI:{bus}): 94, pid={pid}, name=python3, Contained: CE User Channel (0x9). RST: No, "
         "D-RST: "
         "No",
         "NVRM: Xid (PCI:{bus}): 48, pid='<unknown>', name=<unknown>, An uncorrectable double bit error "
         "(DBE) "
         "has been detected on GPU in the framebuffer at partition 6, subpartition 0.",
         "NVRM: Xid (PCI:{bus}): 63, pid={pid}, name=pt_main_thread, Row Remapper: New row "
         "(0x00000000017d2e43) marked for remapping, reset gpu to activate.",
         "NVRM: Xid (PCI:{bus}): 95, pid={pid}, name=python3, Uncontained: LTC TAG (0x2,0x0). RST: Yes, "
         "D-RST: "
         "No",
         "NVRM: Xid (PCI:{bus}): 64, pid={pid}, name=python3, Row Remapper: Failed to mark row "
         "(0x0000000000a1b2c3) for remapping."},
        names);
    MixedCounter& c =
        count(host, at + seconds(0, 25), "gpu_health gpu.ecc_uncorrected", "dcgm_bridge dcgm.dbe",
              own_plugins_ ? "Uncorrectable error in GPU memory" : "Double-bit error in HBM");
    c.device = device;
    c.text = filled({"uncorrectable errors: 1 more, {n} in all", "DBE volatile 0 -> 1"}, names);
    c.category = "hardware", c.component = "gpu_memory", c.symptom = "crash", c.action = "isolate";
    c.severity = "error", c.confidence = 0.95;
    show("counters");
    show("kernel");
  }

  void corrected(uint32_t host, uint32_t device, TimeNs at) {
    const Parts names = parts(host, device);
    MixedCounter& c =
        count(host, at, "gpu_health gpu.ecc_corrected", "dcgm_bridge dcgm.sbe_rate",
              own_plugins_ ? "Many corrected errors in GPU memory" : "Single-bit errors in HBM");
    c.device = device;
    c.text = filled({"{n} corrected errors within an hour", "SBE volatile grows by {n}"}, names);
    c.category = "hardware", c.component = "gpu_memory", c.symptom = "other", c.confidence = 0.4;
    say(host, at + seconds(-3, 3),
        {"EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#1_DIMM#0 (channel:1 slot:0 "
         "page:0x3a1b{n})",
         "mce: [Hardware Error]: Corrected error, no action required.",
         "NVRM: Xid (PCI:{bus}): 92, pid='<unknown>', name=<unknown>, High single-bit ECC error rate"},
        names);
    show("counters");
    show("kernel");
  }

  void storage(TimeNs at) {
    const uint64_t kind = random_.below(3);
    for (uint32_t h = 0; h < p_.hosts.size(); ++h) {
      if (!random_.chance(75)) continue;
      const Parts names = parts(h, any_device());
      if (random_.chance(80)) {
        const bool stall = random_.chance(60);
        MixedCounter& c = count(h, at + seconds(30, 120),
                                stall ? "host_health storage.nfs_stall" : "host_health storage.nfs_backlog",
                                "mount_probe fs.slow",
                                !own_plugins_ ? "A mount answers late"
                                : stall       ? "NFS server does not answer"
                                              : "NFS requests wait for the server");
        c.part = "/mnt/data";
        c.text = filled({"{n} requests to {server} wait", "{server} has not answered for {n} s",
                         "statfs of the mount of {server} took {n} s"},
                        names);
        c.category = "platform", c.component = "storage", c.symptom = stall ? "hang" : "slowdown";
        c.state = "raised", c.severity = stall ? "error" : "warning", c.confidence = stall ? 0.85 : 0.6;
      }
      if (random_.chance(70)) storage_lines(h, at, kind, names);
    }
    show("counters");
    show("kernel");
  }

  void storage_lines(uint32_t host, TimeNs at, uint64_t kind, const Parts& names) {
    const Wordings servers[] = {
        {"nfs: server {server} not responding, still trying",
         "nfs: server {server} not responding, timed out"},
        {"LustreError: 11-0: fs01-OST0007-osc-ffff9a6e: operation ost_write to node 10.4.0.{n}@o2ib failed: "
         "rc = "
         "-110",
         "Lustre: fs01-OST0007-osc-ffff9a6e: Connection to fs01-OST0007 (at 10.4.0.{n}@o2ib) was lost; in "
         "progress operations using this service will wait for recovery to complete"},
        {"ceph: mds0 hung", "libceph: osd{n} down", "nfs: server {server} not responding, still trying"}};
    say(host, at + seconds(20, 90), servers[kind], names);
    say(host, at + seconds(122, 240),
        {"INFO: task python3:{pid} blocked for more than 120 seconds.",
         "INFO: task pt_main_thread:{pid} blocked for more than 122 seconds.",
         "INFO: task pt_data_worker:{pid} blocked for more than 241 seconds."},
        names);
  }

  void disk(uint32_t host, TimeNs at) {
    const Parts names = parts(host, any_device());
    const bool own = own_plugins_;
    MixedCounter& c =
        count(host, at + seconds(-10, 40), "host_health host.io_pressure", "disk_watch disk.queue",
              own ? "Tasks wait for storage" : "Queue of a disk is long");
    c.part = own ? "" : names.disk + "n1";
    c.text = filled({"tasks waited for storage {n} s of the last minute", "average queue {n}, await {n} ms",
                     "{disk}n1 is busy for 99 % with {n} requests waiting"},
                    names);
    c.category = "platform", c.component = "storage", c.symptom = "slowdown";
    c.state = "raised", c.confidence = own ? 0.6 : 0.75;
    if (random_.chance(60))
      say(host, at + seconds(0, 20),
          {"nvme {disk}: I/O {n} QID 7 timeout, completion polled",
           "nvme {disk}: I/O tag {n} (1039) QID 12 timeout, completion polled",
           "{disk}n1: I/O latency of {n} ms exceeds the limit of the cgroup"},
          names);
    show("counters");
  }

  void oom(uint32_t host, TimeNs at) {
    const Parts names = parts(host, device());
    MixedCounter& c =
        count(host, at + seconds(1, 20), "host_health host.oom_kill", "node_probe mem.oom",
              own_plugins_ ? "Kernel killed a process since memory ran out" : "OOM kill on the node");
    c.text = filled(
        {"oom_kill of the cgroup went from 0 to 1", "kernel counts 1 kill more, python3 had {n} GiB"}, names);
    c.category = "user", c.component = "host_memory", c.symptom = "crash", c.action = "fix";
    c.severity = "error", c.confidence = 0.9;
    say(host, at,
        {"Out of memory: Killed process {pid} (python3) total-vm:284310416kB, anon-rss:120412332kB, "
         "file-rss:0kB, shmem-rss:8192kB, UID:1000 pgtables:241004kB oom_score_adj:0",
         "Memory cgroup out of memory: Killed process {pid} (pt_main_thread) total-vm:184310416kB, "
         "anon-rss:98412332kB, file-rss:0kB, shmem-rss:4096kB, UID:5012 pgtables:198004kB oom_score_adj:984",
         "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_41,mems_allowed=0-1,"
         "oom_memcg=/slurm/uid_1000/job_41,task_memcg=/slurm/uid_1000/job_41/step_0,task=python,pid={pid},"
         "uid=1000"},
        names);
    show("counters");
    show("kernel");
  }

  // Harmless, on a host without the fault.
  void decoy() {
    const auto shown = p_.shows;
    const uint32_t other = any_host();
    if (std::ranges::find(p_.fault_hosts, other) != p_.fault_hosts.end() || other == p_.peer) return;
    switch (random_.below(3)) {
      case 0:
        corrected(other, any_device(), p_.onset_ns());
        break;
      case 1:
        if (is_mixed_fault(p_.fault)) thermal(other, any_device(), p_.onset_ns() + seconds(-20, 20));
        break;
      default:
        flaps(other, p_.epoch_ns - seconds(1800, 7200), 1);
    }
    p_.shows = shown;
  }

  MixedPlan& p_;
  Random random_;
  bool own_plugins_ = true;
  std::string server_;
};

}  // namespace

void add_mixed_signs(MixedPlan& plan, Random random) { Signs(plan, random).add(); }

}  // namespace culprit::sim
