#include "app/daemon/recover/schedulers.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "app/daemon/recover/cluster_lease.h"
#include "app/jobs/job_names.h"
#include "base/clock.h"
#include "core/recover/actions.h"
#include "io/secret_file.h"
#include "respond/kubernetes/backend.h"
#include "respond/kubernetes/look.h"
#include "respond/kubernetes/standby_pool.h"
#include "respond/launcher/backend.h"
#include "respond/order.h"
#include "respond/slurm/backend.h"
#include "respond/slurm/look.h"
#include "respond/slurm/spare_pool.h"

namespace culprit::app {
namespace {

using respond::kubernetes::ApiCall;

constexpr size_t kHeadersBytes = 64 << 10;

// A job that ran before and waits for nodes: what becomes idle is for it, not for the pool.
bool waits_again(const respond::SeenJob& job) {
  return job.state == respond::SeenJob::State::kPending && job.job.restarts > 0 &&
         (job.reason == "Resources" || job.reason.starts_with("ReqNodeNotAvail"));
}

// Asks the gate just before each order.
class GatedBackend final : public respond::Backend {
 public:
  GatedBackend(std::unique_ptr<respond::Backend> inner, std::shared_ptr<ActGate> gate)
      : inner_(std::move(inner)), gate_(std::move(gate)) {}
  std::string_view name() const override { return inner_->name(); }
  bool can(OrderKind kind) const override { return inner_->can(kind); }
  ActionResult carry_out(const ActionOrder& order, respond::Pace& pace) const override {
    const ActGate::Answer answer = gate_->reserve(order, [&pace](TimeNs ns) { return pace.pause(ns); });
    if (answer.state != ActionState::kReserved) return respond::result_of(order, answer.state, answer.detail);
    ActionResult out = inner_->carry_out(order, pace);
    gate_->finished();
    return out;
  }

 private:
  const std::unique_ptr<respond::Backend> inner_;
  const std::shared_ptr<ActGate> gate_;
};

SchedulerParts slurm_parts(const Config& config) {
  SchedulerParts out;
  respond::slurm::SlurmOptions options;
  options.conf = config.act.slurm_conf;
  const auto pool = std::make_shared<respond::slurm::SparePool>(config.act.spares_partition, steady_now());
  options.spares = pool;
  out.backend = std::make_unique<respond::slurm::SlurmBackend>(options);
  struct Look {
    explicit Look(const respond::slurm::SlurmOptions& o) : slurm(o, pace) {}
    respond::SingleStep pace;
    respond::slurm::SlurmLook slurm;
  };
  const auto may_keep_pool = out.may_keep_pool = std::make_shared<std::atomic<bool>>(false);
  out.look = [look = std::make_shared<Look>(options), options, pool, may_keep_pool] {
    auto view = look->slurm.look();
    if (!view) return view;
    const respond::slurm::Commands commands(options, look->pace);
    if (*may_keep_pool)
      view->spares_note =
          pool->fill(commands, steady_now(), std::ranges::any_of(view->jobs, waits_again)).value_or("");
    view->spares = pool->nodes();
    if (view->spares) view->spare_hosts = pool->hosts();
    return view;
  };
  out.reload = [pool](const Config::Act& act) {
    const auto& partitions = act.partitions;
    const bool here =
        partitions.empty() || std::ranges::find(partitions, act.spares_partition) != partitions.end();
    const bool used = act.mode == ActMode::kAct && act.restart && here;
    pool->want(used ? static_cast<uint32_t>(act.spares) : 0);
  };
  return out;
}

// ---- Kubernetes

std::shared_ptr<ClusterLease> lease_of(const Config& config, const ApiCall& call) {
  const std::string& name = config.act.kubernetes.lease;
  const size_t slash = name.find('/');
  if (slash == name.npos) return nullptr;
  respond::kubernetes::LeaseName out;
  out.space = name.substr(0, slash);
  out.name = name.substr(slash + 1);
  // Two collectors of one host differ in their folders; a restarted one goes on at once.
  out.holder = fmt::format("{}:{}", config.host.name, config.state_dir);
  return std::make_shared<ClusterLease>(std::move(out), call);
}

struct KubernetesView {
  KubernetesView(respond::kubernetes::LookOptions options, std::shared_ptr<ClusterLease> its_lease,
                 std::shared_ptr<respond::kubernetes::StandbyPool> its_pool)
      : look(std::move(options), pace), lease(std::move(its_lease)), pool(std::move(its_pool)) {}
  respond::SingleStep pace;
  respond::kubernetes::KubernetesLook look;
  const std::shared_ptr<ClusterLease> lease;
  const std::shared_ptr<respond::kubernetes::StandbyPool> pool;
  const std::shared_ptr<std::atomic<bool>> may_keep_pool = std::make_shared<std::atomic<bool>>(false);

  Result<respond::SchedulerView> read() {
    if (lease)
      if (const Status held = lease->renew(pace); !held) return tl::unexpected(held.error());
    auto view = look.look();
    // Our mark on a node is the decision; the controller knows it by the op.
    if (view)
      for (respond::SeenHost& host : view->hosts)
        if (!host.op.empty()) host.op = recover::op_of(host.op, OrderKind::kIsolate, host.host);
    if (view) keep_pool(*view);
    return view;
  }
  void keep_pool(respond::SchedulerView& view) {
    if (*may_keep_pool && (!lease || lease->permits(steady_now()))) {
      const auto round = pool->keep(view, pace);
      view.spares_note = round.note;
      if (round.changed) look.renew_nodes();
    }
    view.spares = pool->nodes();
  }
};

SchedulerParts kubernetes_parts(const Config& config, bool shares_jobs) {
  SchedulerParts out;
  const auto& kubernetes = config.act.kubernetes;
  const auto access =
      respond::kubernetes::access_with(kubernetes.server, kubernetes.token_file, kubernetes.ca_file);
  if (!access) {
    out.sound = tl::unexpected(access.error());
    return out;
  }
  respond::kubernetes::KubernetesOptions options;
  options.call = respond::kubernetes::http_calls(*access);
  options.no_execute = config.act.kubernetes.evict;
  options.host = config.host.name;
  const auto lease = shares_jobs ? nullptr : lease_of(config, options.call);
  const auto pool = std::make_shared<respond::kubernetes::StandbyPool>(options.call, steady_now());
  respond::kubernetes::LookOptions look{options.call, config.act.kubernetes.space};
  look.spares_selector = config.act.spares_selector;
  const auto view = std::make_shared<KubernetesView>(std::move(look), lease, pool);
  out.may_keep_pool = view->may_keep_pool;
  out.look = [view] { return view->read(); };
  out.look_every_ns = 5 * kNsPerSecond;  // a third of the lease; some 5 KB a pod
  out.load = [view](const AttemptRecord& row) { view->look.load(row); };
  out.gate = lease;
  out.reload = [lease, pool](const Config::Act& act) {
    if (lease) lease->set_mode(act.mode);
    const bool used = act.restart && act.mode != ActMode::kAsk;
    pool->want(used ? static_cast<uint32_t>(act.spares) : 0, act.mode == ActMode::kObserve, act.probation_ns);
  };
  options.spares = pool;
  out.backend = std::make_unique<respond::kubernetes::KubernetesBackend>(options);
  options.observe = true;
  options.spares = nullptr;
  out.rehearsal = std::make_unique<respond::kubernetes::KubernetesBackend>(options);
  return out;
}

// ---- own launchers

// Passes on the orders that the launcher carries out. The agents end a job's processes otherwise.
class ChosenOrders final : public respond::Backend {
 public:
  ChosenOrders(std::unique_ptr<respond::Backend> inner, std::vector<std::string> orders)
      : inner_(std::move(inner)), orders_(std::move(orders)) {}
  std::string_view name() const override { return inner_->name(); }
  bool can(OrderKind kind) const override { return kind != OrderKind::kEndTasks || is_chosen(kind); }
  ActionResult carry_out(const ActionOrder& order, respond::Pace& pace) const override {
    if (is_chosen(order.kind)) return inner_->carry_out(order, pace);
    return respond::result_of(order, ActionState::kFailed,
                              fmt::format("act.launcher.orders has no {}", respond::name_of(order.kind)));
  }

 private:
  bool is_chosen(OrderKind kind) const {
    return std::ranges::find(orders_, respond::name_of(kind)) != orders_.end();
  }
  const std::unique_ptr<respond::Backend> inner_;
  const std::vector<std::string> orders_;
};

SchedulerParts launcher_parts(const Config& config) {
  const Config::Act::Launcher& launcher = config.act.launcher;
  SchedulerParts out;
  out.own_jobs = true;
  std::unique_ptr<respond::Backend> inner;
  if (config.act.scheduler == Scheduler::kExec) {
    respond::launcher::ExecOptions options;
    options.command = launcher.command;
    options.within_ns = launcher.within_ns;
    out.sound = respond::launcher::check_command(options.command);
    inner = std::make_unique<respond::launcher::ExecBackend>(std::move(options));
  } else {
    respond::launcher::WebhookOptions options;
    options.url = launcher.url;
    options.ca = launcher.ca;
    options.proxy = launcher.proxy;
    options.total_ns = launcher.within_ns;
    options.within_ns = std::min(options.within_ns, launcher.within_ns);
    if (!launcher.headers_file.empty()) {
      const auto text = io::read_secret(launcher.headers_file, kHeadersBytes);
      const auto headers = text ? respond::parse_headers(*text) : tl::unexpected(text.error());
      if (!headers)
        out.sound = fail(headers.error().code, launcher.headers_file + ": " + headers.error().text);
      else
        options.headers = *headers;
    }
    inner = std::make_unique<respond::launcher::WebhookBackend>(std::move(options));
  }
  out.backend = std::make_unique<ChosenOrders>(std::move(inner), launcher.orders);
  return out;
}

}  // namespace

namespace {

SchedulerParts parts_of(const Config& config, bool shares_jobs) {
  switch (config.act.scheduler) {
    case Scheduler::kNone:
      break;
    case Scheduler::kSlurm:
      return slurm_parts(config);
    case Scheduler::kKubernetes:
      return kubernetes_parts(config, shares_jobs);
    case Scheduler::kExec:
    case Scheduler::kWebhook:
      return launcher_parts(config);
  }
  return {};
}

}  // namespace

SchedulerParts scheduler_parts(const Config& config, std::shared_ptr<ActGate> gate) {
  SchedulerParts out = parts_of(config, gate != nullptr);
  if (gate) out.gate = std::move(gate);
  return out;
}

std::unique_ptr<respond::Backend> gated(std::unique_ptr<respond::Backend> backend,
                                        std::shared_ptr<ActGate> gate) {
  if (!backend || !gate) return backend;
  return std::make_unique<GatedBackend>(std::move(backend), std::move(gate));
}

std::string scheduler_remedy(const Config& config) {
  const std::string& conf = config.act.slurm_conf;
  const auto& kubernetes = config.act.kubernetes;
  switch (config.act.scheduler) {
    case Scheduler::kSlurm:
      return (conf.empty() ? "" : fmt::format("SLURM_CONF={} ", conf)) + "scontrol ping";
    case Scheduler::kKubernetes:
      return fmt::format("kubectl {}auth can-i list pods {}",
                         kubernetes.server.empty() ? "" : fmt::format("--server {} ", kubernetes.server),
                         kubernetes.space.empty() ? "--all-namespaces" : "-n " + kubernetes.space);
    case Scheduler::kNone:
    case Scheduler::kExec:
    case Scheduler::kWebhook:
      break;
  }
  return "journalctl -u culpritd -n 50";
}

std::string scheduled_id(Scheduler scheduler, const std::string& job) {
  const std::string name(name_of_job(job));
  switch (scheduler) {
    case Scheduler::kNone:
      return "";
    case Scheduler::kSlurm: {
      const bool digits = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
      return !name.empty() && name.size() <= 10 && digits ? name : "";
    }
    case Scheduler::kKubernetes: {
      if (name.starts_with("pod-")) return name;
      // Neither part may have an underscore of its own.
      const size_t at = name.find('_');
      const bool two =
          at != name.npos && at > 0 && at + 1 < name.size() && name.find('_', at + 1) == name.npos;
      if (two) return name.substr(0, at) + "/" + name.substr(at + 1);
      return name.find('/') == name.npos ? "" : name;
    }
    case Scheduler::kExec:
    case Scheduler::kWebhook:
      break;
  }
  return job;
}

}  // namespace culprit::app
