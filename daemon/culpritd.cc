// culpritd: the daemon's main file. It reads the command line and the environment, and hands over to app.
#include <malloc.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>

#include "app/config/config.h"
#include "app/config/config_places.h"
#include "app/daemon/daemon.h"
#include "app/daemon/recover/controller_check.h"
#include "app/daemon/self/log.h"
#include "app/daemon/self/notify.h"
#include "app/plugins/configured.h"
#include "base/crash_point.h"
#include "base/text.h"
#include "cli/command.h"
#include "io/descriptors.h"
#include "io/uv/env.h"

namespace culprit {
namespace {

constexpr const char* kAbout =
    "Watches the training jobs of this host: tails their logs, takes their traces, keeps the evidence,\n"
    "and tells why a job failed, hangs, slowed down or went numerically wrong.";

constexpr const char* kExamples = R"(
Signals:
  SIGHUP reloads the configuration and the rules, all or nothing; SIGTERM ends, within 5 s.

Examples:
  culpritd --print-defaults > culpritd.toml
  culpritd --check
  culpritd --config ./culpritd.toml
  culprit doctor          what would stop it from seeing a job
  culprit status          asks the running one)";

constexpr int kDone = 0;
constexpr int kWrong = 1;  // of --check
constexpr int kUnable = 2;

void report_error(const std::string& sentence) {
  std::fprintf(stderr, "culpritd: %s\n", to_terminal(sentence).c_str());
}

struct Arguments {
  std::string config;
  bool check = false, print_defaults = false;
};

int check(const std::string& config) {
  timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const app::ConfigCheck checked = app::check_config(config, now.tv_sec * kNsPerSecond);
  app::ConfiguredPlugins plugins;
  app::ControllerChecked controller;
  if (checked.status == kDone) {
    const app::LoadedConfig loaded = app::load_config(config);
    plugins = app::check_configured_plugins(loaded.config);
    controller = app::check_controller(loaded);
  }
  std::fputs(checked.errors.c_str(), stderr);
  const auto print_line = [](const std::string& text) {
    std::fprintf(stderr, "%s\n", to_terminal(text).c_str());
  };
  for (const app::ConfigError& error : controller.errors) print_line(app::format_error(error));
  for (const app::ConfigError& warning : controller.warnings) print_line(app::format_warning(warning));
  for (const auto* sentences : {&plugins.errors, &plugins.notes})
    for (const std::string& sentence : *sentences) print_line(sentence);
  if (!plugins.errors.empty() || !controller.errors.empty()) return kWrong;
  std::fputs(checked.output.c_str(), stdout);
  return checked.status;
}

// "name" or "name:n": a crash point at which the process ends at once, for crash tests.
void arm_crash_point_from(const char* setting) {
  if (!setting || !*setting) return;
  if (const Status armed = arm_crash_point(setting); !armed) report_error(armed.error().text);
}

int watch(const std::string& config_path) {
  // One malloc arena: one thread reads bytes and another frees them. With an arena for each, every thread
  // would keep spare memory and request pages that another has just freed.
  (void)mallopt(M_ARENA_MAX, 1);
  io::raise_descriptor_limit();
  app::DaemonOptions options;
  options.config_path = config_path;
  options.service = app::read_service_environment();
  options.make_env = io::make_uv_env;
  options.loaded = app::load_config(config_path);
  if (!options.loaded.errors.empty()) {
    for (const app::ConfigError& e : options.loaded.errors)
      std::fprintf(stderr, "%s\n", to_terminal(app::format_error(e)).c_str());
    return kUnable;
  }
  arm_crash_point_from(std::getenv("CULPRIT_CRASH_AT"));
  app::Log log(options.loaded.config.daemon.log_level, std::getenv("JOURNAL_STREAM") != nullptr);
  const auto env = io::make_uv_env();
  auto agent = app::Daemon::start(*env, std::move(options), log);
  if (!agent) {
    log.error(agent.error().text);
    return kUnable;
  }
  env->run();
  return kDone;
}

int run(int argc, char** argv) {
  cli::Command line(kAbout, "culpritd");
  Arguments arguments;
  line.set_version(std::string("culpritd ") + CULPRIT_VERSION);
  line.footer(kExamples);
  line.add_option("--config", arguments.config,
                  std::string("Configuration; conf.d/*.toml in its folder is read too (default ") +
                      app::kConfigFile + ", where it is there)")
      ->type_name("FILE");
  line.add_flag("--check", arguments.check,
                "Check the configuration, its rules and its plugins, and exit: 1 where it is wrong");
  line.add_flag("--print-defaults", arguments.print_defaults,
                "Print a configuration with every key, its default and what it means, and exit");
  const cli::Parsed parsed = line.parse(argc, argv);
  if (parsed.kind == cli::Parsed::Kind::kHelp) {
    std::fputs(parsed.text.c_str(), stdout);
    return kDone;
  }
  if (parsed.kind != cli::Parsed::Kind::kRun) {
    report_error(parsed.text + "; see `culpritd --help`");
    return kUnable;
  }
  if (arguments.print_defaults) {
    std::fputs(app::config_defaults().c_str(), stdout);
    return kDone;
  }
  return arguments.check ? check(arguments.config) : watch(arguments.config);
}

}  // namespace
}  // namespace culprit

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  umask(0077);  // stored job data is private to the daemon's user; sockets get their modes by name
  try {
    return culprit::run(argc, argv);
  } catch (const std::bad_alloc&) {
    culprit::report_error("out of memory");
    return 2;
  }
}
