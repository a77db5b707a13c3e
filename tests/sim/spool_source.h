// The two spools of a simulated agent as the forwarder's FrameSource: the store's worker reads frames, as in
// the daemon. The loop's thread, except for the work of the worker; app/daemon has the real one.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "forward/frame_source.h"
#include "io/env.h"
#include "store/frames.h"
#include "store/spool.h"

namespace culprit::sim {

struct SpoolLog {
  store::Spool* spool = nullptr;
  std::string folder;
};

class SpoolSource final : public forward::FrameSource {
 public:
  using Logs = std::array<SpoolLog, peer::kLogs.size()>;  // by number
  SpoolSource(io::Files& files, io::Worker& store, Logs logs);

  // On the worker: the later result of bounds().
  std::array<peer::LogBounds, peer::kLogs.size()> look() const;
  void set_bounds(const std::array<peer::LogBounds, peer::kLogs.size()>& bounds) { bounds_ = bounds; }

  std::function<void(peer::Log, uint64_t epoch, uint64_t sequence)> on_acknowledged;
  uint64_t fell_behind_count = 0;

  peer::LogBounds bounds(peer::Log log) const override { return bounds_[static_cast<size_t>(log)]; }
  void read(forward::ReadRequest request, Done done) override;
  void acknowledged(peer::Log log, uint64_t sequence) override;
  void steps_wanted(const std::string&, const std::vector<int64_t>&) override {}
  void stacks_wanted(const peer::StacksWanted&) override {}
  void end_tasks(const peer::EndTasks&) override {}
  void fell_behind(peer::Log, uint64_t) override { ++fell_behind_count; }

 private:
  io::Worker& store_;
  const Logs logs_;
  std::array<std::shared_ptr<store::FrameReader>, peer::kLogs.size()> readers_;
  std::array<peer::LogBounds, peer::kLogs.size()> bounds_;
};

}  // namespace culprit::sim
