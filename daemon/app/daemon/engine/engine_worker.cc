#include "app/daemon/engine/engine_worker.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"

namespace culprit::app {

struct EngineWorker::Outcome {
  std::vector<LiveEvent> events;
  LiveCounts counts;
  std::vector<std::string> notices;
  size_t jobs = 0;
  std::optional<TimeNs> tick_after_ns;
};

EngineWorker::EngineWorker(io::Env& env, EngineWorkerOptions options)
    : env_(env), options_(std::move(options)) {
  options_.live.timer = [&env] { return env.now(io::Clock::kMonotonic); };
  live_ = std::make_unique<LiveJobs>(options_.live);
  timer_ = env.timer([this] {
    if (under_way_ == 0) submit("a tick", [](TimeNs) {}, {});
  });
}

Result<std::unique_ptr<EngineWorker>> EngineWorker::start(io::Env& env, EngineWorkerOptions options) {
  auto worker = env.worker("engine");
  if (!worker) return tl::unexpected(worker.error());
  std::unique_ptr<EngineWorker> out(new EngineWorker(env, std::move(options)));
  out->worker_ = std::move(*worker);
  return out;
}

EngineWorker::~EngineWorker() = default;

void EngineWorker::submit(std::string what, std::function<void(TimeNs)> work, std::function<void()> done) {
  CULPRIT_CHECK(owner_.here());
  auto out = std::make_shared<Outcome>();
  const TimeNs now = env_.now(io::Clock::kWall);
  options_.watch->started(SelfWatch::Part::kEngine, env_.now(io::Clock::kMonotonic), std::move(what));
  ++under_way_;
  worker_->submit(
      [this, work = std::move(work), out, now] {
        work(now);
        for (const std::string& rule : options_.rule_watch->drain_overruns()) live_->overran(rule);
        if (const auto next = live_->tick(now)) out->tick_after_ns = *next - now;
        out->events = live_->poll_events();
        out->notices = live_->drain_notices(now);
        out->counts = live_->counts();
        out->jobs = live_->running();
      },
      [this, done = std::move(done), out] {
        CULPRIT_CHECK(under_way_ > 0);
        --under_way_;
        options_.watch->done(SelfWatch::Part::kEngine, env_.now(io::Clock::kMonotonic));
        counts_ = out->counts;
        jobs_ = out->jobs;
        if (under_way_ == 0 && out->tick_after_ns)
          timer_->start(*out->tick_after_ns);
        else
          timer_->stop();
        for (const std::string& sentence : out->notices)
          if (options_.report_error) options_.report_error(sentence);
        if (done) done();
        if (!out->events.empty()) options_.take(std::move(out->events));
      });
}

void EngineWorker::append(SharedBatch batch, std::function<void()> done) {
  std::string what = fmt::format("a batch of {} bytes", batch->bytes());
  {
    const std::lock_guard lock(coming_mutex_);
    coming_.push_back(batch);
  }
  submit(
      std::move(what),
      [this, batch = std::move(batch)](TimeNs now) { live_->ingest(*batch, now, next_behind(*batch)); },
      std::move(done));
}

// Runs on the worker.
SharedBatch EngineWorker::next_behind(const PieceBatch& batch) {
  const std::lock_guard lock(coming_mutex_);
  CULPRIT_CHECK(!coming_.empty() && coming_.front().get() == &batch);
  coming_.pop_front();
  return coming_.empty() ? nullptr : coming_.front();
}

void EngineWorker::query(std::function<void(LiveJobs&, TimeNs)> work, std::function<void()> done) {
  submit(
      "a question", [this, work = std::move(work)](TimeNs now) { work(*live_, now); }, std::move(done));
}

CapturePlan capture_plan(const Config& config) {
  const auto& capture = config.capture;
  return {static_cast<uint32_t>(capture.samples), capture.every_ns, static_cast<uint32_t>(capture.rounds),
          capture.enabled};
}

void EngineWorker::reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) {
  const detect::StallOptions hang{config.hang.after_ns, config.hang.steps};
  const uint64_t memory = options_.engine_memory ? options_.engine_memory(config) : options_.live.memory_max;
  query([rules = std::move(rules), hang, healthy = config.collector.healthy,
         ended = config.jobs.ended_after_ns, capture = capture_plan(config), memory](LiveJobs& live, TimeNs) {
    live.reload_rules(rules);
    live.change(hang, ended, memory);
    live.set_capture(capture);
    live.set_healthy(healthy);
  });
}

}  // namespace culprit::app
