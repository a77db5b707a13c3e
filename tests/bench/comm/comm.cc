// Cost of a communication trace from files to the answer. For each number of steps and ranks, one process
// writes a plain job to a folder and another diagnoses it.
//
//   bench_comm FOLDER STEPS[,STEPS...] WORLD...        CULPRIT_THREADS: default 2
//
// One row each: ranks, steps, records, MB, seconds from file to answer (files in the page cache), CPU
// seconds, nanoseconds of CPU per record, the diagnosing process's peak memory in MB, and the accused rank.
// The slow rank is 21, with factor two: in a long pipeline less would be hidden. Fails if another rank is
// accused, or if a record of the last row costs much more than one of the first: the cost must be linear in
// records.
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "../../sim/plain_job.h"
#include "app/offline/diagnose.h"

namespace {

using namespace culprit;
namespace fs = std::filesystem;

void write_job(const fs::path& folder, uint32_t world, uint32_t steps) {
  plain::Layout layout{std::min(8u, world), 1, 1, 16, 1, 8};
  while (layout.world() * 2 <= world)
    (layout.pp < 16 && layout.pp < 4 * layout.dp ? layout.pp : layout.dp) *= 2;
  plain::Faults faults;
  faults.work = [](uint32_t rank, uint32_t) { return rank == 21 ? 2.0 : 1.0; };
  plain::Chance chance;
  chance.skew_ms = 1000;
  plain::Job job(layout, chance, faults);
  const auto path = [&](uint32_t host) { return folder / fmt::format("node-{}.comm", host); };
  for (uint32_t h = 0; h < job.hosts(); ++h)
    std::ofstream(path(h), std::ios::binary) << comm_header_bytes({fmt::format("node-{}", h), "bench"});
  for (uint32_t s = 0; s < steps; ++s) {
    const auto step = job.step();
    for (uint32_t h = 0; h < job.hosts(); ++h)
      std::ofstream(path(h), std::ios::binary | std::ios::app)
          .write(reinterpret_cast<const char*>(step[h].data()),
                 static_cast<std::streamsize>(step[h].size() * kCommRecordBytes));
  }
}

// Resources of a process that must exit with 0; a process of its own, so that earlier memory does not count.
template <class Work>
std::optional<rusage> in_process(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  rusage use{};
  if (child < 0 || wait4(child, &status, 0, &use) != child || status != 0) return std::nullopt;
  return use;
}

// Writes the seconds and the accused rank to a file.
int diagnose_job(const fs::path& folder, unsigned threads, const fs::path& out) {
  app::DiagnoseOptions options;
  options.paths = {folder.string()};
  options.threads = threads;
  app::ReadProgress progress;
  const auto begin = std::chrono::steady_clock::now();
  const auto done = app::diagnose(options, progress);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!done) return 1;
  const auto& list = done->report.irregularities;
  const bool named = !list.empty() && !list[0].suspects.empty();
  std::ofstream(out) << seconds << " " << (named ? int64_t{list[0].suspects[0].rank.value_or(0)} : -1);
  return 0;
}

struct Row {
  double ns_a_record = 0;
  bool right = false;
};

Row measure(const fs::path& base, uint32_t world, uint32_t steps, unsigned threads) {
  const fs::path folder = base / fmt::format("bench-comm-{}-{}", getpid(), world);
  const fs::path answer = base / fmt::format("bench-comm-{}.txt", getpid());
  fs::create_directories(folder);
  Row row;
  const bool written = in_process([&] { return write_job(folder, world, steps), 0; }).has_value();
  uint64_t records = 0;
  for (const auto& file : fs::directory_iterator(folder))
    records += (file.file_size() - kCommHeaderBytes) / kCommRecordBytes;
  const auto use = in_process([&] { return diagnose_job(folder, threads, answer); });
  double seconds = 0;
  int64_t named = -1;
  std::ifstream(answer) >> seconds >> named;
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  fs::remove(answer, ignored);
  if (!written || !use || records == 0) return row;
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  const double cpu = of(use->ru_utime) + of(use->ru_stime);
  row.ns_a_record = cpu / static_cast<double>(records) * 1e9;
  row.right = world <= 64 || named == 21;
  fmt::print("{}\t{}\t{}\t{}\t{:.2f}\t{:.2f}\t{:.0f}\t{}\t{}\n", world, steps, records,
             records * kCommRecordBytes >> 20, seconds, cpu, row.ns_a_record, use->ru_maxrss >> 10,
             named < 0 ? "none" : fmt::format("rank {}", named));
  std::fflush(stdout);
  return row;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_comm FOLDER STEPS[,STEPS...] WORLD...\n");
    return 2;
  }
  const char* setting = std::getenv("CULPRIT_THREADS");
  const auto threads = app::thread_count(setting ? setting : "2");
  if (!threads) return 2;
  fmt::print("ranks\tsteps\trecords\tMB\tseconds\tCPU s\tns/rec\tpeak MB\tnames\n");
  std::fflush(stdout);
  std::vector<Row> rows;
  std::istringstream list(argv[2]);
  for (std::string steps; std::getline(list, steps, ',');)
    for (int i = 3; i < argc; ++i)
      rows.push_back(measure(argv[1], static_cast<uint32_t>(std::stoul(argv[i])),
                             static_cast<uint32_t>(std::stoul(steps)), *threads));
  bool right = !rows.empty();
  for (const Row& row : rows) right = right && row.right;
  // Caches that are too small for a large job cost a factor of two; a larger factor is not linear.
  return right && rows.back().ns_a_record < 4 * rows.front().ns_a_record ? 0 : 1;
}
