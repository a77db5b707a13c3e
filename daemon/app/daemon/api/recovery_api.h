// The controller over the API (docs/formats.md, "The controller"). Thread: the loop's. Borrows its parts,
// which outlive it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "app/config/config.h"
#include "app/daemon/keep/recorder.h"
#include "app/daemon/recover/recovery_service.h"
#include "app/daemon/recover/recovery_trouble.h"
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

// Of a controller that did not start: the overview says why, and all else is an error that says so.
class StoppedRecoveryApi final : public serve::RecoverySource {
 public:
  StoppedRecoveryApi(const Config& config, RecoveryTrouble trouble)
      : config_(config), trouble_(std::move(trouble)) {}

  void overview(Answer answer) override;
  void decision(const std::string&, Answer answer) override { refuse(answer); }
  void machines(Answer answer) override { refuse(answer); }
  void cost(uint32_t, Answer answer) override { refuse(answer); }
  void actions(Answer answer) override { refuse(answer); }
  void notes(const std::string&, Answer answer) override { refuse(answer); }
  void order(const serve::RecoveryOrder&, const serve::Actor&, Answer answer) override { refuse(answer); }

 private:
  void refuse(const Answer& answer) const;
  const Config& config_;
  const RecoveryTrouble trouble_;
};

// The controller in /v1/status, by one of both; null without a controller.
nlohmann::json recovery_status(const RecoveryService* service, const std::optional<RecoveryTrouble>& stopped,
                               ActMode mode);

}  // namespace culprit::app
