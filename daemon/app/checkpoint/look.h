// Examines a folder of checkpoints: lists or verifies them, finds the newest complete one, and falls back to
// it. Only fall_back() changes the folder. A file in the user's state records what files contained, so that a
// later check detects a changed byte in formats without a checksum. Blocking; one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/checkpoint/series.h"

namespace culprit::app {

// A checkpoint that a search for a whole one left out.
struct LeftOutCheckpoint {
  std::string path;  // absolute
  std::optional<int64_t> step;
  checkpoint::State state = checkpoint::State::kTorn;
  std::string reason;
};

struct CheckpointOptions {
  bool bytes = false;    // read every byte, not only headers and sizes
  bool settled = false;  // the writer has ended: no file is being written
  bool direct = false;   // past the page cache
  TimeNs now = kNoTime;
  std::optional<int64_t> resumed_from;
  // Folder for records of earlier checks; empty: no records.
  std::string state_folder;
  // Called before each checkpoint; may be empty.
  std::function<void(const std::string& path, uint64_t bytes)> progress;
  // Called by newest_whole_checkpoint() for each one that it leaves out, newest first; may be empty.
  std::function<void(const LeftOutCheckpoint&)> left_out = {};
};

struct SeriesLook {
  std::string folder;  // relative to the root
  std::vector<checkpoint::Judged> checkpoints;
  std::vector<checkpoint::Pointer> pointers;
  std::vector<checkpoint::Finding> findings;
};

struct CheckpointLook {
  std::string root;
  bool bytes = false;
  std::vector<SeriesLook> series;
  uint64_t bytes_read = 0;
  std::string note;  // why this check's record could not be written; empty: it was written
};

// Returns an error only if nothing can be read; a folder without checkpoints has no series.
Result<CheckpointLook> look_at_checkpoints(const std::string& path, const CheckpointOptions& options);

struct NewestCheckpoint {
  std::string path;  // absolute
  checkpoint::Format format = checkpoint::Format::kTorch;
  std::optional<int64_t> step;
  std::vector<std::string> skipped;  // newer checkpoints that were skipped, with the reason
};

// The newest complete checkpoint below the path, with every byte verified; older ones are not read. Of
// several series, the most recently changed one comes first. `before`: only checkpoints of earlier steps.
// kNotFound: no complete checkpoint; the error has the number of incomplete ones.
Result<NewestCheckpoint> newest_whole_checkpoint(const std::string& path, const CheckpointOptions& options,
                                                 std::optional<int64_t> before = {});

// Renames incomplete checkpoints that are newer than the newest complete one (*.torn), and rewrites the files
// that name them (in a new file; the old text is kept as *.before). Returns each action as a sentence. After
// an error, `done` has the actions up to then.
Status fall_back(const CheckpointLook& look, const SeriesLook& series, std::vector<std::string>& done);

}  // namespace culprit::app
