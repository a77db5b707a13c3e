// `culprit simulate play`: a Player on a loop of its own, until all is acknowledged and, where a server is
// given, its report of the job is there; or until SIGINT, SIGTERM or an end of patience. Blocks; one thread
// calls it, once at a time, and its callbacks come there.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/daemon/player.h"

namespace culprit::app {

struct PlayRun {
  std::string folder;  // of the job: of `culprit simulate logs`, or one's own
  PlayOptions play;    // its root is filled in, and its job where it is empty: a new one each time
  // Of the collector's HTTP, to be asked for the report; nothing: it is not.
  std::optional<std::string> server;
  // Without anything acknowledged while something waits for it, or before the first host is welcome.
  TimeNs patience_ns = 60 * kNsPerSecond;
  std::function<void(const PlayFigures&)> show = {};  // twice a second
};

struct PlayOutcome {
  PlayFigures figures;
  bool stopped = false;  // by a signal
  // From the last frame that was sent to the report that has all lines; nothing: it was not asked, or the
  // collector has fewer lines than were sent (`report_trouble`).
  std::optional<TimeNs> report_after_ns;
  std::string report_trouble;
  std::optional<std::string> verdict;  // of that report
};

// What GET /v1/jobs of a collector tells of a job's last run; nothing: it does not know the job.
struct PlayedRun {
  uint64_t run = 0, lines = 0;
  bool runs = true;
};
std::optional<PlayedRun> last_run(const std::string& answer, const std::string& job);

// An error: nothing could be played, or nobody took it.
Result<PlayOutcome> play(PlayRun run);

}  // namespace culprit::app
