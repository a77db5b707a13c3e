// The routes that log a browser in. POST /v1/page/link makes a link, for a client that may read everything.
// POST /v1/page/login exchanges the link's code for a session over TCP. The code follows '#' in the
// address, a part that browsers never send, so fetching the link does not use up the code.
//
// Thread: the loop's. The routes borrow the PageLogin, which outlives the servers.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/env.h"
#include "serve/api.h"
#include "serve/http_server.h"
#include "serve/sessions.h"

namespace culprit::serve {

class PageLogin {
 public:
  struct Parts {
    // URL of the page for a browser, without a trailing slash; empty: the daemon serves no TCP address.
    std::function<std::string()> url;
    std::function<bool(const Reader&)> sees_all;
    std::function<void(const std::string&)> inform;  // for the log
  };
  PageLogin(io::Env& env, Parts parts) : env_(env), parts_(std::move(parts)) {}

  std::vector<Route> routes();
  Sessions& sessions() { return sessions_; }
  const Token* find(std::string_view authorization) {
    return sessions_.find(authorization, env_.now(io::Clock::kMonotonic));
  }

 private:
  void make_link(const Request& request, const Reply& reply);
  void log_in(const Request& request, const Reply& reply);

  io::Env& env_;
  const Parts parts_;
  Sessions sessions_;
};

}  // namespace culprit::serve
