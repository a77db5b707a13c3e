// Judges what was read of the host. Files are read here, small ones of the kernel that never block; mounts
// are asked by the detector, in a child.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/report.h"
#include "host_health/sources.h"

namespace host {

// Plain bytes: crosses a pipe.
struct Space {
  int32_t error = 0;
  uint64_t bytes = 0, bytes_free = 0, inodes = 0, inodes_free = 0;
};

class Watch {
 public:
  Watch(health::Report& report, std::string root) : report_(report), root_(std::move(root)) {}

  // Every few seconds.
  void pressure();
  void out_of_memory();
  // The two clocks, and whether the kernel's is synchronised.
  void clocks(int64_t wall_ns, int64_t steady_ns, bool synchronised, double error_s);
  // Every minute.
  void edac(int64_t now_ns);
  void throttle(int64_t now_ns);
  void nfs(int64_t now_ns);
  void tasks(int64_t now_ns);
  // The mounts to ask for.
  std::vector<Mount> mounts();
  void space(const Mount& mount, const Space& space);
  void mount_hangs(const std::string& folder, bool bad, double waited_s);

 private:
  struct Nfs {
    Rpc last;
    int64_t answered_ns = 0;
    uint64_t sends = 0;  // when it last answered
    bool known = false;
  };
  struct Stuck {
    uint64_t start = 0, switches = 0;
    int64_t since_ns = 0;
    std::string name;
  };
  void nfs_mount(const std::string& folder, const Rpc& rpc, int64_t now_ns);

  health::Report& report_;
  std::string root_;
  std::map<std::string, health::Count> oom_;                      // by group
  std::map<std::string, health::Count> corrected_, uncorrected_;  // by memory controller
  std::map<std::string, health::Count> throttles_;
  std::map<std::string, Nfs> nfs_;
  std::map<std::string, Stuck> stuck_;  // by pid
  std::map<std::string, bool> writable_;
  int64_t offset_ns_ = 0;
  bool offset_known_ = false;
};

}  // namespace host
