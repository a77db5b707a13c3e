#include "app/daemon/api/http_service.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "io/files.h"
#include "io/secret_file.h"
#include "io/tls.h"

namespace culprit::app {
namespace {

// Every user may connect; each request checks what the user may see.
constexpr uint32_t kOpenSocket = 0666;
constexpr TimeNs kHttpRetryNs = 5 * kNsPerSecond;
constexpr size_t kCertificateBytes = 1 << 20;

// The tokens for TCP; empty if none are configured.
Result<serve::Tokens> read_tokens(const Config& config) {
  const std::string& path = config.http.token_file;
  if (path.empty()) return serve::Tokens();
  const auto text = io::read_secret(path, limits::kTokenFileBytes);
  if (!text) return tl::unexpected(text.error());
  auto tokens = serve::Tokens::parse(*text);
  if (!tokens) return fail(tokens.error().code, fmt::format("{}: {}", path, tokens.error().text));
  if (tokens->empty()) return fail(ErrorCode::kInvalid, path + ": it holds no token");
  return tokens;
}

Result<std::string> read_file(const std::string& path) {
  auto file = io::real_files().open(path, io::OpenFor::kRead);
  if (!file) return tl::unexpected(file.error());
  std::string text(kCertificateBytes, '\0');
  auto size = (*file)->read_at(text.data(), text.size(), 0);
  if (!size) return tl::unexpected(size.error());
  text.resize(*size);
  return text;
}

// The certificate of HTTPS and its key; empty if none are configured. OpenSSL reads the files first, since
// libmicrohttpd gives no reason for a rejected file. Certificates of clients are not checked.
Result<serve::HttpTls> read_https(const Config& config) {
  const TlsFiles& files = config.http.tls;
  if (!files.used()) return serve::HttpTls();
  if (auto sound = io::TlsCredentials::load({files.cert, files.key, files.cert, ""}); !sound)
    return tl::unexpected(sound.error());
  auto cert = read_file(files.cert), key = io::read_secret(files.key, kCertificateBytes);
  if (!cert || !key) return tl::unexpected((cert ? key : cert).error());
  return serve::HttpTls{std::move(*cert), std::move(*key)};
}

std::vector<std::string> web_names(const Config& config) {
  std::vector<std::string> out = config.http.hosts;
  out.push_back(config.host.name);
  return out;
}

}  // namespace

HttpService::HttpService(io::Env& env, const Config& config, serve::Api& api,
                         std::function<bool(const serve::Reader&)> sees_all, Say report_error, Say inform)
    : env_(env),
      config_(config),
      api_(api),
      report_error_(std::move(report_error)),
      inform_(std::move(inform)),
      login_(env, {[this] { return page_url(); }, std::move(sees_all), inform_}) {
  all_.push_back({config.http_address()});
  if (all_.front().tcp()) all_.push_back({config.local_address()});
  retry_ = env_.timer([this] { start_missing(); });
}

HttpService::~HttpService() = default;

void HttpService::start() { start_missing(); }

void HttpService::start_missing() {
  for (Listening& one : all_) {
    if (one.server) continue;
    const Status started = start(one);
    if (started) {
      if (!one.trouble.empty()) inform_("the API answers at " + one.server->address());
      one.trouble.clear();
      continue;
    }
    if (started.error().text != one.trouble) report_error_(started.error().text + "; the rest works");
    one.trouble = started.error().text;
    retry_->start(kHttpRetryNs);
  }
}

Status HttpService::start(Listening& listening) {
  serve::HttpOptions options;
  options.address = listening.address;
  if (config_.http.acl.users) options.socket_mode = kOpenSocket;
  if (listening.tcp()) {
    auto tls = read_https(config_);
    if (!tls) return tl::unexpected(tls.error());
    options.names = web_names(config_);
    options.tls = listening.tls = std::move(*tls);
    auto tokens = read_tokens(config_);
    if (!tokens || *tokens != listening.tokens) login_.sessions().end_of_tokens();
    if (tokens)
      options.tokens = listening.tokens = std::move(*tokens);
    else
      report_error_(tokens.error().text +
                    "; over TCP only /healthz, /metrics and the links of culprit page work");
    options.session = [this](std::string_view authorization) { return login_.find(authorization); };
  }
  std::vector<serve::Route> routes = api_.routes();
  for (serve::Route& route : login_.routes()) routes.push_back(std::move(route));
  auto server = serve::HttpServer::start(env_, std::move(options), std::move(routes));
  if (!server) return tl::unexpected(server.error());
  listening.server = std::move(*server);
  return {};
}

void HttpService::reload() {
  for (Listening& one : all_) {
    if (!one.server || !one.tcp()) continue;
    auto tls = read_https(config_);
    if (!tls) report_error_(tls.error().text + "; the certificate of before holds");
    if (tls && *tls != one.tls) {
      one.server.reset();
      continue;
    }
    one.server->set_names(web_names(config_));
    auto tokens = read_tokens(config_);
    if (!tokens) report_error_(tokens.error().text + "; the tokens of before hold");
    if (!tokens) continue;
    if (*tokens != one.tokens) login_.sessions().end_of_tokens();
    one.tokens = *tokens;
    one.server->set_tokens(std::move(*tokens));
  }
  start_missing();
}

// The page's configured address, else this host's address.
std::string HttpService::page_url() const {
  const Listening& first = all_.front();
  if (!first.tcp() || !first.server) return "";
  std::string url = config_.http.url;
  while (url.ends_with('/')) url.pop_back();
  if (!url.empty()) return url;
  std::string address = first.server->address();
  for (const std::string_view any : {"0.0.0.0:", "[::]:"})
    if (address.starts_with(any))
      address = fmt::format("{}:{}", config_.host.name, address.substr(any.size()));
  return fmt::format("{}://{}", first.tls.cert.empty() ? "http" : "https", address);
}

std::optional<serve::HttpCounts> HttpService::counts() const {
  std::optional<serve::HttpCounts> out;
  for (const Listening& one : all_) {
    if (!one.server) continue;
    const serve::HttpCounts counts = one.server->counts();
    if (!out) out.emplace();
    for (const auto& [status, n] : counts.answers) out->answers[status] += n;
    out->connections += counts.connections;
    out->refused += counts.refused;
    out->timeouts += counts.timeouts;
    out->gave_way += counts.gave_way;
  }
  return out;
}

}  // namespace culprit::app
