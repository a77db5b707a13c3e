// An archive as the collector's FrameSink: a worker appends and commits frames, as in the daemon. The loop's
// thread, except for the work of the worker; app/daemon has the real one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "collect/collector.h"
#include "io/env.h"
#include "store/archive.h"

namespace culprit::sim {

class ArchiveSink final : public collect::FrameSink {
 public:
  ArchiveSink(io::Env& env, io::Worker& worker, std::shared_ptr<store::Archive> archive);

  collect::Collector* collector = nullptr;  // set once it exists
  std::function<void(uint64_t epoch, uint64_t sequence)>
      on_committed;  // called by the worker when it is durable
  std::function<void(const std::string& host, collect::LogItem&)>
      on_taken;                      // called by the worker when it is appended
  TimeNs gather_ns = 20 * kNsPerMs;  // frames of this time share a commit
  uint64_t refusals = 0, commits = 0, failed_commits = 0;
  std::string last_refusal;

  void hello(const peer::Hello& hello, HelloDone done) override;
  void on_batch(Batch batch, std::function<void(Status)> done) override;
  void status(const std::string&, const peer::Status&) override {}
  void connected(const std::string&, const peer::Hello&, const std::string&) override {}
  void disconnected(const std::string&, const std::string&) override {}
  void refused(peer::Refusal, const std::string& sentence) override { ++refusals, last_refusal = sentence; }

 private:
  Status append(const Batch& batch, collect::LogItem& item);
  void commit_soon();
  void commit();

  io::Env& env_;
  io::Worker& worker_;
  const std::shared_ptr<store::Archive> archive_;
  std::map<uint64_t, uint64_t> committed_;  // by epoch
  std::vector<uint64_t> asked_;             // epochs of batches since the last commit
  std::unique_ptr<io::Timer> timer_;
  bool due_ = false;
};

}  // namespace culprit::sim
