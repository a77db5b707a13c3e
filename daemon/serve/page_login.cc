#include "serve/page_login.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/random.h"
#include "base/text.h"
#include "model/json_text.h"

namespace culprit::serve {
namespace {

constexpr size_t kCodeBytes = 16;  // of five minutes, and tried ten times a minute
constexpr size_t kSessionBytes = 32;
constexpr size_t kLoginBytes = 1000;  // anyone may send it

// Random bytes as hexadecimal digits; nothing if the kernel gives none.
std::optional<std::string> secret_of(size_t bytes) {
  std::string raw(bytes, '\0'), out;
  if (!fill_random(raw.data(), raw.size())) return std::nullopt;
  for (const char c : raw) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Response answer_of(const nlohmann::json& body) {
  return {200,
          "application/json",
          body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n",
          {{"Cache-Control", "no-store"}}};
}

const char* word_of(Role role) { return role == Role::kOperate ? "operate" : "read"; }

}  // namespace

std::vector<Route> PageLogin::routes() {
  return {{"POST", "/v1/page/link",
           [this](const Request& request, const Reply& reply) { make_link(request, reply); }, Role::kRead},
          {"POST", "/v1/page/login",
           [this](const Request& request, const Reply& reply) { log_in(request, reply); }, Role::kNone}};
}

void PageLogin::make_link(const Request& request, const Reply& reply) {
  if (request.by_session)
    return reply.send(error_response(403, "a page that a link logged in makes no links"));
  if (!parts_.sees_all({request.uid, request.groups, request.token}))
    return reply.send(error_response(403, "the page shows all jobs: a link is for readers who may see them"));
  const std::string url = parts_.url();
  if (url.empty())
    return reply.send(error_response(
        404, "the page has no address: set listen = \"127.0.0.1:7420\" below [http] and restart culpritd"));
  const auto code = secret_of(kCodeBytes);
  if (!code) return reply.send(error_response(500, "the kernel gives no random bytes"));
  const LinkMaker maker{request.role,
                        request.uid ? fmt::format("uid {}", *request.uid) : "token " + request.token,
                        !request.uid};
  const Status made = sessions_.make_link(maker, *code, env_.now(io::Clock::kMonotonic));
  if (!made) return reply.send(error_response(made.error()));
  parts_.inform(
      fmt::format("a link to the page is made for {}, which may {}", maker.name, word_of(maker.role)));
  reply.send(answer_of({{"url", fmt::format("{}/#once={}", url, *code)},
                        {"role", word_of(maker.role)},
                        {"expires_ns", env_.now(io::Clock::kWall) + Sessions::kLinkLife}}));
}

void PageLogin::log_in(const Request& request, const Reply& reply) {
  if (request.uid) return reply.send(error_response(403, "the unix socket needs no login"));
  if (request.body.size() > kLoginBytes) return reply.send(error_response(413, "the body is no login"));
  const auto body = parse_json(request.body);
  const auto code = body.find("code");
  if (!body.is_object() || code == body.end() || !code->is_string())
    return reply.send(error_response(400, "the body: no object with a 'code'"));
  auto secret = secret_of(kSessionBytes);
  if (!secret) return reply.send(error_response(500, "the kernel gives no random bytes"));
  const auto token = sessions_.log_in(code->get_ref<const std::string&>(), request.peer, std::move(*secret),
                                      env_.now(io::Clock::kMonotonic));
  const std::string peer = to_terminal(request.peer);
  if (!token) {
    if (token.error().code == ErrorCode::kDenied)  // so often a minute, and no more
      parts_.inform("a link to the page is refused to " + peer);
    return reply.send(error_response(token.error()));
  }
  parts_.inform(fmt::format("the {} is logged in from {}", token->name, peer));
  reply.send(answer_of({{"token", token->secret},
                        {"role", word_of(token->role)},
                        {"expires_ns", env_.now(io::Clock::kWall) + Sessions::kSessionLife}}));
}

}  // namespace culprit::serve
