// Pictures of single steps for display: for each rank its own work, its waits and for whom, and its
// transfers. Stores a few steps of a long job: those with the highest cost of single ranks or network parts,
// and a usual one. Owned by FinishedSteps; one thread; pure.
#pragma once

#include <vector>

#include "core/detect/comm/step.h"
#include "model/report.h"

namespace culprit::comm {

// Steps kept besides the usual one, and the limits of a picture: 40 KB as JSON.
constexpr size_t kPictures = 5, kPictureRows = 256, kPictureParts = 3072;
// Rows of single ranks in a picture that has to group ranks by host.
constexpr size_t kPictureSingles = 64;

// `step` is analysed, with the costs of its ranks. If there are more ranks than kPictureRows, the ranks that
// others waited for most (minus their own waiting) get single rows. Each further host gets one row, which
// shows its most awaited rank. Over the limit, the least awaited hosts are omitted.
StepPicture picture_of(const Cluster& cluster, const Step& step);

class Pictures {
 public:
  // Stores a picture of the step if it qualifies.
  void offer(const Cluster& cluster, const Step& step);
  // By step.
  std::vector<StepPicture> all() const;

 private:
  struct Retained {
    double cost_ms = 0;  // total cost of ranks and network parts in the step
    StepPicture picture;
  };
  std::vector<Retained> slowest_;
  StepPicture usual_;
  uint64_t offered_ = 0;
};

}  // namespace culprit::comm
