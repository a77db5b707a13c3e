#include "model/rank_place.h"

#include <fmt/format.h>

#include "model/headline.h"

namespace culprit {

std::string describe_rank(uint32_t rank, const RankPlace& place) {
  std::string out = fmt::format("rank {}", rank);
  if (!place.host && !place.device) return out;
  out += " (" + place.host.value_or("");
  if (place.host && place.device) out += ", ";
  if (place.device) out += describe_devices({&*place.device, 1});
  return out + ")";
}

std::string describe_rank_first(uint32_t rank, const RankPlace& place) {
  std::string out = describe_rank(rank, place);
  out[0] = 'R';
  return out;
}

std::string describe_devices(std::span<const uint32_t> devices) {
  return fmt::format("GPU{} {}", devices.size() == 1 ? "" : "s", numbers(devices));
}

}  // namespace culprit
