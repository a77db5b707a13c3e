// What the HTTP API shows of an agent: its evidence, its sources, how it stands with its collector. What is
// known of jobs is the collector's, and a question for it is answered with where to ask.
//
// Thread: the loop's. Borrows what AgentApi does.
#pragma once

#include "app/daemon/agent_api.h"

namespace culprit::app {

class ForwardingApi final : public AgentApi {
 public:
  using AgentApi::AgentApi;
  void jobs(Answer answer) override { ask_there(answer); }
  void report(const serve::ReportQuery&, Answer answer) override { ask_there(answer); }
  void diagnoses(const serve::DiagnosisQuery&, Answer answer) override { ask_there(answer); }
  void suspects(const std::optional<std::string>&, Answer answer) override { ask_there(answer); }
  void hosts(Answer answer) override { ask_there(answer); }
  void devices(Answer answer) override { ask_there(answer); }
  void rules(Answer answer) override { ask_there(answer); }
  void pool(Answer answer) override { ask_there(answer); }
  void judge(const serve::Judgement&, const serve::Actor&, Answer answer) override { ask_there(answer); }
  void clear(const std::string&, const serve::Actor&, Answer answer) override { ask_there(answer); }

 private:
  void ask_there(const Answer& answer) const;
};

}  // namespace culprit::app
