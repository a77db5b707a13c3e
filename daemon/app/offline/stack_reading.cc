#include "app/offline/stack_reading.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <new>
#include <thread>
#include <utility>

#include "ingest/stack_reader.h"

namespace culprit::app {
namespace {

// Files read at a time, which limits the memory for their texts.
constexpr size_t kStackFilesAtOnce = 256;

void read_stack_file(const LogFile& file, const JobFile& job, ingest::ReadStacks& out) {
  try {
    auto read = ingest::read_stacks(file.file);
    if (!read) {
      std::string what = read.error().text;
      if (what.starts_with(file.file.path + ": ")) what.erase(0, file.file.path.size() + 2);
      out.problems.push_back({file.file.path, std::nullopt, std::move(what)});
      return;
    }
    out = std::move(*read);
    for (StackDump& dump : out.dumps) {
      if (file.info.host && (!dump.host || file.info.host_wins)) dump.host = file.info.host;
      if (file.info.rank && (!dump.rank || file.info.rank_wins)) dump.rank = file.info.rank;
      if (!dump.rank && dump.host && file.info.local)
        dump.rank = rank_of_local(job, *dump.host, *file.info.local);
    }
  } catch (const std::bad_alloc&) {
    out.problems.push_back({file.file.path, std::nullopt, "out of memory: could not be read"});
  }
}

}  // namespace

std::vector<Problem> read_stack_files(const std::vector<LogFile>& files, const JobFile& job, unsigned threads,
                                      const TakeStacks& take, ReadProgress& progress) {
  std::vector<Problem> problems;
  for (size_t first = 0; first < files.size() && !progress.stop; first += kStackFilesAtOnce) {
    std::vector<ingest::ReadStacks> slots(std::min(kStackFilesAtOnce, files.size() - first));
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < slots.size() && !progress.stop; i = next++) {
        read_stack_file(files[first + i], job, slots[i]);
        progress.bytes_done += files[first + i].file.size;
      }
    };
    std::vector<std::thread> pool;
    try {
      for (unsigned t = 1; t < std::min<size_t>(threads, slots.size()); ++t) pool.emplace_back(work);
    } catch (const std::exception&) {
      // The caller's thread does the same work, in case the system provides no more threads.
    }
    work();
    for (std::thread& t : pool) t.join();
    core::NonLogRead read;
    for (size_t i = 0; i < slots.size(); ++i) {
      std::move(slots[i].problems.begin(), slots[i].problems.end(), std::back_inserter(problems));
      if (!slots[i].dumps.empty()) read.bytes += files[first + i].file.size;
      for (StackDump& dump : slots[i].dumps) take(core::StackInput{std::move(dump)});
      for (StackRefusal& refusal : slots[i].refusals) take(std::move(refusal));
    }
    take(read);
  }
  return problems;
}

}  // namespace culprit::app
