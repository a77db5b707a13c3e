// One HTTP POST. It follows no redirect, verifies certificates, takes no proxy from the environment, and is
// bounded in time and in the bytes of the answer. Blocking: for a worker's thread.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"

namespace culprit::respond {

struct HttpPost {
  std::string url;  // http or https
  std::string body;
  std::vector<std::string> headers;  // "Name: value"
  std::string ca;                    // file of authorities; empty: the system's
  std::string proxy;                 // empty: none
  TimeNs within_ns = 15 * kNsPerSecond;
  const std::atomic<bool>* stop = nullptr;  // ends it early; borrowed
};

struct HttpReply {
  long status = 0;
  std::string body;  // at most kReplyBytes of it
  std::optional<TimeNs> retry_after_ns;
};
constexpr size_t kReplyBytes = 4096;

// Before the first thread.
void prepare_http();
Result<HttpReply> post(const HttpPost& request);

// "https://hooks.example" of "https://hooks.example/T0/B0/secret": what may be shown.
std::string shown_url(std::string_view url);

// The lines of a file of headers, without comments; an error names the line and never a value.
Result<std::vector<std::string>> parse_headers(std::string_view text);

}  // namespace culprit::respond
