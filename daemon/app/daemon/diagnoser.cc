#include "app/daemon/diagnoser.h"

#include <fmt/format.h>

#include <utility>

namespace culprit::app {

struct Diagnoser::Outcome {
  std::vector<LiveEvent> events;
  LiveCounts counts;
  size_t jobs = 0;
  std::optional<TimeNs> tick_after_ns;
};

Diagnoser::Diagnoser(io::Env& env, DiagnoserOptions options) : env_(env), options_(std::move(options)) {
  options_.live.timer = [&env] { return env.now(io::Clock::kMonotonic); };
  live_ = std::make_unique<LiveJobs>(options_.live);
  timer_ = env.timer([this] {
    if (under_way_ == 0) submit("a tick", [](TimeNs) {}, {});
  });
}

Result<std::unique_ptr<Diagnoser>> Diagnoser::start(io::Env& env, DiagnoserOptions options) {
  auto worker = env.worker("engine");
  if (!worker) return tl::unexpected(worker.error());
  std::unique_ptr<Diagnoser> out(new Diagnoser(env, std::move(options)));
  out->worker_ = std::move(*worker);
  return out;
}

Diagnoser::~Diagnoser() = default;

void Diagnoser::submit(std::string what, std::function<void(TimeNs)> work, std::function<void()> done) {
  auto out = std::make_shared<Outcome>();
  const TimeNs now = env_.now(io::Clock::kWall);
  options_.watch->given(SelfWatch::Part::kEngine, env_.now(io::Clock::kMonotonic), std::move(what));
  ++under_way_;
  worker_->submit(
      [this, work = std::move(work), out, now] {
        work(now);
        for (const std::string& rule : options_.rule_watch->take_overruns()) live_->overran(rule);
        if (const auto next = live_->tick(now)) out->tick_after_ns = *next - now;
        out->events = live_->poll_events();
        out->counts = live_->counts();
        out->jobs = live_->running();
      },
      [this, done = std::move(done), out] {
        --under_way_;
        options_.watch->done(SelfWatch::Part::kEngine, env_.now(io::Clock::kMonotonic));
        counts_ = out->counts;
        jobs_ = out->jobs;
        if (under_way_ == 0 && out->tick_after_ns)
          timer_->start(*out->tick_after_ns);
        else
          timer_->stop();
        if (done) done();
        if (!out->events.empty()) options_.take(std::move(out->events));
      });
}

void Diagnoser::take(SharedBatch batch, std::function<void()> done) {
  std::string what = fmt::format("a batch of {} bytes", batch->bytes());
  submit(
      std::move(what), [this, batch = std::move(batch)](TimeNs now) { live_->take(*batch, now); },
      std::move(done));
}

void Diagnoser::ask(std::function<void(LiveJobs&, TimeNs)> work, std::function<void()> done) {
  submit(
      "a question", [this, work = std::move(work)](TimeNs now) { work(*live_, now); }, std::move(done));
}

}  // namespace culprit::app
