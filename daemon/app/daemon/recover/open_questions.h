// The questions of the controller that wait for a person, and what came of the last ones; each as an alert.
// Pure; one thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "app/daemon/alerts/run_verdict.h"
#include "core/recover/controller.h"
#include "model/alert.h"

namespace culprit::app {

struct OpenQuestion {
  recover::Question question;
  TimeNs asked_ns = kNoTime;
};

struct EndedQuestion {
  std::string decision, text;
  alert::End end = alert::End::kMoot;
  std::string by;  // who answered; empty: no person did
  TimeNs at_ns = kNoTime;
};

class OpenQuestions {
 public:
  static constexpr size_t kEnded = 50;

  void ask(recover::Question question, TimeNs now) {
    const std::string decision = question.decision;
    open_[decision] = {std::move(question), now};
  }
  // A person's word; the first one counts.
  void answer(const std::string& decision, bool approved, const std::string& by) {
    if (open_.contains(decision)) answers_.try_emplace(decision, Answer{approved, by});
  }
  // Ends those that the controller asks no more, and returns them.
  std::vector<EndedQuestion> settle(const std::function<bool(const std::string& decision)>& asks, TimeNs now);

  const std::map<std::string, OpenQuestion>& open() const { return open_; }  // by decision
  const std::deque<EndedQuestion>& ended() const { return ended_; }          // the newest first

 private:
  struct Answer {
    bool approved = false;
    std::string by;
  };
  std::map<std::string, OpenQuestion> open_;
  std::map<std::string, Answer> answers_;
  std::deque<EndedQuestion> ended_;
};

std::string_view question_end(alert::End end);  // "approved", "declined", "unanswered", "moot"
// "end job 4711, isolate n2, run job 4711 again without n2".
std::string deeds_of(const std::vector<ActionOrder>& orders);
// Of a question about advice its own text: "advise save_now to job 4711: …".
std::string deeds_of(const recover::Question& question);
// `of_run`: the verdict behind it; null: none. `job`: culprit's id of the job; empty: the question is about a
// host.
alert::Fault alert_of(const recover::Question& question, const RunVerdict* of_run, const std::string& job);

}  // namespace culprit::app
