// Sends a message in one HTTP POST (io/http/exchange.h), with limits of time and of the answer's bytes;
// also removes secrets from texts to show. Blocking: for a worker's thread.
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

// The part of a URL that may be shown: "https://hooks.example" of "https://hooks.example/T0/B0/secret".
std::string shown_url(std::string_view url);

// Secrets that an answer could repeat, whole and in parts: path, query and password of a URL; value and
// words of a header.
std::vector<std::string> secrets_of_url(std::string_view url);
std::vector<std::string> secrets_of_header(std::string_view line);
// Replaces each secret in the text by "[secret]", also where it is escaped for JSON or HTML. A secret
// truncated at the end of the text is removed.
std::string without_secrets(std::string text, const std::vector<std::string>& secrets);

// Parses a file of headers: its lines without comments. An error has the line number and never a value.
Result<std::vector<std::string>> parse_headers(std::string_view text);

}  // namespace culprit::respond
