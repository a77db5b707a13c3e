// One HTTP request and its answer, by libcurl, which is included here alone. It follows no redirect, takes no
// proxy and no password from the environment or a file, verifies certificates, speaks TLS 1.2 or later, and
// gives up a connection that takes longer than 5 s to open. Blocking; any thread.
//
// Not for culprit-capture: a program that may trace links nothing that speaks TLS, and reads the few lines of
// a debug server itself (capture/debug_server).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/time.h"

namespace culprit::io {

// All are borrowed for the call.
struct HttpRequest {
  std::string url;                            // http or https
  std::string socket = {};                    // a Unix socket instead of the url's host; empty: none
  bool path_as_is = false;                    // else ".." in the path is resolved
  std::vector<std::string> headers = {};      // "Name: value"; "Name:" leaves out one of libcurl's
  std::optional<std::string_view> body = {};  // of a POST; without: a GET
  std::string ca_file = {};                   // of authorities; empty: the system's
  bool ca_alone = false;                      // with `ca_file`: the folder of the system counts no more
  bool any_name = false;                      // the certificate's names need not match
  std::string proxy = {};                     // empty: none
  TimeNs within_ns = 0;                       // the whole exchange; 0: without a limit
  TimeNs silent_ns = 0;                       // at most without a byte; whole seconds; 0: without a limit
  std::function<void(std::string_view)> on_header = {};  // a line of the answer; may be empty
  // The body as it comes, with the status; false ends the exchange. Bounds are the caller's: it keeps what
  // it wants.
  std::function<bool(long status, std::string_view bytes)> on_body = {};
  std::function<bool()> goes_on = {};  // asked about once a second; false ends the exchange; may be empty
};

struct HttpAnswer {
  long status = 0;
  std::optional<TimeNs> retry_after_ns;  // the answer asks for it; at most a day
};

struct HttpFailure {
  enum class Kind : uint8_t {
    kStopped,      // on_body or goes_on said so
    kUnreachable,  // no connection
    kUntrusted,    // its certificate
    kTimeout,
    kBroken,
  } kind = Kind::kBroken;
  std::string reason;    // libcurl's
  int system_error = 0;  // errno of the connection; 0: none
};

// Before the first thread; also for each exchange. False: libcurl cannot be used.
bool prepare_http();
tl::expected<HttpAnswer, HttpFailure> http_exchange(const HttpRequest& request);

}  // namespace culprit::io
