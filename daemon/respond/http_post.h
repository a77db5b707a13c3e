// One HTTP POST of a message (io/http/exchange.h), bounded in time and in the bytes of the answer, and what
// may be shown of it. Blocking: for a worker's thread.
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
  std::vector<std::string> secrets;  // what no message may show of an answer
  TimeNs within_ns = 15 * kNsPerSecond;
  const std::atomic<bool>* stop = nullptr;  // ends it early; borrowed
};

struct HttpReply {
  long status = 0;
  std::string body;  // at most kReplyBytes of it
  std::optional<TimeNs> retry_after_ns;
};
constexpr size_t kReplyBytes = 4096;

Result<HttpReply> post(const HttpPost& request);

// "https://hooks.example" of "https://hooks.example/T0/B0/secret": what may be shown.
std::string shown_url(std::string_view url);

// What an answer could repeat of these, as a whole and in parts: path, query and password of an address; the
// value of a header and its words.
std::vector<std::string> secrets_of_url(std::string_view url);
std::vector<std::string> secrets_of_header(std::string_view line);
// The text with "[secret]" for each secret in it, also where it is escaped for JSON or HTML. A secret that
// the end of the text cuts off is left out.
std::string without_secrets(std::string text, const std::vector<std::string>& secrets);

// The lines of a file of headers, without comments; an error names the line and never a value.
Result<std::vector<std::string>> parse_headers(std::string_view text);

}  // namespace culprit::respond
