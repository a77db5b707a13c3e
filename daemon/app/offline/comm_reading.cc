#include "app/offline/comm_reading.h"

#include <algorithm>
#include <memory>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include "app/jobs/task_thread.h"
#include "app/offline/open_files.h"
#include "ingest/comm_file.h"

namespace culprit::app {
namespace {

// Records read from a file at a time: 128 KB, a step of some of a host's ranks.
constexpr size_t kBlock = 2048;
// Blocks per round: one thread reads them while another feeds the previous round to the engine; 4 MB, which
// stay in the processor's cache.
constexpr size_t kBlocks = 32;

struct CommInput {
  const ingest::SourceFile* file = nullptr;
  ingest::CommFile reader;
  uint64_t reported = 0;  // bytes reported as progress
};

struct Block {
  std::string host;
  std::vector<CommRecord> records;
};

// Blocks in reading order; reused to keep its memory.
struct Round {
  std::vector<Block> blocks;
  size_t used = 0;
  uint64_t bytes = 0;  // including headers
  std::vector<Problem> problems;
  bool ended = false;
};

class CommReader {
 public:
  CommReader(const std::vector<ingest::SourceFile>& files, ReadProgress& progress)
      : files_(files), progress_(progress), readings_(files.size()) {
    open_max_ = std::min(kOpen, descriptors_for(std::min(kOpen, files.size())));
  }

  void next(Round& out) {
    out.used = 0;
    out.problems.clear();
    out.blocks.resize(kBlocks);
    while (out.used < kBlocks && !progress_.stop) {
      while (next_file_ < files_.size() && has_room(files_[next_file_])) open(out);
      if (turns_.empty()) break;
      read(out);
    }
    out.ended = progress_.stop || (turns_.empty() && next_file_ >= files_.size());
  }

 private:
  // Order of reading: the file with the lowest step first, then the one with the fewest records.
  struct Turn {
    uint32_t step = 0;
    uint64_t records = 0;
    size_t file = 0;
    bool operator<(const Turn& o) const {
      return std::tie(step, records, file) < std::tie(o.step, o.records, o.file);
    }
  };

  bool has_room(const ingest::SourceFile& file) const {
    if (file.compression != ingest::Compression::kNone && compressed_ >= kOpenCompressed) return false;
    return turns_.size() < open_max_;
  }

  void open(Round& out) {
    const size_t index = next_file_++;
    const ingest::SourceFile& file = files_[index];
    auto reader = ingest::CommFile::open(file);
    if (!reader) {
      std::string what = reader.error().text;
      if (what.starts_with(file.path + ": ")) what = what.substr(file.path.size() + 2);
      out.problems.push_back({file.path, std::nullopt, std::move(what)});
      return;
    }
    readings_[index] = std::make_unique<CommInput>(CommInput{&file, std::move(*reader), 0});
    out.bytes += kCommHeaderBytes;
    compressed_ += file.compression != ingest::Compression::kNone;
    turns_.insert({0, 0, index});
  }

  void read(Round& out) {
    Turn turn = turns_.extract(turns_.begin()).value();
    CommInput& one = *readings_[turn.file];
    Block& block = out.blocks[out.used];
    try {
      one.reader.next(block.records, kBlock);
    } catch (const std::bad_alloc&) {
      out.problems.push_back({one.file->path, std::nullopt, "out of memory: could not be read to its end"});
      block.records.clear();
    }
    progress_.bytes_done += one.reader.consumed() - one.reported;
    one.reported = one.reader.consumed();
    const std::vector<CommRecord>& records = block.records;
    out.bytes += records.size() * kCommRecordBytes;
    if (!records.empty()) {
      block.host = one.reader.header().host;
      ++out.used;
    }
    if (records.size() == kBlock) {
      turn.records += records.size();
      if (records.back().step != kCommUnknown) turn.step = std::max(turn.step, records.back().step);
      turns_.insert(turn);
      return;
    }
    if (one.reader.problem()) out.problems.push_back(*one.reader.problem());
    compressed_ -= one.file->compression != ingest::Compression::kNone;
    readings_[turn.file] = nullptr;
  }

  const std::vector<ingest::SourceFile>& files_;
  ReadProgress& progress_;
  std::vector<std::unique_ptr<CommInput>> readings_;  // by file, null if not open
  std::set<Turn> turns_;                              // turns of the open files
  size_t next_file_ = 0, open_max_ = 0, compressed_ = 0;
};

}  // namespace

std::vector<Problem> read_comm(const std::vector<ingest::SourceFile>& files, core::Engine& engine,
                               ReadProgress& progress, unsigned threads) {
  std::vector<Problem> problems;
  if (files.empty()) return problems;
  CommReader reader(files, progress);
  Round rounds[2];
  TaskThread ahead;
  const auto read = [&](Round& round) {
    if (threads > 1)
      ahead.start([&] { reader.next(round); });
    else
      reader.next(round);
  };
  size_t turn = 0;
  read(rounds[0]);
  for (bool ended = false; !ended; turn = 1 - turn) {
    ahead.wait();
    Round& round = rounds[turn];
    ended = round.ended;
    if (!ended) read(rounds[1 - turn]);
    std::move(round.problems.begin(), round.problems.end(), std::back_inserter(problems));
    std::vector<core::Input> inputs;
    for (size_t i = 0; i < round.used; ++i)
      inputs.emplace_back(core::CommInput{round.blocks[i].host, round.blocks[i].records});
    inputs.emplace_back(core::NonLogRead{std::exchange(round.bytes, 0), 0});
    engine.step(inputs, kNoTime);
  }
  return problems;
}

}  // namespace culprit::app
