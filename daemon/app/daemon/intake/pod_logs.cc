#include "app/daemon/intake/pod_logs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <set>
#include <utility>

#include "app/jobs/job_recognition.h"
#include "base/clock.h"
#include "ingest/live/watch_glob.h"
#include "io/system_error.h"

namespace culprit::app {
namespace {

namespace k8s = respond::kubernetes;

constexpr std::string_view kPodMark = "pod-";  // as control groups name a job: job_of_process()
// Requests take at most half of the time of the tailer's thread.
constexpr TimeNs kSlice = kNsPerSecond;
constexpr TimeNs kFirstBackoff = 5 * kNsPerSecond, kLongestBackoff = 60 * kNsPerSecond;
// A right that was refused may be granted.
constexpr TimeNs kRefusedFor = 5 * 60 * kNsPerSecond;
// A pod of a chosen namespace waits so long for a server that does not answer. The kubelet keeps its log.
constexpr TimeNs kServerWithin = 60 * kNsPerSecond;
constexpr size_t kPodBytes = 2 << 20;  // etcd stores 1.5 MiB

// The first part of a path below the folder.
std::string_view first_part(std::string_view path, std::string_view folder) {
  if (path.size() <= folder.size() + 1 || !path.starts_with(folder)) return {};
  path.remove_prefix(folder.size() + 1);
  return path.substr(0, path.find('/'));
}

std::string name_of(const k8s::PodFolder& folder) {
  return k8s::job_id(folder.space, k8s::workload_of_pod_name(folder.name));
}

}  // namespace

bool PodLogs::is_chosen(std::string_view space) const {
  return std::ranges::any_of(
      options_.namespaces, [&](const std::string& pattern) { return ingest::name_matches(pattern, space); });
}

PodLogs::Pod& PodLogs::pod_of(std::string_view folder, std::string_view uid, TimeNs now) {
  auto known = pods_.find(folder);
  if (known == pods_.end()) {
    if (pods_.size() >= kPods)
      pods_.erase(std::ranges::min_element(pods_, {}, [](const auto& one) { return one.second.turn; }));
    known = pods_.emplace(folder, Pod{}).first;
    known->second.first_ns = now;
    known->second.uid = uid;
  }
  known->second.turn = ++turns_;
  return known->second;
}

PodLogs::Enter PodLogs::enter(const std::string& folder) {
  const std::string_view below = first_part(folder, options_.folder);
  if (below.size() + options_.folder.size() + 1 < folder.size()) return Enter::kYes;  // a container's
  const auto parts = k8s::parse_pod_folder(below);
  if (!parts) return Enter::kNo;
  const TimeNs now = options_.mono();
  std::unique_lock lock(mutex_);
  Pod& pod = pod_of(below, parts->uid, now);
  if (pod.state == State::kWaiting) {
    if (may_ask(now)) ask(*parts, pod, lock);
    const bool late = pod.state == State::kWaiting && is_chosen(parts->space) &&
                      (refused_ || options_.mono() - pod.first_ns >= kServerWithin);
    if (late || !options_.call) decide_by_name(*parts, pod);
  }
  if (pod.state == State::kWaiting) return Enter::kLater;
  return pod.state == State::kFollowed ? Enter::kYes : Enter::kNo;
}

bool PodLogs::may_ask(TimeNs now) {
  if (!options_.call || now < not_before_ns_) return false;
  if (slice_ns_ == kNoTime || now - slice_ns_ >= 2 * kSlice) slice_ns_ = now;
  return now - slice_ns_ < kSlice;
}

// Without the lock meanwhile: only this thread adds or removes pods.
void PodLogs::ask(const Folder& folder, Pod& pod, std::unique_lock<std::mutex>& lock) {
  k8s::ApiRequest request;
  request.method = "GET";
  request.path =
      fmt::format("/api/v1/namespaces/{}/pods/{}", k8s::escaped(folder.space), k8s::escaped(folder.name));
  request.answer_max = kPodBytes;
  ++asked_;
  lock.unlock();
  const k8s::ApiAnswer answer = options_.call(request, respond::SingleStep());
  const TimeNs now = options_.mono();
  lock.lock();
  if (understood(answer, folder, pod)) {
    trouble_.clear();
    refused_ = false;
    backoff_ns_ = 0;
    return;
  }
  trouble_ = k8s::message_of(answer);
  refused_ = answer.status == 401 || answer.status == 403;
  backoff_ns_ = std::clamp(2 * backoff_ns_, kFirstBackoff, kLongestBackoff);
  not_before_ns_ = now + (refused_ ? kRefusedFor : answer.retry_after_ns.value_or(backoff_ns_));
}

bool PodLogs::understood(const k8s::ApiAnswer& answer, const Folder& folder, Pod& pod) {
  if (answer.status == 404) return decide_by_name(folder, pod), true;  // it was deleted
  if (answer.status != 200) return false;
  const auto job = k8s::parse_pod_job(k8s::Json::parse(answer.body, nullptr, false));
  // Another pod has the name by now, or the server's answer is no pod.
  if (!job || job->uid != folder.uid) return decide_by_name(folder, pod), true;
  decide(pod, is_chosen(folder.space) || (job->computes && job->ends),
         k8s::job_id(folder.space, job->workload));
  return true;
}

void PodLogs::decide_by_name(const Folder& folder, Pod& pod) {
  decide(pod, is_chosen(folder.space), name_of(folder));
}

void PodLogs::decide(Pod& pod, bool follow, std::string job) {
  pod.state = follow ? State::kFollowed : State::kLeftOut;
  if (!follow) return;
  pod.job = std::move(job);
  if (options_.found) options_.found(std::string(kPodMark) + pod.uid, pod.job);
}

std::string PodLogs::job_of(const std::string& path) const {
  const std::string_view below = first_part(path, options_.folder);
  const std::lock_guard lock(mutex_);
  const auto known = pods_.find(below);
  if (known != pods_.end() && known->second.state == State::kFollowed) return known->second.job;
  const auto parts = k8s::parse_pod_folder(below);
  return parts ? name_of(*parts) : kDefaultJob;
}

Principal PodLogs::container_of(const std::string& path) const {
  const auto parts = k8s::parse_pod_folder(first_part(path, options_.folder));
  return Principal::pod(parts ? parts->uid : std::string_view());
}

std::string PodLogs::job_named(const std::string& job) const {
  if (!job.starts_with(kPodMark)) return job;
  const std::string_view uid = std::string_view(job).substr(kPodMark.size());
  const std::lock_guard lock(mutex_);
  for (const auto& [folder, pod] : pods_)
    if (pod.uid == uid && pod.state == State::kFollowed) return pod.job;
  return job;
}

PodLogs::Counts PodLogs::counts() const {
  Counts out;
  std::set<std::string_view> jobs;
  const std::lock_guard lock(mutex_);
  for (const auto& [folder, pod] : pods_) {
    out.followed += pod.state == State::kFollowed;
    out.left_out += pod.state == State::kLeftOut;
    out.waiting += pod.state == State::kWaiting;
    if (pod.state == State::kFollowed) jobs.insert(pod.job);
  }
  out.jobs = jobs.size();
  out.asked = asked_;
  out.trouble = options_.call ? trouble_ : options_.without;
  return out;
}

std::shared_ptr<PodLogs> pod_logs(const Config::Pods& config,
                                  std::function<void(const std::string&, const std::string&)> found) {
  PodLogsOptions options;
  options.folder = config.folder;
  options.namespaces = config.namespaces;
  options.mono = steady_now;
  options.found = std::move(found);
  auto access = k8s::access_with(config.server, config.token_file, config.ca_file);
  if (access && access->pod_token && ::access(access->token_file.c_str(), R_OK) != 0)
    access = io::system_failure(access->token_file, errno);
  if (access) {
    access->within_ns = PodLogs::kAskWithin;
    options.call = k8s::http_calls(std::move(*access));
  } else {
    options.without = access.error().text;
  }
  return std::make_shared<PodLogs>(std::move(options));
}

}  // namespace culprit::app
