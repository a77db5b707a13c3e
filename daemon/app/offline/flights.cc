#include "app/offline/flights.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <new>
#include <optional>
#include <thread>

#include "ingest/flight_reader.h"

namespace culprit::app {
namespace {

// Dumps read at a time, which limits the memory for their texts.
constexpr size_t kAtOnce = 64;

struct Slot {
  std::optional<FlightDump> dump;
  std::optional<Problem> problem;
};

void read_one(const LogFile& file, Slot& slot) {
  try {
    auto read = ingest::read_flight(file.file);
    if (!read) {
      std::string what = read.error().text;
      if (what.starts_with(file.file.path + ": ")) what.erase(0, file.file.path.size() + 2);
      slot.problem = Problem{file.file.path, std::nullopt, std::move(what)};
      return;
    }
    if (file.info.host && !read->dump.host) read->dump.host = file.info.host;
    slot.problem = std::move(read->problem);
    slot.dump = std::move(read->dump);
  } catch (const std::bad_alloc&) {
    slot.problem = Problem{file.file.path, std::nullopt, "out of memory: could not be read"};
  }
}

}  // namespace

std::vector<Problem> read_flights(const std::vector<LogFile>& files, unsigned threads, core::Engine& engine,
                                  ReadProgress& progress) {
  std::vector<Problem> problems;
  for (size_t first = 0; first < files.size() && !progress.stop; first += kAtOnce) {
    std::vector<Slot> slots(std::min(kAtOnce, files.size() - first));
    std::atomic<size_t> next{0};
    const auto work = [&] {
      for (size_t i = next++; i < slots.size() && !progress.stop; i = next++) {
        read_one(files[first + i], slots[i]);
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
    core::Input read = core::NonLogRead{};
    for (size_t i = 0; i < slots.size(); ++i)
      if (slots[i].dump) std::get<core::NonLogRead>(read).bytes += files[first + i].file.size;
    engine.step({&read, 1}, kNoTime);
    for (Slot& slot : slots) {
      if (slot.problem) problems.push_back(std::move(*slot.problem));
      if (!slot.dump) continue;
      core::Input input = core::FlightInput{std::move(*slot.dump)};
      engine.step({&input, 1}, kNoTime);
    }
  }
  return problems;
}

}  // namespace culprit::app
