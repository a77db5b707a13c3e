// The worker's side of BucketService: puts what the archive has committed into objects of the bucket, and a
// row of each into the cluster's database. The archive is the queue: the next object begins where the last
// row ends, also after a kill, so nothing waits in memory and no byte is in two objects.
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/bucket/bucket.h"
#include "store/bucket/object.h"
#include "store/postgres/segment_store.h"

namespace culprit::app {

struct UploadPlan {
  uint64_t archive = 0;
  std::vector<store::ReplayPlan::Part> segments;  // of evidence, with committed sizes
  std::map<uint64_t, uint64_t> committed;         // of its logs of evidence, by epoch: in these sizes
  TimeNs now = 0;
  // The outcome:
  Status status;
  bool fenced = false;                    // another process uploads this archive
  bool more = false;                      // a full object waits
  bool all = false;                       // all of the plan is in objects
  std::map<uint64_t, uint64_t> archived;  // by epoch of the log: up to here it is in noted objects
  uint64_t objects = 0, bytes = 0, lost_segments = 0;
  uint64_t waiting_bytes = 0;  // committed, and in no object
};

class BucketUploader {
 public:
  struct Options {
    store::bucket::BucketOptions bucket;
    std::string conninfo, member, folder;  // folder: of the archive
    TimeNs max_age_ns = 0;                 // of the rows of objects; 0: they stay
  };
  BucketUploader(io::Files& files, Options options);
  // With a bucket and rows of the caller's.
  BucketUploader(io::Files& files, Options options, std::unique_ptr<store::bucket::Bucket> bucket,
                 std::unique_ptr<store::postgres::SegmentStore> rows);
  // Some objects, until all is in one, or a step fails.
  void run(UploadPlan& plan);

 private:
  Status take(UploadPlan& plan);
  Status sweep(const UploadPlan& plan);
  void prune();
  Status upload(UploadPlan& plan, const store::bucket::MadeObject& object);
  uint64_t waiting(const UploadPlan& plan) const;

  const Options options_;
  const std::unique_ptr<store::bucket::Bucket> its_bucket_;
  const std::unique_ptr<store::postgres::SegmentStore> its_rows_;
  store::bucket::Bucket& bucket_;
  store::postgres::SegmentStore& rows_;
  store::bucket::ObjectMaker maker_;
  std::optional<store::postgres::ArchiveMark> mark_;  // nothing: not taken
  bool swept_ = false;                                // objects without a row are removed
  TimeNs prune_ns_ = kNoTime;                         // monotonic: when old rows are removed next
};

// Bit of a name in a row's masks.
uint64_t name_bit(const std::string& name);

}  // namespace culprit::app
