#include "serve/connection_shares.h"

#include <map>

#include "base/check.h"

namespace culprit::serve {

size_t gives_way(std::span<const OpenConnection> connections, size_t waiting_max) {
  CULPRIT_CHECK(!connections.empty());
  struct Client {
    size_t waiting = 0, answered = 0;
    size_t oldest[2] = {0, 0};  // indexes: answered, waiting
    uint64_t first = ~uint64_t{0};
    size_t all() const { return waiting + answered; }
  };
  std::map<std::string_view, Client> clients;
  for (size_t i = 0; i < connections.size(); ++i) {
    Client& client = clients[connections[i].who];
    size_t& count = connections[i].waiting ? client.waiting : client.answered;
    size_t& oldest = client.oldest[connections[i].waiting];
    if (count++ == 0 || connections[i].number < connections[oldest].number) oldest = i;
    if (connections[i].number < client.first) client.first = connections[i].number;
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
