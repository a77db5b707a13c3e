#include "respond/kubernetes/api.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "io/descriptors.h"
#include "io/http/exchange.h"
#include "io/secret_file.h"
#include "io/system_error.h"
#include "respond/order.h"

namespace culprit::respond::kubernetes {
namespace {

constexpr size_t kTokenMost = 64 << 10;
constexpr TimeNs kFirstWait = kNsPerSecond / 2;

// A token that the kubelet mounted: any user of the pod may read it.
Result<std::string> read_pod_token(const std::string& path) {
  const io::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) return io::system_failure(path, errno);
  std::string out(kTokenMost, '\0');
  const ssize_t n = ::read(file.get(), out.data(), out.size());
  if (n < 0) return io::system_failure(path, errno);
  out.resize(static_cast<size_t>(n));
  return out;
}

Result<std::string> read_token(const ApiAccess& access) {
  auto text =
      access.pod_token ? read_pod_token(access.token_file) : io::read_secret(access.token_file, kTokenMost);
  if (!text) return text;
  std::string token(trim(*text));
  const bool sound = !token.empty() && std::ranges::all_of(token, [](char c) { return c > ' ' && c < 0x7f; });
  if (!sound) return fail(ErrorCode::kInvalid, access.token_file + ": is no token");
  return token;
}

ApiAnswer exchange(const ApiAccess& access, const ApiRequest& request, const Pace& pace) {
  ApiAnswer out;
  io::HttpRequest sent;
  sent.url = access.server + request.path;
  sent.path_as_is = true;
  sent.headers = {"Expect:", "Accept: application/json", "User-Agent: culprit/" CULPRIT_VERSION};
  if (!access.token_file.empty()) {
    const auto token = read_token(access);
    if (!token) {
      out.trouble = token.error().text, out.unsent = true;
      return out;
    }
    sent.headers.push_back("Authorization: Bearer " + *token);
  }
  if (!request.body.empty()) {
    sent.headers.push_back("Content-Type: " + request.content_type);
    sent.body = request.body;
  }
  if (request.method != "GET") sent.method = request.method;
  sent.ca_file = access.ca_file;
  sent.ca_alone = !access.ca_file.empty();
  sent.within_ns = access.within_ns;
  bool too_long = false;
  sent.on_body = [&](long, std::string_view bytes) {
    too_long = bytes.size() > request.answer_max - out.body.size();
    if (!too_long) out.body += bytes;
    return !too_long;
  };
  sent.keep_going = [&] { return !pace.stop().load(); };
  const auto answer = io::http_exchange(sent);
  if (answer) {
    out.status = answer->status;
    out.retry_after_ns = answer->retry_after_ns;
    return out;
  }
  using Kind = io::HttpFailure::Kind;
  out.unsent = answer.error().kind == Kind::kUnreachable || answer.error().kind == Kind::kUntrusted;
  out.body.clear();
  out.trouble =
      fmt::format("{}: {}", access.server,
                  too_long ? fmt::format("its answer has more than {}", format_bytes(request.answer_max))
                           : answer.error().reason);
  return out;
}

}  // namespace

Result<ApiAccess> pod_access(const std::function<std::optional<std::string>(std::string_view name)>& variable,
                             const std::string& folder) {
  const auto host = variable("KUBERNETES_SERVICE_HOST"), port = variable("KUBERNETES_SERVICE_PORT");
  if (!host || !port || host->empty() || port->empty())
    return fail(ErrorCode::kNotFound, "KUBERNETES_SERVICE_HOST: is not set, this is no pod");
  ApiAccess out;
  const bool v6 = host->find(':') != std::string::npos;
  out.server = fmt::format("https://{}{}{}:{}", v6 ? "[" : "", *host, v6 ? "]" : "", *port);
  out.ca_file = folder + "/ca.crt";
  out.token_file = folder + "/token";
  out.pod_token = true;
  return out;
}

Result<ApiAccess> access_with(std::string server, const std::string& token_file, const std::string& ca_file) {
  if (server.empty())
    return pod_access([](std::string_view name) -> std::optional<std::string> {
      const char* value = ::getenv(std::string(name).c_str());
      return value ? std::optional<std::string>(value) : std::nullopt;
    });
  ApiAccess out;
  while (server.ends_with('/')) server.pop_back();
  out.server = std::move(server);
  out.ca_file = ca_file;
  out.token_file = token_file;
  return out;
}

ApiCall http_calls(ApiAccess access) {
  return [access = std::move(access)](const ApiRequest& request, const Pace& pace) {
    return exchange(access, request, pace);
  };
}

std::string message_of(const ApiAnswer& answer) {
  if (answer.status == 0) return answer.trouble;
  const nlohmann::json status = nlohmann::json::parse(answer.body, nullptr, false);
  std::string message;
  if (status.is_object())
    if (const auto found = status.find("message"); found != status.end() && found->is_string())
      message = found->get<std::string>();
  if (message.empty()) message = answer.body;
  return one_line(fmt::format("{} {}", answer.status, message));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    plain ? out += c : out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

std::string time_text(TimeNs time, bool micro) {
  const Civil c = civil_from_ns(time);
  const std::string part = micro ? fmt::format(".{:06}", c.nanosecond / 1000) : "";
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{}Z", c.year, c.month, c.day, c.hour, c.minute,
                     c.second, part);
}

bool is_busy(const ApiAnswer& answer) {
  return answer.status == 0 || answer.status == 429 || answer.status >= 500;
}

ApiAnswer patient_call(const ApiCall& call, const ApiRequest& request, Pace& pace) {
  const TimeNs until = pace.now() + kBusyMost;
  TimeNs wait = kFirstWait;
  bool unclear = false;
  for (int i = 1;; ++i) {
    ApiAnswer answer = call(request, pace);
    answer.unclear = unclear;
    unclear = unclear || (!answer.unsent && answer.status != 429);
    if (!is_busy(answer) || i == kTries) return answer;
    const TimeNs asked = answer.retry_after_ns.value_or(wait);
    if (pace.now() + asked >= until || !pace.pause(asked)) return answer;
    wait *= 2;
  }
}

}  // namespace culprit::respond::kubernetes
