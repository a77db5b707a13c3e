// Selects the pods of this node that are jobs, and the job of each one's logs. A pod's folder has its
// namespace, name and UID, which the kubelet wrote. Labels and owners come from the API server: one GET for
// each new pod, so that the account needs no right but to get pods, and nothing is listed or watched. If the
// server refuses or does not answer, the namespaces of the configuration and the pod's name decide.
//
// A job's id begins with the namespace, so what a pod says of itself counts within its namespace only.
//
// Any thread. enter() may block for kAskWithin, and is called by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/config.h"
#include "base/principal.h"
#include "base/status.h"
#include "base/time.h"
#include "ingest/live/tailer.h"
#include "respond/kubernetes/api.h"
#include "respond/kubernetes/pod_job.h"

namespace culprit::app {

struct PodLogsOptions {
  std::string folder;                   // "/var/log/pods"
  std::vector<std::string> namespaces;  // patterns
  respond::kubernetes::ApiCall call;    // empty: there is no API server
  std::string without;                  // why there is none
  std::function<TimeNs()> mono;         // monotonic
  // A pod that is a job: its name by its control group, "pod-UID", and the job. May be empty.
  std::function<void(const std::string& pod, const std::string& job)> found = {};
};

class PodLogs {
 public:
  using Enter = ingest::TailOptions::Enter;
  static constexpr TimeNs kAskWithin = 3 * kNsPerSecond;
  // Known pods; a kubelet runs 110 by default. Beyond it the least recently seen is asked again.
  static constexpr size_t kPods = 4096;

  explicit PodLogs(PodLogsOptions options) : options_(std::move(options)) {}

  // Of a folder below the kubelet's.
  Enter enter(const std::string& folder);
  // Of a log in a folder that was entered.
  std::string job_of(const std::string& path) const;
  // Who wrote it: the pod, whatever the folder's name.
  Principal container_of(const std::string& path) const;
  // The job of "pod-UID", where that pod is known; else the same name.
  std::string job_named(const std::string& job) const;
  bool is_log(const std::string& path) const { return path.starts_with(options_.folder + "/"); }

  struct Counts {
    uint64_t followed = 0, left_out = 0, waiting = 0;  // pods
    uint64_t jobs = 0;
    uint64_t asked = 0;   // requests
    std::string trouble;  // why labels are unknown; empty: they are known
  };
  Counts counts() const;

 private:
  enum class State : uint8_t { kWaiting, kFollowed, kLeftOut };
  struct Pod {
    State state = State::kWaiting;
    std::string job, uid;
    TimeNs first_ns = 0;  // monotonic
    uint64_t turn = 0;    // last look
  };
  using Folder = respond::kubernetes::PodFolder;
  Pod& pod_of(std::string_view folder, std::string_view uid, TimeNs now);
  bool may_ask(TimeNs now);
  void ask(const Folder& folder, Pod& pod, std::unique_lock<std::mutex>& lock);
  bool understood(const respond::kubernetes::ApiAnswer& answer, const Folder& folder, Pod& pod);
  void decide_by_name(const Folder& folder, Pod& pod);
  void decide(Pod& pod, bool follow, std::string job);
  bool is_chosen(std::string_view space) const;

  const PodLogsOptions options_;
  mutable std::mutex mutex_;
  std::map<std::string, Pod, std::less<>> pods_;  // by folder
  uint64_t turns_ = 0, asked_ = 0;
  std::string trouble_;
  bool refused_ = false;                       // 401 or 403
  TimeNs not_before_ns_ = 0, backoff_ns_ = 0;  // of requests
  TimeNs slice_ns_ = kNoTime;                  // start of the current slice of requests
};

// With the API server of the configuration, or of the pod in which the daemon runs.
std::shared_ptr<PodLogs> pod_logs(const Config::Pods& config,
                                  std::function<void(const std::string&, const std::string&)> found);

}  // namespace culprit::app
