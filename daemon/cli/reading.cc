#include "cli/reading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <mutex>

#include "base/text.h"
#include "core/logs/header.h"

namespace culprit::cli {
namespace {

std::atomic<bool>* stop_flag = nullptr;  // a signal handler can reach nothing else

void on_signal(int signal) {
  if (stop_flag && !stop_flag->exchange(true)) return;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// A zone's offset now, by the system's database.
Result<int32_t> zone_offset(const std::string& name) {
  if (const auto offset = parse_utc_offset(name)) return *offset;
  const std::string path = "/usr/share/zoneinfo/" + name;
  if (name != "local" &&
      (name.empty() || name.find("..") != std::string::npos || access(path.c_str(), R_OK) != 0))
    return fail(
        ErrorCode::kInvalid,
        fmt::format("--timezone {}: neither an offset such as +02:00 nor a zone such as Europe/Berlin",
                    name));
  if (name != "local") setenv("TZ", name.c_str(), 1);
  tzset();
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return static_cast<int32_t>(local.tm_gmtoff);
}

}  // namespace

void add_reading_options(CLI::App& verb, ReadingOptions& o) {
  verb.add_option("PATH", o.diagnose.paths, "Files and folders; - is standard input")->required();
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

Result<TimeNs> parse_time(const std::string& text, int32_t utc_offset_s) {
  if (text.starts_with("@")) {
    int64_t seconds = 0;
    const auto [stop, error] = std::from_chars(text.data() + 1, text.data() + text.size(), seconds);
    if (error == std::errc() && stop == text.data() + text.size()) return seconds * kNsPerSecond;
  }
  std::string full = text;
  if (full.size() == 10) full += " 00:00:00";
  if (full.size() == 16) full += ":00";
  logs::HeaderParser parser({utc_offset_s, kNoTime});
  const logs::Header header = parser.parse(full + " -");
  if (header.time_ns == kNoTime || header.kernel_time)
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: no time such as 2026-11-21T02:12 or @1763690000", text));
  return header.time_ns;
}

Status resolve(ReadingOptions& o) {
  o.diagnose.threads = app::thread_count(std::getenv("CULPRIT_THREADS"));
  auto offset = zone_offset(o.timezone);
  if (!offset) return tl::unexpected(offset.error());
  o.utc_offset_s = *offset;
  o.diagnose.parse.utc_offset_s = *offset;
  for (auto [text, target] :
       {std::pair{&o.since, &o.diagnose.parse.since_ns}, std::pair{&o.until, &o.diagnose.parse.until_ns}}) {
    if (text->empty()) continue;
    auto time = parse_time(*text, *offset);
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
    fmt::print(stderr, "\r\x1b[K[{:#<{}}{:.<{}}] {} of {}  {}/s  {}", "", filled, "", 24 - filled,
               format_bytes(done), format_bytes(total), format_bytes(static_cast<uint64_t>(rate)), left);
    std::fflush(stderr);
    drawn = true;
  }

  void loop() {
    std::unique_lock lock(mutex);
    // Nothing is drawn for what is over at once.
    while (!over.wait_for(lock, std::chrono::milliseconds(drawn ? 100 : 400), [this] { return ended; }))
      show();
    if (drawn) fmt::print(stderr, "\r\x1b[K");
  }
};

Watch::Watch(app::ReadProgress& progress, bool draw)
    : impl_(new Impl{progress, draw && isatty(2), {}, {}, false, {}}) {
  stop_flag = &progress.stop;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  if (impl_->draw) impl_->thread = std::thread([this] { impl_->loop(); });
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
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  stop_flag = nullptr;
}

}  // namespace culprit::cli
