// Serves the API at its addresses: http.listen, and with a TCP address also the unix socket api.sock, so that
// the command line and an administrator without a token always reach the daemon. Reads tokens and
// certificates at the start and at a reload. Retries an address that is not available.
//
// Thread: the loop's. Borrows the configuration and the Api, which outlive it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config/config.h"
#include "io/env.h"
#include "serve/api.h"
#include "serve/http_server.h"
#include "serve/page_login.h"

namespace culprit::app {

class HttpService {
 public:
  using Say = std::function<void(const std::string&)>;
  // `sees_all`: decides who may get a link to the page.
  HttpService(io::Env& env, const Config& config, serve::Api& api,
              std::function<bool(const serve::Reader&)> sees_all, Say report_error, Say inform);
  ~HttpService();

  void start();
  // A new certificate requires a new server: clients must reconnect.
  void reload();
  // Counts over all addresses; nothing: no address is served.
  std::optional<serve::HttpCounts> counts() const;

 private:
  // An address and its server.
  struct Listening {
    std::string address;
    std::unique_ptr<serve::HttpServer> server = {};
    serve::HttpTls tls = {};  // credentials of the running server
    serve::Tokens tokens = {};
    std::string trouble = {};
    bool tcp() const { return !address.starts_with("unix:"); }
  };
  std::string page_url() const;
  void start_missing();
  Status start(Listening& listening);

  io::Env& env_;
  const Config& config_;
  serve::Api& api_;
  const Say report_error_, inform_;
  serve::PageLogin login_;
  std::vector<Listening> all_;
  std::unique_ptr<io::Timer> retry_;
};

}  // namespace culprit::app
