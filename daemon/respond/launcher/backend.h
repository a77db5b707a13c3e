// Orders for launchers of the user's own (NVRx, DLRover, Ray, a script): a program with the order as JSON on
// its standard input, or a POST of the same JSON. The answer is awaited with a bound.
//
// No shell: each word of the command is one argument, in which {op} {decision} {kind} {target} {job}
// {excluded} {code} and {reason} are replaced. Values are printable, and never begin an argument with '-'.
// CULPRIT_OP, CULPRIT_DECISION, CULPRIT_KIND, CULPRIT_TARGET and CULPRIT_JOB are in the environment as well.
//
// Program: status 0: done; 75 (EX_TEMPFAIL): ambiguous; other: failed, with the first line of standard error;
// no end within the bound, or a signal: ambiguous. POST: 2xx: done; other 4xx: failed; 429, 5xx and no answer
// are repeated with the same Idempotency-Key, the op, and then ambiguous. Standard output and the answer's
// body may say more (order.h, parse_answer).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/program.h"
#include "respond/executor.h"
#include "respond/http_post.h"

namespace culprit::respond::launcher {

struct ExecOptions {
  std::vector<std::string> command;  // the first word is an absolute path
  std::vector<std::string> environment = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  TimeNs within_ns = 60 * kNsPerSecond;
  bool observe = false;  // nothing is started
  std::function<io::ProgramEnd(const io::ProgramRun&)> run = io::run_program;
};

// Error kInvalid: the command has no absolute path, or an unknown placeholder.
Status check_command(const std::vector<std::string>& command);

class ExecBackend final : public Backend {
 public:
  explicit ExecBackend(ExecOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "exec"; }
  bool can(OrderKind) const override { return true; }
  ActionResult carry_out(const ActionOrder& order, Pace& pace) const override;

 private:
  const ExecOptions options_;
};

struct WebhookOptions {
  std::string url;
  std::vector<std::string> headers{};    // "Name: value"
  std::string ca{};                      // file of authorities; empty: the system's
  std::string proxy{};                   // empty: none
  TimeNs within_ns = 15 * kNsPerSecond;  // one attempt
  TimeNs total_ns = 60 * kNsPerSecond;   // all attempts with their waits
  bool observe = false;                  // nothing is sent
  std::function<Result<HttpReply>(const HttpPost&)> post = respond::post;
};

class WebhookBackend final : public Backend {
 public:
  explicit WebhookBackend(WebhookOptions options) : options_(std::move(options)) {}
  std::string_view name() const override { return "webhook"; }
  bool can(OrderKind) const override { return true; }
  ActionResult carry_out(const ActionOrder& order, Pace& pace) const override;

 private:
  const WebhookOptions options_;
};

}  // namespace culprit::respond::launcher
