#include "serve/http_server.h"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdarg>

#include "io/address.h"
#include "io/container.h"
#include "serve/connection_shares.h"
#include "serve/exchange.h"
#include "serve/listen.h"
#include "serve/routes.h"

namespace culprit::serve {
namespace {

// Limit of connections: a host's daemon has a few clients, such as a scraper, a page, some terminals.
constexpr unsigned kConnections = 100;
// Connections kept free: with none free, a new client waits until the oldest one leaves.
constexpr size_t kFree = 10;
// Turns of libmicrohttpd per turn of the loop, with 10 new connections each. Thousands of idle connections
// are accepted and closed within a few turns, so that a client behind them is served.
constexpr int kTurns = 32;
// Memory per connection, for the request headers and the bytes being sent.
constexpr size_t kConnectionBytes = 64 << 10;
// Limit of the request headers: a browser sends 2 KB, more with a long path.
constexpr size_t kHeaderBytes = 16 << 10;
constexpr size_t kBodyBytes = 1 << 20;
// Bytes beyond the body limit that are read and discarded, so that the client reads our answer instead of a
// reset.
constexpr size_t kWastedBytes = 8 << 20;
// Time limit of a whole request; a slower client is disconnected.
constexpr TimeNs kRequestNs = 30 * kNsPerSecond;
// Time limit of a connection's first request, which follows the connection at once.
constexpr TimeNs kFirstRequestNs = 5 * kNsPerSecond;
constexpr TimeNs kSweepNs = kNsPerSecond;
// Time after which a client is disconnected if its answer makes no progress.
constexpr unsigned kSilentSeconds = 60;

// As for agents: see io/tls.h.
constexpr const char* kPriorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

void say_nothing(void*, const char*, va_list) {}

struct Exchange {
  std::string raw_target, authorization;
  bool begun = false, dispatched = false;
  const Route* route = nullptr;
  Request request;
  size_t body_bytes = 0;
  std::optional<Response> refusal;  // the body is read and dropped first
  std::shared_ptr<Wait> wait;
  std::shared_ptr<Answer> answer;
};

struct Connection {
  TimeNs waiting_since = 0;  // start of the wait for a whole request; kNoTime while an answer is in progress
  std::string who;           // the user of a unix socket, or the network of an address
  uint64_t number = 0;       // in order of arrival
  bool is_first = true;      // no request of it was complete yet
  bool leaving = false;      // it gives way to a newer one
  std::shared_ptr<Exchange> exchange;
};

const char* header(MHD_Connection* connection, const char* name) {
  const char* value = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return value ? value : "";
}

// Whether a body of this Content-Length is accepted; "": no body, or a chunked one.
bool fits(std::string_view length) {
  uint64_t bytes = 0;
  const auto parsed = std::from_chars(length.data(), length.data() + length.size(), bytes);
  return length.empty() || (parsed.ec == std::errc() && bytes <= kBodyBytes);
}

int descriptor_of(MHD_Connection* connection) {
  const auto* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info ? info->connect_fd : -1;
}

std::optional<uint32_t> peer_uid(MHD_Connection* connection) {
  const auto who = io::peer_of(descriptor_of(connection));
  if (!who) return std::nullopt;
  constexpr uint32_t kNobody = 65534;  // container root (no uid here) is a reader without rights
  return who->uid().value_or(kNobody);
}

std::string who_is(MHD_Connection* connection, bool local) {
  if (local) return fmt::format("uid {}", peer_uid(connection).value_or(~0u));
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  if (getpeername(descriptor_of(connection), reinterpret_cast<sockaddr*>(&at), &size) != 0) return "";
  return io::network_of(address_text(at, size));
}

// All groups of the peer, or only its primary group if the kernel reports no others.
std::vector<uint32_t> peer_groups(MHD_Connection* connection) {
  constexpr size_t kGroups = 65'536;  // Linux permits no more
  ucred peer{};
  socklen_t size = sizeof peer;
  const int descriptor = descriptor_of(connection);
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return {};
  std::vector<gid_t> groups(64);
  for (;;) {
    size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) break;
    if (errno != ERANGE || groups.size() >= kGroups) return {peer.gid};
    groups.resize(kGroups);
  }
  groups.resize(size / sizeof(gid_t));
  groups.push_back(peer.gid);
  return {groups.begin(), groups.end()};
}

class MhdServer final : public HttpServer {
 public:
  MhdServer(io::Env& env, HttpOptions options, std::vector<Route> routes)
      : env_(env), options_(std::move(options)), routes_(std::move(routes)) {}
  ~MhdServer() override;
  Status open();

  const std::string& address() const override { return listening_.address; }
  HttpCounts counts() const override {
    HttpCounts out = counts_;
    out.connections = connections_.size();
    return out;
  }
  void set_tokens(Tokens tokens) override;
  void set_names(std::vector<std::string> names) override { options_.names = std::move(names); }

 private:
  static void* on_target(void* self, const char* raw, MHD_Connection* connection);
  static MHD_Result on_request(void* self, MHD_Connection* connection, const char*, const char* method,
                               const char*, const char* bytes, size_t* size, void** context);
  static void on_completed(void* self, MHD_Connection* connection, void**, MHD_RequestTerminationCode);
  static void on_connection(void* self, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode);

  MHD_Result begin(MHD_Connection* connection, Exchange& e, std::string_view method);
  std::optional<Response> refusal(MHD_Connection* connection, Exchange& e, std::string_view method);
  std::optional<Response> find_route(Exchange& e, std::string_view method);
  const Token* known(std::string_view authorization, bool& session) const;
  std::optional<Response> unauthorized(MHD_Connection* connection, Exchange& e) const;
  MHD_Result take_body(Exchange& e, const char* bytes, size_t* size);
  void dispatch(MHD_Connection* connection, Exchange& e);
  MHD_Result queue(MHD_Connection* connection, const Response& response, const std::shared_ptr<Body>& body);
  static void forget(Connection& connection);
  void run();
  bool make_room();
  void sweep();

  io::Env& env_;
  HttpOptions options_;
  RouteTable routes_;
  Listening listening_;
  uint64_t socket_inode_ = 0;
  MHD_Daemon* daemon_ = nullptr;
  bool closing_ = false;
  std::map<MHD_Connection*, Connection> connections_;
  uint64_t arrived_ = 0;
  HttpCounts counts_;
  // Last members: they call back.
  std::unique_ptr<io::Timer> turn_, sweeper_;
  std::unique_ptr<io::Poll> poll_;
};

Status MhdServer::open() {
  auto listening = listen_at(options_.address, options_.socket_mode);
  if (!listening) return tl::unexpected(listening.error());
  listening_ = *listening;
  struct stat status;
  if (listening_.local && lstat(listening_.path.c_str(), &status) == 0) socket_inode_ = status.st_ino;
  const HttpTls& tls = options_.tls;
  const bool encrypted = !listening_.local && !tls.cert.empty();
  std::vector<MHD_OptionItem> more;
  if (encrypted)
    more = {{MHD_OPTION_HTTPS_MEM_CERT, 0, const_cast<char*>(tls.cert.c_str())},
            {MHD_OPTION_HTTPS_MEM_KEY, 0, const_cast<char*>(tls.key.c_str())},
            {MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kPriorities)}};
  more.push_back({MHD_OPTION_END, 0, nullptr});
  const unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
  daemon_ = MHD_start_daemon(
      encrypted ? flags | MHD_USE_TLS : flags, 0, nullptr, nullptr, on_request, this,
      MHD_OPTION_EXTERNAL_LOGGER, say_nothing, nullptr, MHD_OPTION_LISTEN_SOCKET, listening_.descriptor,
      MHD_OPTION_CONNECTION_LIMIT, kConnections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,
      MHD_OPTION_CONNECTION_TIMEOUT, kSilentSeconds, MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_URI_LOG_CALLBACK, on_target, this, MHD_OPTION_NOTIFY_COMPLETED, on_completed, this,
      MHD_OPTION_NOTIFY_CONNECTION, on_connection, this, MHD_OPTION_ARRAY, more.data(), MHD_OPTION_END);
  if (!daemon_) {
    close(listening_.descriptor);
    return fail(ErrorCode::kIo, fmt::format("{}: the {} server cannot start", options_.address,
                                            encrypted ? "HTTPS" : "HTTP"));
  }
  turn_ = env_.timer([this] { run(); });
  sweeper_ = env_.timer([this] { sweep(); });
  sweeper_->start(kSweepNs, kSweepNs);
  const auto* info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
  auto poll = env_.poll(info->epoll_fd, [this] { run(); });
  if (!poll) return tl::unexpected(poll.error());
  poll_ = std::move(*poll);
  return {};
}

MhdServer::~MhdServer() {
  closing_ = true;
  poll_.reset();
  sweeper_.reset();
  if (daemon_) {
    for (auto& [connection, state] : connections_) {
      if (!state.exchange) continue;
      if (Answer* answer = state.exchange->answer.get()) {
        answer->respond(error_response(503, "the daemon stops"));
        if (answer->body) answer->body->abort();
      }
    }
    MHD_run(daemon_);
    MHD_stop_daemon(daemon_);
  }
  for (auto& [connection, state] : connections_) forget(state);
  struct stat status;
  if (listening_.local && lstat(listening_.path.c_str(), &status) == 0 && status.st_ino == socket_inode_)
    unlink(listening_.path.c_str());
}

// Ends answers in progress whose token was removed or no longer suffices.
void MhdServer::set_tokens(Tokens tokens) {
  options_.tokens = std::move(tokens);
  if (listening_.local) return;
  for (const auto& [connection, state] : connections_) {
    const Exchange* e = state.exchange.get();
    if (!e || !e->route || e->route->needs == Role::kNone) continue;
    bool session = false;
    const Token* token = known(e->authorization, session);
    if (!token || token->role < e->route->needs) shutdown(descriptor_of(connection), SHUT_RDWR);
  }
}

void MhdServer::run() {
  for (int turn = 0; turn < kTurns; ++turn) {
    const bool full = connections_.size() >= kConnections;
    MHD_run(daemon_);
    // libmicrohttpd accepts new clients only in the turn after a client has left.
    if (full && connections_.size() < kConnections) MHD_run(daemon_);
    if (!make_room()) break;
  }
  MHD_UNSIGNED_LONG_LONG wait_ms = 0;
  if (MHD_get_timeout(daemon_, &wait_ms) == MHD_YES)
    turn_->start(static_cast<TimeNs>(wait_ms) * kNsPerMs);
  else
    turn_->stop();
}

// Closes connections to make room for new ones; false: there was room.
bool MhdServer::make_room() {
  if (connections_.size() <= kConnections - kFree) return false;
  std::vector<OpenConnection> all_members;
  std::vector<MHD_Connection*> members;
  for (const auto& [connection, state] : connections_) {
    if (state.leaving) continue;
    all_members.push_back({state.who, state.number, state.waiting_since != kNoTime});
    members.push_back(connection);
  }
  bool any = false;
  for (; all_members.size() > kConnections - kFree; any = true) {
    const size_t index = gives_way(all_members, kConnections / 4);
    Connection& state = connections_[members[index]];
    state.leaving = true;
    ++counts_.gave_way;
    if (Answer* answer = state.exchange ? state.exchange->answer.get() : nullptr) {
      answer->respond(error_response(503, "there are too many clients"));
      if (answer->body) answer->body->cut();
    }
    shutdown(descriptor_of(members[index]), SHUT_RDWR);  // libmicrohttpd sees the end and closes it
    all_members.erase(all_members.begin() + static_cast<std::ptrdiff_t>(index));
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(index));
  }
  return any;
}

void MhdServer::sweep() {
  const TimeNs now = env_.now(io::Clock::kMonotonic);
  for (auto& [connection, state] : connections_) {
    const TimeNs allowed = state.is_first ? kFirstRequestNs : kRequestNs;
    if (state.waiting_since == kNoTime || now - state.waiting_since < allowed) continue;
    ++counts_.timeouts;
    state.waiting_since = kNoTime;
    shutdown(descriptor_of(connection), SHUT_RDWR);  // libmicrohttpd sees the end and closes it
  }
}

void MhdServer::on_connection(void* self, MHD_Connection* connection, void**,
                              MHD_ConnectionNotificationCode code) {
  auto& server = *static_cast<MhdServer*>(self);
  Connection& state = server.connections_[connection];
  state.waiting_since = server.env_.now(io::Clock::kMonotonic);
  if (code != MHD_CONNECTION_NOTIFY_CLOSED) {
    state.who = who_is(connection, server.listening_.local);
    state.number = ++server.arrived_;
    return;
  }
  forget(state);
  server.connections_.erase(connection);
}

void MhdServer::on_completed(void* self, MHD_Connection* connection, void** context,
                             MHD_RequestTerminationCode) {
  auto& server = *static_cast<MhdServer*>(self);
  *context = nullptr;
  const auto at = server.connections_.find(connection);
  if (at == server.connections_.end()) return;
  forget(at->second);
  at->second.waiting_since = server.env_.now(io::Clock::kMonotonic);
}

// Later answers have no effect.
void MhdServer::forget(Connection& connection) {
  const auto exchange = std::move(connection.exchange);
  if (!exchange) return;
  if (exchange->wait) exchange->wait->die();
  if (exchange->answer && exchange->answer->body) exchange->answer->body->connection_closed();
}

void* MhdServer::on_target(void* self, const char* raw, MHD_Connection* connection) {
  auto& server = *static_cast<MhdServer*>(self);
  Connection& state = server.connections_[connection];
  forget(state);
  state.exchange = std::make_shared<Exchange>();
  state.exchange->raw_target = raw;
  return state.exchange.get();
}

MHD_Result MhdServer::on_request(void* self, MHD_Connection* connection, const char*, const char* method,
                                 const char*, const char* bytes, size_t* size, void** context) {
  auto& server = *static_cast<MhdServer*>(self);
  auto* e = static_cast<Exchange*>(*context);
  if (!e) return MHD_NO;
  if (!e->begun) return server.begin(connection, *e, method);
  if (*size > 0) return server.take_body(*e, bytes, size);
  if (e->refusal) return server.queue(connection, *e->refusal, nullptr);
  if (server.closing_) return server.queue(connection, error_response(503, "the daemon stops"), nullptr);
  if (!e->dispatched) server.dispatch(connection, *e);
  if (e->answer->given) return server.queue(connection, e->answer->response, e->answer->body);
  e->wait->suspend();
  return MHD_YES;
}

MHD_Result MhdServer::begin(MHD_Connection* connection, Exchange& e, std::string_view method) {
  e.begun = true;
  e.refusal = refusal(connection, e, method);
  if (!e.refusal) return MHD_YES;
  ++counts_.refused;
  // Reads a small body first: if the connection closed while the client sends, the client would lose the
  // answer.
  return fits(header(connection, "Content-Length")) ? MHD_YES : queue(connection, *e.refusal, nullptr);
}

std::optional<Response> MhdServer::refusal(MHD_Connection* connection, Exchange& e, std::string_view method) {
  if (closing_) return error_response(503, "the daemon stops");
  const auto* size = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
  if (size && size->header_size > kHeaderBytes)
    return error_response(431, fmt::format("the request's headers are larger than {} bytes", kHeaderBytes));
  if (!listening_.local) {
    const std::string_view host = header(connection, "Host");
    if (!host_allowed(host, options_.names))
      return error_response(403, "the Host header names neither an address, nor localhost, nor this host");
  }
  auto target = parse_target(e.raw_target);
  if (!target) return error_response(400, target.error().text);
  e.request.path = std::move(target->path);
  e.request.query = std::move(target->query);
  if (auto refused = find_route(e, method)) return refused;
  if (auto refused = unauthorized(connection, e)) return refused;
  e.request.last_event_id = header(connection, "Last-Event-ID");
  if (!fits(header(connection, "Content-Length")))
    return error_response(413, fmt::format("the body is larger than {} bytes", kBodyBytes));
  return std::nullopt;
}

std::optional<Response> MhdServer::find_route(Exchange& e, std::string_view method) {
  e.request.method = method == "HEAD" ? "GET" : method;
  RouteTable::Match match = routes_.find(e.request.method, e.request.path);
  if (match.allow.empty()) return error_response(404, "there is nothing at this address");
  if (!match.route) {
    Response refused = error_response(405, fmt::format("this address takes {} only", match.allow));
    refused.headers.emplace_back("Allow", match.allow);
    return refused;
  }
  e.route = match.route;
  e.request.names = std::move(match.names);
  return std::nullopt;
}

const Token* MhdServer::known(std::string_view authorization, bool& session) const {
  const Token* token = options_.tokens.find(authorization);
  session = !token && options_.session;
  return session ? options_.session(authorization) : token;
}

std::optional<Response> MhdServer::unauthorized(MHD_Connection* connection, Exchange& e) const {
  Request& request = e.request;
  if (const auto known_one = connections_.find(connection); known_one != connections_.end())
    request.peer = known_one->second.who;
  if (listening_.local) {
    request.uid = peer_uid(connection);
    request.groups = peer_groups(connection);
    const bool operates = request.uid && (*request.uid == 0 || *request.uid == geteuid());
    request.role = operates ? Role::kOperate : Role::kRead;
    if (request.role >= e.route->needs) return std::nullopt;
    return error_response(403, "only root and the daemon's own user may change something");
  }
  e.authorization = header(connection, "Authorization");
  bool session = false;
  if (const Token* token = known(e.authorization, session)) {
    request.role = token->role;
    request.token = token->name;
    request.by_session = session;
  }
  if (request.role >= e.route->needs) return std::nullopt;
  if (options_.tokens.empty() && (e.authorization.empty() || !options_.session))
    return error_response(403,
                          "over TCP /healthz and /metrics are served to all, the rest to a token: name a "
                          "token_file below [http] of the daemon's configuration, or open the page with the "
                          "link of 'culprit page'");
  if (request.role == Role::kRead)
    return error_response(403, "this token may only read: a change needs one with the role operate");
  Response refused = error_response(
      401, e.authorization.empty()
               ? "a token is missing: Authorization: Bearer TOKEN, on the command line --token-file FILE"
           : options_.tokens.empty() ? "the daemon does not know this token: it has no tokens, and a link of "
                                       "'culprit page' lasts 12 hours"
                                     : "the daemon does not know this token: it may have been replaced");
  refused.headers.emplace_back("WWW-Authenticate", "Bearer");
  return refused;
}

MHD_Result MhdServer::take_body(Exchange& e, const char* bytes, size_t* size) {
  e.body_bytes += *size;
  if (e.body_bytes > kWastedBytes) return MHD_NO;
  if (!e.refusal && e.body_bytes <= kBodyBytes) e.request.body.append(bytes, *size);
  *size = 0;
  return MHD_YES;
}

void MhdServer::dispatch(MHD_Connection* connection, Exchange& e) {
  e.dispatched = true;
  connections_[connection].waiting_since = kNoTime;
  connections_[connection].is_first = false;
  e.wait = std::make_shared<Wait>(connection, [this] { turn_->start(0); });
  e.answer = std::make_shared<Answer>(e.wait);
  if (e.body_bytes > kBodyBytes)
    return e.answer->respond(
        error_response(413, fmt::format("the body is larger than {} bytes", kBodyBytes)));
  e.route->handler(e.request, Reply(std::make_shared<Reply::State>(e.answer)));
}

MHD_Result MhdServer::queue(MHD_Connection* connection, const Response& response,
                            const std::shared_ptr<Body>& body) {
  connections_[connection].waiting_since = kNoTime;
  ++counts_.answers[response.status];
  MHD_Response* out = make_response(response, body);
  const MHD_Result done = MHD_queue_response(connection, static_cast<unsigned>(response.status), out);
  MHD_destroy_response(out);
  return done;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(io::Env& env, HttpOptions options,
                                                      std::vector<Route> routes) {
  auto server = std::make_unique<MhdServer>(env, std::move(options), std::move(routes));
  if (Status status = server->open(); !status) return tl::unexpected(status.error());
  return server;
}

}  // namespace culprit::serve
