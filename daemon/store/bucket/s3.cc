#include "store/bucket/s3.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace culprit::store::bucket {
namespace {

constexpr size_t kKeysMax = 1000;
constexpr size_t kTextMax = 1024;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The five names of XML. Keys of ours need none; a message may have any.
std::string unescaped(std::string_view text) {
  constexpr std::pair<std::string_view, char> kNames[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  std::string out;
  while (!text.empty() && out.size() < kTextMax) {
    const auto name =
        std::ranges::find_if(kNames, [&](const auto& one) { return text.starts_with(one.first); });
    out += name == std::end(kNames) ? text.front() : name->second;
    text.remove_prefix(name == std::end(kNames) ? 1 : name->first.size());
  }
  return out;
}

// The text of the first element <NAME> that begins at `from` or later, and has no attributes; `from` moves
// past it.
std::optional<std::string_view> element(std::string_view xml, std::string_view name, size_t& from) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const size_t begin = xml.find(open, from);
  if (begin == xml.npos) return std::nullopt;
  const size_t end = xml.find(close, begin + open.size());
  if (end == xml.npos) return std::nullopt;
  from = end + close.size();
  return xml.substr(begin + open.size(), end - begin - open.size());
}

std::string text_of(std::string_view xml, std::string_view name) {
  size_t from = 0;
  const auto found = element(xml, name, from);
  return found ? to_utf8(unescaped(*found)) : "";
}

// As in a signature: anything but letters, digits and - . _ ~ is %XX.
std::string encoded(std::string_view text) {
  std::string out;
  for (const unsigned char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    out += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return out;
}

std::string url_of(const Place& place, std::string_view key) {
  std::string_view url = place.url;
  while (url.ends_with('/')) url.remove_suffix(1);
  if (!place.host_style) return fmt::format("{}/{}{}{}", url, place.name, key.empty() ? "" : "/", key);
  const size_t host = url.find("://") + 3;
  return fmt::format("{}{}.{}/{}", url.substr(0, host), place.name, url.substr(host), key);
}

}  // namespace

Result<Credentials> parse_credentials(std::string_view text, const std::string& file) {
  Credentials out;
  bool counts = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with('[')) counts = line == "[default]";
    const size_t equals = line.find('=');
    if (!counts || line.starts_with('#') || equals == line.npos) continue;
    const std::string_view name = trimmed(line.substr(0, equals));
    const std::string value(trimmed(line.substr(equals + 1)));
    if (name == "aws_access_key_id") out.key = value;
    if (name == "aws_secret_access_key") out.secret = value;
    if (name == "aws_session_token") out.token = value;
  }
  if (out.key.empty() || out.secret.empty())
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: it has no aws_access_key_id and aws_secret_access_key", file));
  return out;
}

bool is_key(std::string_view key) {
  return !key.empty() && key.size() <= kTextMax && key.front() != '/' && key.find("..") == key.npos &&
         std::ranges::all_of(key, [](unsigned char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
                  c == '_' || c == '/' || c == '-';
         });
}

io::HttpRequest request_of(const Place& place, const Credentials& credentials, const Asked& asked) {
  io::HttpRequest out;
  out.url = url_of(place, asked.key);
  Query query = asked.query;
  std::ranges::sort(query);
  char before = '?';
  for (const auto& [name, value] : query) {
    out.url += fmt::format("{}{}={}", before, encoded(name), encoded(value));
    before = '&';
  }
  out.path_as_is = true;
  out.method = asked.method == "GET" ? "" : asked.method;
  out.headers.push_back("x-amz-content-sha256: " + asked.sha256);
  if (!credentials.token.empty()) out.headers.push_back("x-amz-security-token: " + credentials.token);
  if (!asked.range.empty()) out.headers.push_back("Range: bytes=" + asked.range);
  if (asked.method == "PUT") out.headers.emplace_back("Content-Type: application/octet-stream");
  out.signature = io::HttpSignature{place.region, "s3", credentials.key, credentials.secret};
  return out;
}

ServerError parse_error(std::string_view xml) {
  size_t from = 0;
  const size_t begin = xml.find("<Error>", from);
  if (begin == xml.npos) return {};
  xml.remove_prefix(begin);
  return {text_of(xml, "Code"), text_of(xml, "Message")};
}

Result<Listing> parse_listing(std::string_view xml) {
  if (xml.find("<ListBucketResult") == xml.npos)
    return fail(ErrorCode::kInvalid, "the answer is no list of a bucket");
  Listing out;
  size_t from = 0;
  while (out.keys.size() < kKeysMax) {
    const auto contents = element(xml, "Contents", from);
    if (!contents) break;
    out.keys.push_back(text_of(*contents, "Key"));
  }
  out.more = text_of(xml, "IsTruncated") == "true" || out.keys.size() == kKeysMax;
  return out;
}

}  // namespace culprit::store::bucket
