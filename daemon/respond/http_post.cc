#include "respond/http_post.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "io/http/exchange.h"

namespace culprit::respond {
namespace {

constexpr size_t kHeaderLines = 32, kHeaderBytes = 8192;

// Shorter ones are words of any answer.
constexpr size_t kSecretLeast = 4;
constexpr std::string_view kBlank = "[secret]";

void add_words(std::string_view text, std::string_view separators, std::vector<std::string>& out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(separators), text.size());
    if (end >= kSecretLeast) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* digits = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += escape ? static_cast<char>(value) : text[i];
    if (escape) i += 2;
  }
  return out;
}

void add_forms(const std::string& secret, std::set<std::string>& out) {
  for (const std::string& plain : {secret, percent_decoded(secret)}) {
    std::string quoted = nlohmann::json(plain).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    quoted = quoted.substr(1, quoted.size() - 2);
    std::string slashes;
    for (const char c : quoted) c == '/' ? slashes += "\\/" : slashes += c;
    for (const std::string& form : {plain, quoted, slashes, to_html(plain)})
      if (form.size() >= kSecretLeast) out.insert(form);
  }
}

}  // namespace

Result<HttpReply> post(const HttpPost& request) {
  HttpReply out;
  io::HttpRequest sent;
  sent.url = request.url;
  sent.headers = request.headers;
  sent.headers.emplace_back("Expect:");
  sent.headers.emplace_back("User-Agent: culprit/" CULPRIT_VERSION);
  sent.body = request.body;
  sent.ca_file = request.ca;
  sent.proxy = request.proxy;
  sent.within_ns = request.within_ns;
  // Reads and discards bytes above the limit: closing the connection would look like a failure.
  sent.on_body = [&](long, std::string_view bytes) {
    out.body += bytes.substr(0, kReplyBytes - out.body.size());
    return true;
  };
  sent.keep_going = [&] { return !request.stop || !request.stop->load(); };
  const auto answer = io::http_exchange(sent);
  if (!answer)
    return fail(ErrorCode::kIo, fmt::format("{}: {}", shown_url(request.url), answer.error().reason));
  out.status = answer->status;
  out.retry_after_ns = answer->retry_after_ns;
  return out;
}

std::string shown_url(std::string_view url) {
  const size_t host = url.find("://");
  if (host == url.npos) return "the address";
  const size_t end = url.find_first_of("/?#", host + 3);
  std::string_view authority = url.substr(host + 3, end == url.npos ? url.npos : end - host - 3);
  if (const size_t at = authority.rfind('@'); at != authority.npos) authority.remove_prefix(at + 1);
  return fmt::format("{}://{}", url.substr(0, host), to_terminal(authority));
}

std::vector<std::string> secrets_of_url(std::string_view url) {
  std::vector<std::string> out;
  const size_t scheme = url.find("://");
  std::string_view rest = scheme == url.npos ? url : url.substr(scheme + 3);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  const std::string_view authority = rest.substr(0, end);
  rest.remove_prefix(end);
  if (const size_t at = authority.rfind('@'); at != authority.npos) {
    out.emplace_back(authority.substr(0, at));
    add_words(authority.substr(0, at), ":", out);
  }
  out.emplace_back(rest);
  if (!rest.empty()) out.emplace_back(rest.substr(1));  // as a router names it
  add_words(rest, "/?&=#", out);
  return out;
}

std::vector<std::string> secrets_of_header(std::string_view line) {
  const size_t colon = line.find(':');
  const std::string_view value = trim(line.substr(colon == line.npos ? 0 : colon + 1));
  std::vector<std::string> out{std::string(value)};
  add_words(value, " \t,;=\"", out);
  return out;
}

std::string without_secrets(std::string text, const std::vector<std::string>& secrets) {
  std::set<std::string> forms;
  for (const std::string& secret : secrets) add_forms(secret, forms);
  // Longest first: a secret that is part of a longer one is replaced together with it.
  std::vector<std::string> ordered(forms.begin(), forms.end());
  std::ranges::stable_sort(ordered, std::ranges::greater(), &std::string::size);
  for (const std::string& form : ordered)
    for (size_t at = text.find(form); at != text.npos; at = text.find(form, at + kBlank.size()))
      text.replace(at, form.size(), kBlank);
  size_t cut = 0;
  for (const std::string& form : ordered)
    for (size_t n = std::min(form.size() - 1, text.size()); n > cut; --n)
      if (text.ends_with(std::string_view(form).substr(0, n))) cut = n;
  if (cut >= kSecretLeast) text.resize(text.size() - cut);
  return text;
}

Result<std::vector<std::string>> parse_headers(std::string_view text) {
  std::vector<std::string> out;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line);
    if (line.empty() || line.starts_with('#')) continue;
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon == line.npos ? 0 : colon);
    const bool sound = !name.empty() && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '_';
    });
    const bool printable =
        std::ranges::all_of(line, [](char c) { return (c >= ' ' && c < 0x7f) || c == '\t'; });
    if (!sound || !printable || line.size() > kHeaderBytes)
      return fail(ErrorCode::kInvalid, fmt::format("line {} is no header, NAME: VALUE", number));
    if (out.size() >= kHeaderLines)
      return fail(ErrorCode::kLimit, fmt::format("there are more than {} headers", kHeaderLines));
    out.emplace_back(line);
  }
  return out;
}

}  // namespace culprit::respond
