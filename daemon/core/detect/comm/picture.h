// Pictures of single steps for display: for each rank its own work, its waits and for whom, and its
// transfers. Of a long job a few steps are kept: those that single ranks or network parts made longest, and
// a usual one. Owned by FinishedSteps; one thread; pure.
#pragma once

#include <vector>

#include "core/detect/comm/step.h"
#include "model/report.h"

namespace culprit::comm {

// Steps kept besides the usual one, and the limits of a picture: 40 KB as JSON.
constexpr size_t kPictures = 5, kPictureRows = 256, kPictureParts = 3072;
// Rows of single ranks in a picture that has to group ranks by host.
constexpr size_t kPictureSingles = 64;

// `step` is analysed, with the costs of its ranks. Ranks beyond kPictureRows are grouped by host: first those
// that others waited for most beyond their own waiting, each with a row, then a row for each further host. It
// shows the rank of the host that was waited for most. Hosts beyond the limit are left out, those waited for
// least.
StepPicture picture_of(const Cluster& cluster, const Step& step);

class Pictures {
 public:
  // Keeps a picture of the step if it belongs to the few.
  void offer(const Cluster& cluster, const Step& step);
  // By step.
  std::vector<StepPicture> all() const;

 private:
  struct Retained {
    double cost_ms = 0;  // that ranks and network parts cost the step
    StepPicture picture;
  };
  std::vector<Retained> slowest_;
  StepPicture usual_;
  uint64_t offered_ = 0;
};

}  // namespace culprit::comm
