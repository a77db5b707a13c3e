#include "core/cluster/partition.h"

#include "base/hash.h"

namespace culprit::cluster {

uint32_t partition_of(std::string_view name) { return static_cast<uint32_t>(hash64(name) % kPartitions); }

}  // namespace culprit::cluster
