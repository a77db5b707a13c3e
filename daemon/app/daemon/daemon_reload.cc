// Rules and configuration of the daemon: the first rules, and a reload, all or none.
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/config/rule_files.h"
#include "app/daemon/daemon.h"
#include "app/daemon/engine/early_stop.h"

namespace culprit::app {

std::shared_ptr<rules::Ruleset> Daemon::load_first_rules() {
  const EarlyStop early;
  LoadedRules rules = load_rules(rule_options(config_), EarlyStop::asked);
  if (EarlyStop::asked()) {
    log_.info("ended while the rules were loaded");
    black_box_.end_run();
    _exit(0);
  }
  if (rules.set) return tell_open(*rules.set), rules.set;
  report_error(first_error(rules) + "; the built-in rules alone are used");
  return rules::Ruleset::shipped();
}

void Daemon::tell_open(const rules::Ruleset& rules) {
  for (const OpenRule& open : open_rules(rules)) report_error(open.file + ": " + open.what);
}

// Prepares and checks the new state separately, then swaps it in between two batches.
void Daemon::reload(std::function<void(Status)> done) {
  if (stopping_) return;
  if (reloading_) {
    const std::string why = "a reload is under way: ask again when it is done";
    log_.warning(why);
    return done ? done(fail(ErrorCode::kInvalid, why)) : void();
  }
  reloading_ = true;
  reload_done_ = std::move(done);
  (void)notify_.reloading(mono());
  LoadedConfig loaded = load_config(options_.config_path);
  for (const ConfigError& e : loaded.errors) log_.error(format_error(e));
  if (!loaded.errors.empty()) return refuse_reload("the configuration has errors");
  const auto shared = std::make_shared<LoadedConfig>(std::move(loaded));
  const auto rules = std::make_shared<LoadedRules>();
  auto worker = env_.worker("reload");
  if (!worker) return refuse_reload(worker.error().text);
  reloader_ = std::move(*worker);
  const auto stop = [leaving = leaving_] { return leaving->load(); };
  reloader_->submit([shared, rules, stop] { *rules = load_rules(rule_options(shared->config), stop); },
                    [this, shared, rules] {
                      if (stopping_) return;
                      if (!rules->set) return refuse_reload(first_error(*rules));
                      swap(std::move(*shared), std::move(rules->set));
                    });
}

void Daemon::refuse_reload(const std::string& why) {
  log_.error("nothing is reloaded: " + why);
  ++counts_.reloads_refused;
  reloading_ = false;
  (void)notify_.ready("running; the last reload was refused");
  if (const auto done = std::exchange(reload_done_, {}); done)
    done(fail(ErrorCode::kInvalid, "nothing is reloaded: " + why));
}

void Daemon::swap(LoadedConfig loaded, std::shared_ptr<rules::Ruleset> rules) {
  if (stopping_) return;
  const std::vector<std::string> later = keys_for_restart(config_, loaded.config);
  for (const std::string& key : later) log_.warning(key + ": changes with the next restart");
  Config next = with_reloadable(config_, loaded.config);
  const Config before = std::exchange(config_, std::move(next));
  options_.loaded = std::move(loaded);
  log_.set_level(config_.daemon.log_level);
  tell_open(*rules);
  if (const Status stored = quarantine_->keep_only(rules->rules()); !stored)
    report_error(stored.error().text);
  pipeline_->reload(config_, std::move(rules));
  if (ras_) ras_->reload();
  if (alerts_) alerts_->reload();
  if (recovery_) recovery_->reload();
  if (collector_) reload_collecting();
  if (http_) http_->reload();
  if (!plugins_) return change_sources(before, {});
  plugins_->reload([this, before](std::vector<std::string> stored) {
    if (!stopping_) change_sources(before, std::move(stored));
  });
}

// `stored`: settings that the reload did not change, with the reasons.
void Daemon::change_sources(const Config& before, std::vector<std::string> stored) {
  if (!sources_) return reloaded(stored);
  sources_->change(
      before, config_,
      [this](std::function<void(std::vector<StreamState>)> answer) {
        recorder_->positions(std::move(answer));
      },
      [this, stored = std::move(stored)] { reloaded(stored); });
}

void Daemon::reloaded(const std::vector<std::string>& stored) {
  ++counts_.reloads;
  reloading_ = false;
  for (const std::string& sentence : stored) report_error("reload: " + sentence);
  log_.info(stored.empty() ? "reloaded" : "reloaded in part: the lines before say what is not");
  (void)notify_.ready(stored.empty() ? "running" : "running; reload: " + stored.front());
  if (const auto done = std::exchange(reload_done_, {}); done) done({});
}

}  // namespace culprit::app
