// Speaks to a running daemon over its HTTP API, for the command line. Blocks; a Client belongs to one thread.
// Errors are one sentence that names the server and what to do.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::app {

// FORMATS.md section 8: runtime_dir and http.listen as they are by default.
constexpr const char* kLocalServer = "unix:/run/culprit/api.sock";

struct ClientOptions {
  std::string server;      // "unix:PATH" or "http://HOST:PORT"; empty: CULPRIT_SERVER, else kLocalServer
  std::string token_file;  // for what changes something over TCP
};

struct ServerEvent {
  std::string kind, id, data;
};

class Client {
 public:
  static Result<Client> make(const ClientOptions& options);
  Client(Client&&) noexcept;
  ~Client();

  const std::string& server() const;
  // The body of an answer with status 2xx; otherwise the daemon's own sentence as an error.
  Result<std::string> get(const std::string& path);
  Result<std::string> post(const std::string& path, const std::string& json);
  // Hands on the body as it comes; `take` returns false to end. Gives the gaps that the daemon told.
  Result<std::vector<std::string>> get_stream(const std::string& path,
                                              const std::function<bool(std::string_view)>& take);
  // Events until the connection ends, an error, or `take` returns false; `take` also gets an event without
  // a kind now and then, so that it can end. `last_id`: where to go on, from an event before.
  Status events(const std::string& path, const std::string& last_id,
                const std::function<bool(const ServerEvent&)>& take);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A segment of a path, or a value of a query.
std::string url_escaped(std::string_view text);

}  // namespace culprit::app
