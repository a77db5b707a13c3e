// The HTTP API of an agent: its evidence, its sources and the state of its connection to the collector. Only
// the collector has jobs: a query for a job is answered with the collector's address.
//
// Thread: the loop's. Borrows the parts of DaemonApi.
#pragma once

#include "app/daemon/api/daemon_api.h"

namespace culprit::app {

class ForwardingApi final : public DaemonApi {
 public:
  using DaemonApi::DaemonApi;
  void jobs(Answer answer) override { redirect(answer); }
  void now(const serve::NowQuery&, Answer answer) override { redirect(answer); }
  void report(const serve::ReportQuery&, Answer answer) override { redirect(answer); }
  void diagnoses(const serve::DiagnosisQuery&, Answer answer) override { redirect(answer); }
  void suspects(const std::optional<std::string>&, Answer answer) override { redirect(answer); }
  void hosts(Answer answer) override { redirect(answer); }
  void devices(Answer answer) override { redirect(answer); }
  void rules(Answer answer) override { redirect(answer); }
  void rule(const std::string&, Answer answer) override { redirect(answer); }
  void pool(Answer answer) override { redirect(answer); }
  void pool_log(Answer answer) override { redirect(answer); }
  void judge(const serve::Judgement&, const serve::Actor&, Answer answer) override { redirect(answer); }
  void make_rule(const serve::RuleRequest&, const serve::Actor&, Answer answer) override { redirect(answer); }
  void clear(const std::string&, const serve::Actor&, Answer answer) override { redirect(answer); }
  void capture(const std::string&, uint32_t, const serve::Actor&, Answer answer) override {
    redirect(answer);
  }
  void forget_taught(const std::string&, const serve::Actor&, Answer answer) override { redirect(answer); }

 private:
  void redirect(const Answer& answer) const;
};

}  // namespace culprit::app
