#include "app/daemon/watch/ras_pods.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <set>
#include <utility>

#include "capture/debug_server.h"
#include "io/address.h"

namespace culprit::app {
namespace {

constexpr size_t kPodJobs = 64, kPodProcesses = 16'384, kPodSpaces = 256;
constexpr size_t kPodTableBytes = 1 << 20;  // limit of a pod's connection table
constexpr size_t kPodLines = 2 * capture::kPodRasBytes;
constexpr TimeNs kPodBeyond = 2 * kNsPerSecond;  // margin for the start of the program
constexpr uint8_t kPodListens = 0x0a;

// Whether 127.0.0.1 reaches the address; `local` as in /proc/net/tcp.
bool on_loopback(const std::string& local) {
  return local == "00000000" || local == fmt::format("{:08X}", htonl(INADDR_LOOPBACK));
}

// The processes of jobs outside the daemon's network namespace, by namespace.
std::map<uint64_t, std::vector<PodProcess>> spaces_of_jobs(ProcessWatch& processes, TimeNs since_ns) {
  std::map<uint64_t, std::vector<PodProcess>> out;
  const auto own = network_namespace(processes.proc(), "self");
  const auto of_host = network_namespace(processes.proc(), "1");  // culprit-capture refuses the host's
                                                                  // namespace
  const auto view = processes.view(since_ns, kNsPerSecond);
  if (!own || !view) return out;
  std::set<uint32_t> pids;
  for (const auto& [pid, process] : view->processes) pids.insert(pid);
  std::set<std::string> jobs;
  for (const auto& [pid, belongs] : processes.jobs_of(pids, since_ns, 0))
    if (!belongs.job.empty() && jobs.size() < kPodJobs) jobs.insert(belongs.job);
  size_t seen = 0;
  for (const std::string& job : jobs)
    for (const auto& process : processes.processes_of(job, since_ns, 0)) {
      if (++seen > kPodProcesses) return out;
      const auto space = network_namespace(processes.proc(), std::to_string(process.pid));
      if (space && *space != *own && space != of_host && (out.size() < kPodSpaces || out.contains(*space)))
        out[*space].push_back({job, process});
    }
  return out;
}

}  // namespace

const PodProcess* listener_of(const std::vector<PodProcess>& all, uint32_t uid) {
  const PodProcess* found = nullptr;
  for (const PodProcess& one : all) {
    if (one.process.uid != uid) continue;
    if (found && found->job != one.job) return nullptr;
    if (!found) found = &one;
  }
  return found;
}

std::vector<uint16_t> loopback_ports(const std::vector<std::string>& addresses) {
  std::vector<uint16_t> out;
  for (const std::string& address : addresses) {
    const auto place = io::split_address(address);
    const bool own = place && (place->host == "127.0.0.1" || place->host == "localhost");
    if (own && std::find(out.begin(), out.end(), place->port) == out.end()) out.push_back(place->port);
  }
  return out;
}

std::map<std::string, std::vector<RasPod>> find_ras_pods(ProcessWatch& processes,
                                                         const std::vector<uint16_t>& ports,
                                                         TimeNs since_ns) {
  std::map<std::string, std::vector<RasPod>> out;
  if (ports.empty()) return out;
  for (const auto& [space, all] : spaces_of_jobs(processes, since_ns)) {
    const std::string table = fmt::format("{}/{}/net/tcp", processes.proc(), all.front().process.pid);
    std::set<std::pair<uint32_t, uint16_t>> listens;  // several processes share a port
    for (const capture::TcpRow& row : capture::parse_tcp(capture::read_some(table, kPodTableBytes)))
      if (row.state == kPodListens && on_loopback(row.local) &&
          std::find(ports.begin(), ports.end(), row.local_port) != ports.end())
        listens.emplace(row.uid, row.local_port);
    for (const auto& [uid, port] : listens)
      if (const PodProcess* one = listener_of(all, uid))
        out[one->job].push_back({{one->process.pid, one->process.start_ticks}, uid, port});
  }
  return out;
}

Result<capture::PodRas> ask_ras_pod(const HelperWay& way, const RasPod& pod, const std::atomic<bool>& stop) {
  capture::Request request;
  request.tools.clear();
  request.budget_ns = capture::kPodRasWithin + kPodBeyond;
  request.at_once = 1;
  request.ras_port = pod.port;
  request.targets = {pod.target};
  const auto lines = run_capture(way, request, {0, kPodLines, &stop});
  if (!lines) return tl::unexpected(lines.error());
  auto answer = capture::read_ras_lines(pod.target.pid, lines->lines);
  if (answer && answer->uid != pod.uid) return fail(ErrorCode::kInvalid, "the process has another user now");
  return answer;
}

}  // namespace culprit::app
