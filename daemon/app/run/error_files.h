// What @record of torch.distributed.elastic leaves of each rank: error.json with the exception, below
// <log folder>/<run>/attempt_<n>/<local rank>/. It becomes a log of the rank, since the output of ranks under
// torchrun does not say which rank wrote it. Blocking; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "app/run/held_folder.h"
#include "app/run/launch.h"

namespace culprit::app {

// The text of a log made of an error.json; empty: it is none. Pure.
std::string log_of_error(std::string_view json);

// The global rank of local rank 0 on this host; nothing: not known. Pure.
std::optional<uint32_t> first_rank_of(const std::vector<std::string>& command, const Lookup& variable);

// Replaces the files below `torchrun` by rank_<rank>.error.log in `logs`. Returns how many there were.
size_t replace_error_files(const std::string& torchrun, const HeldFolder& logs, uint32_t first_rank);

}  // namespace culprit::app
