#include "collect/newcomers.h"

#include <algorithm>

#include "base/check.h"
#include "collect/session.h"

namespace culprit::collect {
namespace {

// Limit of known networks: each entry requires a valid certificate, and a cluster has one per host.
constexpr size_t kNetworks = 65'536;

}  // namespace

Newcomers::Verdict Newcomers::judge(const std::string& network, TimeNs now) {
  const bool known = is_known(network, now);
  const auto of_network = networks_.find(network);
  Waiting* full = nullptr;
  if (of_network != networks_.end() && of_network->second.size() >= limits_.of_address)
    full = &of_network->second;
  else if (pools_[known].size() >= std::max<size_t>(limits_.all / 2, 1))
    full = &pools_[known];
  if (full == nullptr) return {};
  Session* const gives_way = first(*full, now);
  return {gives_way != nullptr, gives_way};
}

// The connection of `waiting` to close first; null if all of them are in a handshake that still has time.
Session* Newcomers::first(Waiting& waiting, TimeNs now) const {
  while (!waiting.silent.empty()) {
    const auto at = waiting.silent.begin();
    if (!at->second->has_begun()) return at->second;
    waiting.begun.insert(waiting.silent.extract(at));
  }
  if (waiting.begun.empty()) return nullptr;
  Session* const oldest = waiting.begun.begin()->second;
  return now - entries_.at(oldest).since_ns >= limits_.handshake_ns ? oldest : nullptr;
}

void Newcomers::add(Session& session, const std::string& network, TimeNs now) {
  const Entry entry{++next_, network, is_known(network, now), now};
  CULPRIT_CHECK(entries_.emplace(&session, entry).second);
  pools_[entry.known].silent.emplace(entry.number, &session);
  networks_[network].silent.emplace(entry.number, &session);
}

void Newcomers::remove(Session& session) {
  const auto at = entries_.find(&session);
  if (at == entries_.end()) return;
  const Entry entry = std::move(at->second);
  entries_.erase(at);
  const auto of_network = networks_.find(entry.network);
  for (Waiting* waiting : {&pools_[entry.known], &of_network->second})
    waiting->silent.erase(entry.number), waiting->begun.erase(entry.number);
  if (of_network->second.size() == 0) networks_.erase(of_network);
}

Session* Newcomers::oldest() {
  for (Waiting& pool : pools_) {
    if (!pool.silent.empty()) return pool.silent.begin()->second;
    if (!pool.begun.empty()) return pool.begun.begin()->second;
  }
  return nullptr;
}

void Newcomers::prove(const std::string& network, TimeNs now) {
  if (proven_.size() >= kNetworks && !proven_.contains(network)) return;
  const auto [at, fresh] = proven_.try_emplace(network, now);
  if (!fresh) at->second = std::max(at->second, now);
}

bool Newcomers::is_known(const std::string& network, TimeNs now) const {
  const auto at = proven_.find(network);
  return at != proven_.end() && now - at->second < limits_.known_ns;
}

void Newcomers::forget(TimeNs now) {
  std::erase_if(proven_, [&](const auto& one) { return now - one.second >= limits_.known_ns; });
}

}  // namespace culprit::collect
