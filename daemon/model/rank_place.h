// The host and device of a rank, as far as known, and their text form.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace culprit {

struct RankPlace {
  std::optional<std::string> host;
  std::optional<uint32_t> device;  // index on the host
};
using PlaceOfRank = std::function<RankPlace(uint32_t rank)>;

// "rank 11 (node-7, GPU 3)"; omits unknown parts.
std::string describe_rank(uint32_t rank, const RankPlace& place);
// The same at the beginning of a sentence: "Rank 11 (node-7, GPU 3)".
std::string describe_rank_first(uint32_t rank, const RankPlace& place);
// "GPU 3", "GPUs 0-3, 7"; also for devices of other vendors.
std::string describe_devices(std::span<const uint32_t> devices);

}  // namespace culprit
