// Evidence in object storage ([cluster.bucket]): puts the archive's evidence into objects on a worker, and
// finds on another what objects of all members have of a source.
//
// Thread: the loop's, also for callbacks. A bucket or database that is away delays the workers alone: the
// archive holds what waits.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "app/daemon/collector/bucket_uploader.h"
#include "io/env.h"
#include "io/files.h"
#include "store/bucket/merge.h"
#include "store/bucket/object_reader.h"
#include "store/evidence.h"

namespace culprit::app {

struct BucketServiceOptions {
  const Config* config = nullptr;  // borrowed
  std::string archive_folder;
  io::Files* files = nullptr;
  std::function<bool()> ready;  // the cluster's tables are there
  // Runs work on the archive's worker, then `done` on the loop; bytes that it has taken since the start.
  std::function<void(std::function<void(store::Archive&)>, std::function<void()>)> query;
  std::function<uint64_t()> archived_bytes;
  // By epoch of a log of evidence: up to this frame it is in noted objects.
  std::function<void(const std::map<uint64_t, uint64_t>&)> archived;
  std::function<void(const std::string&)> report_error, info;
};

class BucketService {
 public:
  // Null without [cluster.bucket]. An error if the process has no thread left.
  static Result<std::unique_ptr<BucketService>> start(io::Env& env, BucketServiceOptions options);
  ~BucketService();

  void stop();

  struct State {
    std::string bucket;
    std::string trouble;  // empty: none
    TimeNs trouble_since_ns = kNoTime, put_ns = kNoTime;
    uint64_t objects = 0, bytes = 0, puts = 0, failures = 0, lost_segments = 0;  // since the start
    uint64_t waiting_bytes = 0, cache_bytes = 0;
  };
  State state() const;

  // `streams`: of the archive, with places. Adds what objects have.
  struct Found {
    std::vector<store::HostStream> streams;
    std::function<Result<store::SegmentReader>(uint64_t)> open_object;
    std::string unread;  // why some object could not be looked at; empty: all were
  };
  void find(const store::StoredQuery& query, std::vector<store::HostStream> streams,
            std::function<void(Found)> done);

 private:
  struct Reading;
  BucketService(io::Env& env, BucketServiceOptions options);
  store::bucket::BucketOptions bucket_options() const;
  void beat();
  void finish(const UploadPlan& plan);
  void note(const Status& status);

  io::Env& env_;
  const BucketServiceOptions options_;
  const std::shared_ptr<std::atomic<bool>> going_ = std::make_shared<std::atomic<bool>>(true);
  const std::shared_ptr<std::atomic<uint64_t>> puts_ = std::make_shared<std::atomic<uint64_t>>(0);
  std::shared_ptr<BucketUploader> uploader_;
  std::shared_ptr<Reading> reading_;
  std::unique_ptr<io::Worker> worker_, reader_;
  std::unique_ptr<io::Timer> timer_;
  State state_;
  bool at_work_ = false, more_ = true;
  int failures_ = 0;                          // in a row
  TimeNs next_ns_ = 0, looked_ns_ = kNoTime;  // monotonic
  uint64_t looked_bytes_ = 0;                 // of the archive
};

}  // namespace culprit::app
