#include "app/jobs/remote_sessions.h"

#include <algorithm>
#include <tuple>

namespace culprit::app {

void RemoteSessions::count(const std::string& host, size_t before, size_t after) {
  by_count_.erase({before, host});
  if (after > 0) by_count_.emplace(after, host);
}

void RemoteSessions::drop(Sessions::iterator session) {
  const std::string host = session->second.stream.host();
  const auto of = hosts_.find(host);
  of->second.erase(session->second.stream.info().job);
  count(host, of->second.size() + 1, of->second.size());
  if (of->second.empty()) hosts_.erase(of);
  sessions_.erase(session);
}

void RemoteSessions::make_room(const std::string& host) {
  const auto of = hosts_.find(host);
  const bool own = of != hosts_.end() && of->second.size() >= kOfHost;
  if (!own && sessions_.size() < all_) return;
  const OfHost& most = own ? of->second : hosts_.at(by_count_.rbegin()->second);
  auto oldest = sessions_.end();
  for (const auto& [job, key] : most) {
    const auto rank = [](const Session& s) { return std::tuple(s.begun, s.turn); };
    const auto at = sessions_.find(key);
    if (oldest == sessions_.end() || rank(at->second) < rank(oldest->second)) oldest = at;
  }
  drop(oldest);
  ++made_room_;
}

void RemoteSessions::open(Key key, const std::string& host, const StreamInfo& info,
                          wire::LineExpander::FindRule find) {
  // The agent restarted: the new session replaces the job's earlier one.
  if (const auto of = hosts_.find(host); of != hosts_.end())
    if (const auto before = of->second.find(info.job); before != of->second.end()) end(before->second);
  end(key);
  make_room(host);
  sessions_.emplace(key, Session{RemoteStream(host, info, std::move(find), shapes_), ++turns_});
  OfHost& of = hosts_[host];
  of[info.job] = key;
  count(host, of.size() - 1, of.size());
}

RemoteStream* RemoteSessions::block(Key key) {
  const auto at = sessions_.find(key);
  if (at == sessions_.end()) return nullptr;
  at->second.turn = ++turns_;
  at->second.begun = true;
  return &at->second.stream;
}

void RemoteSessions::end(Key key) {
  if (const auto at = sessions_.find(key); at != sessions_.end()) drop(at);
}

void RemoteSessions::set_rules(const wire::LineExpander::FindRule& find) {
  for (auto& [key, session] : sessions_) session.stream.set_rules(find);
}

}  // namespace culprit::app
