// What a communication trace costs from files to the answer: a plain job of its own is written to a folder
// and read back, for each world size.
//
//   bench_comm FOLDER STEPS WORLD...
//
// A row each: ranks, records, MB, seconds from file to answer, million records a second, peak memory so far
// in MB, and whom it names (rank 21, twice as slow: in a long pipeline less would be hidden).
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "app/diagnose.h"
#include "plain_job.h"

namespace {

using namespace culprit;
namespace fs = std::filesystem;

uint64_t write_job(const fs::path& folder, uint32_t world, uint32_t steps) {
  plain::Layout layout{std::min(8u, world), 1, 1, 16, 1, 8};
  while (layout.world() * 2 <= world)
    (layout.pp < 16 && layout.pp < 4 * layout.dp ? layout.pp : layout.dp) *= 2;
  plain::Faults faults;
  faults.work = [](uint32_t rank, uint32_t) { return rank == 21 ? 2.0 : 1.0; };
  plain::Chance chance;
  chance.skew_ms = 1000;
  plain::Job job(layout, chance, faults);
  std::vector<std::ofstream> files;
  for (uint32_t h = 0; h < job.hosts(); ++h) {
    files.emplace_back(folder / fmt::format("node-{}.comm", h), std::ios::binary);
    files.back() << comm_header_bytes({fmt::format("node-{}", h), "bench"});
  }
  uint64_t records = 0;
  for (uint32_t s = 0; s < steps; ++s) {
    const auto step = job.step();
    for (uint32_t h = 0; h < job.hosts(); ++h) {
      records += step[h].size();
      files[h].write(reinterpret_cast<const char*>(step[h].data()),
                     static_cast<std::streamsize>(step[h].size() * kCommRecordBytes));
    }
  }
  return records;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "usage: bench_comm FOLDER STEPS WORLD...\n");
    return 2;
  }
  const auto steps = static_cast<uint32_t>(std::stoul(argv[2]));
  fmt::print("ranks\trecords\tMB\tseconds\tMrec/s\tpeak MB\tnames\n");
  bool right = true;
  for (int i = 3; i < argc; ++i) {
    const auto world = static_cast<uint32_t>(std::stoul(argv[i]));
    const fs::path folder = fs::path(argv[1]) / fmt::format("bench-comm-{}-{}", getpid(), world);
    fs::create_directories(folder);
    const uint64_t records = write_job(folder, world, steps);
    app::DiagnoseOptions options;
    options.paths = {folder.string()};
    options.threads = 2;
    app::ReadProgress progress;
    const auto begin = std::chrono::steady_clock::now();
    const auto out = app::diagnose(options, progress);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    rusage use{};
    getrusage(RUSAGE_SELF, &use);
    std::string names = "nobody";
    if (out && !out->report.irregularities.empty() && !out->report.irregularities[0].suspects.empty())
      names = fmt::format("rank {}", out->report.irregularities[0].suspects[0].rank.value_or(0));
    right = right && (world <= 64 || names == "rank 21");
    fmt::print("{}\t{}\t{}\t{:.2f}\t{:.2f}\t{}\t{}\n", world, records, records * kCommRecordBytes >> 20,
               seconds, static_cast<double>(records) / seconds / 1e6, use.ru_maxrss >> 10, names);
    fs::remove_all(folder);
  }
  return right ? 0 : 1;
}
