// The pure parts of the S3 protocol: what a request says, and what an answer means. A server verifies each
// request's signature, so names and queries must be exactly as it sees them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/http/exchange.h"

namespace culprit::store::bucket {

struct Credentials {
  std::string key, secret;
  std::string token;  // of a session; empty: none
};
// The profile [default], or what stands before any profile, of a file as other S3 clients have it:
// aws_access_key_id, aws_secret_access_key and aws_session_token. `file`: for errors.
Result<Credentials> parse_credentials(std::string_view text, const std::string& file);

struct Place {
  std::string url;          // "https://s3.example", without the bucket
  std::string name;         // of the bucket
  std::string region;       // "us-east-1"
  bool host_style = false;  // https://BUCKET.s3.example/KEY in place of https://s3.example/BUCKET/KEY
};

// Letters, digits and . _ / - only: other characters are signed in different ways by different servers.
bool is_key(std::string_view key);

using Query = std::vector<std::pair<std::string, std::string>>;
struct Asked {
  std::string method;      // GET, PUT, DELETE
  std::string key;         // empty: the bucket itself
  Query query = {};        // sorted here
  std::string sha256;      // of the body, in hex
  std::string range = {};  // "0-99"; empty: all
};
// Without body and limits.
io::HttpRequest request_of(const Place& place, const Credentials& credentials, const Asked& asked);

// <Error><Code>NoSuchKey</Code><Message>…; empty fields: the text has none.
struct ServerError {
  std::string code, message;
};
ServerError parse_error(std::string_view xml);

struct Listing {
  std::vector<std::string> keys;
  bool more = false;
};
// <ListBucketResult>, at most 1,000 keys; nothing else counts. kInvalid: it is none.
Result<Listing> parse_listing(std::string_view xml);

}  // namespace culprit::store::bucket
