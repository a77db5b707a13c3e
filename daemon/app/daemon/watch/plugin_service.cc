#include "app/daemon/watch/plugin_service.h"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "app/daemon/intake/plugin_feed.h"
#include "core/plugin_findings.h"
#include "culprit/plugin.h"
#include "plughost/folders.h"
#include "plughost/state_file.h"

namespace culprit::app {
namespace {

constexpr TimeNs kLookNs = 10 * kNsPerSecond;  // interval of checks for the first plugin
constexpr TimeNs kScanNs = 2 * kNsPerSecond;   // interval of checks for new plugins
constexpr int kRoundMs = 1000;                 // longest wait without an event
constexpr size_t kQueueBytes = 8 << 20;        // limit of queued batches that plugins have not read
constexpr uint64_t kPpmOfPercent = 10'000;
constexpr TimeNs kReloadNs = 2 * kNsPerSecond;     // longest wait for the thread's answer
constexpr std::string_view kPathHead = "plugin/";  // path prefix of the source of a plugin's findings

LogLevel level_of(const PluginFinding& finding) {
  if (finding.state == PluginState::kCleared) return LogLevel::kInfo;
  return finding.severity >= PluginSeverity::kWarning ? LogLevel::kWarning : LogLevel::kInfo;
}

LogLevel level_of(uint32_t severity) {
  if (severity >= CULPRIT_ERR) return LogLevel::kError;
  return severity == CULPRIT_WARNING ? LogLevel::kWarning : LogLevel::kInfo;
}

}  // namespace

// Data shared by the loop and the plugins' thread. The worker keeps it alive.
struct PluginService::Thread {
  io::Env& env;
  PluginFeed feed;
  plughost::Plugins plugins;
  const int wake;  // an eventfd: wakes the thread for new work
  std::atomic<bool> stopping{false};

  std::mutex mutex;  // guards what follows
  std::deque<SharedBatch> batches;
  size_t bytes = 0;
  uint64_t dropped = 0;
  struct Change {
    std::vector<std::string> folders;
    std::vector<plughost::PluginTable> tables;
    std::function<void(std::vector<std::string>)> done;  // on this thread
  };
  std::optional<Change> change;
  std::vector<plughost::PluginRow> rows;

  Thread(io::Env& e, plughost::PluginsOptions options, std::function<void(PluginFinding&&)> found,
         plughost::PluginLog log)
      : env(e), feed(options.host), plugins(options, std::move(found), std::move(log)), wake(options.wake) {}
  ~Thread() { ::close(wake); }

  void ring() const {
    const uint64_t one = 1;
    (void)!::write(wake, &one, sizeof one);
  }

  void push(const SharedBatch& batch) {
    const uint64_t kinds = plugins.wanted();
    if (kinds == 0 && batch->opened.empty()) return;
    {
      const std::lock_guard lock(mutex);
      if (bytes >= kQueueBytes && batch->opened.empty()) {
        ++dropped;
        return;
      }
      bytes += batch->bytes();
      batches.push_back(batch);
    }
    ring();
  }

  // Runs until stopping.
  void run() {
    TimeNs scan_ns = 0, rows_ns = 0;
    while (!stopping) {
      const TimeNs mono = env.now(io::Clock::kMonotonic);
      apply_change(mono);
      if (mono >= scan_ns) {
        plugins.scan(mono);
        scan_ns = mono + kScanNs;
      }
      take_batches();
      plugins.round(env.now(io::Clock::kWall), mono, kRoundMs);
      if (mono >= rows_ns) {
        auto now = plugins.rows();
        const std::lock_guard lock(mutex);
        rows = std::move(now);
        rows_ns = mono + kNsPerSecond;
      }
    }
    plugins.stop(env.now(io::Clock::kMonotonic));
  }

  void apply_change(TimeNs mono) {
    std::optional<Change> next;
    {
      const std::lock_guard lock(mutex);
      next = std::exchange(change, std::nullopt);
    }
    if (next) next->done(plugins.reload(std::move(next->folders), std::move(next->tables), mono));
  }

  void take_batches() {
    std::deque<SharedBatch> taken;
    {
      const std::lock_guard lock(mutex);
      taken.swap(batches);
      bytes = 0;
    }
    plughost::EventWriter events;
    for (const SharedBatch& batch : taken) {
      feed.add(*batch, plugins.wanted(), events);
      if (events.is_full()) plugins.observe(events.take());
    }
    if (events.count() > 0) plugins.observe(events.take());
  }
};

PluginService::PluginService(io::Env& env, PluginServiceOptions options)
    : env_(env),
      options_(std::move(options)),
      look_timer_(env.timer([this] { look(); })),
      reload_timer_(env.timer([this] { answer({"the plugins did not take their tables yet"}); })) {
  for (const StreamState& state : options_.recorder->known())
    if (state.info.kind == OriginKind::kPlugin && !state.ended && !is_own_source(state.info.path))
      streams_[state.info.path] = {state.info.id, state.size, true};
  forget_absent();
  look();
}

PluginService::~PluginService() {
  if (!thread_) return;
  thread_->stopping = true;
  thread_->ring();
}

void PluginService::look() {
  if (stopping_ || thread_) return;
  if (plughost::find_plugins(options_.config->plugins, ::getuid()).any) return start();
  look_timer_->start(kLookNs);
}

// Ends the states of plugins that were removed while no daemon ran.
void PluginService::forget_absent() {
  const plughost::PluginFiles files = plughost::find_plugins(options_.config->plugins, ::getuid());
  for (const auto& [path, stream] : streams_) {
    const std::string name = path.substr(kPathHead.size());
    const bool disabled = std::ranges::any_of(options_.config->plugin, [&](const PluginConfig& table) {
      return table.name == name && !table.enabled;
    });
    if (files.by_name.contains(name) && !disabled) continue;
    plughost::StateFile(state_folder(), name).remove();
    env_.post([this, name] { found(plugin_forgot(name, kNoTime)); });
  }
}

std::string PluginService::state_folder() const { return options_.config->state_dir + "/plugins"; }

std::vector<plughost::PluginTable> PluginService::tables() const {
  std::vector<plughost::PluginTable> out;
  const auto crashed = [&](const std::string& name) {
    return std::ranges::find(options_.crashed, name) != options_.crashed.end();
  };
  for (const PluginConfig& table : options_.config->plugin) {
    plughost::PluginTable& t = out.emplace_back();
    t.name = table.name;
    t.enabled = table.enabled;
    t.own_process = table.process == PluginProcess::kOwn || crashed(table.name);
    t.memory_bytes = table.memory;
    t.cpu_ppm = static_cast<uint64_t>(table.cpu_percent) * kPpmOfPercent;
    t.findings_per_minute = static_cast<uint64_t>(table.findings_per_minute);
    t.call_ns = table.call_timeout_ns;
    t.options = table.options;
    for (const auto& [name, value] : table.environment) t.environment.push_back(name + "=" + value);
    if (table.process == PluginProcess::kDaemon && t.own_process)
      options_.log(LogLevel::kWarning,
                   fmt::format("plugin {}: the daemon died in it before: it runs in a process of its own",
                               table.name));
  }
  return out;
}

void PluginService::start() {
  auto worker = env_.worker("plugins");
  const int wake = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (!worker || wake < 0) {
    if (wake >= 0) ::close(wake);
    options_.log(LogLevel::kWarning, "plugins: no thread or descriptor for them; they start later");
    return look_timer_->start(kLookNs);
  }
  plughost::PluginsOptions options;
  options.folders = options_.config->plugins;
  options.tables = tables();
  options.host = options_.config->host.name;
  options.version = CULPRIT_VERSION;
  options.state_folder = state_folder();
  options.trusted_uid = ::getuid();
  options.entering = options_.entering;
  options.wake = wake;
  // Both are called on the plugins' thread.
  const auto found = [this](PluginFinding&& finding) {
    env_.post([this, finding = std::move(finding)]() mutable { this->found(std::move(finding)); });
  };
  const auto log = [this](uint32_t severity, std::string text) {
    env_.post([this, severity, text = std::move(text)] { options_.log(level_of(severity), text); });
  };
  thread_ = std::make_shared<Thread>(env_, std::move(options), found, log);
  worker_ = std::move(*worker);
  // Declares streams that are already open to the plugins first.
  options_.recorder->positions([this, thread = thread_](std::vector<StreamState> known) {
    if (stopping_) return;
    auto batch = std::make_shared<PieceBatch>();
    for (StreamState& state : known)
      if (!state.ended) batch->opened.push_back(std::move(state.info));
    thread->push(batch);
    worker_->submit([thread] { thread->run(); });
  });
}

void PluginService::append(const SharedBatch& batch) {
  if (thread_ && !stopping_) thread_->push(batch);
}

void PluginService::reload(std::function<void(std::vector<std::string>)> done) {
  if (!thread_) {
    look();
    return done({});
  }
  reload_done_ = std::move(done);
  reload_timer_->start(kReloadNs);
  const auto answered = [this, number = ++reloads_](std::vector<std::string> stored) {
    env_.post([this, number, stored = std::move(stored)]() mutable {
      if (number == reloads_) answer(std::move(stored));
    });
  };
  {
    const std::lock_guard lock(thread_->mutex);
    thread_->change = Thread::Change{options_.config->plugins, tables(), answered};
  }
  thread_->ring();
}

void PluginService::answer(std::vector<std::string> stored) {
  reload_timer_->stop();
  if (const auto done = std::exchange(reload_done_, nullptr)) done(std::move(stored));
}

void PluginService::found(PluginFinding&& finding) {
  const TimeNs now = env_.now(io::Clock::kWall);
  if (finding.time_ns == kNoTime) finding.time_ns = now;
  if (fit_line(finding))
    options_.log(LogLevel::kWarning,
                 fmt::format("plugin {}: finding {} is shortened: it is too long for a line", finding.plugin,
                             finding.id));
  const std::string path = std::string(kPathHead) + finding.plugin;
  Stream& stream = streams_[path];
  PieceBatch batch;
  if (!std::exchange(stream.open, true)) {
    stream.id = options_.recorder->allocate();
    StreamInfo info;
    info.id = stream.id;
    info.kind = OriginKind::kPlugin;
    info.path = path;
    info.opened_ns = now;
    batch.opened.push_back(std::move(info));
  }
  Piece& piece = batch.pieces.emplace_back();
  piece.stream = stream.id;
  piece.offset = stream.offset;
  piece.bytes = finding_line(finding) + "\n";
  piece.time_ns = now;
  stream.offset += piece.bytes.size();
  if (!core::is_about_culprit(finding))  // the plugins' thread already logged these findings
    options_.log(level_of(finding),
                 fmt::format("plugin {}: {} ({}, {}): {}", finding.plugin, finding.title,
                             to_string(finding.severity), to_string(finding.state), finding.text));
  options_.take(std::move(batch));
}

void PluginService::stop(std::function<void()> done) {
  stopping_ = true;
  look_timer_->stop();
  reload_timer_->stop();
  if (!thread_) return done();
  thread_->stopping = true;
  thread_->ring();
  // Findings of the last calls are already posted.
  worker_->submit([] {}, std::move(done));
}

std::vector<plughost::PluginRow> PluginService::rows() const {
  if (!thread_) return {};
  const std::lock_guard lock(thread_->mutex);
  return thread_->rows;
}

uint64_t PluginService::dropped_batches() const {
  if (!thread_) return 0;
  const std::lock_guard lock(thread_->mutex);
  return thread_->dropped;
}

}  // namespace culprit::app
