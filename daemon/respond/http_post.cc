#include "respond/http_post.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>

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
