#include "app/run/attempt_history.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/run/attempt_json.h"
#include "base/text.h"

namespace culprit::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kTextBytes = 300;     // of a cause or a reason
constexpr size_t kNamesReported = 64;  // of each list of hosts and devices

void bound(Json& attempt) {
  for (Json& value : attempt) {
    if (value.is_string()) value = shorten(value.get<std::string>(), kTextBytes);
    if (value.is_array() && value.size() > kNamesReported)
      value.erase(value.begin() + kNamesReported, value.end());
  }
}

}  // namespace

TimeNs lost_ns(const AttemptHistory& history) {
  TimeNs sum = 0;
  for (const Attempt& a : history.attempts) sum += a.lost_ns;
  return sum;
}

std::vector<std::string> excluded(const AttemptHistory& history, size_t index) {
  std::vector<std::string> out;
  for (size_t i = 0; i < std::min(index, history.attempts.size()); ++i) {
    const recover::Decision& d = history.attempts[i].decision;
    if (!d.again) continue;
    for (const auto* names : {&d.hosts, &history.attempts[i].leaves_out, &d.devices})
      for (const std::string& name : *names)
        if (std::ranges::find(out, name) == out.end()) out.push_back(name);
  }
  return out;
}

std::string to_json(const AttemptHistory& history) {
  const size_t count = history.attempts.size();
  Json out;
  out["count"] = count;
  out["of"] = history.most;
  out["lost_ns"] = lost_ns(history);
  out["excluded"] = excluded(history, count);
  bound(out);
  out["ledger"] = history.ledger;
  Json& list = out["list"] = Json::array();
  for (size_t i = count > kAttemptsReported ? count - kAttemptsReported : 0; i < count; ++i) {
    Json one = Json::parse(ledger_line(history.attempts[i]));
    one["excluded"] = excluded(history, i);
    bound(one);
    const bool has_page = i < history.pages.size() && !history.pages[i].empty();
    one["page"] = has_page ? Json(history.pages[i]) : Json(nullptr);
    list.push_back(std::move(one));
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace culprit::app
