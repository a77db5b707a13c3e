// Looks at a folder of checkpoints: lists or verifies them, gives the newest whole one, and falls back to it.
// Only fall_back() changes anything in the folder. What files contained is remembered in a file of the user's
// state, so that a later look sees a changed byte in formats without a checksum. Blocking; one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "core/checkpoint/series.h"

namespace culprit::app {

struct CheckpointOptions {
  bool bytes = false;    // read every byte, not only headers and sizes
  bool settled = false;  // the writer has ended: nothing is being written
  bool direct = false;   // past the page cache
  TimeNs now = kNoTime;
  std::optional<int64_t> resumed_from;
  // Where the memory of earlier looks is kept; empty: none is.
  std::string state_folder;
  // Called before each checkpoint; may be empty.
  std::function<void(const std::string& path, uint64_t bytes)> progress;
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
  std::string note;  // why the memory of this look could not be kept; empty: it is
};

// An error if nothing at all can be read; a folder without checkpoints has no series.
Result<CheckpointLook> look_at_checkpoints(const std::string& path, const CheckpointOptions& options);

struct NewestCheckpoint {
  std::string path;  // absolute
  checkpoint::Format format = checkpoint::Format::kTorch;
  std::optional<int64_t> step;
  std::vector<std::string> skipped;  // newer ones, with the reason
};

// The newest whole checkpoint below the path, every byte of it verified; older ones are not read. Of several
// series that of the latest change comes first. `before`: only checkpoints of earlier steps. kNotFound: there
// is none; the error says how many are not whole.
Result<NewestCheckpoint> newest_whole_checkpoint(const std::string& path, const CheckpointOptions& options,
                                                 std::optional<int64_t> before = {});

// Sets the checkpoints aside that are newer than the newest whole one and not whole (a new name, *.torn), and
// rewrites what names them (a new file in its place, the old text kept as *.before). Returns what was done,
// one sentence each. An error stops it: what was done until then is in `done`.
Status fall_back(const CheckpointLook& look, const SeriesLook& series, std::vector<std::string>& done);

}  // namespace culprit::app
