#include "app/daemon/alerts/alert_delivery.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/config/options.h"
#include "base/text.h"
#include "io/files.h"
#include "io/secret_file.h"
#include "respond/http_post.h"
#include "respond/mail.h"
#include "respond/otlp.h"

namespace culprit::app {
namespace {

using Kind = DeliveryOutcome::Kind;

constexpr size_t kSecretBytes = 16 << 10;
constexpr size_t kTemplateBytes = 256 << 10;
constexpr size_t kAlertmanagerBatch = 64, kOtlpBatch = 256;
constexpr size_t kAnswerShown = 300;

Result<std::string> secret_text(const std::string& path) {
  if (path.empty()) return std::string();
  auto text = io::read_secret(path, kSecretBytes);
  if (text) text = std::string(trim(*text));
  if (text && text->empty()) return fail(ErrorCode::kInvalid, path + ": is empty");
  return text;
}

Result<std::string> template_text(const std::string& path) {
  auto file = io::real_files().open(path, io::OpenFor::kRead);
  if (!file) return tl::unexpected(file.error());
  std::string text(kTemplateBytes + 1, '\0');
  const auto size = (*file)->read_at(text.data(), text.size(), 0);
  if (!size) return tl::unexpected(size.error());
  if (*size > kTemplateBytes) return fail(ErrorCode::kLimit, path + ": is larger than a template may be");
  text.resize(*size);
  return text;
}

void add_secrets(std::vector<std::string> secrets, respond::HttpPost& to) {
  for (std::string& secret : secrets) to.secrets.push_back(std::move(secret));
}

// Address, headers and authorities of a request to the receiver.
Result<respond::HttpPost> request_to(const AlertConfig& receiver) {
  respond::HttpPost out;
  out.url = receiver.url;
  if (!receiver.url_file.empty()) {
    auto url = secret_text(receiver.url_file);
    if (!url) return tl::unexpected(url.error());
    const bool http = url->starts_with("https://") || url->starts_with("http://");
    const bool plain = std::ranges::all_of(*url, [](char c) { return c > ' ' && c < 0x7f; });
    if (!http || !plain)
      return fail(ErrorCode::kInvalid, receiver.url_file + ": holds no http or https address");
    const bool secrets = !receiver.headers_file.empty() || !receiver.secret_file.empty();
    if (secrets && goes_in_clear(*url))
      return fail(ErrorCode::kInvalid,
                  receiver.url_file + ": its http address would show the secrets on the way: use https");
    out.url = std::move(*url);
    out.secrets = respond::secrets_of_url(out.url);
  }
  if (!receiver.headers_file.empty()) {
    auto text = secret_text(receiver.headers_file);
    if (!text) return tl::unexpected(text.error());
    auto headers = respond::parse_headers(*text);
    if (!headers) return fail(headers.error().code, receiver.headers_file + ": " + headers.error().text);
    out.headers = std::move(*headers);
    for (const std::string& header : out.headers) add_secrets(respond::secrets_of_header(header), out);
  }
  out.headers.emplace_back("Content-Type: application/json");
  out.ca = receiver.ca;
  out.proxy = receiver.proxy;
  if (receiver.proxy.find('@') != std::string::npos) add_secrets(respond::secrets_of_url(out.proxy), out);
  return out;
}

Result<std::string> body_of(const AlertConfig& receiver, const alert::Issue& issue, respond::Values values,
                            std::vector<std::string>& secrets) {
  if (receiver.template_file.empty()) return respond::webhook_body(issue, values);
  auto text = template_text(receiver.template_file);
  if (!text) return text;
  auto secret = secret_text(receiver.secret_file);
  if (!secret) return secret;
  if (!secret->empty()) secrets.push_back(*secret);
  values["secret"] = std::move(*secret);
  auto body = respond::render(*text, values);
  if (!body) return fail(body.error().code, receiver.template_file + ": " + body.error().text);
  return body;
}

std::string below(std::string url, std::string_view path) {
  while (url.ends_with('/')) url.pop_back();
  return url + std::string(path);
}

// A person fixes a wrongly configured receiver (401, 404), so these messages are tried again.
Kind kind_of_status(long status) {
  if (status >= 200 && status < 300) return Kind::kSent;
  if (status == 400 || status == 405 || status == 413 || status == 415 || status == 422)
    return Kind::kRefused;
  return Kind::kFailed;
}

// A receiver's answer may repeat the request including its secrets.
DeliveryOutcome outcome_of(const Result<respond::HttpReply>& reply, const respond::HttpPost& request) {
  if (!reply) return {Kind::kFailed, reply.error().text, std::nullopt, 0};
  DeliveryOutcome out;
  out.kind = kind_of_status(reply->status);
  out.retry_after_ns = reply->retry_after_ns;
  const std::string clear = respond::without_secrets(reply->body, request.secrets);
  const std::string answer = shorten(to_terminal(trim(clear)), kAnswerShown);
  out.sentence = fmt::format("{} answered {}{}{}", respond::shown_url(request.url), reply->status,
                             answer.empty() ? "" : ": ", answer);
  if (reply->status >= 300 && reply->status < 400) out.sentence += "; redirects are not followed";
  return out;
}

DeliveryOutcome could_not(const Error& error) { return {Kind::kFailed, error.text, std::nullopt, 0}; }

DeliveryOutcome send(respond::HttpPost request, const DeliveryOrder& order) {
  request.stop = order.stop.get();
  return outcome_of(respond::post(request), request);
}

DeliveryOutcome to_webhook(const DeliveryOrder& order, const alert::Issue& issue) {
  const alert::Message& m = order.messages.front();
  auto request = request_to(order.receiver);
  if (!request) return could_not(request.error());
  auto body = body_of(order.receiver, issue, respond::values_of(issue, m, order.context), request->secrets);
  if (!body) return could_not(body.error());
  request->body = std::move(*body);
  // Equal for each attempt: a receiver that supports it ignores repetitions.
  request->headers.push_back("Idempotency-Key: " + m.id);
  request->headers.push_back("X-Culprit-Issue: " + issue.key);
  return send(std::move(*request), order);
}

DeliveryOutcome to_mail(const DeliveryOrder& order, const alert::Issue& issue) {
  const AlertConfig& r = order.receiver;
  respond::MailHandover mail;
  mail.program = r.sendmail;
  mail.to = r.to;
  mail.text = respond::mail_text(respond::values_of(issue, order.messages.front(), order.context),
                                 {r.from, r.to}, order.now);
  mail.stop = order.stop.get();
  const Status taken = respond::hand_over(mail);
  if (!taken) return could_not(taken.error());
  return {Kind::kSent, r.sendmail + " took the mail", std::nullopt, 0};
}

DeliveryOutcome to_alertmanager(const DeliveryOrder& order, const std::vector<alert::Issue>& issues) {
  auto request = request_to(order.receiver);
  if (!request) return could_not(request.error());
  const std::string address = request->url;
  request->url = below(address, "/api/v2/alerts");
  request->body = respond::alertmanager_body(issues, order.context, order.now);
  DeliveryOutcome out = send(*request, order);
  // Only together with a message: firing issues are sent each minute.
  for (size_t i = order.active.size(); i < issues.size() && out.kind == Kind::kSent; ++i) {
    const TimeNs until = issues[i].handling.silent_until_ns;
    if (!issues[i].firing() || until == kNoTime || until <= order.now) continue;
    request->url = below(address, "/api/v2/silences");
    request->body = respond::alertmanager_silence(issues[i], order.now);
    out = send(*request, order);
  }
  return out;
}

// Sends logs, or the newest metrics.
DeliveryOutcome to_otlp(const DeliveryOrder& order) {
  auto request = request_to(order.receiver);
  if (!request) return could_not(request.error());
  const bool metrics = order.messages.front().kind == alert::Message::Kind::kLatest;
  request->url = below(std::move(request->url), metrics ? "/v1/metrics" : "/v1/logs");
  if (metrics) {
    request->body = order.messages.front().body;
  } else {
    std::vector<std::string> records;
    for (const alert::Message& m : order.messages) records.push_back(m.body);
    request->body = respond::otlp_logs_body(records, {order.context.host});
  }
  request->stop = order.stop.get();
  const auto reply = respond::post(*request);
  DeliveryOutcome out = outcome_of(reply, *request);
  if (out.kind == Kind::kSent && reply) out.rejected = respond::otlp_rejected(reply->body);
  return out;
}

}  // namespace

AlertConfig otlp_receiver(const Config& config) {
  AlertConfig out;
  out.name = kOtlpReceiver;
  out.url = config.otlp.endpoint;
  out.headers_file = config.otlp.headers_file;
  out.ca = config.otlp.ca;
  out.proxy = config.otlp.proxy;
  return out;
}

size_t batch_of(const AlertConfig& receiver, bool otlp) {
  if (otlp) return kOtlpBatch;
  return receiver.type == AlertType::kAlertmanager ? kAlertmanagerBatch : 1;
}

DeliveryOutcome deliver(const DeliveryOrder& order) {
  if (order.otlp) return to_otlp(order);
  std::vector<alert::Issue> issues = order.active;
  for (const alert::Message& m : order.messages) {
    auto issue = alert::issue_from_json(m.body);
    if (!issue) return {Kind::kRefused, issue.error().text, std::nullopt, 0};
    issue->news = alert::news_of(*issue, m.change);
    issues.push_back(std::move(*issue));
  }
  if (issues.empty()) return {Kind::kSent, "", std::nullopt, 0};
  switch (order.receiver.type) {
    case AlertType::kAlertmanager:
      return to_alertmanager(order, issues);
    case AlertType::kMail:
      return to_mail(order, issues.front());
    default:
      return to_webhook(order, issues.front());
  }
}

DeliveryOutcome deliver_test(DeliveryOrder order) {
  alert::Issue issue = respond::test_issue(order.context.host, order.now);
  issue.key = fmt::format("culprit-test-{}", order.now / kNsPerSecond);
  alert::Message m;
  m.id = issue.key + "/1";
  if (order.otlp) {
    m.kind = alert::Message::Kind::kRecord;
    m.body = respond::otlp_log(
        {.time_ns = order.now, .seen_ns = order.now, .text = issue.fault.title, .attributes = {}});
  } else {
    m.body = to_json(issue);
  }
  order.messages = {m};
  const DeliveryOutcome first = deliver(order);
  const bool once = order.otlp || order.receiver.type == AlertType::kMail || !order.receiver.resolved;
  if (first.kind != Kind::kSent || once) return first;
  issue.end = alert::End::kRecovered;
  issue.resolved_ns = order.now;
  issue.revision = 2;
  m.kind = alert::Message::Kind::kResolved;
  m.id = issue.key + "/2";
  m.body = to_json(issue);
  order.messages = {m};
  return deliver(order);
}

std::string trouble_of(const AlertConfig& receiver) {
  if (receiver.type == AlertType::kMail) return "";
  if (const auto request = request_to(receiver); !request) return request.error().text;
  if (receiver.type != AlertType::kWebhook) return "";
  const alert::Issue issue = respond::test_issue("host", 0);
  alert::Message m;
  m.id = "test";
  std::vector<std::string> secrets;
  const auto body = body_of(receiver, issue, respond::values_of(issue, m, {}), secrets);
  return body ? "" : body.error().text;
}

}  // namespace culprit::app
