// One HTTP request and its response, with libcurl, which only this file includes. Follows no redirect; takes
// no proxy or password from the environment or a file. Verifies certificates, uses TLS 1.2 or later;
// connecting times out after 5 s. Blocking; any thread.
//
// Not for culprit-capture: a program with ptrace rights links no TLS library, and parses a debug server's few
// lines itself (capture/debug_server).
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

// AWS's signature, version 4, over the method, path, query and `headers`: queries must be sorted by name.
struct HttpSignature {
  std::string region, service;  // "us-east-1", "s3"
  std::string key, secret;
};

// `body` is borrowed for the call.
struct HttpRequest {
  std::string url;                            // http or https
  std::string socket = {};                    // a Unix socket instead of the url's host; empty: none
  bool path_as_is = false;                    // false: ".." in the path is resolved
  std::vector<std::string> headers = {};      // "Name: value"; "Name:" leaves out one of libcurl's
  std::optional<std::string_view> body = {};  // body of a POST; none: a GET
  std::string method = {};                    // PATCH, PUT, DELETE; empty: by the body
  std::optional<HttpSignature> signature = {};
  std::string ca_file = {};      // certificate authorities; empty: the system's
  bool ca_alone = false;         // with `ca_file`: ignore the system's CA folder
  bool skip_name_check = false;  // of the certificate: accept one for another host
  std::string proxy = {};        // empty: none
  TimeNs within_ns = 0;          // limit of the whole exchange; 0: no limit
  TimeNs idle_timeout_ns = 0;    // longest time without a byte; whole seconds; 0: no limit
  std::function<void(std::string_view)> on_header = {};  // receives one header line; may be empty
  // Receives the body as it arrives, with the status; false ends the exchange. The caller bounds what it
  // keeps.
  std::function<bool(long status, std::string_view bytes)> on_body = {};
  std::function<bool()> keep_going = {};  // called about once a second; false ends the exchange; may be empty
};

struct HttpAnswer {
  long status = 0;
  std::optional<TimeNs> retry_after_ns;  // requested by the response; at most a day
};

struct HttpFailure {
  enum class Kind : uint8_t {
    kStopped,      // on_body or keep_going returned false
    kUnreachable,  // no connection
    kUntrusted,    // the certificate was rejected
    kTimeout,
    kBroken,
  } kind = Kind::kBroken;
  std::string reason;    // libcurl's message
  int system_error = 0;  // errno of the connection; 0: none
};

// Initialises libcurl; call before starting threads. Each exchange calls it too. False: libcurl cannot be
// used.
bool prepare_http();
tl::expected<HttpAnswer, HttpFailure> http_exchange(const HttpRequest& request);

}  // namespace culprit::io
