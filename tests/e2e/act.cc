// act SCHEDULER [NAME=VALUE...]: carries out the orders on standard input, one line of JSON each, and prints
// one line of JSON for each result, in order. tests/e2e drives real schedulers with it.
//
//   act slurm conf=FILE [scontrol=PATH squeue=PATH command_ms=N start_ms=N away_ms=N observe=1]
//   act kubernetes server=URL [ca=FILE token=FILE no_execute=1 observe=1 start_ms=N]
//   act exec WORD...
//   act look server=URL [ca=FILE token=FILE namespace=NAME rounds=N every_ms=N]    prints views
//   act lease server=URL holder=NAME [ca=FILE token=FILE duration_ms=N]     takes or renews the lease, once
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "base/clock.h"
#include "io/uv/env.h"
#include "model/json_writer.h"
#include "respond/executor.h"
#include "respond/kubernetes/backend.h"
#include "respond/kubernetes/lease.h"
#include "respond/kubernetes/look.h"
#include "respond/launcher/backend.h"
#include "respond/order.h"
#include "respond/slurm/backend.h"

namespace {

using namespace culprit;
using namespace culprit::respond;
using Options = std::map<std::string, std::string>;

ActionOrder parse_order(const nlohmann::json& json) {
  ActionOrder out;
  out.op = json.value("op", "0123456789abcdef");
  out.decision = json.value("decision", "d-0001");
  for (const OrderKind kind : {OrderKind::kIsolate, OrderKind::kReturn, OrderKind::kEndTasks,
                               OrderKind::kRunAgain, OrderKind::kVerify})
    if (name_of(kind) == json.value("kind", "verify")) out.kind = kind;
  out.target = json.value("target", "");
  out.job.id = json.value("job", "");
  out.job.uid = json.value("uid", "");
  if (json.contains("submit_ns")) out.job.submit_ns = json["submit_ns"].get<TimeNs>();
  out.job.restarts = json.value("restarts", 0u);
  if (json.contains("repeats_ns")) out.repeats_ns = json["repeats_ns"].get<TimeNs>();
  out.device = json.value("device", "");
  out.excluded = json.value("excluded", std::vector<std::string>());
  out.code = json.value("code", "XID79");
  out.reason = json.value("reason", "GPU 3 fell off the bus");
  return out;
}

std::string result_json(const ActionResult& result, TimeNs took_ns) {
  JsonWriter w;
  w.object([&] {
    w.field("op", result.op);
    w.field("state", name_of(result.state));
    w.field("detail", result.detail);
    w.values("hosts", result.hosts);
    w.time("submit_ns", result.job.submit_ns);
    w.field("restarts", result.job.restarts);
    w.field("seconds", static_cast<double>(took_ns) / kNsPerSecond);
  });
  return w.finish();
}

kubernetes::ApiAccess access_of(Options& options) {
  kubernetes::ApiAccess out;
  out.server = options["server"], out.ca_file = options["ca"], out.token_file = options["token"];
  return out;
}

int hold_lease(Options& options) {
  kubernetes::LeaseName name;
  name.holder = options["holder"];
  if (options.contains("duration_ms"))
    name.duration_ns = std::atoll(options["duration_ms"].c_str()) * kNsPerMs;
  SingleStep pace;
  const auto state = kubernetes::Lease(name, kubernetes::http_calls(access_of(options))).hold(pace);
  JsonWriter w;
  w.object([&] {
    w.field("held", state.held), w.field("holder", state.holder), w.field("trouble", state.trouble);
  });
  std::puts(w.finish().c_str());
  return 0;
}

// One line for each view: an error, or "jobs" and "hosts".
int show_views(Options& options) {
  SingleStep pace;
  kubernetes::LookOptions of;
  of.call = kubernetes::http_calls(access_of(options));
  of.space = options["namespace"];
  of.nodes_every_ns = 0;
  kubernetes::KubernetesLook look(of, pace);
  const int rounds = options.contains("rounds") ? std::atoi(options["rounds"].c_str()) : 1;
  for (int i = 0; i < rounds; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(options["every_ms"].c_str())));
    const TimeNs begun = steady_now();
    const auto view = look.look();
    JsonWriter w;
    w.object([&] {
      w.field("seconds", static_cast<double>(steady_now() - begun) / kNsPerSecond);
      if (!view) return w.field("error", view.error().text);
      w.member("jobs", [&] {
        w.object([&] {
          for (const SeenJob& job : view->jobs)
            w.field(job.job.id,
                    fmt::format("{} {} {}", job.word, job.job.restarts, fmt::join(job.hosts, ",")));
        });
      });
      w.member("hosts", [&] {
        w.object([&] {
          for (const SeenHost& host : view->hosts)
            w.field(host.host, fmt::format("{}{}", host.out ? "out " : host.idle ? "idle " : "", host.op));
        });
      });
    });
    std::puts(w.finish().c_str());
    std::fflush(stdout);
  }
  return 0;
}

std::unique_ptr<Backend> backend_of(const std::string& name, Options options,
                                    const std::vector<std::string>& words) {
  const auto ms = [&](const char* key, TimeNs& out) {
    if (options.contains(key)) out = std::atoll(options[key].c_str()) * kNsPerMs;
  };
  if (name == "slurm") {
    slurm::SlurmOptions out;
    out.conf = options["conf"];
    if (options.contains("scontrol")) out.scontrol = options["scontrol"];
    if (options.contains("squeue")) out.squeue = options["squeue"];
    out.observe = options.contains("observe");
    ms("command_ms", out.command_ns), ms("start_ms", out.start_ns), ms("away_ms", out.away_ns);
    return std::make_unique<slurm::SlurmBackend>(std::move(out));
  }
  if (name == "kubernetes") {
    kubernetes::KubernetesOptions out;
    out.call = kubernetes::http_calls(access_of(options));
    out.no_execute = options.contains("no_execute"), out.observe = options.contains("observe");
    ms("start_ms", out.start_ns);
    return std::make_unique<kubernetes::KubernetesBackend>(std::move(out));
  }
  if (name == "exec") {
    launcher::ExecOptions out;
    out.command = words;
    return std::make_unique<launcher::ExecBackend>(std::move(out));
  }
  return nullptr;
}

// Carries out line after line, then stops the loop.
struct Session {
  io::Env& env;
  Executor& executor;

  void next() {
    std::string line;
    if (!std::getline(std::cin, line)) return env.stop();
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) return env.stop();
    executor.carry_out(parse_order(json), [this, begun = steady_now()](const ActionResult& result) {
      std::puts(result_json(result, steady_now() - begun).c_str());
      std::fflush(stdout);
      next();
    });
  }
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) return std::puts("act SCHEDULER [NAME=VALUE...]"), 2;
  const std::string name = words[0];
  words.erase(words.begin());
  Options options;
  for (const std::string& word : words)
    if (const size_t at = word.find('='); at != std::string::npos)
      options[word.substr(0, at)] = word.substr(at + 1);
  if (name == "lease") return hold_lease(options);
  if (name == "look") return show_views(options);
  auto backend = backend_of(name, options, words);
  if (!backend) return std::puts("unknown scheduler"), 2;
  const auto env = io::make_uv_env();
  {
    auto executor = Executor::make(*env, std::move(backend));
    if (!executor) return std::puts(executor.error().text.c_str()), 1;
    Session session{*env, **executor};
    env->post([&] { session.next(); });
    env->run();
  }
  return 0;
}
