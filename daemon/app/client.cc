#include "app/client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "app/token_text.h"
#include "base/limits.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

constexpr long kConnectMs = 5000;
// A daemon that is silent for this long counts as dead; its streams send a heartbeat every 15 s.
constexpr long kSilentSeconds = 45;
// The report of the largest job has some hundred MB.
constexpr size_t kAnswerBytes = 512 << 20;
// Per event; the daemon limits events to 1 MiB.
constexpr size_t kEventBytes = 4 << 20;

ErrorCode code_of(long status) {
  switch (status) {
    case 404:
      return ErrorCode::kNotFound;
    case 401:
    case 403:
      return ErrorCode::kDenied;
    case 503:
      return ErrorCode::kLimit;
    default:
      return status < 500 ? ErrorCode::kInvalid : ErrorCode::kIo;
  }
}

std::string lowercase(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Parses a stream of server-sent events.
class EventParser {
 public:
  explicit EventParser(const std::function<bool(const ServerEvent&)>& take) : take_(take) {}

  // Returns false to stop the stream.
  bool feed(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n') {
        if (!line()) return false;
        line_.clear();
      } else if (c != '\r' && line_.size() < kEventBytes) {
        line_ += c;
      }
    }
    return true;
  }

 private:
  bool line() {
    if (line_.empty()) {
      const ServerEvent event = std::exchange(event_, {});
      return event.data.empty() || take_(event);
    }
    const size_t colon = std::min(line_.find(':'), line_.size());
    const std::string_view key = std::string_view(line_).substr(0, colon);
    std::string_view value = std::string_view(line_).substr(std::min(colon + 1, line_.size()));
    if (value.starts_with(' ')) value.remove_prefix(1);
    if (key == "event") event_.kind = value;
    if (key == "id") event_.id = value;
    if (key == "data" && event_.data.size() + value.size() < kEventBytes)
      event_.data += (event_.data.empty() ? "" : "\n") + std::string(value);
    return true;
  }

  const std::function<bool(const ServerEvent&)>& take_;
  std::string line_;
  ServerEvent event_;
};

struct Easy {
  Easy() : handle(curl_easy_init()) {}
  Easy(const Easy&) = delete;
  ~Easy() {
    curl_slist_free_all(headers);
    curl_easy_cleanup(handle);
  }
  void header(const std::string& line) { headers = curl_slist_append(headers, line.c_str()); }
  CURL* handle;
  curl_slist* headers = nullptr;
};

// One request and its response.
struct Exchange {
  CURL* handle = nullptr;
  std::string error_body;  // body of an answer without status 2xx
  std::vector<std::string> gaps;
  std::function<bool(std::string_view)> take;
  std::function<bool()> idle;
  bool ended = false;  // stopped by take or idle

  long status() const {
    long out = 0;
    curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &out);
    return out;
  }

  static size_t on_bytes(char* bytes, size_t one, size_t count, void* self) {
    auto& e = *static_cast<Exchange*>(self);
    const std::string_view part(bytes, one * count);
    if (e.status() / 100 != 2) {
      if (e.error_body.size() < 64 << 10) e.error_body += part;
      return part.size();
    }
    if (e.take(part)) return part.size();
    e.ended = true;
    return 0;
  }

  static size_t on_header(char* bytes, size_t one, size_t count, void* self) {
    const std::string_view line(bytes, one * count);
    constexpr std::string_view kGap = "x-culprit-gap:";
    if (lowercase(std::string(line.substr(0, kGap.size()))) == kGap)
      static_cast<Exchange*>(self)->gaps.emplace_back(trim(line.substr(kGap.size())));
    return line.size();
  }

  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    auto& e = *static_cast<Exchange*>(self);
    if (e.idle && !e.idle()) e.ended = true;
    return e.ended;
  }
};

}  // namespace

struct Client::Impl {
  std::string server;
  std::string socket;  // path of "unix:PATH"
  std::string base;    // prefix of paths
  std::string token_file, ca_file;
  long answer_ms = 0;

  Result<std::string> token() const;
  Status prepare(Easy& easy, Exchange& exchange, const std::string& path) const;
  Status perform(Easy& easy, Exchange& exchange) const;
  Error unreachable(Exchange& exchange, CURLcode code) const;
};

Result<std::string> Client::Impl::token() const {
  std::ifstream file(token_file, std::ios::binary);
  std::string text(limits::kTokenFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  if (!file.is_open() || file.bad())
    return fail(ErrorCode::kDenied,
                fmt::format("--token-file {}: {}", token_file, std::generic_category().message(errno)));
  std::string token = first_token(text);
  if (token.empty())
    return fail(ErrorCode::kInvalid, fmt::format("--token-file {}: it holds no token", token_file));
  return token;
}

Status Client::Impl::prepare(Easy& easy, Exchange& exchange, const std::string& path) const {
  CURL* h = exchange.handle = easy.handle;
  if (!socket.empty()) curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, socket.c_str());
  curl_easy_setopt(h, CURLOPT_URL, (base + path).c_str());
  curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(h, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!ca_file.empty()) {
    curl_easy_setopt(h, CURLOPT_CAINFO, ca_file.c_str());
    curl_easy_setopt(h, CURLOPT_CAPATH, nullptr);  // no other authority
  }
  curl_easy_setopt(h, CURLOPT_NOPROXY, "*");
  curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L);  // a job's name may be ".."
  curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  if (answer_ms > 0) curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, answer_ms);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, kSilentSeconds);
  curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, Exchange::on_bytes);
  curl_easy_setopt(h, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, Exchange::on_header);
  curl_easy_setopt(h, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, Exchange::on_progress);
  curl_easy_setopt(h, CURLOPT_XFERINFODATA, &exchange);
  if (token_file.empty() || !socket.empty()) return {};
  const auto secret = token();
  if (!secret) return tl::unexpected(secret.error());
  easy.header("Authorization: Bearer " + *secret);
  return {};
}

Error Client::Impl::unreachable(Exchange& exchange, CURLcode code) const {
  long number = 0;
  curl_easy_getinfo(exchange.handle, CURLINFO_OS_ERRNO, &number);
  if (code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST) {
    const std::string why = number ? lowercase(std::generic_category().message(static_cast<int>(number)))
                                   : lowercase(curl_easy_strerror(code));
    if (number == EACCES || number == EPERM)
      return {ErrorCode::kDenied, fmt::format("{}: {}; its group may speak to the daemon", server, why)};
    return {ErrorCode::kNotFound, fmt::format("no culpritd answers at {}: {}; is it running? systemctl "
                                              "status culpritd",
                                              server, why)};
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
    return {ErrorCode::kDenied,
            fmt::format("{}: {}; --ca-file names the authority that signed its certificate", server,
                        lowercase(curl_easy_strerror(code)))};
  if (code == CURLE_OPERATION_TIMEDOUT)
    return {ErrorCode::kIo, fmt::format("{}: no answer within {} s", server, kSilentSeconds)};
  return {ErrorCode::kIo,
          fmt::format("{}: the answer broke off: {}", server, lowercase(curl_easy_strerror(code)))};
}

Status Client::Impl::perform(Easy& easy, Exchange& exchange) const {
  curl_easy_setopt(easy.handle, CURLOPT_HTTPHEADER, easy.headers);
  const CURLcode code = curl_easy_perform(easy.handle);
  if (exchange.ended) return {};
  if (code != CURLE_OK) return tl::unexpected(unreachable(exchange, code));
  const long status = exchange.status();
  if (status / 100 == 2) return {};
  const auto body = parse_json(exchange.error_body);
  if (body.is_object() && body.contains("error") && body["error"].is_string())
    return fail(code_of(status), body["error"].get<std::string>());
  return fail(code_of(status), fmt::format("{}: it answers with status {}", server, status));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client::~Client() = default;
const std::string& Client::server() const { return impl_->server; }

Result<Client> Client::make(const ClientOptions& options) {
  static const bool once = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  if (!once) return fail(ErrorCode::kIo, "libcurl cannot be used");
  auto impl = std::make_unique<Impl>();
  const auto chosen = [](const std::string& option, const char* variable, const char* otherwise) {
    const char* environment = std::getenv(variable);
    return !option.empty() ? option : std::string(environment && *environment ? environment : otherwise);
  };
  impl->server = chosen(options.server, "CULPRIT_SERVER", kLocalServer);
  impl->token_file = chosen(options.token_file, "CULPRIT_TOKEN_FILE", "");
  impl->ca_file = chosen(options.ca_file, "CULPRIT_CA_FILE", "");
  impl->answer_ms = options.answer_ms;
  constexpr std::string_view kUnix = "unix:", kHttp = "http://", kHttps = "https://";
  const auto begins = [&](std::string_view scheme) {
    return impl->server.starts_with(scheme) && impl->server.size() > scheme.size();
  };
  if (begins(kUnix)) {
    impl->socket = impl->server.substr(kUnix.size());
    impl->base = "http://localhost";
  } else if (begins(kHttp) || begins(kHttps)) {
    impl->base = impl->server;
    while (impl->base.ends_with('/')) impl->base.pop_back();
  } else {
    return fail(ErrorCode::kInvalid,
                fmt::format("--server {}: neither unix:PATH nor http(s)://HOST:PORT", impl->server));
  }
  return Client(std::move(impl));
}

Result<std::string> Client::get(const std::string& path) {
  std::string out;
  bool whole = true;
  auto done = get_stream(path, [&](std::string_view part) {
    whole = out.size() + part.size() <= kAnswerBytes;
    if (whole) out += part;
    return whole;
  });
  if (!done) return tl::unexpected(done.error());
  if (!whole) return fail(ErrorCode::kLimit, impl_->server + ": the answer is too large");
  return out;
}

Result<std::string> Client::post(const std::string& path, const std::string& json) {
  Easy easy;
  std::string out;
  Exchange exchange;
  exchange.take = [&](std::string_view part) {
    out += part;
    return out.size() <= kAnswerBytes;
  };
  if (Status status = impl_->prepare(easy, exchange, path); !status) return tl::unexpected(status.error());
  easy.header("Content-Type: application/json");
  curl_easy_setopt(easy.handle, CURLOPT_POSTFIELDSIZE, static_cast<long>(json.size()));
  curl_easy_setopt(easy.handle, CURLOPT_COPYPOSTFIELDS, json.c_str());
  if (Status status = impl_->perform(easy, exchange); !status) return tl::unexpected(status.error());
  return out;
}

Result<std::vector<std::string>> Client::get_stream(const std::string& path,
                                                    const std::function<bool(std::string_view)>& take) {
  Easy easy;
  Exchange exchange;
  exchange.take = take;
  if (Status status = impl_->prepare(easy, exchange, path); !status) return tl::unexpected(status.error());
  if (Status status = impl_->perform(easy, exchange); !status) return tl::unexpected(status.error());
  return std::move(exchange.gaps);
}

Status Client::events(const std::string& path, const std::string& last_id,
                      const std::function<bool(const ServerEvent&)>& take) {
  Easy easy;
  Exchange exchange;
  EventParser parser(take);
  exchange.take = [&](std::string_view part) { return parser.feed(part); };
  exchange.idle = [&] { return take({}); };
  if (Status status = impl_->prepare(easy, exchange, path); !status) return status;
  easy.header("Accept: text/event-stream");
  if (!last_id.empty()) easy.header("Last-Event-ID: " + last_id);
  return impl_->perform(easy, exchange);
}

std::string url_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '~' || c == '.';
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace culprit::app
