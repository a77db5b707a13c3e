#include "app/daemon/self/self_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace culprit::app {
namespace {

std::string read_proc(const char* path) {
  std::string out;
  const int descriptor = ::open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return out;
  char block[8192];
  for (ssize_t got = 0; out.size() < sizeof block && (got = ::read(descriptor, block, sizeof block)) > 0;)
    out.append(block, static_cast<size_t>(got));
  ::close(descriptor);
  return out;
}

// Reads a line "Anonymous:   1234 kB" of /proc/self/smaps_rollup; returns bytes.
uint64_t kilobytes_of(std::string_view text, std::string_view name) {
  size_t at = text.find(name);
  if (at == text.npos) return 0;
  at = text.find_first_of("0123456789", at + name.size());
  uint64_t n = 0;
  if (at != text.npos) std::from_chars(text.data() + at, text.data() + text.size(), n);
  return n * 1024;
}

uint64_t open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) return 0;
  uint64_t n = 0;
  while (const dirent* entry = ::readdir(folder)) n += entry->d_name[0] != '.';
  ::closedir(folder);
  return n - std::min<uint64_t>(n, 1);  // without the descriptor of the folder itself
}

}  // namespace

void SelfWatch::loop_beat(TimeNs now) {
  if (beat_ns_ != kNoTime) late_ns_ = std::max<TimeNs>(0, now - beat_ns_ - limits_.beat_every_ns);
  late_max_ns_ = std::max(late_max_ns_, late_ns_);
  beat_ns_ = now;
}

void SelfWatch::started(Part part, TimeNs now, std::string what) {
  Progress& p = of(part);
  if (p.given++ == p.done) {
    p.since_ns = now;
    p.what = std::move(what);
  } else {
    p.waiting.push_back(std::move(what));
  }
}

void SelfWatch::done(Part part, TimeNs now, const Status& outcome) {
  Progress& p = of(part);
  if (p.done == p.given) return;
  ++p.done;
  p.since_ns = now;  // start of the next work
  p.what.clear();
  if (!p.waiting.empty()) {
    p.what = std::move(p.waiting.front());
    p.waiting.pop_front();
  }
  p.failed += outcome ? 0 : 1;
  p.failure = outcome ? std::string() : outcome.error().text;
}

std::optional<std::string> SelfWatch::held_up(Part part, TimeNs now) const {
  const Progress& p = of(part);
  const TimeNs limit = part == Part::kEngine ? limits_.engine_stuck_ns : limits_.store_stuck_ns;
  if (p.given == p.done || now - p.since_ns < limit) return std::nullopt;
  return fmt::format("the {} has been at {} for {}", part == Part::kEngine ? "engine" : "store",
                     p.what.empty() ? "something" : p.what, format_duration(now - p.since_ns));
}

std::optional<std::string> SelfWatch::stuck(TimeNs now) const {
  if (beat_ns_ != kNoTime) {
    const TimeNs late = std::max(late_ns_, now - beat_ns_ - limits_.beat_every_ns);
    if (late >= limits_.loop_late_ns) return fmt::format("the loop is {} late", format_duration(late));
  }
  return held_up(Part::kEngine, now);
}

std::optional<std::string> SelfWatch::unhealthy(TimeNs now) const {
  if (auto why = stuck(now)) return why;
  if (auto why = held_up(Part::kStore, now)) return why;
  const Progress& store = of(Part::kStore);
  if (!store.failure.empty()) return fmt::format("nothing can be kept: {}", store.failure);
  if (!index_failure_.empty()) return fmt::format("no result can be kept: {}", index_failure_);
  if (!alerts_failure_.empty()) return fmt::format("no alert can be kept: {}", alerts_failure_);
  return std::nullopt;
}

SelfWatch::Counters SelfWatch::counters(TimeNs now) const {
  const Progress &engine = of(Part::kEngine), &store = of(Part::kStore);
  const auto waits = [&](const Progress& p) { return p.given == p.done ? 0 : now - p.since_ns; };
  return {late_ns_, late_max_ns_, engine.done, store.done, store.failed, waits(engine), waits(store)};
}

SelfUsage read_self_usage() {
  SelfUsage out;
  const std::string memory = read_proc("/proc/self/smaps_rollup");
  out.anonymous_bytes = kilobytes_of(memory, "\nAnonymous:");
  out.resident_bytes = kilobytes_of(memory, "\nRss:");
  out.descriptors = open_descriptors();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) out.descriptors_max = limit.rlim_cur;
  rusage used{};
  if (::getrusage(RUSAGE_SELF, &used) == 0) {
    const auto ns = [](const timeval& t) { return t.tv_sec * kNsPerSecond + t.tv_usec * kNsPerUs; };
    out.cpu_ns = ns(used.ru_utime) + ns(used.ru_stime);
  }
  return out;
}

}  // namespace culprit::app
