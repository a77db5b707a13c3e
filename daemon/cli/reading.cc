#include "cli/reading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <limits>
#include <mutex>
#include <system_error>

#include "base/text.h"
#include "cli/zone.h"
#include "core/logs/header.h"

namespace culprit::cli {
namespace {

constexpr int kSignals[] = {SIGINT, SIGTERM};
std::atomic<bool>* stop_flag = nullptr;  // global, for the signal handler

void on_signal(int signal) {
  if (stop_flag && !stop_flag->exchange(true)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

void add_reading_options(Command& verb, ReadingOptions& o) {
  verb.add_option("PATH", o.diagnose.paths, "Files, folders and pipes; - is standard input")->required();
  verb.add_option("--host-pattern", o.diagnose.host_pattern,
                  "Regular expression with a group `host`, on the path");
  verb.add_option("--rank-pattern", o.diagnose.rank_pattern,
                  "Regular expression with a group `rank`, on the path");
  verb.add_option("--timezone", o.timezone,
                  "Zone of times that name none, and of the times shown: UTC, +02:00, Europe/Berlin, local");
  verb.add_option("--since", o.since, "Leave out lines before this time (2026-11-21T02:12)");
  verb.add_option("--until", o.until, "Leave out lines after this time");
  verb.add_flag("--quiet,-q", o.quiet, "No progress bar");
}

Result<TimeNs> parse_time(const std::string& text, const Zone& zone) {
  if (text.starts_with("@")) {
    int64_t seconds = 0;
    const auto [stop, error] = std::from_chars(text.data() + 1, text.data() + text.size(), seconds);
    constexpr int64_t kMost = std::numeric_limits<TimeNs>::max() / kNsPerSecond;
    if (error == std::errc() && stop == text.data() + text.size() && seconds >= -kMost && seconds <= kMost)
      return seconds * kNsPerSecond;
  }
  std::string full = text;
  if (full.size() == 10) full += " 00:00:00";
  if (full.size() == 16) full += ":00";
  logs::HeaderParser parser({zone, kNoTime});
  const logs::Header header = parser.parse(full + " -");
  if (header.time_ns == kNoTime || header.kernel_time)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no time such as 2026-11-21T02:12 or @1763690000", text));
  return header.time_ns;
}

Status resolve(ReadingOptions& o) {
  const auto threads = app::thread_count(std::getenv("CULPRIT_THREADS"));
  if (!threads) return tl::unexpected(threads.error());
  o.diagnose.threads = *threads;
  auto zone = zone_named(o.timezone);
  if (!zone) return tl::unexpected(zone.error());
  o.diagnose.parse.zone = *zone;
  for (auto [text, target] :
       {std::pair{&o.since, &o.diagnose.parse.since_ns}, std::pair{&o.until, &o.diagnose.parse.until_ns}}) {
    if (text->empty()) continue;
    auto time = parse_time(*text, *zone);
    if (!time) return tl::unexpected(time.error());
    *target = *time;
  }
  return {};
}

struct Watch::Impl {
  app::ReadProgress& progress;
  bool draw;
  std::mutex mutex;
  std::condition_variable over;
  bool ended = false;
  std::thread thread;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
  bool drawn = false;

  void show() {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    const uint64_t done = progress.bytes_done, total = progress.bytes_total;
    const double rate = static_cast<double>(done) / std::max(seconds, 1e-3);
    std::string left = "";
    if (total > done && rate > 1)
      left = format_duration(static_cast<TimeNs>(static_cast<double>(total - done) / rate * 1e9)) + " left";
    const int filled = total ? static_cast<int>(std::min<uint64_t>(24, 24 * done / total)) : 0;
    // The size of a pipe is unknown.
    const std::string size = total ? format_bytes(done) + " of " + format_bytes(total) : format_bytes(done);
    fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {}  {}/s  {}", "", filled, "", 24 - filled, size,
               format_bytes(static_cast<uint64_t>(rate)), left);
    std::fflush(stderr);
    drawn = true;
  }

  // Previous handlers, in the order of kSignals.
  struct sigaction before[2] = {};

  void catch_signals() {
    stop_flag = &progress.stop;
    struct sigaction ours = {};
    ours.sa_handler = on_signal;
    ours.sa_flags = SA_RESTART;
    for (size_t i = 0; i < std::size(kSignals); ++i) {
      sigaction(kSignals[i], nullptr, &before[i]);
      if (before[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &ours, nullptr);
    }
  }

  void release_signals() {
    for (size_t i = 0; i < std::size(kSignals); ++i) sigaction(kSignals[i], &before[i], nullptr);
    stop_flag = nullptr;
  }

  void loop() {
    std::unique_lock lock(mutex);
    // Shows no bar for short readings.
    while (!over.wait_for(lock, std::chrono::milliseconds(drawn ? 100 : 400), [this] { return ended; }))
      show();
    if (drawn) fmt::print(stderr, "\r\x1b[K");
  }
};

Watch::Watch(app::ReadProgress& progress, bool draw)
    : impl_(new Impl{progress, draw && isatty(2), {}, {}, false, {}}) {
  impl_->catch_signals();
  if (!impl_->draw) return;
  try {
    impl_->thread = std::thread([this] { impl_->loop(); });
  } catch (const std::system_error&) {
    // Without a thread there is no bar.
  }
}

Watch::~Watch() {
  if (impl_->thread.joinable()) {
    {
      std::lock_guard lock(impl_->mutex);
      impl_->ended = true;
    }
    impl_->over.notify_all();
    impl_->thread.join();
  }
  impl_->release_signals();
}

}  // namespace culprit::cli
