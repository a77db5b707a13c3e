// `culprit simulate play`: runs a Player on a separate loop until all frames are acknowledged. With a server
// it also waits for the collector's report of the job. SIGINT, SIGTERM or a timeout stop it earlier. Blocks;
// one caller at a time, and callbacks run on its thread.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "app/play/player.h"

namespace culprit::app {

struct PlayRun {
  std::string folder;  // the job's folder, from `culprit simulate logs` or elsewhere
  PlayOptions play;    // `root` is filled in; an empty `job` gets a new name each time
  // The collector's HTTP address for the report; nothing: reads no report.
  std::optional<std::string> server;
  // Timeout without any acknowledgement while frames wait, or before the first host is accepted.
  TimeNs patience_ns = 60 * kNsPerSecond;
  std::function<void(const PlayCounters&)> show = {};  // called twice a second
};

struct PlayOutcome {
  PlayCounters counters;
  bool stopped = false;  // stopped by a signal
  // Time from the last sent frame to the report with all lines. Nothing: no server, or the collector has
  // fewer lines than were sent (`report_trouble`).
  std::optional<TimeNs> report_after_ns;
  std::string report_trouble;
  std::optional<std::string> verdict;  // verdict in that report
};

// A job's last run, from a collector's GET /v1/jobs; nothing: unknown job.
struct PlayedRun {
  uint64_t run = 0, lines = 0;
  bool runs = true;
};
std::optional<PlayedRun> last_run(const std::string& answer, const std::string& job);

// Fails if the job could not be played, or no collector accepted it.
Result<PlayOutcome> play(PlayRun run);

}  // namespace culprit::app
