#include "serve/crowd.h"

#include <map>

#include "base/check.h"

namespace culprit::serve {

size_t gives_way(std::span<const CrowdMember> crowd, size_t waiting_max) {
  CULPRIT_CHECK(!crowd.empty());
  struct Client {
    size_t waiting = 0, answered = 0;
    size_t oldest[2] = {0, 0};  // indexes: answered, waiting
    uint64_t first = ~uint64_t{0};
    size_t all() const { return waiting + answered; }
  };
  std::map<std::string_view, Client> clients;
  for (size_t i = 0; i < crowd.size(); ++i) {
    Client& client = clients[crowd[i].who];
    size_t& count = crowd[i].waiting ? client.waiting : client.answered;
    size_t& oldest = client.oldest[crowd[i].waiting];
    if (count++ == 0 || crowd[i].number < crowd[oldest].number) oldest = i;
    if (crowd[i].number < client.first) client.first = crowd[i].number;
  }
  const Client* largest = nullptr;
  for (const auto& [who, client] : clients)
    if (largest == nullptr || client.all() > largest->all() ||
        (client.all() == largest->all() && client.first < largest->first))
      largest = &client;
  const bool waits = largest->waiting > waiting_max || largest->answered == 0;
  return largest->oldest[waits];
}

}  // namespace culprit::serve
