// The routes by which a browser is logged in: POST /v1/page/link makes a link for who may read everything,
// POST /v1/page/login gives its session over TCP. The code is behind the '#' of the address, which browsers
// never send: to fetch the link uses nothing up.
//
// Thread: the loop's. The routes borrow it; it outlives the servers.
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
    // Of the page as a browser opens it, without a slash at its end; empty: no address of TCP answers.
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
