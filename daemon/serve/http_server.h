// An HTTP server on libmicrohttpd inside the loop: it parses, bounds and refuses; handlers answer at once or
// later. It knows nothing of what it serves (serve/api.h does).
//
// Thread: the loop's, everything, callbacks and answers too. The server owns its connections; a Reply or a
// stream that outlives its client or the server is dead and may still be called. Nothing blocks, no client
// makes memory grow without bound, and a client that stands still loses its connection.
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

namespace culprit::serve {

struct Request {
  std::string method;  // GET for HEAD too
  std::vector<std::string> path;
  std::map<std::string, std::string> names;  // what stood at "{job}" of the route's pattern
  std::map<std::string, std::string> query;
  std::string body;
  std::string last_event_id;    // of a browser or a watcher that comes back
  std::optional<uint32_t> uid;  // of the peer of a unix socket, by the kernel's word
  bool authorized = false;      // may change something: root or our own uid, or the token
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// {"error": "one sentence"}.
Response error_response(int status, std::string_view sentence);
// The status that fits the error: 400, 404, 403, 503, 500.
Response error_response(const Error& error);

// A body that comes in parts, each as the one before has gone out.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  virtual void write(std::string bytes) = 0;
  virtual size_t queued() const = 0;  // bytes that the client's connection has not taken
  virtual bool closed() const = 0;    // the client went away
  // Calls back whenever nothing is queued and the client can take more; after that not until something was
  // written.
  virtual void on_ready(std::function<void()> call) = 0;
  virtual void on_closed(std::function<void()> call) = 0;
  virtual void trailer(const std::string& name, const std::string& value) = 0;
  virtual void finish() = 0;
  virtual void abort() = 0;  // the client sees that it has not all of it
};

// The answer to one request; copies are the same one. Exactly one of the calls, once; if the last copy goes
// without, the client is told so with 500.
class Reply {
 public:
  struct State;
  explicit Reply(std::shared_ptr<State> state) : state_(std::move(state)) {}
  void send(Response response) const;
  // `head` without its body.
  std::shared_ptr<BodyStream> stream(Response head) const;

 private:
  std::shared_ptr<State> state_;
};

using Handler = std::function<void(const Request&, Reply)>;

struct Route {
  std::string method;   // GET or POST; GET serves HEAD
  std::string pattern;  // "/v1/jobs/{job}/report"
  Handler handler;
  bool changes = false;  // needs Request::authorized: 401 or 403 without
};

struct HttpOptions {
  std::string address;          // "unix:PATH" or "HOST:PORT", port 0: any
  uint32_t socket_mode = 0660;  // of the unix socket
  std::vector<std::string> names =
      {};                  // of this host, that a Host header may hold beside addresses and localhost
  std::string token = {};  // for POST over TCP; empty: none is accepted
};

// Seen by /metrics.
struct HttpCounts {
  std::map<int, uint64_t> answers;  // by status
  uint64_t connections = 0;         // now
  uint64_t refused = 0;             // requests that no handler saw
  uint64_t timeouts = 0;            // connections cut because they stood still
};

class HttpServer {
 public:
  // Errors: the address is bad, in use, or not allowed: one sentence.
  static Result<std::unique_ptr<HttpServer>> start(io::Env& env, HttpOptions options,
                                                   std::vector<Route> routes);
  virtual ~HttpServer() = default;  // open requests get 503, streams end
  // As clients write it, with the port that was chosen.
  virtual const std::string& address() const = 0;
  virtual HttpCounts counts() const = 0;
  virtual void set_token(std::string token) = 0;  // after a reload
};

}  // namespace culprit::serve
