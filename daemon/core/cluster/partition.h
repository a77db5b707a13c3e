// Jobs are divided into partitions, each owned by one collector at a time. Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace culprit::cluster {

constexpr uint32_t kPartitions = 64;

// XXH3 of the scheduler's id of a job, or of a host's name for an action without a job, modulo 64. Rows of a
// database depend on it: it never changes (docs/formats.md, "The cluster's database").
uint32_t partition_of(std::string_view name);

}  // namespace culprit::cluster
