#include "respond/http_post.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"

namespace culprit::respond {
namespace {

constexpr long kConnectMs = 5000;
constexpr size_t kHeaderLines = 32, kHeaderBytes = 8192;

struct Answer {
  std::string body;
  const std::atomic<bool>* stop = nullptr;
};

// What exceeds the limit is read and left out: an end of the connection would look like a failure.
size_t on_body(char* bytes, size_t size, size_t count, void* to) {
  std::string& out = static_cast<Answer*>(to)->body;
  out.append(bytes, std::min(size * count, kReplyBytes - std::min(kReplyBytes, out.size())));
  return size * count;
}

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

int on_progress(void* of, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  const std::atomic<bool>* stop = static_cast<Answer*>(of)->stop;
  return stop && stop->load() ? 1 : 0;
}

void set_connection(CURL* curl, const HttpPost& request) {
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, request.proxy.c_str());  // "" overrides the environment
  if (!request.proxy.empty()) curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
  if (!request.ca.empty()) curl_easy_setopt(curl, CURLOPT_CAINFO, request.ca.c_str());
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // a name server that hangs is not waited for
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, static_cast<long>(request.within_ns / kNsPerMs));
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "culprit/" CULPRIT_VERSION);
}

}  // namespace

void prepare_http() { curl_global_init(CURL_GLOBAL_DEFAULT); }

Result<HttpReply> post(const HttpPost& request) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  if (!curl) return fail(ErrorCode::kIo, shown_url(request.url) + ": no connection can be made");
  set_connection(curl.get(), request);
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(nullptr, curl_slist_free_all);
  for (const std::string& header : request.headers)
    headers.reset(curl_slist_append(headers.release(), header.c_str()));
  headers.reset(curl_slist_append(headers.release(), "Expect:"));
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, request.body.c_str());
  Answer answer;
  answer.stop = request.stop;
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &answer);
  if (const CURLcode code = curl_easy_perform(curl.get()); code != CURLE_OK)
    return fail(ErrorCode::kIo, fmt::format("{}: {}", shown_url(request.url), curl_easy_strerror(code)));
  HttpReply out;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &out.status);
  curl_off_t after = 0;
  if (curl_easy_getinfo(curl.get(), CURLINFO_RETRY_AFTER, &after) == CURLE_OK && after > 0)
    out.retry_after_ns = std::min<curl_off_t>(after, 86'400) * kNsPerSecond;
  out.body = std::move(answer.body);
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
  // The longest first: a part of it is blanked with it.
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
