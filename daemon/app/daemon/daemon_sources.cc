// The sources of the daemon: what is followed on this host, and as whose.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/daemon/daemon.h"
#include "app/jobs/job_recognition.h"

namespace culprit::app {
namespace {

// The folder above the first wildcard: paths are relative to it.
std::string fixed_root(const std::string& glob) {
  const std::string fixed = glob.substr(0, glob.find_first_of("*?[{"));
  return fixed.substr(0, fixed.rfind('/'));
}

}  // namespace

std::function<void(const std::string&, const StreamInfo&, const Piece&)> Daemon::follower() const {
  return [watch = processes_.get(), pods = pods_](const std::string& job, const StreamInfo& info,
                                                  const Piece& piece) {
    // The container runtime writes the logs of all pods.
    const bool is_pod = pods && pods->is_log(info.path);
    if (is_file(info.kind) && piece.place && !is_pod)
      watch->follow_file(job, piece.place->device, piece.place->inode);
    if (info.pid) watch->follow_process(job, *info.pid);
  };
}

std::vector<std::string> Daemon::roots() const {
  std::vector<std::string> out;
  for (const LogWatch& log : config_.files()) out.push_back(fixed_root(log.path));
  return out;
}

void Daemon::start_sources(std::vector<StreamState> known) {
  if (!config_.watches()) return;
  SourcesOptions options;
  options.config = &config_;
  options.known = std::move(known);
  options.stored_until_ns = recorder_->stored_until_ns();
  options.allocate = [this] { return recorder_->allocate(); };
  options.take = [this](PieceBatch&& batch) { intake_->take(std::move(batch)); };
  options.report_error = [this](const std::string& what) { report_error(what); };
  // A successor's data begins after this event: its sources get the chain's id.
  options.on_trace_event = [this](const ingest::TraceLine& line, const StreamInfo& of) {
    if (line.name != kAttemptEvent) return;
    std::vector<EventField> fields;
    const auto attempts = attempts_of(ingest::loop_event(line, {}, fields), kNoTime);
    if (!attempts) return;
    for (const JobNames::Member& member : job_names_.join(of, *attempts)) processes_->join(member);
  };
  options.processes = processes_.get();
  options.pods = pods_;
  options.kernel_descriptor = options_.service.descriptor_named("kmsg");
  sources_ = std::make_unique<Sources>(env_, std::move(options));
  sources_->start();
  if (intake_->held()) sources_->pause();
}

}  // namespace culprit::app
