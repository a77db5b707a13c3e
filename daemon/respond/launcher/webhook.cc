#include <fmt/format.h>

#include "respond/launcher/backend.h"
#include "respond/order.h"

namespace culprit::respond::launcher {
namespace {

constexpr TimeNs kFirstWait = kNsPerSecond;

}  // namespace

ActionResult WebhookBackend::carry_out(const ActionOrder& order, Pace& pace) const {
  const std::string shown = shown_url(options_.url);
  if (options_.observe)
    return result_of(order, ActionState::kDone, fmt::format("observe: would POST to {}", shown));
  HttpPost request;
  request.url = options_.url;
  request.body = order_json(order);
  request.headers = options_.headers;
  request.headers.push_back("Content-Type: application/json");
  // The receiver carries an order out once, however often it comes.
  request.headers.push_back("Idempotency-Key: " + order.op);
  request.ca = options_.ca;
  request.proxy = options_.proxy;
  request.within_ns = options_.within_ns;
  request.stop = &pace.stop();
  std::vector<std::string> secrets = secrets_of_url(options_.url);
  for (const std::string& header : options_.headers)
    for (std::string& one : secrets_of_header(header)) secrets.push_back(std::move(one));
  const TimeNs until = pace.now() + options_.total_ns;
  TimeNs wait = kFirstWait;
  while (true) {
    const auto reply = options_.post(request);
    const std::string body = reply ? without_secrets(reply->body, secrets) : "";
    if (reply && reply->status >= 200 && reply->status < 300)
      return parse_answer(order, ActionState::kDone, body);
    const bool again = !reply || reply->status == 429 || reply->status >= 500;
    const std::string why =
        reply ? one_line(fmt::format("{}: {} {}", shown, reply->status, body)) : reply.error().text;
    if (!again) return result_of(order, ActionState::kFailed, why);
    const TimeNs asked = reply ? reply->retry_after_ns.value_or(wait) : wait;
    if (pace.now() + asked >= until || !pace.pause(asked))
      return result_of(order, ActionState::kAmbiguous, why);
    wait *= 2;
  }
}

}  // namespace culprit::respond::launcher
