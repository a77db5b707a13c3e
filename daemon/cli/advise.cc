#include <fmt/format.h>

#include "app/config/options.h"
#include "base/text.h"
#include "cli/near.h"
#include "cli/remote.h"
#include "cli/verbs.h"
#include "model/json_text.h"

namespace culprit::cli {
namespace {

constexpr const char* kAdviseExamples = R"(
Examples:
  culprit advise llama save_now                          # a checkpoint, before a host goes
  culprit advise llama stop --step 12000 --expires 1h
  culprit advise llama lower_lr --value 0.5)";

struct AdviseOptions {
  RemoteOptions remote;
  std::string job, kind, expires = "10m";
  double value = 0;
  uint64_t step = 0;
};

std::string sentence_of(const Json& json, const AdviseOptions& o) {
  const auto number = [&](const char* name) { return text_field(json, name); };
  std::string out =
      fmt::format("{}: {} is advised (id {}) for {}", to_terminal(o.job), o.kind, number("id"), o.expires);
  const Json agents = json.value("agents", Json(0)), users = json.value("users_here", Json::array());
  if (!users.empty()) out += ", on this daemon's host";
  if (agents != 0) out += fmt::format("{}{} agents", users.empty() ? ", by " : " and by ", number("agents"));
  return out + ". Its loop decides; `culprit report " + to_terminal(o.job) + "` shows what came of it\n";
}

int advise(AdviseOptions& o) {
  auto client = app::Client::make(o.remote.client);
  if (!client) return report_error(client.error().text), kUnable;
  const auto lasts = app::parse_duration(o.expires);
  if (!lasts || *lasts < kNsPerSecond || *lasts > 24LL * 3600 * kNsPerSecond)
    return report_error(fmt::format("--expires: '{}' is no time from 1s to 24h", o.expires)), kUnable;
  Json body = Json::parse(by_whom());
  body["advice"] = o.kind;
  body["value"] = o.value;
  body["step"] = o.step;
  body["lasts_ms"] = static_cast<uint64_t>(*lasts / kNsPerMs);
  const auto done = client->post("/v1/jobs/" + app::url_escaped(o.job) + "/advice", body.dump());
  if (!done) return report_error(with_meant_job(*client, done.error(), o.job)), kUnable;
  const Json json = parse_ordered_json(*done);
  if (!json.is_object()) return report_error("the daemon's answer is no object"), kUnable;
  return print(o.remote.format == "json" ? *done : sentence_of(json, o)) ? kDone : kUnable;
}

}  // namespace

void add_advise(Command& app, Run& run) {
  auto o = std::make_shared<AdviseOptions>();
  Command* verb = app.add_subcommand("advise", "Advise a running job: its loop may take it");
  verb->footer(kAdviseExamples);
  verb->add_option("JOB", o->job, "As `culprit jobs` lists it")->required();
  verb->add_option("ADVICE", o->kind, "What the loop should do")
      ->required()
      ->one_of({"rollback", "skip_batches", "lower_lr", "clip", "check_rank", "save_now", "stop"});
  verb->add_option("--value", o->value,
                   "rollback: from before this step; skip_batches: how many; lower_lr: the factor; clip: the "
                   "norm; check_rank: the rank");
  verb->add_option("--step", o->step, "Not before this step")->between(uint64_t{0}, uint64_t{1} << 52);
  verb->add_option("--expires", o->expires, "It is not taken later: 1s to 24h");
  add_server_options(*verb, o->remote);
  add_format(*verb, o->remote, {"text", "json"});
  verb->callback([o, &run] { run = [o] { return advise(*o); }; });
}

}  // namespace culprit::cli
