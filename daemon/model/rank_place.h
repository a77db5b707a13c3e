// The host and the device of a rank, as far as known.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace culprit {

struct RankPlace {
  std::optional<std::string> host;
  std::optional<uint32_t> device;  // index on the host
};
using PlaceOfRank = std::function<RankPlace(uint32_t rank)>;

}  // namespace culprit
