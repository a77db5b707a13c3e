#include "app/daemon/recover/controller_check.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "app/config/config_places.h"
#include "base/limits.h"
#include "io/secret_file.h"
#include "respond/http_post.h"
#include "respond/kubernetes/api.h"
#include "respond/launcher/backend.h"
#include "respond/slurm/commands.h"

namespace culprit::app {
namespace {

constexpr size_t kHeadersBytes = 64 << 10;  // as the controller reads

class ControllerCheck {
 public:
  explicit ControllerCheck(const LoadedConfig& loaded) : loaded_(loaded), act_(loaded.config.act) {}

  ControllerChecked run() {
    if (act_.scheduler == Scheduler::kNone) return {};
    if (loaded_.config.role == DaemonRole::kAgent)
      wrong("act.scheduler", "the controller runs in the collector, not with role agent");
    switch (act_.scheduler) {
      case Scheduler::kNone:
        break;
      case Scheduler::kSlurm:
        slurm();
        break;
      case Scheduler::kKubernetes:
        kubernetes();
        break;
      case Scheduler::kExec:
        exec();
        break;
      case Scheduler::kWebhook:
        webhook();
        break;
    }
    return std::move(out_);
  }

 private:
  void wrong(const std::string& key, const std::string& what) {
    out_.errors.push_back(error_at(loaded_, key, what));
  }
  // An empty path has a default that works.
  void needs_file(const std::string& key, const std::string& path) {
    if (!path.empty() && ::access(path.c_str(), R_OK) != 0)
      wrong(key, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  void needs_program(const std::string& key, const std::string& path) {
    if (::access(path.c_str(), X_OK) != 0)
      out_.warnings.push_back(error_at(loaded_, key, fmt::format("{}: {}", path, std::strerror(errno))));
  }

  void slurm() {
    needs_file("act.slurm_conf", act_.slurm_conf);
    const respond::slurm::SlurmOptions options;
    needs_program("act.scheduler", options.scontrol);
    needs_program("act.scheduler", options.squeue);
  }

  void kubernetes() {
    const Config::Act::Kubernetes& k = act_.kubernetes;
    if (k.server.empty()) {
      const auto variable = [](std::string_view name) -> std::optional<std::string> {
        const char* value = ::getenv(std::string(name).c_str());
        return value ? std::optional<std::string>(value) : std::nullopt;
      };
      if (const auto access = respond::kubernetes::pod_access(variable); !access)
        wrong("act.scheduler", access.error().text + "; outside a pod set act.kubernetes.server");
      return;
    }
    needs_file("act.kubernetes.ca_file", k.ca_file);
    if (k.token_file.empty()) return;
    if (const auto token = io::read_secret(k.token_file, limits::kTokenFileBytes); !token)
      wrong("act.kubernetes.token_file", token.error().text);
  }

  void exec() {
    const auto& command = act_.launcher.command;
    if (const Status sound = respond::launcher::check_command(command); !sound)
      wrong("act.launcher.command", sound.error().text);
    needs_program("act.launcher.command", command.front());
  }

  void webhook() {
    needs_file("act.launcher.ca", act_.launcher.ca);
    const std::string& file = act_.launcher.headers_file;
    if (file.empty()) return;
    const auto text = io::read_secret(file, kHeadersBytes);
    if (!text) return wrong("act.launcher.headers_file", text.error().text);
    if (const auto headers = respond::parse_headers(*text); !headers)
      wrong("act.launcher.headers_file", fmt::format("{}: {}", file, headers.error().text));
  }

  const LoadedConfig& loaded_;
  const Config::Act& act_;
  ControllerChecked out_;
};

}  // namespace

ControllerChecked check_controller(const LoadedConfig& loaded) { return ControllerCheck(loaded).run(); }

}  // namespace culprit::app
