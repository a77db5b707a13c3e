// What an event for a plugin costs: encoding it, and bringing it to a plugin in this process and to one in a
// process of its own, both on one core. Processor time of all sides, divided by the events.
//
//   build/release/bin/bench_plugins [millions]      events per row, 4 by default; some seconds
//
// Figures for people, and no gate: the machine is shared. Goals: 50 ns in this process, 1 us in its own, a
// million events a second on one core.
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "plughost/events.h"
#include "plughost/plugins.h"

namespace {

using namespace culprit;
using namespace culprit::plughost;

constexpr size_t kBatch = 1000;  // events, as a busy host gives within some milliseconds
constexpr uint64_t kQueuedMax = 10 * kBatch;

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
double cpu_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void write_lines(EventWriter& writer) {
  const std::string_view text =
      "2026-11-21 02:12:09,123 [rank3] step 1042 loss 2.1345 grad_norm 0.8812 tokens/s 10231 mem 61.2 GiB";
  const std::string_view pattern = "step <_> loss <_> grad_norm <_> tokens/s <_> mem <_> GiB";
  const std::string_view parameters[] = {"1042", "2.1345", "0.8812", "10231", "61.2"};
  const EventHead head{CULPRIT_EVENT_LOG, 1, "llama-70b-0412", "node-3", "/var/log/train/rank_3.log", 3, 3};
  for (size_t i = 0; i < kBatch; ++i) writer.line(head, text, pattern, parameters, i);
}

void write_operations(EventWriter& writer) {
  const EventHead head{CULPRIT_EVENT_COMM, 1, "llama-70b-0412", "node-3", "ring", 3, 3};
  CommRecord record;
  record.comm_size = 8;
  for (size_t i = 0; i < kBatch; ++i) writer.comm(head, record);
}

void write_counters(EventWriter& writer) {
  const EventHead head{CULPRIT_EVENT_COUNTER, 1, "", "node-3", "trace", -1, -1};
  for (size_t i = 0; i < kBatch; ++i) writer.counter(head, "psi_cpu_some_avg10", 1.5);
}

struct Kind {
  const char* name;
  void (*write)(EventWriter&);
};
constexpr Kind kKinds[] = {
    {"line of a log", write_lines}, {"operation", write_operations}, {"counter of the host", write_counters}};

std::string batch_of(const Kind& kind) {
  EventWriter writer;
  kind.write(writer);
  return writer.take();
}

double encode_ns(const Kind& kind, uint64_t events) {
  EventWriter writer;
  const double begun = cpu_seconds(RUSAGE_THREAD);
  for (uint64_t sent = 0; sent < events; sent += kBatch) {
    kind.write(writer);
    writer.take();
  }
  return (cpu_seconds(RUSAGE_THREAD) - begun) * 1e9 / static_cast<double>(events);
}

struct Cost {
  double cpu_ns = 0, events_per_second = 0;
};

Cost deliver(const std::string& folder, const Kind& kind, bool own_process, uint64_t events) {
  PluginsOptions options;
  PluginTable table;
  table.name = "tally";
  table.own_process = own_process;
  table.cpu_ppm = 0;
  options.folders = {folder};
  options.tables = {table};
  options.trusted_uid = geteuid();
  Plugins plugins(
      std::move(options), [](PluginFinding&& found) { std::fprintf(stderr, "%s\n", found.text.c_str()); },
      [](uint32_t, std::string line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  plugins.scan(0);
  while (plugins.wanted() == 0) plugins.round(0, 0, 10);
  const std::string batch = batch_of(kind);
  const double children = cpu_seconds(RUSAGE_CHILDREN), own = cpu_seconds(RUSAGE_THREAD);
  const double begun = wall_seconds();
  const auto mono = [&] { return static_cast<TimeNs>((wall_seconds() - begun) * 1e9); };
  for (uint64_t sent = 0; sent < events; sent += kBatch) {
    plugins.observe(batch);
    plugins.round(0, mono(), 0);
    while (plugins.rows()[0].queued > kQueuedMax) plugins.round(0, mono(), 10);
  }
  while (plugins.rows()[0].queued > 0) plugins.round(0, mono(), 10);
  const uint64_t dropped = plugins.rows()[0].dropped;
  plugins.stop(mono(), 10'000);  // after the last event is observed
  const double took = wall_seconds() - begun;
  const double spent = cpu_seconds(RUSAGE_THREAD) - own + cpu_seconds(RUSAGE_CHILDREN) - children;
  if (dropped > 0) std::printf("%llu events dropped\n", static_cast<unsigned long long>(dropped));
  return {spent * 1e9 / static_cast<double>(events), static_cast<double>(events) / took};
}

void use_one_core() {
  cpu_set_t all, one;
  CPU_ZERO(&one);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &all)) {
      CPU_SET(core, &one);
      break;
    }
  sched_setaffinity(0, sizeof one, &one);
}

}  // namespace

int main(int argc, char** argv) {
  const double millions = argc > 1 ? std::atof(argv[1]) : 4;
  const auto events = static_cast<uint64_t>(millions * 1e6);
  use_one_core();
  std::printf("%-20s %7s %9s %15s %15s %15s\n", "event", "bytes", "encoding", "in this process",
              "in its process", "events a second");
  for (const Kind& kind : kKinds) {
    const double encoding = encode_ns(kind, events);
    const Cost here = deliver(CULPRIT_BENCH_PLUGINS, kind, false, events);
    const Cost there = deliver(CULPRIT_BENCH_PLUGINS, kind, true, events);
    std::printf("%-20s %7zu %6.1f ns %12.1f ns %12.1f ns %15.0f\n", kind.name, batch_of(kind).size() / kBatch,
                encoding, here.cpu_ns, there.cpu_ns, there.events_per_second);
  }
  return 0;
}
