#include "app/client.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "app/token_text.h"
#include "base/limits.h"
#include "base/text.h"
#include "io/http/exchange.h"
#include "model/json_text.h"

namespace culprit::app {
namespace {

// A daemon that is silent for this long counts as dead; its streams send a heartbeat every 15 s.
constexpr long kSilentSeconds = 45;
// Limit of an answer: the report of the largest job has some hundred MB.
constexpr size_t kAnswerBytes = 512 << 20;
// Limit of an event; the daemon limits events to 1 MiB.
constexpr size_t kEventBytes = 4 << 20;
// Limit of an answer without status 2xx: a sentence, or a proxy's message.
constexpr size_t kErrorBytes = 64 << 10;

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

// The gap of a line "X-Culprit-Gap: …"; nothing: another header.
std::optional<std::string_view> gap_in(std::string_view header) {
  constexpr std::string_view kGap = "x-culprit-gap:";
  if (lowercase(std::string(header.substr(0, kGap.size()))) != kGap) return std::nullopt;
  return trim(header.substr(kGap.size()));
}

}  // namespace

struct Client::Impl {
  std::string server;
  std::string socket;  // path of "unix:PATH"
  std::string base;    // prefix of paths
  std::string token_file, ca_file;
  long answer_ms = 0;

  Result<std::string> token() const;
  Result<io::HttpRequest> request(const std::string& path) const;
  Status perform(io::HttpRequest request, const std::function<bool(std::string_view)>& take) const;
  Error unreachable(const io::HttpFailure& failure, TimeNs within_ns) const;
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

Result<io::HttpRequest> Client::Impl::request(const std::string& path) const {
  io::HttpRequest out;
  out.url = base + path;
  out.socket = socket;
  out.path_as_is = true;  // a job's name may be ".."
  out.ca_file = ca_file;
  out.ca_alone = true;
  out.within_ns = answer_ms * kNsPerMs;
  out.idle_timeout_ns = kSilentSeconds * kNsPerSecond;
  if (token_file.empty() || !socket.empty()) return out;
  const auto secret = token();
  if (!secret) return tl::unexpected(secret.error());
  out.headers.push_back("Authorization: Bearer " + *secret);
  return out;
}

Error Client::Impl::unreachable(const io::HttpFailure& failure, TimeNs within_ns) const {
  using Kind = io::HttpFailure::Kind;
  const std::string reason = lowercase(failure.reason);
  if (failure.kind == Kind::kUnreachable) {
    const int number = failure.system_error;
    const std::string why = number ? lowercase(std::generic_category().message(number)) : reason;
    if (number == EACCES || number == EPERM)
      return {ErrorCode::kDenied, fmt::format("{}: {}; its group may speak to the daemon", server, why)};
    return {ErrorCode::kNotFound, fmt::format("no culpritd answers at {}: {}; is it running? systemctl "
                                              "status culpritd",
                                              server, why)};
  }
  if (failure.kind == Kind::kUntrusted)
    return {ErrorCode::kDenied,
            fmt::format("{}: {}; --ca-file names the authority that signed its certificate", server, reason)};
  if (failure.kind == Kind::kTimeout)
    return {ErrorCode::kIo,
            fmt::format("{}: no answer within {}", server,
                        within_ns > 0 ? format_duration(within_ns) : fmt::format("{} s", kSilentSeconds))};
  return {ErrorCode::kIo, fmt::format("{}: the answer broke off: {}", server, reason)};
}

// `take` is called with the body of an answer with status 2xx.
Status Client::Impl::perform(io::HttpRequest request,
                             const std::function<bool(std::string_view)>& take) const {
  std::string error_body;
  request.on_body = [&](long status, std::string_view part) {
    if (status / 100 == 2) return take(part);
    if (error_body.size() < kErrorBytes) error_body += part;
    return true;
  };
  const auto answer = io::http_exchange(request);
  if (!answer) {
    if (answer.error().kind == io::HttpFailure::Kind::kStopped) return {};
    return tl::unexpected(unreachable(answer.error(), request.within_ns));
  }
  if (answer->status / 100 == 2) return {};
  const auto body = parse_json(error_body);
  if (body.is_object() && body.contains("error") && body["error"].is_string())
    return fail(code_of(answer->status), body["error"].get<std::string>());
  return fail(code_of(answer->status), fmt::format("{}: it answers with status {}", server, answer->status));
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::Client(Client&&) noexcept = default;
Client::~Client() = default;
const std::string& Client::server() const { return impl_->server; }

Result<Client> Client::make(const ClientOptions& options) {
  if (!io::prepare_http()) return fail(ErrorCode::kIo, "libcurl cannot be used");
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
  if (impl->server.find(',') != std::string::npos && impl->server.find("://") != std::string::npos)
    return fail(ErrorCode::kInvalid,
                fmt::format("--server {}: this asks one server; name one of them", impl->server));
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

Result<std::string> Client::get(const std::string& path, long within_ms) {
  auto request = impl_->request(path);
  if (!request) return tl::unexpected(request.error());
  if (within_ms > 0) request->within_ns = within_ms * kNsPerMs;
  std::string out;
  bool whole = true;
  const Status done = impl_->perform(std::move(*request), [&](std::string_view part) {
    whole = out.size() + part.size() <= kAnswerBytes;
    if (whole) out += part;
    return whole;
  });
  if (!done) return tl::unexpected(done.error());
  if (!whole) return fail(ErrorCode::kLimit, impl_->server + ": the answer is too large");
  return out;
}

Status Client::reach(long within_ms) {
  io::HttpRequest request;
  request.url = impl_->base + "/healthz";
  request.socket = impl_->socket;
  request.ca_file = impl_->ca_file;
  request.ca_alone = true;
  request.within_ns = within_ms * kNsPerMs;
  const auto answer = io::http_exchange(request);
  if (!answer) return tl::unexpected(impl_->unreachable(answer.error(), request.within_ns));
  return {};
}

Result<std::string> Client::post(const std::string& path, const std::string& json) {
  auto request = impl_->request(path);
  if (!request) return tl::unexpected(request.error());
  request->headers.emplace_back("Content-Type: application/json");
  request->body = json;
  std::string out;
  const Status done = impl_->perform(std::move(*request), [&](std::string_view part) {
    out += part;
    return out.size() <= kAnswerBytes;
  });
  if (!done) return tl::unexpected(done.error());
  return out;
}

Result<std::vector<std::string>> Client::get_stream(const std::string& path,
                                                    const std::function<bool(std::string_view)>& take) {
  auto request = impl_->request(path);
  if (!request) return tl::unexpected(request.error());
  std::vector<std::string> gaps;
  request->on_header = [&](std::string_view line) {
    if (const auto gap = gap_in(line)) gaps.emplace_back(*gap);
  };
  if (Status done = impl_->perform(std::move(*request), take); !done) return tl::unexpected(done.error());
  return gaps;
}

Status Client::events(const std::string& path, const std::string& last_id,
                      const std::function<bool(const ServerEvent&)>& take) {
  auto request = impl_->request(path);
  if (!request) return tl::unexpected(request.error());
  request->headers.emplace_back("Accept: text/event-stream");
  if (!last_id.empty()) request->headers.push_back("Last-Event-ID: " + last_id);
  request->keep_going = [&] { return take({}); };
  EventParser parser(take);
  return impl_->perform(std::move(*request), [&](std::string_view part) { return parser.feed(part); });
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
