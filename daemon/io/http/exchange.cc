#include "io/http/exchange.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace culprit::io {
namespace {

constexpr long kConnectMs = 5000;
constexpr curl_off_t kRetryAfterMost = 86'400;  // seconds

// Context of libcurl's callbacks.
struct Callbacks {
  const HttpRequest& request;
  CURL* handle;
  bool stopped = false;

  long status() const {
    long out = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &out);
    return out;
  }

  static size_t on_body(char* bytes, size_t one, size_t count, void* self) {
    auto& r = *static_cast<Callbacks*>(self);
    if (!r.request.on_body || r.request.on_body(r.status(), {bytes, one * count})) return one * count;
    r.stopped = true;
    return 0;
  }
  static size_t on_header(char* bytes, size_t one, size_t count, void* self) {
    const HttpRequest& request = static_cast<Callbacks*>(self)->request;
    if (request.on_header) request.on_header({bytes, one * count});
    return one * count;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& r = *static_cast<Callbacks*>(self);
    if (r.request.keep_going && !r.request.keep_going()) r.stopped = true;
    return r.stopped;
  }
};

void set_connection(CURL* curl, const HttpRequest& request) {
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  if (!request.socket.empty()) curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, request.socket.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, static_cast<long>(request.path_as_is));
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROXY, request.proxy.c_str());  // "" overrides the environment
  if (!request.proxy.empty()) curl_easy_setopt(curl, CURLOPT_NOPROXY, "");
  curl_easy_setopt(curl, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!request.ca_file.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, request.ca_file.c_str());
    if (request.ca_alone) curl_easy_setopt(curl, CURLOPT_CAPATH, nullptr);
  }
  if (request.skip_name_check) curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
  curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // do not wait for a hung name server
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                   static_cast<long>((request.within_ns + kNsPerMs - 1) / kNsPerMs));  // 0 is no limit
  if (request.idle_timeout_ns <= 0) return;
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.idle_timeout_ns / kNsPerSecond));
}

// libcurl adds the date and the signature to what is sent.
void set_signature(CURL* curl, const HttpSignature& by) {
  const std::string how = "aws:amz:" + by.region + ":" + by.service;
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, how.c_str());
  curl_easy_setopt(curl, CURLOPT_USERNAME, by.key.c_str());  // USERPWD would split it at its first colon
  curl_easy_setopt(curl, CURLOPT_PASSWORD, by.secret.c_str());
}

HttpFailure::Kind kind_of(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
      return HttpFailure::Kind::kUnreachable;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return HttpFailure::Kind::kUntrusted;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpFailure::Kind::kTimeout;
    default:
      return HttpFailure::Kind::kBroken;
  }
}

}  // namespace

bool prepare_http() {
  static const bool once = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return once;
}

tl::expected<HttpAnswer, HttpFailure> http_exchange(const HttpRequest& request) {
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(prepare_http() ? curl_easy_init() : nullptr,
                                                    curl_easy_cleanup);
  if (!curl) return tl::unexpected(HttpFailure{HttpFailure::Kind::kBroken, "no connection can be made", 0});
  set_connection(curl.get(), request);
  if (request.signature) set_signature(curl.get(), *request.signature);
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(nullptr, curl_slist_free_all);
  for (const std::string& header : request.headers)
    headers.reset(curl_slist_append(headers.release(), header.c_str()));
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (request.body) {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body->size()));
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, request.body->data());
  }
  if (!request.method.empty()) curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, request.method.c_str());
  Callbacks callbacks{request, curl.get()};
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, Callbacks::on_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &callbacks);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, Callbacks::on_header);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &callbacks);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, Callbacks::on_progress);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &callbacks);
  const CURLcode code = curl_easy_perform(curl.get());
  if (callbacks.stopped)
    return tl::unexpected(HttpFailure{HttpFailure::Kind::kStopped, "it was ended early", 0});
  if (code != CURLE_OK) {
    long number = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_OS_ERRNO, &number);
    return tl::unexpected(HttpFailure{kind_of(code), curl_easy_strerror(code), static_cast<int>(number)});
  }
  HttpAnswer out;
  out.status = callbacks.status();
  curl_off_t after = 0;
  if (curl_easy_getinfo(curl.get(), CURLINFO_RETRY_AFTER, &after) == CURLE_OK && after > 0)
    out.retry_after_ns = std::min(after, kRetryAfterMost) * kNsPerSecond;
  return out;
}

}  // namespace culprit::io
