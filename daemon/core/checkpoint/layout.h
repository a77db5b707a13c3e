// Finds the files and folders that are checkpoints, their formats, and the order of writing. Names
// alone decide, no byte is read. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/tree.h"

namespace culprit::checkpoint {

enum class Format : uint8_t {
  kTorch,        // one file of torch.save: a zip, or the pickles of versions before 1.6
  kDcp,          // torch.distributed.checkpoint
  kSafetensors,  // one file, or shards with an index
  kMegatron,
  kDeepSpeed,
  kUniversal,  // DeepSpeed's universal folder
  kTrainer,    // of Hugging Face
  kLightning,  // and NeMo
  kOrbax,
  kTorchSnapshot,
};
std::string_view to_string(Format format);

struct Found {
  std::string path;  // path in the tree; "" is the folder itself
  Format format = Format::kTorch;
  bool is_file = false;
  std::optional<int64_t> step = {};  // from the name
};

// Checkpoints in one folder, the oldest first.
struct Series {
  std::string folder;
  std::vector<Found> checkpoints;
};

// All checkpoints of a tree; `name` is the name of the folder itself. Searches a few folder levels, but not
// inside a checkpoint. Skips checkpoints set aside (*.torn).
std::vector<Series> find_series(const Tree& tree, std::string_view name);

// The format of a folder by its content, or of a file by its name.
std::optional<Format> format_of_folder(const Tree& tree, std::string_view folder, std::string_view name);
std::optional<Format> format_of_file(std::string_view name);

// "iter_0012000" is step 12000. Empty if a name has no number, or several without a keyword.
std::optional<int64_t> step_of(std::string_view name);

// The name with each run of digits as "#".
std::string shape_of(std::string_view name);

}  // namespace culprit::checkpoint
