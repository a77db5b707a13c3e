// Chooses the pieces of a batch and the next batch that ParseAhead parses while earlier ones are ingested:
// long pieces of files whose sources are open. Only a queue has so many bytes: a host without a backlog uses
// one thread.
//
// An object lives while its batch is ingested. Thread: that of the jobs.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "app/jobs/job_inputs.h"
#include "app/jobs/job_router.h"
#include "base/time.h"
#include "model/piece.h"

namespace culprit::app {

class BatchAhead {
 public:
  struct Parts {
    JobTable& jobs;
    LiveParsing& parsing;
    // Null: the stream's pieces are not ingested unchanged.
    std::function<const LiveStream*(StreamId)> stream_of;
  };
  // Pieces to be ingested: those of `batch` from `first` on, then those of `next`, if any.
  struct Coming {
    const PieceBatch& batch;
    size_t first = 0;
    std::shared_ptr<const PieceBatch> next = nullptr;
  };
  BatchAhead(const Parts& parts, const Coming& coming, TimeNs now);
  ~BatchAhead() { parsing_.ahead.keep_last(texts_of_next_); }
  BatchAhead(const BatchAhead&) = delete;
  BatchAhead& operator=(const BatchAhead&) = delete;

 private:
  LiveParsing& parsing_;
  size_t texts_of_next_ = 0;
};

}  // namespace culprit::app
