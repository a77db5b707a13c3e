#include "app/daemon/recover/open_questions.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/daemon/alerts/alert_faults.h"
#include "base/text.h"

namespace culprit::app {
namespace {

constexpr size_t kTextBytes = 1000;  // as of other alerts

std::string deed_of(const ActionOrder& order) {
  switch (order.kind) {
    case OrderKind::kIsolate:
      return "isolate " + order.target;
    case OrderKind::kReturn:
      return "return " + order.target;
    case OrderKind::kEndTasks:
      return "end job " + order.target;
    case OrderKind::kRunAgain:
      return fmt::format("run job {} again{}{}", order.target, order.excluded.empty() ? "" : " without ",
                         order.excluded.empty() ? "" : shown_list(order.excluded));
    case OrderKind::kVerify:
      break;
  }
  return "look at job " + order.target;
}

}  // namespace

std::string deeds_of(const std::vector<ActionOrder>& orders) {
  std::string out;
  for (const ActionOrder& order : orders) out += (out.empty() ? "" : ", ") + deed_of(order);
  return out.empty() ? "do nothing to the job" : out;
}

std::string deeds_of(const recover::Question& question) {
  return question.advises ? question.text : deeds_of(question.orders);
}

std::string_view question_end(alert::End end) {
  return end == alert::End::kApproved     ? "approved"
         : end == alert::End::kDeclined   ? "declined"
         : end == alert::End::kUnanswered ? "unanswered"
                                          : "moot";
}

std::vector<EndedQuestion> OpenQuestions::settle(const std::function<bool(const std::string&)>& asks,
                                                 TimeNs now) {
  std::vector<EndedQuestion> out;
  for (auto at = open_.begin(); at != open_.end();) {
    if (asks(at->first)) {
      ++at;
      continue;
    }
    EndedQuestion ended{at->first, deeds_of(at->second.question), alert::End::kMoot, "", now};
    if (const auto answer = answers_.find(at->first); answer != answers_.end()) {
      ended.end = answer->second.approved ? alert::End::kApproved : alert::End::kDeclined;
      ended.by = answer->second.by;
      answers_.erase(answer);
    } else if (now >= at->second.question.expires_ns) {
      ended.end = alert::End::kUnanswered;
    }
    ended_.push_front(ended);
    if (ended_.size() > kEnded) ended_.pop_back();
    out.push_back(std::move(ended));
    at = open_.erase(at);
  }
  return out;
}

alert::Fault alert_of(const recover::Question& question, const RunVerdict* of_run, const std::string& job) {
  alert::Fault out;
  if (of_run && of_run->verdict) {
    out = fault_of(*of_run);
  } else {
    out.category = out.component = "unknown";
    out.symptom = "other";
    out.job = job;
  }
  const bool isolates = std::ranges::any_of(
      question.orders, [](const ActionOrder& order) { return order.kind == OrderKind::kIsolate; });
  for (const ActionOrder& order : question.orders)
    if (order.kind == OrderKind::kReturn) out.hosts = out.targets = {order.target};
  out.decision = question.decision;
  out.answer_by_ns = question.expires_ns;
  out.source = "recover:" + question.decision;
  out.action = isolates ? "isolate" : "restart";
  const std::string deeds = shorten(to_terminal(deeds_of(question)), kTextBytes);
  out.headline = fmt::format("{} asks to {}", question.decision, deeds);
  if (!out.title.empty()) out.headline += fmt::format(" ({})", to_terminal(out.title));
  out.title = fmt::format("{} asks to {}", question.decision, deeds);
  out.remedy = fmt::format(
      "Approve or decline it on the page, or with `culprit recover approve {}`; without "
      "an answer nothing is done",
      question.decision);
  out.again.clear();
  out.failed_attempts = 0;
  out.undecided = false;
  return out;
}

}  // namespace culprit::app
