#include "respond/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_writer.h"

namespace culprit::respond {
namespace {

constexpr size_t kDeviceBytes = 64;
constexpr size_t kHostBytes = 253, kWordBytes = 64, kDetailBytes = 300, kHostsMost = 16'384;

constexpr std::array<std::string_view, 5> kKinds{"isolate", "return", "end_tasks", "run_again", "verify"};
constexpr std::array<std::string_view, 7> kStates{"reserved",   "done",      "failed", "ambiguous",
                                                  "superseded", "abandoned", "undone"};

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_plain_word(std::string_view text, size_t max) {
  return !text.empty() && text.size() <= max && is_alphanumeric(text.front()) &&
         std::ranges::all_of(text,
                             [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; });
}

// Only what an actor can have done; the other states are the ledger's own.
std::optional<ActionState> state_named(std::string_view name) {
  for (const ActionState state :
       {ActionState::kDone, ActionState::kFailed, ActionState::kAmbiguous, ActionState::kSuperseded})
    if (name == name_of(state)) return state;
  return std::nullopt;
}

}  // namespace

std::string_view name_of(OrderKind kind) { return kKinds[static_cast<size_t>(kind)]; }
std::string_view name_of(ActionState state) { return kStates[static_cast<size_t>(state)]; }

bool is_host_name(std::string_view text) { return is_plain_word(text, kHostBytes); }

Status check_order(const ActionOrder& order) {
  const auto invalid = [](std::string_view what, std::string_view value) {
    return fail(ErrorCode::kInvalid, fmt::format("the order's {} is malformed: {}", what, one_line(value)));
  };
  if (!is_plain_word(order.op, kWordBytes)) return invalid("op", order.op);
  if (!is_plain_word(order.decision, kWordBytes)) return invalid("decision", order.decision);
  if (!order.code.empty() && !is_plain_word(order.code, kWordBytes)) return invalid("code", order.code);
  const bool to_host = order.kind == OrderKind::kIsolate || order.kind == OrderKind::kReturn;
  if (to_host && !is_host_name(order.target)) return invalid("host", order.target);
  std::string device = order.device;  // "0000:9b:00.0"
  std::ranges::replace(device, ':', '-');
  if (!device.empty() && !is_plain_word(device, kDeviceBytes)) return invalid("device", order.device);
  if (order.excluded.size() > kExcludedMost)
    return fail(ErrorCode::kLimit, fmt::format("the order excludes more than {} hosts", kExcludedMost));
  for (const std::string& host : order.excluded)
    if (!is_host_name(host)) return invalid("excluded host", host);
  return {};
}

std::string order_json(const ActionOrder& order) {
  JsonWriter w;
  w.object([&] {
    w.field("op", order.op);
    w.field("decision", order.decision);
    w.field("kind", name_of(order.kind));
    w.field("target", order.target);
    w.member("job", [&] {
      w.object([&] {
        w.field("scheduler", order.job.scheduler);
        w.field("id", order.job.id);
        w.field("uid", order.job.uid);
        w.time("submit_ns", order.job.submit_ns);
        w.field("restarts", order.job.restarts);
      });
    });
    w.values("excluded", order.excluded);
    w.field("code", order.code);
    w.field("reason", order.reason);
    w.text_or_null("device", order.device);
  });
  return w.finish();
}

ActionResult parse_answer(const ActionOrder& order, ActionState state, std::string_view text) {
  const nlohmann::json answer = nlohmann::json::parse(text, nullptr, false);
  if (!answer.is_object()) return result_of(order, state, one_line(text));
  const auto text_of = [&](const char* key) {
    const auto found = answer.find(key);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  // A launcher that failed has not done it, whatever its answer claims.
  if (state == ActionState::kDone) state = state_named(text_of("state")).value_or(state);
  ActionResult out = result_of(order, state, one_line(text_of("detail")));
  if (const auto hosts = answer.find("hosts"); hosts != answer.end() && hosts->is_array())
    for (const auto& host : *hosts)
      if (host.is_string() && out.hosts.size() < kHostsMost && is_host_name(host.get<std::string>()))
        out.hosts.push_back(host.get<std::string>());
  return out;
}

ActionResult result_of(const ActionOrder& order, ActionState state, std::string detail) {
  ActionResult out;
  out.op = order.op;
  out.state = state;
  out.detail = std::move(detail);
  return out;
}

std::string one_line(std::string_view text) {
  text = trim(text);
  std::string out = shorten(to_terminal(trim(text.substr(0, text.find('\n')))), kDetailBytes);
  while (out.ends_with('.')) out.pop_back();
  return out;
}

}  // namespace culprit::respond
