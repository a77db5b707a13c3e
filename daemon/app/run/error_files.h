// Files that @record of torch.distributed.elastic writes for each rank: error.json with the exception, below
// <log folder>/<run>/attempt_<n>/<local rank>/. Each becomes a log of its rank, since the output under
// torchrun does not show which rank wrote it. Blocking; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/run/held_folder.h"
#include "app/run/launch.h"

namespace culprit::app {

// The text of a log made from an error.json; empty: not an error.json. Pure.
std::string log_of_error(std::string_view json);

// The global rank of local rank 0 on this host; nothing: unknown. Pure.
std::optional<uint32_t> first_rank_of(const std::vector<std::string>& command, const Lookup& variable);

// Replaces the files below `torchrun` by rank_<rank>.error.log in `logs`. Returns the number of files.
size_t replace_error_files(const std::string& torchrun, const HeldFolder& logs, uint32_t first_rank);

}  // namespace culprit::app
