// HTTP client of a running daemon's API, for the command line. Blocks; a Client belongs to one thread. An
// error is one sentence that names the server and the remedy.
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

// docs/formats.md section 8: the defaults of runtime_dir and http.listen.
constexpr const char* kLocalServer = "unix:/run/culprit/api.sock";

struct ClientOptions {
  // "unix:PATH", "http://HOST:PORT" or "https://HOST:PORT"; empty: CULPRIT_SERVER, else kLocalServer.
  std::string server;
  std::string token_file;    // for TCP: file whose first token is sent; empty: CULPRIT_TOKEN_FILE, else none
  std::string ca_file = {};  // for https; empty: CULPRIT_CA_FILE, else the system's authorities
  long answer_ms = 0;        // limit of a whole answer; 0: no limit
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
  // The body of an answer with status 2xx; otherwise the daemon's message as an error.
  // `within_ms`: limit of this whole answer; 0: that of the options.
  Result<std::string> get(const std::string& path, long within_ms = 0);
  // Whether a daemon answers at all, with whatever status; an error within this time if none does.
  Status reach(long within_ms);
  Result<std::string> post(const std::string& path, const std::string& json);
  // Passes the body on as it arrives; `take` returns false to stop. Returns the gaps that the daemon
  // reported.
  Result<std::vector<std::string>> get_stream(const std::string& path,
                                              const std::function<bool(std::string_view)>& take);
  // Reads events until the connection ends, an error, or `take` returns false. `take` also gets an occasional
  // event without a kind, so that it can stop. `last_id`: continues after the event with this id.
  Status events(const std::string& path, const std::string& last_id,
                const std::function<bool(const ServerEvent&)>& take);

 private:
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// For a segment of a path or a value in a query.
std::string url_escaped(std::string_view text);

}  // namespace culprit::app
