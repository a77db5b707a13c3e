// The controller over the API (docs/formats.md, "The controller"). Thread: the loop's. Borrows its parts,
// which outlive it.
#pragma once

#include <string>

#include "app/daemon/keep/recorder.h"
#include "app/daemon/recover/recovery_service.h"
#include "io/env.h"
#include "serve/api.h"

namespace culprit::app {

class RecoveryApi final : public serve::RecoverySource {
 public:
  RecoveryApi(io::Env& env, RecoveryService& service, Recorder& recorder)
      : env_(env), service_(service), recorder_(recorder) {}

  void overview(Answer answer) override;
  void decision(const std::string& job, Answer answer) override;
  void machines(Answer answer) override;
  void cost(uint32_t jobs, Answer answer) override;
  void actions(Answer answer) override;
  void notes(const std::string& kind, Answer answer) override;
  void order(const serve::RecoveryOrder& order, const serve::Actor& by, Answer answer) override;

 private:
  io::Env& env_;
  RecoveryService& service_;
  Recorder& recorder_;
};

}  // namespace culprit::app
