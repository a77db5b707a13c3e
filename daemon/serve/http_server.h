// An HTTP server on libmicrohttpd inside the loop: it parses, limits and refuses requests; handlers answer
// at once or later. It is independent of the content (serve/api.h).
//
// Thread: the loop's, including callbacks and answers. The server owns its connections. A Reply or stream
// that outlives its client or the server is dead; calls to a dead one are allowed and have no effect.
// Nothing blocks, memory per client is limited, and a client without progress is disconnected.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/env.h"
#include "serve/target.h"
#include "serve/tokens.h"

namespace culprit::serve {

struct Request {
  std::string method;  // GET also for HEAD
  std::vector<std::string> path;
  std::map<std::string, std::string> names;  // values of the route pattern's parameters, such as "{job}"
  std::map<std::string, std::string> query;
  std::string body;
  std::string last_event_id;     // of a reconnecting browser or watcher
  std::optional<uint32_t> uid;   // of the peer of a unix socket, from the kernel
  std::vector<uint32_t> groups;  // of that process when it connected
  std::string token;             // name of the token over TCP
  bool by_session = false;       // the token is that of a page session (serve/sessions.h)
  std::string peer;              // the user of a unix socket, or the network of an address
  Role role = Role::kNone;       // by the token; on a unix socket, root and our own uid operate, others read
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// {"error": "one sentence"}.
Response error_response(int status, std::string_view sentence);
// Uses the HTTP status of the error: 400, 404, 403, 503, 500.
Response error_response(const Error& error);

// A body sent in parts; each is written after the previous one was sent.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  virtual void write(std::string bytes) = 0;
  virtual size_t queued() const = 0;  // bytes that the connection has not accepted
  virtual bool closed() const = 0;    // the client left
  // Calls `call` when nothing is queued and the client can receive more; again only after the next write.
  virtual void on_ready(std::function<void()> call) = 0;
  virtual void on_closed(std::function<void()> call) = 0;
  virtual void trailer(const std::string& name, const std::string& value) = 0;
  virtual void finish() = 0;
  virtual void abort() = 0;  // the client sees an incomplete body
};

// The answer to one request; copies share it. Make exactly one of its calls, once. If the last copy is
// destroyed without an answer, the client gets 500.
class Reply {
 public:
  struct State;
  explicit Reply(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void send(Response response) const;
  // `head`: status and headers; its body is ignored.
  std::shared_ptr<BodyStream> stream(Response head) const;

 private:
  std::shared_ptr<State> state_;
};

using Handler = std::function<void(const Request&, Reply)>;

struct Route {
  std::string method;   // GET or POST; GET serves HEAD
  std::string pattern;  // "/v1/jobs/{job}/report"
  Handler handler;
  Role needs = Role::kRead;  // of the request, else 401 or 403
};

// PEM texts for HTTPS; both empty: HTTP.
struct HttpTls {
  std::string cert = {}, key = {};  // the certificate with its intermediates
  bool operator==(const HttpTls&) const = default;
};

struct HttpOptions {
  std::string address;          // "unix:PATH" or "HOST:PORT", port 0: any
  uint32_t socket_mode = 0660;  // of the unix socket
  std::vector<std::string> names =
      {};              // names of this host that a Host header may have, besides addresses and localhost
  Tokens tokens = {};  // for TCP; empty: only routes that need no role are served
  HttpTls tls = {};    // for TCP
  // For TCP: looks up the session of "Bearer SECRET"; null: none. The function may be empty.
  std::function<const Token*(std::string_view authorization)> session = {};
};

// For /metrics.
struct HttpCounts {
  std::map<int, uint64_t> answers;  // by status
  uint64_t connections = 0;         // current
  uint64_t refused = 0;             // requests that reached no handler
  uint64_t timeouts = 0;            // connections closed for lack of progress
  uint64_t gave_way = 0;            // connections closed for newer ones (serve/connection_shares.h)
};

class HttpServer {
 public:
  // The error says in one sentence that the address is malformed, in use, or not allowed.
  static Result<std::unique_ptr<HttpServer>> start(io::Env& env, HttpOptions options,
                                                   std::vector<Route> routes);
  virtual ~HttpServer() = default;  // open requests get 503, streams end
  // As clients write it, with the actual port.
  virtual const std::string& address() const = 0;
  virtual HttpCounts counts() const = 0;
  // Call after a reload. Ends answers in progress whose token or session was removed.
  virtual void set_tokens(Tokens tokens) = 0;
  virtual void set_names(std::vector<std::string> names) = 0;  // as in HttpOptions
};

}  // namespace culprit::serve
