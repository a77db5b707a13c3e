#include "app/daemon/engine/engine_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/check.h"

namespace culprit::app {
namespace {

// The longest wait of the second LiveJobs for a worker that always has other work.
constexpr TimeNs kSecondWaitNs = kNsPerSecond;

}  // namespace

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
  second_timer_ = env.timer([this] { run_second(); });
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
        for (const std::string& rule : options_.rule_watch->drain_overruns()) {
          live_->overran(rule);
          if (second_) second_->overran(rule);
        }
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
        if (under_way_ == 0) run_second();
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
      [this, batch = std::move(batch)](TimeNs now) {
        live_->ingest(*batch, now, next_behind(*batch));
        if (second_) second_->ingest(*batch, now);
      },
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

void EngineWorker::change(std::function<void(std::span<LiveJobs* const>, TimeNs)> work,
                          std::function<void()> done) {
  submit(
      "a change",
      [this, work = std::move(work)](TimeNs now) {
        const std::array all{live_.get(), second_.get()};
        work(std::span(all).first(second_ ? 2 : 1), now);
      },
      std::move(done));
}

// ---- the second reading

void EngineWorker::begin_second(std::vector<RunEnd> ends) {
  CULPRIT_CHECK(owner_.here() && !has_second_);
  has_second_ = true;
  LiveOptions options = options_.live;
  options.memory_max /= 2;
  submit("a second reading",
         [this, options = std::move(options), ends = std::move(ends)](TimeNs) mutable {
           live_->change(options.hang, options.ended_after_ns, options.memory_max);
           options.taught = live_->pools().taught();  // with what came since the start
           second_ = std::make_unique<LiveJobs>(std::move(options));
           second_->restoring(ends);
         },
         {});
}

void EngineWorker::query_second(std::function<void(LiveJobs&, TimeNs)> work, std::function<void()> done) {
  CULPRIT_CHECK(has_second_ && !second_work_);
  second_work_ = {std::move(work), std::move(done)};
  if (under_way_ == 0) return run_second();
  second_timer_->start(kSecondWaitNs);
}

void EngineWorker::run_second() {
  if (!second_work_) return;
  second_timer_->stop();
  SecondWork next = std::move(*second_work_);
  second_work_.reset();
  submit(
      "a part of the second reading",
      [this, work = std::move(next.work)](TimeNs now) { work(*second_, now); }, std::move(next.done));
}

void EngineWorker::end_second(std::vector<Verdict> before, std::function<void(bool)> done) {
  CULPRIT_CHECK(has_second_ && !second_work_);
  const auto replaced = std::make_shared<bool>(false);
  submit(
      "the end of the second reading",
      [this, replaced, before = std::move(before), hang = options_.live.hang,
       ended = options_.live.ended_after_ns, memory = options_.live.memory_max](TimeNs now) mutable {
        *replaced = second_->counts().gave_way_for_memory == 0;
        if (*replaced) {
          for (const Verdict& v : before)
            if (!v.judged_by.empty())
              second_->judge({v.job, v.id(), v.run, v.state == VerdictState::kConfirmed}, now);
          std::erase_if(before, [](const Verdict& v) { return v.state != VerdictState::kOpen && !v.leads; });
          second_->restoring({}, std::move(before));
          second_->replayed(now);
          second_->caught_up(now, live_.get());
          live_.swap(second_);
        }
        second_.reset();
        live_->change(hang, ended, memory);
      },
      [this, replaced, done = std::move(done)] {
        has_second_ = false;
        done(*replaced);
      });
}

CapturePlan capture_plan(const Config& config) {
  const auto& capture = config.capture;
  return {static_cast<uint32_t>(capture.samples), capture.every_ns, static_cast<uint32_t>(capture.rounds),
          capture.enabled};
}

void EngineWorker::reload(const Config& config, std::shared_ptr<rules::Ruleset> rules) {
  const detect::StallOptions hang{config.hang.after_ns, config.hang.steps};
  LiveOptions& now = options_.live;  // also of LiveJobs that begin later
  if (options_.engine_memory) now.memory_max = options_.engine_memory(config);
  now.rules = std::move(rules);
  now.hang = hang;
  now.healthy = config.collector.healthy;
  now.ended_after_ns = config.jobs.ended_after_ns;
  now.capture = capture_plan(config);
  const uint64_t memory = has_second_ ? now.memory_max / 2 : now.memory_max;
  change([rules = now.rules, hang, healthy = now.healthy, ended = now.ended_after_ns, capture = now.capture,
          memory](std::span<LiveJobs* const> all, TimeNs) {
    for (LiveJobs* live : all) {
      live->reload_rules(rules);
      live->change(hang, ended, memory);
      live->set_capture(capture);
      live->set_healthy(healthy);
    }
  });
}

}  // namespace culprit::app
