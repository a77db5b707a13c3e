#include "respond/checkpoint/copy_server.h"

#include <algorithm>
#include <utility>

#include "io/address.h"
#include "respond/checkpoint/copy_session.h"

namespace culprit::respond::checkpoint {
namespace {

// Agents that store here are one or two; jobs that restore are many. Local users have half.
constexpr size_t kConnections = 128;
constexpr size_t kPerOrigin = 8;  // a network, or the unix socket's user
constexpr TimeNs kSweepNs = kNsPerSecond;

}  // namespace

CopyServer::CopyServer(io::Env& env, CopyServerOptions options, CopyStore* store)
    : env_(env), options_(std::move(options)), store_(store), sweep_(env.timer([this] { sweep(); })) {}

CopyServer::~CopyServer() {
  for (const auto& [_, session] : std::exchange(sessions_, {})) session->close();
}

Result<std::unique_ptr<CopyServer>> CopyServer::start(io::Env& env, CopyServerOptions options,
                                                      CopyStore* store) {
  std::unique_ptr<CopyServer> server(new CopyServer(env, std::move(options), store));
  CopyServer* const self = server.get();
  if (!self->options_.listen.empty()) {
    auto listener = env.listen(self->options_.listen, 0, [self](std::unique_ptr<io::Stream> stream) {
      self->accept(std::move(stream), false);
    });
    if (!listener) return tl::unexpected(listener.error());
    self->listener_ = std::move(*listener);
  }
  if (!self->options_.socket.empty()) {
    auto listener = env.listen(self->options_.socket, 0666, [self](std::unique_ptr<io::Stream> stream) {
      self->accept(std::move(stream), true);
    });
    if (!listener) return tl::unexpected(listener.error());
    self->local_ = std::move(*listener);
  }
  self->sweep_->start(kSweepNs, kSweepNs);
  return server;
}

void CopyServer::accept(std::unique_ptr<io::Stream> stream, bool local) {
  std::string from = local ? "uid " + std::to_string(stream->peer() ? stream->peer()->uid : ~0u)
                           : io::network_of(stream->address());
  size_t same = 0, locals = 0;
  for (const auto& [_, session] : sessions_) {
    same += session->from() == from;
    locals += session->is_local();
  }
  if (sessions_.size() >= kConnections || same >= kPerOrigin || (local && locals >= kConnections / 2)) {
    ++counters_.refused;
    return;
  }
  auto session = std::make_shared<CopySession>(*this, local, std::move(from));
  sessions_[session.get()] = session;
  session->begin(std::move(stream));
}

void CopyServer::leave(CopySession& session) {
  const auto at = sessions_.find(&session);
  if (at == sessions_.end()) return;
  // The session may be on the stack.
  env_.post([ended = std::move(at->second)] {});
  sessions_.erase(at);
}

// A host that lost power or its network is back before this side has noticed.
void CopyServer::supersede(const std::string& host, const std::string& id) {
  const auto at =
      std::ranges::find_if(sessions_, [&](const auto& entry) { return entry.second->stores(host, id); });
  if (at != sessions_.end()) at->second->give_way();
}

void CopyServer::sweep() {
  const TimeNs now = mono();
  std::vector<std::shared_ptr<CopySession>> all;
  for (const auto& [_, session] : sessions_) all.push_back(session);
  for (const auto& session : all) session->sweep(now);
}

CopyServerCounters CopyServer::counters() const {
  CopyServerCounters out = counters_;
  out.connections = sessions_.size();
  return out;
}

}  // namespace culprit::respond::checkpoint
